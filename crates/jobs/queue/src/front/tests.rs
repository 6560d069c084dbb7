use super::*;
use crate::job::JobSpec;
use crate::{Amend, Private, waiting};
use tempfile::TempDir;

struct FrontFixture {
    spool: JobSpool,
    front: Front,
    _dir: TempDir,
}

impl FrontFixture {
    fn new() -> FrontFixture {
        let (dir, base) = crate::places::new_shared();
        FrontFixture { spool: JobSpool::at(base).unwrap(), front: Front::default(), _dir: dir }
    }

    fn submit(&self, more: &str) -> u64 {
        let name = if more.contains("\"name\"") { "" } else { r#","name":"""# };
        let text = format!(
            r#"{{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{{"shell":"true"}},
                "queue":"q","slots":1{name}{more}}}"#
        );
        let spec: JobSpec = serde_json::from_str(&text).unwrap();
        self.spool.submit(&spec, &Private::default()).unwrap()
    }

    /// Runs a round in which the kernel has reported no event; the folder is listed.
    fn look(&mut self) -> Vec<Job> {
        self.front.listed = None;
        let rung = Rung { by_runner: true, ..Rung::default() };
        self.front.look(&self.spool, &Config::default(), &rung)
    }

    fn ids(&mut self) -> Vec<u64> {
        self.look().iter().map(|job| job.id).collect()
    }

    fn end(&self, id: u64, index: u32) {
        self.spool.end_unstarted(&self.spool.job(id).unwrap(), index, "killed").unwrap();
    }
}

#[test]
fn a_job_that_has_ended_is_looked_at_once() {
    let mut world = FrontFixture::new();
    let ids = [world.submit(""), world.submit("")];
    assert_eq!(world.ids(), ids);
    world.end(ids[0], 0);
    assert_eq!(world.ids(), ids[1..], "its end is seen");
    assert!(world.front.over.contains(&ids[0]) && world.front.waiting() == Some(1));
    assert_eq!(world.spool.own_jobs().unwrap().len(), 2);
    // Once put back, it waits again.
    world.spool.again(&world.spool.job(ids[0]).unwrap(), None, true).unwrap();
    assert_eq!(world.ids(), ids);
}

#[test]
fn a_job_without_its_record_is_none_although_its_folder_is_there() {
    let mut world = FrontFixture::new();
    let id = world.submit("");
    assert_eq!(world.ids(), [id]);
    let dir = world.spool.job(id).unwrap().dir;
    std::fs::write(dir.join("lock.0"), "").unwrap();
    ["job.json", "spec.json", "private.json"].iter().for_each(|name| std::fs::remove_file(dir.join(name)).unwrap());
    assert!(world.ids().is_empty());
    assert_eq!(world.front.waiting(), Some(0));
}

#[test]
fn the_last_start_is_known_of_what_has_ended_too() {
    use crate::job::{JobEnd, Start};
    use crate::process::ProcessIdentity;
    let mut world = FrontFixture::new();
    let id = world.submit("");
    world.look();
    let dir = world.spool.job(id).unwrap().dir;
    let start = Start { at_ns: 1, host: "h".into(), process: ProcessIdentity::own() };
    files::write_json(&dir.join("start.0.json"), &start, 0o644).unwrap();
    files::write_json(&dir.join("end.0.json"), &JobEnd::default(), 0o644).unwrap();
    let began = BTreeMap::from([(None, start.process.began())]);
    // First by a runner that has seen it wait, then by one that starts later.
    for _ in 0..2 {
        assert!(world.look().is_empty());
        assert_eq!(world.front.began(), &began);
        world.front = Front::default();
    }
}

#[test]
fn of_a_long_array_the_front_is_looked_at_and_what_ended_behind_it_does_not_start() {
    let mut world = FrontFixture::new();
    let id = world.submit(r#","array":{"indices":"1-5000"}"#);
    let parts = |job: &Job| job.parts.iter().map(|part| part.index).collect::<Vec<u32>>();
    let jobs = world.look();
    assert_eq!(parts(&jobs[0]), (1..=WINDOW as u32).collect::<Vec<_>>());
    assert_eq!(world.front.waiting(), Some(5000));
    // Ends one at the front and one behind it.
    world.end(id, 1);
    world.end(id, WINDOW as u32 + 2);
    let jobs = world.look();
    let wanted: Vec<u32> = (2..=WINDOW as u32 + 1).collect();
    assert_eq!(parts(&jobs[0]), wanted);
    world.end(id, 2);
    assert_eq!(world.look()[0].parts.last().unwrap().index, WINDOW as u32 + 3);
    assert_eq!(world.front.waiting(), Some(4997));
    // Another runner finds the same.
    world.front = Front::default();
    assert_eq!((world.look()[0].parts[0].index, world.front.waiting()), (3, Some(4997)));
}

#[test]
fn of_many_jobs_the_first_of_each_kind_are_looked_at_whoever_is_moved_among_them() {
    let mut world = FrontFixture::new();
    let ids: Vec<u64> = (0..3 * WINDOW).map(|_| world.submit("")).collect();
    let other = world.submit(r#","require":["mem>1"]"#);
    let all = world.ids();
    assert_eq!(all, [&ids[..WINDOW], &[other]].concat());
    assert_eq!((world.front.near.len(), world.front.waiting()), (WINDOW + 1, Some(ids.len() + 1)));
    // One from behind is put first, another is stopped, and a third is killed: their commands report it.
    let job = |at: usize| world.spool.job(ids[at]).unwrap();
    let moved = job(2 * WINDOW);
    world.spool.amend(&moved, &Amend { order: -1, ..Amend::of(&moved.spec) }).unwrap();
    world.spool.stop(&job(0), None, true).unwrap();
    world.spool.kill(&job(3 * WINDOW - 1), None, None).unwrap();
    world.look();
    let all = world.ids();
    assert!(all.contains(&moved.id) && !all.contains(&ids[0]), "{all:?}");
    assert_eq!(world.front.waiting(), Some(ids.len()), "what is stopped waits, what was killed does not");
    world.spool.stop(&world.spool.job(ids[0]).unwrap(), None, false).unwrap();
    world.look();
    assert!(world.ids().contains(&ids[0]));
    assert!(world.spool.own_numbers().1.is_empty(), "what the runner has seen is not told again");
}

#[test]
fn a_condition_is_that_of_all_elements_also_of_those_that_are_not_looked_at() {
    let mut world = FrontFixture::new();
    let id = world.submit(r#","array":{"indices":"1-200"}"#);
    let next = world.submit(&format!(r#","after":"ended({id})""#));
    let named = world.submit(r#","name":"first""#);
    let by_name = world.submit(r#","after":"ended(first)""#);
    assert_eq!(world.ids(), [id, named]);
    assert!(world.front.has_more());
    (1..=199).for_each(|index| world.end(id, index));
    assert_eq!(world.ids(), [id, named]);
    world.end(id, 200);
    world.end(named, 0);
    world.look();
    assert_eq!(world.ids(), [next, by_name]);
    assert!(!world.front.has_more());
}

#[test]
fn one_user_has_no_more_waiting_than_the_bound_and_what_has_ended_makes_room() {
    let mut world = FrontFixture::new();
    let half = format!(r#","array":{{"indices":"1-{}"}}"#, waiting::MOST_WAITING / 2);
    let ids = [world.submit(&half), world.submit(&half)];
    let spec = (*world.spool.job(ids[0]).unwrap().spec).clone();
    let refused = world.spool.submit(&spec, &Private::default()).unwrap_err().to_string();
    assert!(refused.contains(&format!("the limit of a user is {}", waiting::MOST_WAITING)), "{refused}");
    assert_eq!(world.spool.own_jobs().unwrap().len(), 2, "nothing of it is left");
    world.end(ids[0], 7);
    world.submit("");
    let one = JobSpec { array: None, ..spec };
    assert!(world.spool.submit(&one, &Private::default()).is_err());
    world.look();
    world.spool.note_waiting(world.front.waiting());
    assert!(world.spool.submit(&one, &Private::default()).is_err());
}
