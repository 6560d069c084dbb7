//! The display of a terminal while a run prints, in a real emulator: tmux.

use crate::terminal::{Terminal, missing};
use std::time::Duration;

/// Eight tasks print and end, and one of them fails. Another waits to be let go.
const RUN: &str = "homing run --bar -q -j2 'test {} != gate || until test -e gate; do sleep 0.1; done; \
                   echo out {}; echo err {} >&2; test {} != 3' ::: gate 1 2 3 4 5 6 7 8";

/// Lets the waiting task go on.
fn let_go(terminal: &Terminal) {
    std::fs::write(terminal.world.path().join("gate"), "").unwrap();
}

fn is_bar(line: &str) -> bool {
    line.contains("8/9")
}

#[test]
fn output_and_the_line_of_progress_never_share_a_line() {
    if missing() {
        return;
    }
    for (columns, more) in [(40, "1 failed"), (200, "1 failed, 1 of 2 slots, 1 host")] {
        let terminal = Terminal::new(columns, &[], RUN);
        let lines = terminal.when("the line of progress", |lines| lines.iter().any(|line| is_bar(line)));
        let (last, printed) = lines.split_last().unwrap();
        assert!(is_bar(last) && last.contains(more) && last.contains('━'), "{columns}: {lines:#?}");
        assert!(last.chars().count() < columns, "{columns}: {last}");
        let mut expected: Vec<String> = (1..=8).flat_map(|n| [format!("out {n}"), format!("err {n}")]).collect();
        let mut seen = printed.to_vec();
        expected.sort();
        seen.sort();
        assert_eq!(seen, expected, "{columns}: {lines:#?}");
        let_go(&terminal);
        let after = terminal.ends();
        assert_eq!(after.len(), 19, "eighteen lines of tasks and the end: {after:#?}");
        assert!(!after.iter().any(|l| l.contains('%') || l.contains('━')), "{after:#?}");
    }
}

#[test]
fn a_line_without_an_end_is_neither_erased_nor_gone_on_with() {
    if missing() {
        return;
    }
    let script = "homing run --bar -j1 'printf half; test {} = 1 || until test -e gate; do sleep 0.1; done' ::: 1 2";
    let terminal = Terminal::new(80, &[], script);
    terminal.when("what the first task printed", |lines| lines == ["half"]);
    // Leaves time for several draws of the line, also on a slow machine.
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(terminal.when("it again", |lines| !lines.is_empty()), ["half"]);
    let_go(&terminal);
    let lines = terminal.ends();
    assert_eq!(lines[0], "halfhalf", "{lines:#?}");
    assert!(lines[1].contains("2 done"), "{lines:#?}");
}

#[test]
fn plain_terminals_get_plain_characters_and_dumb_ones_no_line() {
    if missing() {
        return;
    }
    let plain = Terminal::new(80, &["LC_ALL=C"], RUN);
    let lines = plain.when("the line of progress", |lines| lines.iter().any(|line| is_bar(line)));
    let last = lines.last().unwrap();
    assert!(last.starts_with('#') && last.is_ascii(), "{lines:#?}");
    let dumb = Terminal::new(80, &["TERM=dumb"], RUN);
    dumb.when("all output but one", |lines| lines.len() >= 16);
    std::thread::sleep(Duration::from_millis(600));
    let lines = dumb.when("it again", |lines| !lines.is_empty());
    assert!(lines.iter().all(|l| l.starts_with("out ") || l.starts_with("err ")), "{lines:#?}");
}

/// Joins lines. A long line continues in the next one, where a blank at the edge is not visible.
fn joined(lines: &[String]) -> String {
    lines.concat().replace(' ', "")
}

#[test]
fn the_end_of_a_run_and_refusals_are_whole_however_wide_the_terminal() {
    if missing() {
        return;
    }
    let script = "homing run 'echo {}' ::: one\nhoming run -j1 'echo no such sample >&2; exit {}' ::: 3\n\
                  homing run --sqlmaster x echo ::: 1\nhoming nodeset\necho status $?";
    for columns in [40, 200] {
        let lines = Terminal::new(columns, &[], script).ends();
        let text = joined(&lines);
        for part in [
            "tasks      1 done, 0 failed in",
            "tasks      0 done, 1 failed in",
            "failed   task 1: exit 3 on ",
            "echo no such sample >&2; exit 3",
            "again    homing resume --failed ",
            "homing: GNU parallel's --sqlmaster is not supported; instead: ",
            "homing: no hosts are named",
            "status 255",
        ] {
            assert!(text.contains(&part.replace(' ', "")), "{columns}: {part}: {lines:#?}");
        }
        assert_eq!(lines.iter().filter(|line| line.contains("done,")).count(), 2, "{columns}: {lines:#?}");
        assert!(!text.contains("walltime"), "one machine: one line: {lines:#?}");
    }
}

#[test]
fn help_begins_with_examples_that_fit_the_terminal() {
    if missing() {
        return;
    }
    let lines = Terminal::new(80, &[], "homing run --help | head -31").ends();
    let at = |wanted: &str| lines.iter().position(|line| line.starts_with(wanted)).unwrap_or(usize::MAX);
    let examples = &lines[at("Examples:")..at("Replacement strings:")];
    let commands = examples.iter().filter(|line| line.contains("    ") && line.contains("homing ")).count();
    assert!(commands >= 6 && at("Replacement strings:") < at("Options:"), "{lines:#?}");
    for part in ["  {}    the input", "  {#}", "homing resume last", "{//}  its folder"] {
        assert!(lines.iter().any(|line| line.contains(part)), "{part}: {lines:#?}");
    }
    // A line that is too long would continue beyond the terminal's edge.
    assert!(lines.iter().all(|line| line.chars().count() < 80), "{lines:#?}");
}

#[test]
fn words_of_lsf_are_whole_words_and_jobs_are_told_in_full() {
    if missing() {
        return;
    }
    let script = "export HOMING_QUEUE=$PWD/queue; homing lsf install bin >/dev/null; PATH=$PWD/bin:$PATH\n\
                  bsub -sp 5 touch ran; echo status $?; ls ran\n\
                  bsub -g /mine -M 100 'sleep 1000' | cut -c1-7; bkill -g /others 0\n\
                  until homing jobs 1 | grep -q 'RUN'; do sleep 0.1; done; homing jobs 1\n\
                  homing kill --all; until homing jobs 1 | grep -q 'EXIT'; do sleep 0.1; done; homing jobs 1";
    let lines = Terminal::new(120, &[], script).ends();
    let shown = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!((shown("-sp: "), shown("status 255"), shown("ls: cannot access 'ran'")), (1, 1, 1), "{lines:#?}");
    assert_eq!((shown("Job <1>"), shown("No unfinished job found")), (1, 1), "{lines:#?}");
    assert_eq!((shown("  command    sleep 1000"), shown("  state      RUN"), shown("  state      EXIT")), (2, 1, 1));
}

#[test]
fn times_have_their_zone_and_old_runs_go() {
    if missing() {
        return;
    }
    let script = "homing run -q true ::: 1; TZ=Asia/Kolkata homing runs; TZ=UTC homing runs\n\
                  homing runs --prune 0s --yes; homing runs; echo status $?";
    let lines = Terminal::new(120, &[], script).ends();
    let shown = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!((shown(" IST  ended"), shown(" UTC  ended"), shown("1 run removed")), (1, 1, 1), "{lines:#?}");
    assert_eq!((shown("homing run -q true"), shown("status 0")), (2, 1), "none is left: {lines:#?}");
}

#[test]
fn another_terminal_sees_what_a_run_does_and_later_sees_it_again() {
    if missing() {
        return;
    }
    // The run goes on in the background. `top` is in front, and ends with it.
    let script = "(homing run -q -j2 'test {} != gate || until test -e gate; do sleep 0.1; done; test {} != 3' \
                  ::: gate 1 2 3 4 5 6 7 8 2>/dev/null; echo ended >over) &\n\
                  until homing runs 2>/dev/null | grep -q running; do sleep 0.1; done; homing watch; echo seen";
    let terminal = Terminal::new(100, &[], script);
    let shown = |lines: &[String], part: &str| lines.iter().any(|line| line.contains(part));
    // A reader may see a half-painted screen.
    let parts = [
        "running  homing run -q -j2",
        "89 % 8/9",
        "1 failed, 1 of 2 slots",
        "HOST",
        "exit 1",
        "TASK",
        "until test -e gate",
        "q leaves",
    ];
    let lines = terminal.when("the run as a whole", |lines| parts.iter().all(|part| shown(lines, part)));
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{lines:#?}");
    let_go(&terminal);
    let after = terminal.ends();
    assert!(shown(&after, "8 done, 1 failed") && shown(&after, "seen") && !shown(&after, "q leaves"), "{after:#?}");

    let script = "homing run -q -j1 'sleep 2; echo {}' ::: 1 2 3 >/dev/null 2>&1; homing top --once | head -3\n\
                  homing top --json | tr , '\\n' | grep elapsed_seconds | cut -c1-18; homing top --replay 1; echo seen\n\
                  homing top nosuchrun; echo status $?";
    let terminal = Terminal::new(100, &[], script);
    terminal.when("it again", |lines| shown(lines, "1 of 1 slot,") && shown(lines, "sleep 2; echo 2"));
    let after = terminal.ends();
    for part in [
        "ended, exit 0  homing run",
        "on 1 host, 1 slot",
        "elapsed_seconds",
        "3 done, 0 failed",
        "seen",
        "nosuchrun",
        "status 255",
    ] {
        assert!(shown(&after, part), "{part}: {after:#?}");
    }
}

#[test]
fn an_area_is_told_while_others_are_still_asked_about_and_once() {
    if missing() {
        return;
    }
    let slow =
        "mkdir bin; printf '#!/bin/sh\\nuntil test -e gate; do sleep 0.1; done\\n' > bin/dmesg; chmod 755 bin/dmesg";
    let check = "PATH=$PWD/bin:$PATH; export PATH; XDG_STATE_HOME=$PWD; export XDG_STATE_HOME\n\
                 homing check -w localhost --deadline 200 --only users,memory";
    let terminal = Terminal::new(100, &[], &format!("{slow}\n{check}"));
    let of = |lines: &[String], area: &str| lines.iter().filter(|line| line.starts_with(area)).count();
    let lines = terminal.when("users alone", |lines| of(lines, "users ") == 1);
    assert_eq!(of(&lines, "memory "), 0, "{lines:#?}");
    let_go(&terminal);
    let lines = terminal.ends();
    assert_eq!((of(&lines, "users "), of(&lines, "memory ")), (1, 1), "{lines:#?}");
}

#[test]
fn a_run_is_watched_at_three_sizes_and_a_task_is_seen_and_ended_from_there() {
    if missing() {
        return;
    }
    // A command that names its slot is not sent ahead of one: the third task waits.
    let script = "(homing run -q -j2 'echo begun {} {%}; until test -e gate; do sleep 0.1; done' ::: 1 2 3 4 \
                  >/dev/null 2>&1; echo ended >over) &\n\
                  until homing runs 2>/dev/null | grep -q running; do sleep 0.1; done; homing top last; echo seen";
    let terminal = Terminal::new(100, &[], script);
    let shown = |lines: &[String], part: &str| lines.iter().any(|line| line.contains(part));
    for (columns, rows) in [(80, 24), (132, 43), (60, 16)] {
        terminal.resize(columns, rows);
        let lines = terminal.when("the run in that size", |lines| {
            let last = lines.last().is_some_and(|line| line.starts_with("q leaves  ? help"));
            last && shown(lines, "a free slot") && shown(lines, "TASK  HOST")
        });
        assert!(lines.len() <= rows && lines.iter().all(|line| line.chars().count() <= columns), "{lines:#?}");
        assert!(lines[0].contains("running  homing run") && shown(&lines, "HOST"), "{lines:#?}");
    }
    terminal.press("Enter");
    terminal.when("what it prints", |lines| {
        shown(lines, "output of task 1 so far") && lines.iter().any(|l| l == "begun 1 1")
    });
    terminal.press("x");
    terminal.press("k");
    terminal.when("the question", |lines| shown(lines, "y ends task 1"));
    terminal.press("y");
    terminal.when("the next task", |lines| shown(lines, "echo begun 3 1;"));
    terminal.press("q");
    let after = terminal.ends();
    assert!(shown(&after, "seen") && !shown(&after, "q leaves"), "{after:#?}");
    let_go(&terminal);
}

#[test]
fn top_ends_with_its_terminal() {
    if missing() {
        return;
    }
    let script = format!(
        "(homing run -q -j1 ': {{}}; until test -e gate; do sleep 0.1; done' ::: 1 >/dev/null 2>&1) &\n\
         until homing runs 2>/dev/null | grep -q running; do sleep 0.1; done\n\
         sh -c 'echo $$ >pid; exec \"$0\" top last' {}",
        env!("CARGO_BIN_EXE_homing")
    );
    let terminal = Terminal::new(100, &[], &script);
    terminal.when("the run", |lines| lines.iter().any(|line| line.starts_with("q leaves")));
    let pid = std::fs::read_to_string(terminal.world.path().join("pid")).unwrap();
    terminal.close();
    crate::until::until("top has ended", || !std::path::Path::new("/proc").join(pid.trim()).exists());
    let_go(&terminal);
}

#[test]
fn hosts_are_played_again_from_what_they_kept() {
    if missing() {
        return;
    }
    let script =
        "export XDG_STATE_HOME=$PWD/state\nhoming hosts --sample; homing top --all --since 1h --replay 1; echo seen";
    let terminal = Terminal::new(80, &[], script);
    let shown = |lines: &[String], part: &str| lines.iter().any(|line| line.contains(part));
    terminal.when("an hour ago", |lines| {
        let whole = ["HOST", "FREE MEM", "no samples yet"].iter().all(|part| shown(lines, part));
        whole && lines.get(1).is_some_and(|line| line.ends_with(" ago"))
    });
    terminal.press("Space");
    terminal.when("that it stands still", |lines| shown(lines, "paused; the space bar continues"));
    terminal.press("s");
    terminal.when("hosts by name", |lines| shown(lines, "HOST*"));
    terminal.press("q");
    assert!(shown(&terminal.ends(), "seen"));
}
