//! Signals, halts and limits that end tasks or the run.

use super::*;
use homing_launch::wire::OutputStream;

#[test]
fn who_prints_too_much_is_ended_and_not_tried_again() {
    let mut core = core(Policy { output_limit: Some(100), tries: Some(3), ..policy() }, &[("n1", 3)]);
    (1..=3).for_each(|id| core.offer(offer(id, &[])));
    let tickets: Vec<u64> = assign(&mut core, 0).iter().map(|(_, _, ticket)| *ticket).collect();
    let ended_now = |core: &mut Core| -> Vec<u64> {
        let kill = |action: &Action| match action {
            Action::Send(0, ToWorker::Kill { ticket, timed_out: false, .. }) => Some(*ticket),
            _ => None,
        };
        core.take_actions().iter().filter_map(kill).collect()
    };
    core.printed(tickets[0], OutputStream::Out, &[0; 60]);
    core.printed(tickets[1], OutputStream::Out, &[0; 70]);
    assert!(ended_now(&mut core).is_empty());
    core.printed(tickets[0], OutputStream::Err, &[0; 41]);
    core.printed(tickets[0], OutputStream::Err, &[0; 1]);
    assert_eq!(ended_now(&mut core), [tickets[0]], "above the limit, and once");
    assert_eq!(core.end_largest_output(), Some(tickets[1]), "the most of those that still run");
    assert_eq!(ended_now(&mut core), [tickets[1]]);
    core.ended(0, ended(tickets[0], Outcome::Killed), at(S));
    // It had ended before the signal arrived, but its output was cut.
    core.ended(0, ended(tickets[1], Outcome::Exit(0)), at(S));
    // Its output came with its end.
    core.ended(0, AttemptEnd { stdout: vec![b'x'; 101], ..ended(tickets[2], Outcome::Exit(0)) }, at(S));
    let all = (1..=3).map(|id| (id, Outcome::OutputLimit)).collect::<Vec<_>>();
    assert_eq!(verdicts(core.take_actions()), all);
}

#[test]
fn the_first_interrupt_drains_and_the_second_kills() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.offer(offer(2, &[]));
    let (_, host, ticket) = assign(&mut core, 0)[0];
    core.interrupt(2, false);
    assert!(!core.is_over(), "it waits for what runs");
    let kills = |core: &mut Core| {
        core.take_actions().iter().filter(|a| matches!(a, Action::Send(_, ToWorker::Kill { .. }))).count()
    };
    assert_eq!(kills(&mut core), 0);
    core.interrupt(2, true);
    core.interrupt(2, true);
    assert_eq!(kills(&mut core), 1, "each once");
    core.ended(host, ended(ticket, Outcome::Killed), at(S));
    assert!(assign(&mut core, S).is_empty() && core.is_over());
    core.source_ended();
    assert_eq!(core.finish().0, 130);
}

#[test]
fn a_failure_after_an_interrupt_is_not_the_last_word_while_retries_are_left() {
    let mut core = core(Policy { tries: Some(2), ..policy() }, &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.source_ended();
    let (_, host, ticket) = assign(&mut core, 0)[0];
    core.interrupt(2, false);
    core.ended(host, ended(ticket, Outcome::Exit(7)), at(S));
    assert_eq!(verdicts(core.take_actions()), [], "`homing resume` tries it again");
    assert!(assign(&mut core, S).is_empty() && core.is_over());
    assert_eq!(core.finish().0, 130);
}

#[test]
fn a_signal_that_kills_does_not_say_that_it_waits() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    assign(&mut core, 0);
    core.interrupt(15, true);
    assert_eq!(notes(&mut core), ["no new tasks; ending 1 still running"]);
}

#[test]
fn a_signal_before_any_host_is_up_is_why_nothing_was_done() {
    let mut core = core(policy(), &[]);
    core.offer(offer(1, &[]));
    core.interrupt(15, true);
    assert!(core.is_over());
    assert_eq!(core.finish().0, 143);
}

#[test]
fn a_signal_shows_in_the_exit_status_only_where_it_left_something_undone() {
    for (waits, status) in [(true, 143), (false, 0)] {
        let mut core = core(policy(), &[("n1", 1)]);
        (1..=1 + TaskId::from(waits)).for_each(|id| core.offer(offer(id, &[])));
        core.source_ended();
        let (_, host, ticket) = assign(&mut core, 0)[0];
        core.interrupt(15, false);
        core.ended(host, ended(ticket, Outcome::Exit(0)), at(S));
        assert!(core.is_over());
        assert_eq!(core.finish().0, status, "another waits: {waits}");
    }
}

#[test]
fn a_signal_is_told_of_a_run_whose_input_broke_off_too() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.source_broken(254);
    let (_, host, ticket) = assign(&mut core, 0)[0];
    core.interrupt(15, true);
    core.ended(host, ended(ticket, Outcome::Killed), at(S));
    assert_eq!(core.finish().0, 143);
}

#[test]
fn halt_now_kills_and_halt_soon_lets_run() {
    for (halt, killed) in [("now,fail=1", 1), ("soon,fail=1", 0)] {
        let mut core = core(Policy { halt: halt.parse().unwrap(), ..policy() }, &[("n1", 2)]);
        (1..=3).for_each(|id| core.offer(offer(id, &[])));
        let begun = assign(&mut core, 0);
        core.ended(0, ended(begun[0].2, Outcome::Exit(1)), at(S));
        let actions = core.take_actions();
        let kills = actions.iter().filter(|a| matches!(a, Action::Send(_, ToWorker::Kill { .. }))).count();
        assert_eq!(kills, killed, "{halt}");
        assert!(assign(&mut core, S).is_empty(), "{halt}: nothing new starts");
    }
}

#[test]
fn tasks_far_over_the_median_are_ended() {
    let mut core = core(Policy { timeout_of_median: Some(2.0), ..policy() }, &[("n1", 4)]);
    (1..=4).for_each(|id| core.offer(offer(id, &[])));
    let begun = assign(&mut core, 0);
    begun[..3].iter().for_each(|(_, host, ticket)| {
        core.ended(*host, ended(*ticket, Outcome::Exit(0)), at(S));
    });
    core.take_actions();
    core.tick(at(S * 19 / 10).mono);
    assert!(core.take_actions().is_empty(), "not before twice the median of 1 s");
    core.tick(at(S * 21 / 10).mono);
    let kill = |a: &Action| matches!(a, Action::Send(0, ToWorker::Kill { ticket, timed_out: true, .. }) if *ticket == begun[3].2);
    assert!(core.take_actions().iter().any(kill));
}
