use super::*;
use crate::{InputSpool, Options};
use serde::Deserialize;
use std::sync::Mutex;

/// An errand whose hosts end at once, but whose stream ends only when it is dropped, like connections that close
/// slowly.
#[derive(Clone, Serialize, Deserialize)]
struct ClosesSlowly;

impl Errand for ClosesSlowly {
    fn begin(&self, _: &Remote, hosts: &[String]) -> PoolEvents {
        let (to, events) = sync_channel(PIECES);
        let (_, write) = Cancel::new().unwrap();
        let hosts = hosts.len();
        let linger = move || {
            for host in 0..hosts {
                let what = HostEventKind::Done(CommandOutcome::Exited(0), Duration::ZERO);
                to.send(HostProgress { host, giver: Giver::Here, what }).unwrap();
            }
            while to.send(HostProgress { host: 0, giver: Giver::Here, what: HostEventKind::Alive }).is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        PoolEvents::new(events, write, vec![homing_os::threads::begin(linger).unwrap()])
    }

    fn from(&self, _: &str, _: Option<Arc<InputSpool>>) -> ClosesSlowly {
        ClosesSlowly
    }
}

#[test]
fn hosts_that_were_served_from_here_are_told_also_where_nobody_waits_for_connections_to_close() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let (noted, (to, events)) = (said.clone(), sync_channel(PIECES));
    let (cancel, write) = Cancel::new().unwrap();
    let all = Arc::new(All {
        remote: Remote::new(Options::default()),
        hosts: ["n1", "n2"].map(String::from).to_vec(),
        errand: ClosesSlowly,
        note: Arc::new(move |text: &str| noted.lock().unwrap().push(text.to_string())),
        cancel,
        to,
    });
    let (give, left) = channel();
    give.send(Left { hosts: vec![1], whys: vec![("n1".into(), "n1 no longer leads its branch: killed".into())] })
        .unwrap();
    let threads = all.begin_here(vec![], vec![], left).unwrap();
    let mut stream = PoolEvents::new(events, write, threads);
    let is_end = |event: HostProgress| matches!(event.what, HostEventKind::Done(..)).then_some(event.host);
    assert_eq!(stream.by_ref().find_map(is_end), Some(1));
    // The caller has received all ends; that of the leader's thread, which has `give`, comes later.
    drop(stream);
    drop(give);
    let said = said.lock().unwrap().join("; ");
    assert!(said.contains("n2") && said.contains("n1 no longer leads its branch: killed"), "{said:?}");
}
