//! Compares the table of LSF's words in the manual with the program's answers.

use super::World;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the first and second cells of the manual's table under this head.
fn table(head: &str) -> BTreeMap<String, String> {
    let page = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/manual").join(name);
    let text = ["lsf.md", "lsf-words.md"].map(|name| std::fs::read_to_string(page(name)).unwrap()).concat();
    let rows = text.lines().skip_while(|line| !line.starts_with(&format!("| {head} |"))).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).map(|line| {
        let (name, told) = line.trim_matches('|').split_once('|').unwrap();
        (name.trim().trim_matches('`').to_string(), told.trim().to_string())
    });
    rows.collect()
}

#[test]
fn the_manuals_table_has_every_word_as_the_program_answers_it() {
    let world = World::new();
    let told = table("word");
    let links = std::fs::read_dir(world.path().join("bin")).unwrap().flatten();
    let links = links.filter(|entry| entry.path().is_symlink()).map(|e| e.file_name().into_string().unwrap());
    let mut links: Vec<String> = links.collect();
    links.sort();
    assert_eq!(links, told.keys().cloned().collect::<Vec<_>>());
    for (word, how) in &told {
        let (code, _, err) = world.sh(&format!("{word} -h"));
        match how.strip_prefix("refused: ") {
            Some(why) => {
                assert_eq!((code, err), (255, format!("{word}: not supported by homing: {why}\n")));
            }
            None => {
                assert!(how.starts_with("answered"), "{word}: {how}");
                assert!(!err.contains("not supported by homing:"), "{word}: {err}");
            }
        }
    }
}

#[test]
fn hosts_indices_and_groups_are_told() {
    let world = World::new();
    let host = &world.host;
    assert_eq!(world.out(&format!("lsplace {host}")), format!("{host}\n"));
    let (code, _, err) = world.sh(&format!("lsplace -n 2 {host}"));
    assert_eq!((code, err.trim()), (255, "lsplace: Not enough hosts satisfy the resource requirement"));
    assert_eq!(world.sh(&format!("lsplace -R 'mem>900000000' {host}")).0, 255);
    let info = world.out("lsinfo mem hname");
    assert_eq!(info.lines().nth(1).unwrap().split_whitespace().take(3).collect::<Vec<_>>(), ["mem", "Numeric", "Dec"]);
    assert_eq!(info.lines().count(), 3, "{info}");
    assert_eq!(world.sh("lsinfo nosuch").2, "nosuch: resource name not found.\n");
    assert_eq!(world.sh("bugroup nosuch").2.trim(), "nosuch: No such user/host group");
    assert!(world.out("bugroup").starts_with("GROUP_NAME    USERS\n"));
    // lsmon continues until its reader closes the pipe.
    let heads = world.out(&format!("lsmon -i 1 {host} | head -4 | grep -c HOST_NAME"));
    assert_eq!(heads.trim(), "2");
}

#[test]
fn keys_of_lsfs_that_are_not_there_are_refused_with_what_to_use() {
    let world = World::new();
    let told = table("key of LSF's");
    assert!(told.len() > 20, "{told:?}");
    // Each key is tried alone, because one file with all would report the first alone.
    for (key, instead) in told {
        let file = world.path().join("odd.toml");
        std::fs::write(&file, format!("[queue.q]\n{} = 1\n", key.to_lowercase())).unwrap();
        let (code, _, err) = world.sh(&format!("HOMING_CLUSTER={} bqueues", file.display()));
        assert!(code != 0 && err.contains(&format!("LSF's {}: {instead}", key.to_lowercase())), "{key}: {err}");
    }
}
