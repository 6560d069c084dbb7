//! The one script that hosts run. Each part's lines bear its name, so that
//! parts which run at the same time can be told apart.

use crate::Check;
use homing_model::text::quoted_unless;

/// `put KEY` reads a part's lines, the last of which is its exit status, and prints them with bounds. A line goes out
/// in one write, short enough for a pipe to keep it whole.
const BEGIN: &str = r#"LC_ALL=C; export LC_ALL; T=$(printf '\t'); export T; PATH=$PATH:/usr/sbin:/sbin; export PATH
umask 077
now() { printf '=now\t%s\n' "$(date +%s.%N)"; }
put() { awk -v k="$1" 'NR > 1 { if (NR < 2000) print "=" k "\t" substr(l, 1, 1000); fflush() } { l = $0 }
  END { if (NR >= 2000) l = "cut"; print "=end\t" k "\t" l }'; }
now
printf '=who\t%s\n=end\twho\t0\n' "$(id -u)"
"#;

/// The script, for `sh -s NAME...`. A part that may wait is ended after so many seconds.
pub fn script(checks: &[&Check], patience: f64) -> String {
    let parts = checks.iter().filter(|check| !check.ask.is_empty());
    let (waiting, quick): (Vec<&&Check>, Vec<&&Check>) = parts.partition(|check| check.waits);
    let waiting = waiting.iter().map(|c| {
        let text = quoted_unless(c.ask.trim(), |_| false);
        let call = format!("timeout -s KILL {patience:.1} sh -c {text} sh \"$@\" </dev/null");
        format!("{{ {call}; echo $?; }} 2>/dev/null | put {} &\n", c.key)
    });
    let quick =
        quick.iter().map(|c| format!("{{ (\n{}\n) </dev/null; echo $?; }} 2>/dev/null | put {}\n", c.ask, c.key));
    let all: String = waiting.chain(quick).collect();
    let [network, own] = homing_mounts::network_patterns();
    format!("NETWORK='{network}' OWN='{own}'; export NETWORK OWN\n{BEGIN}{all}now\nwait\nnow\nexit 0\n")
}

#[cfg(test)]
mod tests {
    use homing_model::Mount;
    use homing_mounts::{Kind, network_patterns};
    use std::process::Command;

    #[test]
    fn hosts_know_a_network_file_system_as_homing_does() {
        let types = "fuse fuse.glusterfs glusterfs fuse.mfs moosefs nfs nfs4 nfsd lustre 9p afs beegfs ceph cifs gfs2 \
                     gpfs ocfs2 orangefs panfs pvfs2 smb3 virtiofs fuse.sshfs fuse.ceph-fuse fuseblk fusectl \
                     fuse.fuse-overlayfs fuse.gvfsd-fuse fuse.lxcfs fuse.portal fuse.snapfuse fuse.squashfuse \
                     fuse-lxcfs ext4 xfs btrfs tmpfs overlay autofs proc";
        let [network, own] = network_patterns();
        let mut awk = Command::new("awk");
        awk.arg(
            r#"BEGIN { for (i = 1; i < ARGC; i++) print (ARGV[i] ~ ENVIRON["NETWORK"] && ARGV[i] !~ ENVIRON["OWN"]) }"#,
        );
        let said = awk.args(types.split_whitespace()).env("NETWORK", network).env("OWN", own).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let mut lines = said.lines();
        for fstype in types.split_whitespace() {
            let mount = Mount { point: "/d".into(), fstype: fstype.into(), source: "s".into() };
            assert_eq!(lines.next() == Some("1"), Kind::of(&mount).is_network(), "{fstype}");
        }
    }
}
