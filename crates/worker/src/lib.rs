//! (room worker)
