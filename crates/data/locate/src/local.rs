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
    homing_os::names::own_name()
}

impl FileSystem for Local {
    fn fill(&self, Asked { layout, .. }: &mut Asked) {
        if layout.size > 0 {
            let replicas = vec![Replica { host: self.host.clone(), share: 1.0 }];
            layout.extents.push(Extent { offset: 0, length: layout.size, replicas });
        }
    }
}

/// One whose bytes are nowhere that could be told: the reason.
pub(crate) struct Unknown(pub String);

impl FileSystem for Unknown {
    fn fill(&self, Asked { layout, .. }: &mut Asked) {
        if layout.size > 0 {
            layout.reason = Some(self.0.clone());
        }
    }
}
