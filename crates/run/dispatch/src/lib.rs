//! The coordinator: joins placement, workers, journal and output into a run.
//!
//! `core` decides and is pure; `run` owns the threads and channels around it; `output` prints. Events are appended to
//! the journal before any action on them. Therefore the run of a coordinator that died can be resumed. The tasks of a
//! lost host run again on others (`core::leaving`).
//!
//! [`source`] feeds the run: the input as it is read, the layout of each task's files, the environment and the job
//! log. Main types: `Core` is the state of hosts and attempts, `RunSettings` the options of a run.
//!
//! It does not: parse a command line (`batch` and the program), open connections (`launch`), or draw (`report`).

mod admission;
mod around;
mod colour;
mod container;
mod core;
mod granted_hosts;
mod hosts;
mod kept;
mod kinds;
mod output;
mod power;
mod room;
mod run;
mod servers;
mod settings;
mod signals;
pub mod source;
mod stdin;
mod terminal;
mod transport;
mod volume_access;
pub mod watch;
mod written;

pub use admission::{Io, StorageIx};
pub use around::Around;
pub use colour::Colours;
pub use container::{Container, Runtime};
pub use core::{Action, AttemptRecord, Core, Licensed, Offer, Policy, Resources, Skipped};
pub use hosts::{Hosts, VolumeIx};
pub use kept::FILE as UNPRINTED;
pub use output::{OutputOptions, Printer};
pub use power::{Circuit, Draw};
pub use run::run;
pub use settings::{DispatchError, Incoming, Later, Listener, ResultFiles, RunProgress, RunSettings, Seats};
pub use signals::Interrupts;
pub use terminal::Terminal;
pub use volume_access::VolumeAlias;
