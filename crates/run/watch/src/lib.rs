//! What `homing top` shows, and what its keys do. A [`Scene`] is what there is to see at a moment, a [`View`] what
//! somebody has chosen to see of it. Drawing is pure: it reads no file and no clock.
//!
//! [`history`] keeps a sample a minute in a file that never grows beyond its bound; it alone reads and writes files.
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
pub use keys::{Key, Wish};
pub use past::Past;
pub use scene::{About, Scene};
pub use text::text;
pub use view::{Shown, View};
