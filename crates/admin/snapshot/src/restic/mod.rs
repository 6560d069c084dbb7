//! Images in a repository of the restic program, in the place of plain trees: encrypted, and of a large file that
//! changes in place only what has changed.
//!
//! restic runs where the bytes are, and writes to the bank over sftp. It is driven as a program; its libraries promise
//! no interface that stays.

mod host;
mod words;

pub use host::serve;
