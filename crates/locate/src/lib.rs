//! (room locate)
