//! (room journal)
