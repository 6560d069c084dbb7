//! The loop with a fake worker: a shell that sends a greeting, reads nothing, and ends on a signal file.

use super::*;
use homing_launch::{HostPlan, Options, Via};
use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

const PATIENCE: Duration = Duration::from_secs(120);

/// Forwards the starts of recipes and the losses of hosts.
struct Ear(Sender<&'static str>);

impl crate::Listener for Ear {
    fn event(&mut self, event: homing_model::Event) {
        let _ = match event.what {
            EventKind::TaskStarted { .. } => self.0.send("started"),
            EventKind::HostLost { .. } => self.0.send("lost"),
            _ => Ok(()),
        };
    }
}

/// Prints a greeting, and ends when this file exists.
fn worker(at: &Path) -> std::path::PathBuf {
    let facts = serde_json::json!({ "hostname": "far", "aliases": [], "cores": 1, "memory_bytes": 1, "arch": "x",
        "boot_id": "b", "mounts": [], "nic_bytes_per_s": null, "now_ns": 0 });
    let hello = format!("homing-wire {} {} {facts}", homing_launch::wire::VERSION, homing_launch::wire::release());
    let ends =
        format!("until [ -e {}/end ]; do sleep 0.01; done; exit {}", at.display(), homing_launch::wire::ALL_ENDED);
    let path = at.join("worker");
    write(&path, format!("#!/bin/sh\necho '{hello}'\n{ends}\n")).unwrap();
    set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    path
}

#[test]
fn what_nobody_wants_any_more_is_not_run_elsewhere_when_its_host_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let plans = vec![HostPlan { name: "far".into(), via: Via::Local, slots: Some(1) }];
    let (root, locators) = (dir.path().to_path_buf(), homing_locate::OwnLocators::default());
    let near = Arc::new(Near::new(&root, false, locators.clone()).unwrap());
    let (news, inbox) = channel();
    let (heard, options) = (news.clone(), Options { exe: worker(dir.path()), ..Options::default() });
    let tell = move |at, host| heard.send(BuildEvent::Host(at, host)).is_ok();
    let hosts = HostLinks::open(BuildHost::new, plans.clone(), 0, options, tell, |_| ()).unwrap();
    let (assume_shared, fenced, meter) = (true, false, String::new());
    let build = Build { root, plans, tree: 0, assume_shared, fenced, locators, meter };
    let (ear, told) = channel();
    let core = Core::new(build, hosts, near, BuildReporter::to(Box::new(Ear(ear))));
    let core = std::thread::spawn(move || core.serve(&inbox));

    let (reply, answers) = channel();
    let asked = RecipeRequest { reply, ..RecipeRequest::new(1, vec!["true".into()], dir.path().into(), Vec::new()) };
    news.send(BuildEvent::Asked(Box::new(asked))).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("started"));
    news.send(BuildEvent::Stop { id: 1 }).unwrap();
    write(dir.path().join("end"), "").unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("lost"));
    let answer = answers.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(answer, ToConnection::Ended { outcome: Outcome::Killed, .. }), "it is over");
    news.send(BuildEvent::Over).unwrap();
    core.join().unwrap();
    assert!(told.try_recv().is_err(), "it was begun once");
}
