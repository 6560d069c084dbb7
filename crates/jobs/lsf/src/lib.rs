//! The commands of LSF and OpenLava: their options and their output. Columns, messages and widths are those of
//! OpenLava 2.2, which scripts have parsed for years. `-o`, `-cwd`, `-env` and similar options are those of today's
//! LSF, which workflow managers expect.
//!
//! Main modules: `grammar` and `options` parse the words of each command, `bsub` a submission, from which `request`
//! makes a job. `rows` and `queues` describe jobs, queues and hosts of an engine, and `jobs` and `tables` print them.
//! `deed` carries out `bkill`, `bstop`, `bresume` and `brequeue`. All but `rows` and `deed` is pure.
//!
//! It does not: keep jobs, or decide which one starts where (`queue`).

pub mod account;
pub mod bsub;
pub mod choose;
pub mod columns;
pub mod deed;
pub mod env;
pub mod fields;
pub mod grammar;
pub mod jobs;
pub mod line;
pub mod options;
pub mod place;
pub mod queues;
pub mod request;
pub mod rows;
pub mod selection;
pub mod spent;
pub mod table_fields;
pub mod tables;
pub mod time;
pub mod units;
