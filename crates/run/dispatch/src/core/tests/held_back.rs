//! `--memfree` and `--load`.

use super::*;
use homing_model::HostSample;

fn sample(core: &mut Core, available: u64) {
    core.sample(0, HostSample { mem_available: Some(available), ..HostSample::default() });
}

fn with_three_tasks(memfree: u64) -> Core {
    let mut core = core(Policy { memfree, ..policy() }, &[("n1", 3)]);
    (1..=3).for_each(|id| core.offer(offer(id, &[])));
    core
}

#[test]
fn what_a_task_takes_is_seen_before_the_next_starts() {
    let mut core = with_three_tasks(2 << 30);
    sample(&mut core, 3 << 30);
    assert_eq!(assign(&mut core, 0).len(), 1);
    // This sample was taken before the task had begun.
    sample(&mut core, 3 << 30);
    assert_eq!(assign(&mut core, S).len(), 0);
    sample(&mut core, 1 << 30);
    assert_eq!(assign(&mut core, 2 * S).len(), 0, "the first has taken the memory");
    sample(&mut core, 3 << 30);
    assert_eq!(assign(&mut core, 3 * S).len(), 1);
    // A task that has ended uses no memory any more.
    core.ended(0, ended(2, Outcome::Exit(0)), at(4 * S));
    assert_eq!(assign(&mut core, 4 * S).len(), 1);
}

#[test]
fn waiting_for_memory_is_told_once_and_not_at_once() {
    let mut core = with_three_tasks(2 << 30);
    sample(&mut core, 1 << 30);
    assign(&mut core, 0);
    core.assign(at(S).mono);
    assert_eq!(notes(&mut core), [""; 0]);
    core.assign(at(2 * S).mono);
    assert_eq!(notes(&mut core), ["tasks wait for memory: --memfree requires 2.1 GB free, n1 has 1.1 GB"]);
    core.assign(at(9 * S).mono);
    assert_eq!(notes(&mut core), [""; 0]);
}

#[test]
fn nothing_is_told_where_no_memory_was_asked_for() {
    let mut core = with_three_tasks(0);
    core.offer(offer(4, &[]));
    sample(&mut core, 1);
    assert_eq!(assign(&mut core, 0).len(), 3);
    core.assign(at(9 * S).mono);
    assert_eq!(notes(&mut core), [""; 0]);
}

#[test]
fn a_loaded_host_starts_nothing_and_its_own_tasks_count_at_once() {
    let mut core = core(Policy { load: Some("2".into()), ..policy() }, &[("n1", 3)]);
    (1..=3).for_each(|id| core.offer(offer(id, &[])));
    let load = |core: &mut Core, r1m| core.sample(0, HostSample { r1m: Some(r1m), ..HostSample::default() });
    assert_eq!(assign(&mut core, 0).len(), 0, "its load is not known yet");
    load(&mut core, 2.5);
    assert_eq!(assign(&mut core, S).len(), 0);
    core.assign(at(3 * S).mono);
    assert_eq!(notes(&mut core), ["tasks wait for less loaded hosts: --load is 2, the load of n1 is 2.5"]);
    load(&mut core, 0.3);
    assert_eq!(assign(&mut core, 4 * S).len(), 2, "two run, whatever the average says");
    core.ended(0, ended(1, Outcome::Exit(0)), at(5 * S));
    assert_eq!(assign(&mut core, 5 * S).len(), 1);
}

#[test]
fn what_others_have_of_a_hosts_slots_is_left_to_them() {
    let mut core = with_three_tasks(0);
    core.offer(offer(4, &[]));
    assert_eq!(core.wants(0), (0, 3));
    core.granted(0, 1);
    assert_eq!(assign(&mut core, 0).len(), 1);
    core.granted(0, 0);
    core.ended(0, ended(1, Outcome::Exit(0)), at(S));
    assert_eq!(assign(&mut core, S).len(), 0);
    core.assign(at(3 * S).mono);
    let told = "tasks wait for slots: jobs of the queue hold all 3 slots of n1, or wait for them; --no-share ignores \
        the queue";
    assert_eq!(notes(&mut core), [told]);
    core.granted(0, 2);
    assert_eq!(assign(&mut core, 4 * S).len(), 2);
    assert_eq!(core.wants(0), (2, 3));
}
