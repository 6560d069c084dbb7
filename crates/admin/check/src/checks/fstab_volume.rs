//! Volumes that homing has written into /etc/fstab, and the command that mounts them: a line may name a server that has
//! left the volume.

use crate::HostAnswers;
use crate::finding::word;

/// The part of the answers with the lines of /etc/fstab.
pub(crate) const FSTAB: &str = "fstab";

/// Returns the command that mounts the volume of a line with these options, if homing has written it.
pub(crate) fn of_volume(options: &str) -> Option<String> {
    let volume = options.split(',').find_map(|option| option.strip_prefix("x-homing."))?;
    Some(format!("homing volume mount {}", word(volume)))
}

/// Returns the command that mounts the volume which homing has written into a host's /etc/fstab at this point.
pub(crate) fn volume_at(host: &HostAnswers, point: &str) -> Option<String> {
    let line = host.rows(FSTAB)?.iter().find(|line| line.get(1).is_some_and(|at| at == point))?;
    of_volume(line.get(3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volume_of_a_point_has_a_command() {
        let rows = "=fstab\tn4:/d3\t/d3\tglusterfs\tx-homing.d3,defaults\n=end\tfstab\t0\n";
        let host = HostAnswers::read("n4", &[(1.0, rows.into())]);
        assert_eq!(volume_at(&host, "/d3").as_deref(), Some("homing volume mount d3"));
        assert_eq!(volume_at(&host, "/data"), None);
    }
}
