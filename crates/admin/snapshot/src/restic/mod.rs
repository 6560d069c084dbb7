//! Images in a repository of the restic program instead of plain trees. They are encrypted, and of a large file that
//! changes in place they keep only the changed parts.
//!
//! restic runs where the bytes are, and writes to the bank over sftp. homing runs it as a program; its libraries
//! promise no stable interface.

mod host;
mod words;

pub use host::serve;
