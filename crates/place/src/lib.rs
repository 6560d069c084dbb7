//! (room place)
