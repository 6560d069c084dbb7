//! Files on the own disks of this machine, which other hosts do not read.

use super::*;
use homing_model::event::PlannedBytes;

const MB: u64 = 1 << 20;

/// Returns a task that reads `own` bytes on a disk of `login`, and `shared` bytes of a volume on `n1`.
fn reads(id: TaskId, own: u64, shared: u64) -> Offer {
    let per_host = vec![("n1".to_string(), shared), ("login".to_string(), own)];
    let served = vec!["n1".into()];
    Offer { total: own + shared, per_host, served, own: Some(("login".into(), own)), located: true, ..offer(id, &[]) }
}

/// Returns the planned bytes and the reason of each start.
fn starts_of(offers: impl IntoIterator<Item = Offer>, hosts: &[(&str, u32)]) -> Vec<(Option<PlannedBytes>, String)> {
    let mut core = core(policy(), hosts);
    offers.into_iter().for_each(|offer| core.offer(offer));
    core.assign(at(0).mono);
    let started = |action| match action {
        Action::Journal(EventKind::TaskStarted { planned, why, .. }) => Some((planned, why.unwrap_or_default())),
        _ => None,
    };
    core.take_actions().into_iter().filter_map(started).collect()
}

#[test]
fn a_host_that_reads_its_own_file_of_that_name_reads_nothing_over_the_network() {
    let starts = starts_of([reads(1, 4 * MB, 0)], &[("n1", 1), ("n2", 1)]);
    assert_eq!(starts, [(None, "each host reads its own files of these names".to_string())]);
}

#[test]
fn only_the_shared_bytes_cross_the_network() {
    let starts = starts_of([reads(1, 4 * MB, 8 * MB)], &[("n2", 1), ("n3", 1)]);
    let (planned, why) = &starts[0];
    let planned = planned.as_ref().expect("the shared bytes have a place");
    assert_eq!((planned.local, planned.remote, planned.remote_if_in_turn), (0, 8 * MB, 8 * MB));
    assert_eq!(planned.from, [("n1".to_string(), 8 * MB)]);
    assert_eq!(why, "no usable host holds any of its 8.4 MB");
}

#[test]
fn this_machine_reads_them_at_home() {
    let starts = starts_of([reads(1, 4 * MB, 0)], &[("login", 1), ("n2", 1)]);
    let planned = PlannedBytes { local: 4 * MB, ..PlannedBytes::default() };
    assert_eq!(starts, [(Some(planned), "holds 100 % of 4.2 MB".to_string())]);
}
