//! This machine's part: it selects the host and the request for a vault, and the hosts that take part in a copy.

mod channel;
mod crew;
mod engine;
mod home;
mod making;
mod reading;

pub use channel::{From, To, answer, ask};
pub use engine::{Asked, not_with_restic};
pub use home::Known;
pub use making::{Done, Wishes, make};
pub use reading::{Folder, Restore, expire, keep, listed, now, parent, place, restore};
