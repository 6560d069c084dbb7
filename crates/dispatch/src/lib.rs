//! (room dispatch)
