//! Load indices of a site's own: displays show them, jobs request them, and queues obey them.

use super::World;
use crate::until::until;

#[test]
fn an_index_of_the_sites_own_is_shown_asked_for_and_heeded() {
    let w = World::new();
    let value = |text: &str| std::fs::write(w.path().join("value"), text).unwrap();
    let file = w.path().join("value").display().to_string();
    w.write(&format!(
        "[index.places]\ncommand = \"cat {file}\"\nperiod = 1\n[queue.busy]\nload = {{ places = \"3\" }}\n"
    ));
    value("7\n");
    let shown = || w.sh("lsload -l $(hostname)");
    let (code, out, err) = shown();
    let columns: Vec<&str> = out.lines().next().unwrap().split_whitespace().collect();
    assert!(code == 0 && columns.last() == Some(&"places") && out.trim_end().ends_with(" 7.0"), "{out}{err}");
    w.out("bsub -R 'select[places<5]' true");
    w.out("bsub -q busy true");
    until("both wait for it", || {
        let why = w.out("bjobs -lp");
        why.contains("Load index (places) is beyond threshold") && why.contains("requirements not satisfied")
    });
    value("2\n");
    until("both have run", || w.stat("1") == "DONE" && w.stat("2") == "DONE");
    let (code, _, err) = w.sh("bsub -R 'select[plaecs<5]' true");
    assert!(code == 255 && err.contains("\"plaecs\" is not a resource"), "{err}");
}

#[test]
fn a_command_that_fails_is_one_line_and_loses_no_job() {
    let w = World::new();
    w.write(
        "[index.text]\ncommand = \"echo many\"\n[index.hangs]\ncommand = \"sleep 1000\"\n\
         [index.fails]\ncommand = \"exit 3\"\n[queue.busy]\nload = { text = \"3\", hangs = \"3\", fails = \"3\" }\n",
    );
    w.out("bsub -q busy -R 'select[text<5 && hangs<5]' true");
    let (code, out, err) = w.sh("lsload -I text:hangs:fails $(hostname)");
    assert_eq!((code, out.lines().nth(1).unwrap().split_whitespace().skip(2).collect::<Vec<_>>()), (0, vec!["-"; 3]));
    for name in ["text", "hangs", "fails"] {
        let lines = err.lines().filter(|line| line.contains(&format!("index {name} is unknown")));
        assert!(lines.count() == 1 && !err.contains("ssh"), "{err}");
    }
    until("what is unknown stops nobody", || w.stat("1") == "DONE");
    w.write("[queue.busy]\nload = { colour = \"3\" }\n");
    let (code, _, err) = w.sh("bsub true");
    assert!(code == 255 && err.contains("threshold on colour, which no host measures"), "{err}");
}

#[test]
fn why_hosts_are_unavailable_is_said_once() {
    let w = World::new();
    w.write("");
    let (code, out, err) = w.sh("HOMING_SSH='sh -c \"echo refused >&2; exit 255\"' lsload other1 other2");
    assert!(code == 0 && out.matches("unavail").count() == 2, "{out}{err}");
    assert!(err.lines().count() == 1 && err.contains("host other[1-2]: ") && err.contains("refused"), "{err}");
}
