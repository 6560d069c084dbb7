//! Computes the highest rates that the links of hosts allow, for comparison with measured rates.

use super::fio::FioOperation;
use homing_volume::{Spec, VolumeKind, VolumeRecord};

/// The way that the bytes of a volume take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ways {
    /// The kind of volume: it decides which side sends the copies.
    pub kind: VolumeKind,
    /// Copies of a file.
    pub copies: u32,
    /// Number of servers.
    pub servers: usize,
    /// Whether all clients are servers too, and keep a share of the bytes at home.
    pub at_home: bool,
}

/// Returns the volume that contains `path`, if homing has a record of it.
pub fn volume_of(path: &str) -> Option<Spec> {
    let folder = homing_volume::folder();
    let records =
        VolumeRecord::names(&folder).into_iter().filter_map(|n| VolumeRecord::load(&folder, &n).ok().flatten());
    records.map(|r| r.spec).find(|s| path == s.mount || path.starts_with(&format!("{}/", s.mount)))
}

impl Ways {
    /// Derives the ways from the record of a volume.
    pub fn of(spec: &Spec, hosts: &[String]) -> Ways {
        let servers = spec.servers();
        Ways {
            kind: spec.kind,
            copies: spec.copies,
            servers: servers.len(),
            at_home: hosts.iter().all(|h| servers.contains(h)),
        }
    }

    /// Most bytes a second that `clients` hosts can move together over links of `link` bytes a second each way. Files
    /// are assumed to lie evenly on all servers. `None` where no byte has to cross a link, or latency is the limit.
    pub fn limit(&self, op: FioOperation, clients: usize, link: f64) -> Option<f64> {
        let (servers, clients) = (self.servers.max(1) as f64, clients as f64);
        let copies = f64::from(self.copies.max(1)).min(servers);
        let away = if self.at_home { 1.0 - 1.0 / servers } else { 1.0 };
        match op {
            // Every byte crosses a link for each copy that is not at home, and arrives at a server. GlusterFS's
            // clients send all copies. MooseFS's clients send one, and servers pass it on.
            FioOperation::Write => {
                let sent = if self.kind == VolumeKind::Moosefs { away } else { copies * away };
                let out = clients * link / sent;
                let taken = servers * link / (copies * away);
                Some(out.min(taken)).filter(|l| l.is_finite())
            }
            FioOperation::Read => {
                let away = if self.at_home { 1.0 - copies / servers } else { 1.0 };
                Some(clients.min(servers) * link / away).filter(|l| l.is_finite())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_bound_the_rate() {
        let gluster = Ways { kind: VolumeKind::Gluster, copies: 2, servers: 4, at_home: true };
        let near = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-9, "{a:?} {b}");
        // 1.5 of two copies leave a client.
        near(gluster.limit(FioOperation::Write, 1, 150.0), 100.0);
        near(gluster.limit(FioOperation::Write, 4, 150.0), 400.0);
        near(Ways { at_home: false, ..gluster }.limit(FioOperation::Write, 8, 100.0), 200.0);
        let moosefs = Ways { kind: VolumeKind::Moosefs, ..gluster };
        near(moosefs.limit(FioOperation::Write, 1, 150.0), 200.0);
        near(moosefs.limit(FioOperation::Write, 4, 150.0), 400.0);
        near(gluster.limit(FioOperation::Read, 1, 100.0), 200.0);
        // All bytes are at home.
        assert_eq!(Ways { copies: 4, ..gluster }.limit(FioOperation::Read, 1, 100.0), None);
        assert_eq!(gluster.limit(FioOperation::Stat, 1, 100.0), None);
    }
}
