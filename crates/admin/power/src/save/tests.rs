use super::*;

const MINUTE: u64 = 60;

fn rules() -> Rules {
    Rules { idle_s: 30 * MINUTE, load: 0.3, ..Rules::default() }
}

fn idle() -> ActivityResult {
    Ok(HostActivity { load: 0.0, cores: 8, work: None })
}

fn at_work(work: Work) -> ActivityResult {
    Ok(HostActivity { load: 0.0, cores: 8, work: Some(work) })
}

fn host_results(answers: &[ActivityResult]) -> Vec<(String, ActivityResult)> {
    answers.iter().enumerate().map(|(n, answer)| (format!("n{}", n + 1), answer.clone())).collect()
}

/// Queries one host every ten minutes, which gives these answers. Returns its fate each time.
fn each_ten_minutes(rules: &Rules, answers: &[ActivityResult]) -> Vec<Becomes> {
    let (mut known, mut now_s) = (PowerFacts::default(), 1_000_000);
    let mut became = Vec::new();
    for answer in answers {
        let one = save(rules, &mut known, &host_results(std::slice::from_ref(answer)), now_s).remove(0);
        if let Becomes::SwitchedOff(_) = one {
            known.switched_off("n1", now_s);
        }
        became.push(one);
        now_s += 10 * MINUTE;
    }
    became
}

#[test]
fn a_host_that_is_idle_long_enough_is_switched_off_once_and_comes_back() {
    let silent = || Err("no route".to_string());
    let became = each_ten_minutes(
        &rules(),
        &[idle(), idle(), idle(), idle(), silent(), silent(), idle(), idle(), idle(), idle(), silent()],
    );
    use Becomes::*;
    let minutes = |n: u64| n * MINUTE;
    assert_eq!(
        became,
        [
            Idle(0),
            Idle(minutes(10)),
            Idle(minutes(20)),
            SwitchedOff(minutes(30)),
            Off(minutes(10)),
            Off(minutes(20)),
            Back,
            Idle(minutes(10)),
            Idle(minutes(20)),
            SwitchedOff(minutes(30)),
            Off(minutes(10)),
        ]
    );
}

#[test]
fn work_load_and_silence_begin_the_wait_anew() {
    let busy = [
        at_work(Work::Homing),
        at_work(Work::User(1000, "gcc".into())),
        Ok(HostActivity { load: 0.31, cores: 8, work: None }),
        Err("it hangs".into()),
    ];
    for answer in busy {
        let became = each_ten_minutes(&rules(), &[idle(), idle(), idle(), answer, idle(), idle(), idle()]);
        assert!(matches!(became[3], Becomes::Works(_) | Becomes::Silent(_)), "{became:?}");
        assert_eq!(became[6], Becomes::Idle(20 * MINUTE), "{became:?}");
    }
}

#[test]
fn a_host_that_is_kept_and_one_that_serves_are_never_switched_off() {
    let keep = [("n1".to_string(), "keep in [power]".to_string())];
    let rules = Rules { keep: keep.into(), ..rules() };
    let kept = Becomes::Kept("keep in [power]".into());
    assert!(
        each_ten_minutes(&rules, &[const { Ok(HostActivity { load: 0.0, cores: 8, work: None }) }; 9])
            .iter()
            .all(|b| *b == kept)
    );
    let serves = Work::Serves("glusterfsd".into());
    let became = each_ten_minutes(&self::rules(), &vec![at_work(serves.clone()); 9]);
    assert!(became.iter().all(|one| *one == Becomes::Works(serves.clone())));
}

#[test]
fn no_more_are_off_at_once_than_was_said() {
    let rules = Rules { most_off: Some(2), idle_s: 0, ..rules() };
    let mut known = PowerFacts::default();
    let all = host_results(&[idle(), idle(), idle(), idle()]);
    let first = save(&rules, &mut known, &all, 1000);
    use Becomes::*;
    assert_eq!(first, [SwitchedOff(0), SwitchedOff(0), Enough(0), Enough(0)]);
    ["n1", "n2"].iter().for_each(|host| known.switched_off(host, 1000));
    // They answer for a while after that, which does not mean that they are back.
    assert_eq!(save(&rules, &mut known, &all, 1030), [Off(30), Off(30), Enough(0), Enough(0)]);
    known.switched_on("n1");
    assert!(!known.called("n1", 1050), "it is on");
    assert_eq!(save(&rules, &mut known, &all, 1060), [SwitchedOff(0), Off(60), Enough(0), Enough(0)]);
}

#[test]
fn a_host_that_was_called_is_back_as_soon_as_it_answers() {
    let mut known = PowerFacts::default();
    known.switched_off("n1", 1000);
    assert!(known.called("n1", 1010));
    assert_eq!(save(&rules(), &mut known, &host_results(&[Err("no route".into())]), 1020), [Becomes::Off(20)]);
    assert_eq!(save(&rules(), &mut known, &host_results(&[idle()]), 1030), [Becomes::Back]);
    assert_eq!(known.hosts["n1"], Since { idle_s: Some(1030), cores: 8, ..Since::default() });
}

#[test]
fn hosts_of_other_clusters_are_kept_while_they_are_off() {
    let mut known = PowerFacts::default();
    known.switched_off("m1", 5);
    known.hosts.insert("m2".into(), Since { idle_s: Some(5), ..Since::default() });
    save(&rules(), &mut known, &host_results(&[idle()]), 1000);
    assert_eq!(known.hosts.keys().collect::<Vec<_>>(), ["m1", "n1"]);
}

#[test]
fn time_in_which_nobody_looked_does_not_count() {
    let (mut known, minutes) = (PowerFacts::default(), |n: u64| 1_000_000 + n * MINUTE);
    let mut look = |at| save(&rules(), &mut known, &host_results(&[idle()]), minutes(at)).remove(0);
    assert_eq!([look(0), look(30)], [Becomes::Idle(0), Becomes::SwitchedOff(30 * MINUTE)]);
    assert_eq!([look(61), look(90)], [Becomes::Idle(0), Becomes::Idle(29 * MINUTE)]);
}

#[test]
fn a_clock_that_is_set_back_switches_nothing_off_early() {
    let mut known = PowerFacts::default();
    save(&rules(), &mut known, &host_results(&[idle()]), 10_000);
    assert_eq!(save(&rules(), &mut known, &host_results(&[idle()]), 5_000), [Becomes::Idle(0)]);
    assert_eq!(save(&rules(), &mut known, &host_results(&[idle()]), 5_600), [Becomes::Idle(600)]);
}
