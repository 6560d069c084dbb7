//! No command changes hosts or deletes data without a yes: on a terminal it prompts, elsewhere it requires `--yes`.

use crate::terminal::{Terminal, missing};
use crate::world::World;

/// Commands that change hosts, with their required arguments.
const CHANGING: &[&[&str]] = &[
    &["snapshot", "restore", "home:f", "--overwrite", "--cluster", "c.toml"],
    &["snapshot", "schedule", "--on", "n1", "--cluster", "c.toml"],
    &["tune", "net", "-w", "n1,n2"],
    &["tune", "net", "-w", "n1,n2", "--undo"],
    &["cache", "install", "-w", "n1", "jq"],
    &["hosts", "-w", "n1", "--schedule"],
];

/// Commands that look first: a request that cannot be carried out is refused for its own reason. They change nothing.
const LOOKING: &[&[&str]] = &[
    &["up", "c.toml"],
    &["up", "c.toml", "--undo"],
    &["down", "n2", "--cluster", "c.toml"],
    &["power", "off", "n1", "--cluster", "c.toml"],
    &["volume", "create", "data", "--kind", "nfs", "--hosts", "n1:/export"],
    &["volume", "mount", "data", "-w", "n1"],
    &["volume", "unmount", "data", "-w", "n1"],
    &["volume", "add-host", "data", "n2:/brick", "-w", "n1"],
    &["volume", "drain-host", "data", "n2", "-w", "n1"],
    &["volume", "set-copies", "data", "/data", "2", "-w", "n1"],
    &["volume", "set-stripe", "data", "/data", "--size", "1M", "-w", "n1"],
    &["volume", "set-option", "data", "auth.allow=n1", "-w", "n1"],
    &["volume", "set-export", "data", "-w", "n1"],
    &["volume", "heal", "data", "-w", "n1"],
    &["volume", "rebalance", "data", "-w", "n1"],
    &["volume", "delete", "data", "-w", "n1"],
    &["volume", "remove", "data", "-w", "n1"],
    &["volume", "resume", "data", "-w", "n1"],
    &["volume", "undo", "data", "-w", "n1"],
    &["snapshot", "expire", "home", "--to", "n1:/bank"],
];

const CLUSTER: &str = "hosts = \"n[1-2]\"\n[power]\noff = \"touch switched {host}\"\n[snapshot.home]\nsource = \"n1:/home\"\n\
                       bank = \"n2:/bank\"\n";

fn world() -> World {
    let world = World::new();
    std::fs::write(world.path().join("c.toml"), CLUSTER).unwrap();
    crate::script::script(&world.path().join("ssh"), "touch reached; exit 255");
    world
}

#[test]
fn without_a_terminal_no_host_is_changed_and_yes_is_named() {
    for words in CHANGING {
        let world = world();
        let mut command = world.command(words);
        command.env("HOMING_SSH", world.path().join("ssh")).env("HOMING_VOLUMES", world.path());
        command.env("XDG_STATE_HOME", world.path()).env("HOMING_POWER", world.path().join("power.json"));
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(255) && told.contains("--yes"), "{words:?}: {told}");
        assert!(!world.path().join("reached").exists(), "{words:?} has reached a host");
    }
}

#[test]
fn a_request_that_cannot_be_carried_out_is_refused_for_its_own_reason() {
    for words in LOOKING {
        let world = world();
        // No host answers.
        crate::script::script(&world.path().join("ssh"), "exit 255");
        let mut command = world.command(words);
        command.env("HOMING_SSH", world.path().join("ssh")).env("HOMING_VOLUMES", world.path());
        command.env("XDG_STATE_HOME", world.path()).env("HOMING_POWER", world.path().join("power.json"));
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(254 | 255)) && !told.is_empty(), "{words:?}: {told}");
        assert!(!world.path().join("switched").exists(), "{words:?} has switched a host off");
        assert!(!told.contains("Continue?"), "{words:?}: {told}");
    }
    let world = world();
    let output = world.command(&["volume", "delete", "nosuch"]).env("HOMING_VOLUMES", world.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("homing knows no volume nosuch"), "{output:?}");
}

#[test]
fn on_a_terminal_only_yes_goes_on() {
    if missing() {
        return;
    }
    for (answer, reached) in [("n", false), ("Enter", false), ("y", true)] {
        let script = "printf '[power]\\noff = \"touch reached-{host}\"\\n' > c.toml; \
                      homing power off n1 --force --cluster c.toml; [ -e reached-n1 ] && echo REACHED";
        let terminal = Terminal::new(120, &["HOMING_POWER=power.json", "HOMING_SSH=false"], script);
        let asked = terminal.when("the question", |lines| lines.iter().any(|line| line.contains("Continue? [y/N]")));
        assert!(asked.iter().any(|line| line.contains("n1 would be switched off")), "{asked:#?}");
        if answer != "Enter" {
            terminal.press(answer);
        }
        terminal.press("Enter");
        let lines = terminal.ends();
        assert_eq!(lines.iter().any(|line| line == "REACHED"), reached, "{answer}: {lines:#?}");
        let refused = lines.iter().any(|line| line.contains("nothing was changed"));
        assert_eq!(refused, !reached, "{answer}: {lines:#?}");
    }
}
