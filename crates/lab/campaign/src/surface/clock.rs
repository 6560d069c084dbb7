//! A clock that jumps by hours, a year, and backwards, between images and under jobs.

use super::ground::{Ground, YEAR};
use crate::random::Random;
use std::collections::BTreeSet;
use std::{fs, io};

/// From this shift on, seconds, an image's own date of expiry is in doubt.
const EXPIRY: i64 = 15 * 86_400;

fn jump(random: &mut Random) -> i64 {
    random.of(&[0, 0, -15, 3600, -3600, 86_400, -3 * 86_400, YEAR, YEAR, -YEAR])
}

/// Makes images under clocks that jump. Each image made under a clock that is not off by more than the time of expiry
/// stays, and so do the last three. The newest image is the last one.
pub fn images(ground: &Ground, random: &mut Random) -> io::Result<()> {
    let mut made: Vec<(String, i64, String)> = Vec::new();
    for number in 0..random.within(5, 8) {
        let (shift, content) = (jump(random), format!("state {number}"));
        ground.set_clock(&shift.to_string())?;
        fs::write(ground.at("src/f"), &content)?;
        let answer = ground.image()?;
        ground.must(answer.status == 0, || format!("no image under a clock of {shift} s: {}", answer.text));
        if random.percent(30) {
            // The scene does not check the answer of `expire`. It checks which images remain.
            ground.homing(&["snapshot", "expire", "src", "--yes"])?;
        }
        let known: BTreeSet<&String> = made.iter().map(|(name, ..)| name).collect();
        let fresh: Vec<String> = ground.images()?.into_iter().filter(|name| !known.contains(name)).collect();
        match fresh.as_slice() {
            [name] => made.push((name.clone(), shift, content)),
            other => ground.violated(format!("new images under a clock of {shift} s: {other:?}")),
        }
    }
    ground.set_clock("0")?;
    let there = ground.images()?;
    for (at, (name, shift, content)) in made.iter().enumerate() {
        if shift.abs() >= EXPIRY && at + 3 < made.len() {
            continue;
        }
        let kept = ground.at("bank/src").join(name).join("tree/f");
        let right = there.contains(name) && fs::read_to_string(kept).is_ok_and(|text| text == *content);
        ground.must(right, || format!("image {name}, made under a clock of {shift} s, is lost: {made:?}, {there:?}"));
    }
    let Some((.., newest)) = made.last() else { return Ok(()) };
    let into = ground.at("back").display().to_string();
    ground.fine(&["snapshot", "restore", "src", "--into", &into])?;
    let restored = fs::read_to_string(ground.at("back/f")).unwrap_or_default();
    ground.must(restored == *newest, || format!("restore gives {restored:?}, and {newest:?} is the newest: {made:?}"));
    Ok(())
}

/// Submits jobs under clocks that jump; now and then the runner is killed. Each job runs once, ends, and is listed.
pub fn jobs(ground: &Ground, random: &mut Random) -> io::Result<()> {
    let count = random.within(5, 9);
    for number in 0..count {
        let shift = jump(random).to_string();
        let shift = if random.percent(15) { "288/50".to_string() } else { shift };
        ground.set_clock(&shift)?;
        let command = format!("echo {number} >>ran; sleep 0.2; echo {number} >>ended");
        ground.fine(&["sub", "-q", &command])?;
        if random.percent(25) {
            ground.set_clock(&jump(random).to_string())?;
            ground.kill_runner();
        }
    }
    ground.set_clock(&jump(random).to_string())?;
    let jobs = ground.ended_jobs(count as usize)?;
    let done = jobs.iter().filter(|(_, state)| state == "DONE").count() as u64;
    ground.must(done == count, || format!("of {count} jobs {done} are done: {jobs:?}"));
    for file in ["home/ran", "home/ended"] {
        let text = fs::read_to_string(ground.at(file)).unwrap_or_default();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        let wanted: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        ground.must(lines == wanted, || format!("{file} has {lines:?}"));
    }
    ground.set_clock("0")
}
