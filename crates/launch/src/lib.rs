//! (room launch)
