//! (room lab)
