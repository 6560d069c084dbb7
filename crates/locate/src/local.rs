//! Disks and memory of this host, and file systems that tell nothing.

use crate::{Asked, FileSystem};
use homing_model::{Extent, Replica};

/// All bytes lie here.
pub(crate) struct Local {
    host: String,
}

impl Local {
    pub fn new() -> Local {
        Local { host: host() }
    }
}

/// What this host calls itself.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

impl FileSystem for Local {
    fn fill(&self, Asked { layout, .. }: &mut Asked) {
        if layout.size > 0 {
            let replicas = vec![Replica { host: self.host.clone(), share: 1.0 }];
            layout.extents.push(Extent { offset: 0, length: layout.size, replicas });
        }
    }
}

/// A network file system whose layout homing does not read.
pub(crate) struct Unknown(pub String);

impl FileSystem for Unknown {
    fn fill(&self, Asked { layout, .. }: &mut Asked) {
        if layout.size > 0 {
            layout.reason = Some(format!("homing does not know how to ask {} where bytes lie", self.0));
        }
    }
}
