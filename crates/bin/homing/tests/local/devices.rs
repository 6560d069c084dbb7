//! Tasks that take units of a resource receive the numbers of their units.

use crate::world::World;

#[test]
fn each_task_knows_which_graphics_processors_are_its_own() {
    let world = World::new();
    // Each task waits until all three are there, so they hold their units at the same time.
    let wait = "touch at.$HOMING_TASK; until [ -e at.1 ] && [ -e at.2 ] && [ -e at.3 ]; do sleep 0.05; done";
    let line = |gpus: u32| {
        let command = format!("{wait}; echo $CUDA_VISIBLE_DEVICES/$HOMING_RESOURCE_gpu");
        serde_json::json!({ "command": command, "resources": { "gpu": gpus } }).to_string() + "\n"
    };
    std::fs::write(world.path().join("t"), [line(1), line(2), line(1)].concat()).unwrap();
    let text = world.out(&["run", "-q", "-j3", "--resource", "gpu=4", "--tasks", "t"]);
    let mut seen: Vec<&str> = text.lines().collect();
    let mut all: Vec<u32> = Vec::new();
    for line in &seen {
        let (cuda, own) = line.split_once('/').unwrap();
        assert_eq!(cuda, own, "{text}");
        all.extend(cuda.split(',').map(|number| number.parse::<u32>().unwrap()));
    }
    seen.sort_unstable();
    all.sort_unstable();
    assert_eq!((seen.len(), all), (3, vec![0, 1, 2, 3]), "{text}");
}
