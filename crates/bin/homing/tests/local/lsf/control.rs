//! Queues and hosts that an administrator closes, inactivates and opens.

use super::World;
use crate::until::until;

#[test]
fn queues_and_hosts_are_closed_and_opened_by_who_may() {
    let w = World::new();
    let host = &w.host;
    assert_eq!(w.out("badmin qclose -C 'a new disk' storage"), "Queue <storage> is closed\n");
    let (code, _, err) = w.sh("bsub -q storage true");
    assert!(
        code == 255 && err.starts_with("storage: Queue has been closed by ") && err.contains(": a new disk. "),
        "{err}"
    );
    let refused = w.homing(&["sub", "--queue", "storage", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(255) && said.contains("storage: Queue has been closed by "), "{said}");
    assert!(w.out("bqueues storage").contains("Closed:Active"));
    let long = w.out("bqueues -l storage");
    assert!(long.contains("ADMIN ACTION COMMENT: closed by ") && long.contains(": a new disk\n"), "{long}");
    // An inactive queue takes jobs and starts none, and a closed host starts none either. Each reason names the
    // administrator.
    w.out("badmin qopen storage; badmin qinact storage; bsub -q storage true");
    let waits = |why: &str| w.out("bjobs -p 1").contains(why);
    assert!(waits("The queue is inactivated by the administrator: by "), "{}", w.out("bjobs -p 1"));
    assert!(w.out("bqueues storage").contains("Open:Inact"));
    assert_eq!(w.out("badmin hclose -C noise"), format!("Host <{host}> is closed\n"));
    w.out("badmin qact all");
    until("the host is what it waits for", || waits("Closed by LSF administrator: 1 host: by "));
    assert!(w.out(&format!("bhosts {host}")).contains(" closed "));
    let long = w.out(&format!("bhosts -l {host}"));
    assert!(long.contains("closed_Adm") && long.contains(": noise\n"), "{long}");
    assert!(w.out(&format!("lsload {host}")).contains("lockU"));
    w.out(&format!("badmin hopen {host}"));
    until("it has run", || w.stat("1") == "DONE");
    for (line, why) in [
        ("badmin qclose", "Queue name must be specified"),
        ("badmin qclose nosuch", "nosuch: No such queue"),
        ("badmin hclose nosuch", "nosuch: Bad host name"),
        ("badmin reconfig", "badmin: reconfig: supported are showconf, qclose"),
    ] {
        let (code, _, err) = w.sh(line);
        assert!(code == 255 && err.contains(why), "{line}: {err}");
    }
    if rustix::process::geteuid().is_root() {
        w.out("chmod 755 .; badmin qinact normal");
        let (code, _, err) = w.sh("setpriv --reuid 61001 --regid 61001 --clear-groups badmin qact normal");
        assert!(code != 0 && err.contains("only root may do this, because the queue is in "), "{err}");
        assert!(w.out("bqueues normal").contains("Open:Inact"));
    }
}
