//! The report as a reader sees it, from events of runs that were never run.

mod html;
mod made;
mod text;
