//! This machine's part: it selects the host and the request for a vault, and the hosts that take part in a copy.

mod channel;
mod crew;
mod engine;
mod home;
mod making;
mod reading;

pub use channel::{From, To, answer, send_request};
pub use engine::{HostRequest, not_with_restic};
pub use home::ClusterContext;
pub use making::{CreatedImage, Wishes, make};
pub use reading::{ExaminedFolder, Restore, expire, keep, listed, now, parent, place, restore};
