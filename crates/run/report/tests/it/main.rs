//! The report, as its readers see it, from events of invented runs.

mod html;
mod made;
mod text;
