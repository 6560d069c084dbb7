//! iobsub and the seven faults of the original, each by its number. Those of
//! pure functions are tested beside them:
//!
//! 1. servers with a dash, a domain, an address (`lsf::place::a_server_is_known_by_all_its_names`)
//! 4. exports below others, bind mounts, automounts, names that begin alike
//!    (`locate::nfs::each_way_to_mount_leads_to_the_servers_path`)
//! 6. files that the command names (`lsf::place::the_named_files_count_more_than_the_directory`)
//! 7. a server that is down (`cmd::lsf::iobsub::a_server_that_does_not_answer_is_a_reason_and_not_the_end`)

use super::World;

#[test]
fn fault_2_a_host_that_is_asked_for_is_dropped_in_both_forms_and_nothing_else() {
    let w = World::new();
    for line in ["iobsub -m other -J named true", "iobsub -mother -J named true"] {
        let (code, out, err) = w.sh(line);
        let told = out.contains(&format!("fileserver {}\n", w.host)) && err.contains("-m other is ignored");
        assert!(code == 0 && told, "{err}");
    }
    assert_eq!(w.out("bjobs -a -noheader -o job_name -J named").lines().count(), 2);
}

#[test]
fn fault_3_a_line_of_the_shell_stays_one_and_the_status_is_the_jobs() {
    let w = World::new();
    assert_eq!(w.sh("iobsub -K -o io.out 'echo a; printf \"%s|\" \"b c\"'").0, 0);
    assert!(w.file("io.out").starts_with("a\nb c|\n"), "{}", w.file("io.out"));
    assert_eq!(w.sh("iobsub -K 'exit 6'").0, 6);
}

#[test]
fn fault_5_nothing_of_ours_is_in_the_jobs_output() {
    let w = World::new();
    let real = w.path().canonicalize().unwrap();
    let (code, out, _) = w.sh("iobsub -K -o io.out pwd");
    let submitted = "Job <1> is submitted to default queue <normal>.";
    assert_eq!((code, out), (0, format!("Submitting job to run on fileserver {}\n{submitted}\n", w.host)));
    let output = w.file("io.out");
    let report = output.strip_prefix(&format!("{}\n", real.display()));
    assert!(report.is_some_and(|r| r.trim_start().starts_with("---")), "{output}");
}

#[test]
fn a_disk_of_this_machines_own_is_a_file_server_only_where_the_queue_uses_it() {
    let w = World::new();
    // The queue runs its jobs on another host, which does not exist. `-H` holds the job, so it need not run.
    let (code, out, err) = w.sh("iobsub -H -q far true");
    let told = err.contains(&format!(
        "fileserver {} cannot run it: queue far does not use it; submitting it to run anywhere",
        w.host
    ));
    assert!(code == 0 && told && !out.contains("to run on fileserver"), "{out}{err}");
    assert!(w.out("bjobs -l 1").contains("Queue <far>"));
    for folder in ["/tmp", "/proc", "/sys/kernel"] {
        let (code, _, err) = w.sh(&format!("cd {folder}; iobsub true"));
        let told = err.contains("Cannot find fileserver")
            && err.contains("is local to each machine, and holds no shared data");
        assert!(code == 1 && told, "{folder}: {err}");
    }
}
