//! Memory and named resources.

use super::*;

#[test]
fn what_runs_at_once_takes_no_more_of_a_resource_or_of_memory_than_a_host_has() {
    let each = [("gpu".to_string(), 2)].into();
    let hosts = HashMap::from([("n2".to_string(), [("gpu".to_string(), 1)].into())]);
    let mut core = core(Policy { resources: Resources { each, hosts }, ..policy() }, &[("n1", 8), ("n2", 8)]);
    let takes = |id: TaskId, gpu: u64, memory: u64| {
        let resources = if gpu > 0 { vec![("gpu".into(), gpu)] } else { vec![] };
        Offer { task: Task { resources, memory: Some(memory << 30), ..task(id) }, ..offer(id, &[]) }
    };
    (1..=5).for_each(|id| core.offer(takes(id, 1, 1)));
    (6..=7).for_each(|id| core.offer(takes(id, 0, 7)));
    core.offer(offer(8, &[]));
    let begun = assign(&mut core, 0);
    let on = |host: HostIx, from: &[(TaskId, HostIx, u64)]| -> Vec<TaskId> {
        from.iter().filter(|(_, at, _)| *at == host).map(|(id, ..)| *id).collect()
    };
    let gpus = |ids: &[TaskId]| ids.iter().filter(|id| **id <= 5).count();
    assert_eq!((gpus(&on(0, &begun)), gpus(&on(1, &begun))), (2, 1), "{begun:?}");
    assert!(begun.iter().any(|(id, ..)| *id == 8), "who takes none goes on: {begun:?}");
    for host in [0, 1] {
        let memory: u64 =
            on(host, &begun).iter().map(|id| [1, 7, 0][usize::from(*id > 5) + usize::from(*id > 7)]).sum();
        assert!(memory <= 8, "{begun:?}");
    }
    let first = begun.iter().find(|(id, at, _)| *id <= 5 && *at == 0).unwrap().2;
    core.ended(0, ended(first, Outcome::Exit(0)), at(S));
    let next = assign(&mut core, S);
    assert_eq!(gpus(&on(0, &next)), 1, "{next:?}");
}

#[test]
fn a_task_that_takes_more_than_any_host_has_is_told() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(Offer { task: Task { resources: vec![("gpu".into(), 1)], ..task(1) }, ..offer(1, &[]) });
    core.assign(at(0).mono);
    assert!(matches!(&verdicts(core.take_actions())[..], [(1, Outcome::CannotStart(_))]));
}
