//! Watches a long movement of bytes to its end, with bytes and an estimate.

use crate::drive::Drive;
use crate::gluster::sizes::{self, Sizes};
use crate::progress::{self, MovementProgress};
use crate::{DataMovement, Spec, Then, VolumeKind, gluster};
use homing_model::Failure;
use homing_model::units::{bytes, count, short_span};
use homing_steps::Executor;
use std::time::{Duration, Instant};

/// Time for daemons to find each other before missing bricks or hosts count as lost.
const SETTLE: Duration = Duration::from_secs(15);

/// Facts about a movement besides its present state.
#[derive(Default)]
struct Course {
    /// Most bytes, and entries, that were left at once.
    most_bytes: u64,
    most_entries: u64,
    /// Bytes that are to be moved in all.
    total: Option<u64>,
    /// Whether the total is an estimate.
    about: bool,
}

impl Drive {
    /// Watches a movement to its end.
    pub(crate) fn wait(&self, spec: &Spec, then: &Then) -> Result<(), Failure> {
        let Then::Wait(watch) = then else { return Ok(()) };
        let begun = Instant::now();
        let (mut course, mut quiet, mut last_said) = (Course::default(), 0, None::<Instant>);
        let pause = Duration::from_secs(if self.manner.live { 1 } else { 10 });
        // Bricks lie on the same hosts until the movement is over.
        let volume = (spec.kind == VolumeKind::Gluster)
            .then(|| gluster::volume(spec, &self.observe(spec, &spec.hosts())).cloned());
        let volume = volume.flatten();
        loop {
            let mut progress = self.look(spec, watch)?;
            // Daemons that were started a moment ago are not yet connected.
            let early = progress.failed.is_some() && begun.elapsed() < SETTLE;
            quiet = if progress.finished && !early { quiet + 1 } else { 0 };
            // An empty list of entries may only mean that the search for them has not begun.
            let over = quiet > usize::from(*watch == DataMovement::Heal);
            let says = last_said.is_none_or(|at| at.elapsed() >= pause);
            if let Some(volume) = volume.as_ref().filter(|_| says && !over) {
                self.add_bytes(volume, watch, &mut progress, &mut course, last_said.is_none());
            }
            course.most_bytes = course.most_bytes.max(progress.left_bytes.unwrap_or(0));
            course.most_entries = course.most_entries.max(progress.left_entries.unwrap_or(0));
            if over {
                self.print_message(&format!("{}: {}", watch.name(), line(&progress, &course, begun.elapsed())));
                return ended(spec, watch, progress);
            }
            if says {
                // A movement that is over at the next query needs no line of its own.
                if last_said.is_some() {
                    self.print_message(&format!("{}: {}", watch.name(), line(&progress, &course, begun.elapsed())));
                }
                last_said = Some(Instant::now());
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Adds the bytes that GlusterFS does not report, from its bricks. The total of a movement is queried once.
    fn add_bytes(
        &self,
        volume: &gluster::xml::GlusterVolume,
        watch: &DataMovement,
        now: &mut MovementProgress,
        course: &mut Course,
        first: bool,
    ) {
        let ask = |questions: Vec<(String, Vec<String>)>| {
            let mut told = Sizes::new();
            let said = self.executor.programs(&questions);
            let answers = questions.iter().zip(said).filter_map(|((host, _), said)| Some((host, said.ok()?)));
            answers.for_each(|(host, text)| sizes::read(&mut told, host, &text));
            told
        };
        let more = match watch {
            DataMovement::Heal => {
                now.left_bytes = sizes::behind(volume, &ask(sizes::behind_questions(volume)));
                return;
            }
            _ if !first => return,
            DataMovement::Drain(bricks) => sizes::to_drain(volume, &ask(sizes::held_questions(volume)), bricks),
            DataMovement::Rebalance => sizes::to_spread(volume, &ask(sizes::held_questions(volume))),
        };
        course.total = more.map(|bytes| bytes + now.moved);
        course.about = *watch == DataMovement::Rebalance;
    }

    /// Queries the present state from the first host that answers.
    fn look(&self, spec: &Spec, watch: &DataMovement) -> Result<MovementProgress, Failure> {
        let question = progress::question(spec, watch);
        let mut why = String::from("no server to query");
        for host in progress::askers(spec) {
            match self.executor.programs(&[(host.clone(), question.clone())]).remove(0) {
                Ok(text) => match progress::answer(&text, spec, watch) {
                    Some(progress) => return Ok(progress),
                    None => {
                        let begin: String = text.trim().chars().take(200).collect();
                        why = format!("{host}: homing cannot read its answer: {begin}");
                    }
                },
                Err(said) => why = format!("{host}: {said}"),
            }
        }
        Err(Failure::system(format!("{}: {why}", watch.name())))
    }
}

fn ended(spec: &Spec, watch: &DataMovement, progress: MovementProgress) -> Result<(), Failure> {
    let Some(why) = progress.failed else { return Ok(()) };
    Err(Failure::system(format!("{}: {why}", watch.name())).hint(format!("homing volume status {}", spec.name)))
}

fn line(p: &MovementProgress, course: &Course, took: Duration) -> String {
    let mut parts = Vec::new();
    parts.extend(p.left_entries.map(|left| format!("{left} of {} entries left", course.most_entries)));
    match p.left_bytes {
        Some(left) => parts.push(format!("{} of {} left", bytes(left), bytes(course.most_bytes))),
        None if p.left_entries.is_none() => parts.push(moved(p, course)),
        None => {}
    }
    if let Some(seconds) = estimate(p, course, took).filter(|_| !p.finished) {
        let seconds = p.seconds_left.filter(|s| *s > 0).unwrap_or(seconds);
        parts.push(format!("about {} to go", short_span(Duration::from_secs(seconds))));
    }
    format!("{} ({})", parts.join(", "), short_span(took))
}

fn moved(p: &MovementProgress, course: &Course) -> String {
    let files = count(p.files, "file");
    // A total that is an estimate may be exceeded.
    match course.total.filter(|total| !p.finished && p.moved <= *total) {
        Some(total) => {
            let about = if course.about { "about " } else { "" };
            format!("{} of {about}{} moved, {files}", bytes(p.moved), bytes(total))
        }
        None => format!("{} moved, {files}", bytes(p.moved)),
    }
}

/// The part of a movement that must be done before its rate is used for an estimate. 66 bytes of 84 MB gave 278 days
/// for a movement of five minutes. GlusterFS's own estimate is no better before.
const TELLING: f64 = 0.02;

/// Returns the seconds that the rest takes at the rate so far, by bytes where they are known; `None` while it would
/// be a guess.
fn estimate(p: &MovementProgress, course: &Course, took: Duration) -> Option<u64> {
    let (done, left) = match (p.left_bytes, p.left_entries, course.total) {
        (Some(left), _, _) if course.most_bytes > 0 => (course.most_bytes - left, left),
        (_, Some(left), _) => (course.most_entries - left, left),
        (_, _, Some(total)) => (p.moved, total.saturating_sub(p.moved)),
        _ => return None,
    };
    let telling = done as f64 >= TELLING * (done + left) as f64;
    (telling && done > 0 && left > 0).then(|| (left as f64 * took.as_secs_f64() / done as f64).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn a_movement_tells_its_bytes_and_how_long_it_takes() {
        let draining = MovementProgress { moved: 40_000_000, files: 1, ..MovementProgress::default() };
        let course = Course { total: Some(100_000_000), ..Course::default() };
        assert_eq!(line(&draining, &course, TEN), "40.0 MB of 100 MB moved, 1 file, about 15 s to go (10 s)");
        let spreading = Course { about: true, ..course };
        assert_eq!(line(&draining, &spreading, TEN), "40.0 MB of about 100 MB moved, 1 file, about 15 s to go (10 s)");
        let begun = MovementProgress { moved: 66, files: 33, seconds_left: Some(24_064_014), ..draining.clone() };
        assert_eq!(line(&begun, &spreading, TEN), "66 B of about 100 MB moved, 33 files (10 s)");
        // GlusterFS's own estimate; after the end, only the moved bytes.
        let told = MovementProgress { seconds_left: Some(7), ..draining.clone() };
        assert!(line(&told, &spreading, TEN).contains("about 7 s to go"));
        let more = MovementProgress { moved: 110_000_000, ..draining.clone() };
        assert_eq!(line(&more, &spreading, TEN), "110 MB moved, 1 file (10 s)");
        let over = MovementProgress { finished: true, files: 3, ..draining };
        assert_eq!(line(&over, &spreading, TEN), "40.0 MB moved, 3 files (10 s)");
    }

    #[test]
    fn healing_tells_entries_and_their_bytes() {
        let course = Course { most_bytes: 9_000_000, most_entries: 40, ..Course::default() };
        let healing =
            MovementProgress { left_entries: Some(30), left_bytes: Some(3_000_000), ..MovementProgress::default() };
        assert_eq!(
            line(&healing, &course, TEN),
            "30 of 40 entries left, 3.0 MB of 9.0 MB left, about 5 s to go (10 s)"
        );
        let unknown = MovementProgress { left_bytes: None, ..healing.clone() };
        assert_eq!(line(&unknown, &course, TEN), "30 of 40 entries left, about 30 s to go (10 s)");
        let chunks = MovementProgress { left_entries: None, ..healing };
        assert_eq!(line(&chunks, &course, TEN), "3.0 MB of 9.0 MB left, about 5 s to go (10 s)");
    }
}
