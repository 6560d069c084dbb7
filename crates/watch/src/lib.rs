//! What `homing top` shows, and what its keys do. A [`Scene`] is what there is to see at a moment, a [`View`] what
//! somebody has chosen to see of it. Nothing here asks a host, reads a file or a clock.

mod draw;
mod hosts;
mod keys;
mod rows;
mod scene;
#[cfg(test)]
mod tests;
mod text;
mod view;

pub use draw::draw;
pub use keys::{Key, Wish};
pub use scene::Scene;
pub use text::text;
pub use view::{Shown, View};
