//! Shows hosts as they were at a moment, or replays them. A timer of the user kept the samples on each host.

use super::screen::Screen;
use super::{Args, REPLAY_LOOK, cluster, table_columns};
use crate::cmd::hosts::histories;
use crate::cmd::runs::{local_time, to_stdout};
use crate::progress;
use homing_model::{Failure, exit};
use homing_watch::history::step;
use homing_watch::{Clock, Past, Scene, ViewRequest, WatchView};
use std::time::{Duration, Instant};

/// The most steps of each host that are replayed: the minutes of a day.
const STEPS: u64 = 24 * 60;
/// The default length of a replay, in seconds, for a span of any length.
const PLAYED_S: u64 = 120;

/// Shows the hosts as they were at that time, and replays the time since.
pub fn run(args: &Args, since: Duration) -> Result<i32, Failure> {
    let names = cluster::names(args)?;
    let histories = histories(&names, since, STEPS);
    let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let end_ns = homing_os::clock::wall_ns();
    let past = Past {
        hosts: names.into_iter().zip(histories).collect(),
        begin_ns: end_ns.saturating_sub(ns(since)),
        end_ns,
        step_ns: ns(step(since, STEPS)),
        time: local_time,
    };
    let screen = if args.once || args.json { None } else { Screen::open().map_err(Failure::system)? };
    if let Some(screen) = screen {
        let usual = u32::try_from(since.as_secs() / PLAYED_S).unwrap_or(u32::MAX).max(1);
        return follow(&past, screen, args.replay.unwrap_or(usual));
    }
    to_stdout(&match (args.json, args.once) {
        (true, true) => past.line(past.begin_ns),
        (true, false) => past.moments().map(|ns| past.line(ns)).collect(),
        (false, _) => homing_watch::text(&past.scene(past.begin_ns), table_columns()),
    })?;
    let is_silent = past.hosts.iter().any(|(_, own)| own.is_err());
    Ok(if is_silent { exit::SYSTEM } else { 0 })
}

/// Replays until the user leaves. At its end the replay stops and stays on the screen.
fn follow(past: &Past, mut screen: Screen, times: u32) -> Result<i32, Failure> {
    let (mut clock, mut view) =
        (Clock::new(Some(times)), WatchView::new(progress::has_colors(std::io::stdout())).on_hosts());
    clock.begin(past.begin_ns, Instant::now());
    loop {
        let ns = clock.shown_ns(Instant::now()).map_or(past.end_ns, |ns| ns.min(past.end_ns));
        let hint = if ns == past.end_ns { "end of the recording".into() } else { clock.hint() };
        let scene = Scene { hint, ..past.scene(ns) };
        screen.draw(&scene, &mut view).map_err(Failure::system)?;
        match screen.wish(REPLAY_LOOK, &scene, &mut view).map_err(Failure::system)? {
            Some(ViewRequest::Leave) => return Ok(0),
            Some(ViewRequest::Pause) => clock.pause(Instant::now()),
            Some(ViewRequest::Faster) => clock.change(true, Instant::now()),
            Some(ViewRequest::Slower) => clock.change(false, Instant::now()),
            _ => {}
        }
    }
}
