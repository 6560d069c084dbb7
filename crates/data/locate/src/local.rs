//! Disks and memory of this host, and file systems without any information on places.

use crate::{FileSystem, LocateRequest};
use homing_model::{Extent, Replica};

/// A file system whose bytes all lie here.
pub(crate) struct Local {
    host: String,
}

impl Local {
    pub fn new() -> Local {
        Local { host: host() }
    }
}

/// Returns this host's name.
pub(crate) fn host() -> String {
    homing_os::names::own_name()
}

impl FileSystem for Local {
    fn fill(&self, LocateRequest { layout, .. }: &mut LocateRequest) {
        if layout.size > 0 {
            let replicas = vec![Replica { host: self.host.clone(), share: 1.0 }];
            layout.extents.push(Extent { offset: 0, length: layout.size, replicas });
        }
    }
}

/// A file system whose bytes have no known place, with the reason.
pub(crate) struct UnknownLayout(pub String);

impl FileSystem for UnknownLayout {
    fn fill(&self, LocateRequest { layout, .. }: &mut LocateRequest) {
        if layout.size > 0 {
            layout.reason = Some(self.0.clone());
        }
    }
}
