//! Draws the screen of `homing top`, and carries out its keys. A [`Scene`] is the data of a moment, a [`WatchView`] the
//! part of it that the user has chosen to see. Drawing is pure: it reads no file and no clock.
//!
//! [`history`] keeps a sample a minute in a file that never grows beyond its bound. It alone reads and writes files.
//!
//! It does not: take samples (`probe`), or read the terminal (the program).

mod clock;
mod draw;
pub mod history;
mod hosts;
mod keys;
mod past;
mod rows;
mod scene;
#[cfg(test)]
mod tests;
mod text;
mod view;

pub use clock::Clock;
pub use draw::draw;
pub use keys::{KeyPress, ViewRequest};
pub use past::Past;
pub use scene::{About, Scene};
pub use text::text;
pub use view::{Shown, WatchView};
