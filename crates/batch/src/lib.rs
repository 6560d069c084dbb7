//! (room batch)
