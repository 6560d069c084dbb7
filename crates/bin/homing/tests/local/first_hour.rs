//! The first words of a new user: none, a word that is no command, a bar in a log, TAB.

use crate::world::World;

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn homing_alone_prints_its_help_with_commands_in_groups() {
    let world = World::new();
    let text = world.out(&[]);
    assert_eq!(text, world.out(&["--help"]));
    assert!(text.contains("Usage: homing <COMMAND>") && text.contains("\n Jobs\n  sub  "), "{text}");
}

#[test]
fn mistakes_of_all_commands_have_one_style_and_one_status() {
    let world = World::new();
    for (words, message, hint) in [
        (&["rnu"][..], "homing has no command \"rnu\"", "try: homing run"),
        (&["status"], "homing has no command", "try: homing top"),
        (&["report", "--faild"], "homing report has no option --faild", "try: homing report --failed"),
        (&["run", "--mem", "4G", "true"], "homing run has no option --mem", "try: --memfree"),
        (&["runs", "--json=1"], "takes no value", "try: homing runs --json > FILE"),
        (&["down"], "HOST", "try: homing down --help"),
    ] {
        let output = world.homing(words);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(255), "{words:?}: {told}");
        assert!(told.starts_with("homing: ") && told.contains(message) && told.contains(hint), "{words:?}: {told}");
    }
}

#[test]
fn progress_goes_to_a_log_in_lines() {
    let world = World::new();
    for option in ["--bar", "--eta", "--progress"] {
        let told =
            said(&world.homing(&["run", "-q", "-j1", option, "sleep 0.5; : {}", ":::", "1", "2", "3", "4", "5", "6"]));
        let lines: Vec<&str> = told.lines().filter(|line| line.contains(" % ")).collect();
        assert!(lines.len() >= 3 && lines[0].contains("/6, "), "{option}: {told}");
        assert!(!told.contains('\r'), "{told:?}");
    }
    assert_eq!(said(&world.homing(&["run", "-q", "sleep 0.5; : {}", ":::", "1", "2"])), "");
}

#[test]
fn a_first_cluster_file_is_understood_and_never_overwritten() {
    let world = World::new();
    world.out(&["hosts", "--init", "n[1-3]"]);
    assert_eq!(world.out(&["nodeset", "-e", "-a"]), "n1 n2 n3\n");
    let again = world.homing(&["hosts", "--init", "n[1-4]"]);
    assert!(again.status.code() == Some(255) && said(&again).contains("was not changed"), "{}", said(&again));
    assert_eq!(world.out(&["nodeset", "-e", "-a"]), "n1 n2 n3\n");
}

#[test]
fn completions_of_zsh_and_fish_have_descriptions() {
    let world = World::new();
    assert_eq!(world.out(&["describe", "repo"]), "report\tShow the evidence of a run\n");
    assert_eq!(world.out(&["complete", "repo"]), "report\n");
    for shell in ["zsh", "fish"] {
        assert!(world.out(&["completions", shell]).contains("homing describe"), "{shell}");
    }
}
