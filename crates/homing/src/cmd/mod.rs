//! One file a subcommand.
pub mod bench;
pub mod copy;
pub mod exec;
pub mod generate;
pub mod hosts;
pub mod lab;
pub mod lsf;
pub mod make;
pub mod nodeset;
pub mod queue;
pub mod report;
pub mod resume;
pub mod run;
pub mod runs;
pub mod targets;
pub mod volume;
pub mod whereis;
