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

/// Starts a run of one task that holds `amount` devices until `other` runs, and prints their numbers into a file.
fn run_beside(world: &World, amount: &str, own: &str, other: &str) -> std::process::Child {
    let line = format!(
        "echo $CUDA_VISIBLE_DEVICES/$ROCR_VISIBLE_DEVICES > {own}.part; mv {own}.part {own}; \
         until [ -e {other} ]; do sleep 0.05; done; : {{}}"
    );
    let mut command =
        world.command(&["run", "-q", "--resource", "gpu=2", "--gpus-per-task", amount, &line, ":::", "1"]);
    command.env("HOMING_QUEUE", world.path().join("leases")).spawn().unwrap()
}

#[test]
fn two_runs_never_give_one_device_to_two_tasks() {
    let world = World::new();
    let mut runs = [run_beside(&world, "1", "a", "b"), run_beside(&world, "1", "b", "a")];
    assert!(runs.iter_mut().all(|run| run.wait().unwrap().success()));
    let mut seen = ["a", "b"].map(|name| std::fs::read_to_string(world.path().join(name)).unwrap());
    seen.sort_unstable();
    assert_eq!(seen, ["0/0\n", "1/1\n"]);
}

#[test]
fn tasks_share_a_device_that_each_takes_a_part_of() {
    let world = World::new();
    // Each waits until all four hold their parts.
    let line = "touch at.{}; until [ -e at.a ] && [ -e at.b ] && [ -e at.c ] && [ -e at.d ]; do sleep 0.05; done; \
                echo $HOMING_RESOURCE_gpu";
    let words = ["run", "-q", "-j4", "--resource", "gpu=2", "--gpus-per-task", "0.5", line, ":::", "a", "b", "c", "d"];
    let output = world.command(&words).env("HOMING_QUEUE", world.path().join("leases")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut seen: Vec<&str> = text.lines().collect();
    seen.sort_unstable();
    assert_eq!(seen, ["0", "0", "1", "1"]);
}

#[test]
fn a_task_that_takes_more_than_any_host_has_is_refused_at_once() {
    let world = World::new();
    let refused = |words: &[&str]| {
        let output = world.homing(&[&["run", "-q"], words, &["touch ran", ":::", "1"]].concat());
        assert_eq!(output.status.code(), Some(255));
        assert!(!world.path().join("ran").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = refused(&["--resource", "gpu=2", "--gpus-per-task", "3"]);
    assert_eq!(text, "homing: --gpus-per-task 3: it needs 3 of \"gpu\", but no host of this run has more than 2\n");
    assert!(refused(&["--gpus-per-task", "1.5"]).contains("1.5 is more than one unit"));
}

#[test]
fn devices_of_the_environment_are_those_of_the_tasks() {
    let world = World::new();
    let line = "touch at.{}; until [ -e at.a ] && [ -e at.b ]; do sleep 0.05; done; echo $CUDA_VISIBLE_DEVICES";
    let words = ["run", "-q", "-j2", "--gpus-per-task", "1", line, ":::", "a", "b"];
    let mut command = world.command(&words);
    command.env("CUDA_VISIBLE_DEVICES", "4,7").env("HOMING_QUEUE", world.path().join("leases"));
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let mut seen: Vec<&str> = text.lines().collect();
    seen.sort_unstable();
    assert_eq!(seen, ["4", "7"]);
}
