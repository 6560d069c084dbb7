//! Tests of the program that need only one machine. Each area is a module, and all modules are one program to link.

#[path = "../../../../../tests/alone.rs"]
mod alone;
#[path = "../support/engine.rs"]
mod engine;
#[path = "../../../../../tests/preload.rs"]
mod preload;
#[path = "../../../../../tests/script.rs"]
mod script;
#[path = "../../../../../tests/skipped.rs"]
mod skipped;
#[path = "../../../../../tests/sshd.rs"]
mod sshd;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/terminal.rs"]
mod terminal;
#[path = "../../../../../tests/until.rs"]
mod until;
#[path = "../support/world.rs"]
mod world;

mod architecture;
mod beside_parallel;
mod campaign;
mod check;
mod clock;
mod cluster_keys;
mod columns;
mod completions;
mod consent;
mod containers;
mod cost;
mod devices;
mod documents;
mod exact;
mod exec;
mod failures;
mod first_hour;
mod foreign_words;
mod formats;
mod frozen;
mod fuzz;
mod gateway;
mod golden;
mod hdfs;
mod history;
mod hostile;
mod json;
mod language;
mod login;
mod lsf;
mod make;
mod make_alike;
mod metrics;
mod modules;
mod mounts;
mod nodeset;
mod notices;
mod options;
mod outcome;
mod package;
mod pipe;
mod pipeline;
mod pipepart;
mod planted_names;
mod processes;
mod programs;
mod queue;
mod resume;
mod run;
mod runs;
mod screen;
mod snapshot;
mod statuses;
mod vaults;
mod view;
