//! The commands of LSF and OpenLava: their options and their output. Columns, messages and widths are those of
//! OpenLava 2.2, which scripts have parsed for years. `-o`, `-cwd`, `-env` and similar options are those of today's
//! LSF, which workflow managers expect. Everything here is pure.
//!
//! Main modules: `grammar` and `options` parse the words of each command, `bsub` a submission, `require` a resource
//! requirement, `jobs` and `tables` print.
//!
//! It does not: read or change jobs (`queue`).

pub mod account;
pub mod bsub;
pub mod choose;
pub mod columns;
pub mod env;
pub mod fields;
pub mod grammar;
pub mod jobs;
pub mod line;
pub mod options;
pub mod place;
pub mod require;
pub mod selection;
pub mod spent;
pub mod table_fields;
pub mod tables;
pub mod time;
pub mod units;
