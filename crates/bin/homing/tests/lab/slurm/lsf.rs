//! The LSF commands on the same Slurm.

use crate::support::{EXE, Lab};

/// Runs a script on n1 with the LSF commands in its PATH. Returns its standard output.
fn said(lab: &Lab, script: &str) -> String {
    lab.ok("n1", &format!("export PATH=/data/lsf:$PATH SHELL=/bin/sh; cd /data; {script}"))
}

pub fn the_words_of_lsf(lab: &Lab) {
    said(lab, &format!("{EXE} lsf install lsf"));
    a_script_and_its_report(lab);
    interactive_and_waiting(lab);
    arrays_and_conditions(lab);
    holding_stopping_killing(lab);
    what_monitors_read(lab);
}

/// `sbatch` reads #BSUB lines too, but differently.
fn a_script_and_its_report(lab: &Lab) {
    let script = "printf '%s\n' '#!/bin/bash' '#BSUB -J one' '#BSUB -o log.%J' '#BSUB -n 2' '#BSUB -R \"span[hosts=1]\"' \
         '#BSUB -W 00:10' '#BSUB -P lab' '#BSUB -R \"select[mem>=1] rusage[mem=10]\"' \
         'echo \"$LSB_JOBNAME $LSB_QUEUE $LSB_JOBINDEX\"; set -- $LSB_HOSTS; [[ $# == 2 ]] && exit 9' > script; \
         bsub -K < script >/dev/null 2>&1; [ $? = 9 ] || exit 1; id=$(bjobs -a -noheader -o jobid -J one); \
         bjobs -a -noheader -o 'stat exit_code proj_name slots' $id; cat log.*";
    let out = said(lab, script);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["EXIT", "9", "lab", "2"]);
    assert_eq!(lines[1], "one lab 0");
    let at = lines.iter().position(|l| *l == "Resource usage summary:").expect("a report");
    assert_eq!(lines[at - 2], "Exited with exit code 9.", "{out}");
    assert!(out.contains("\n# LSBATCH: User input\n#!/bin/bash\n#BSUB -J one\n"), "{out}");
    said(lab, "bsub -K -o ok true 2>/dev/null; grep -x -A2 'Successfully completed.' ok | grep -q 'Resource usage'");
}

fn interactive_and_waiting(lab: &Lab) {
    let out = said(
        lab,
        "BSUB_STDERR=1 bsub -I 'echo got; echo bad >&2; exit 5' 2>err; echo $?; grep -c 'Starting on' err; grep -x bad err",
    );
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1", "5", "bad", "got"], "each once: {out}");
    assert_eq!(said(lab, "lsrun -m n2 sh -c 'hostname; exit 7'; echo $?"), "n2\n7\n");
    // Standard input is the submitter's, to its end and byte by byte. The job's number and state are Slurm's. Slurm
    // takes a moment to give the job's nodes back.
    let script = "export BSUB_STDERR=1; head -c 300000 /dev/urandom > sent; bsub -I -J eats -n 2 'cat; echo $LSB_JOBNAME $LSB_HOSTS | wc -w >&2; exit 3' \
         < sent 2>err > got; echo $?; cmp sent got && sed '1d; /^srun: error: .*Exited with/d; s/[0-9]*>>$/>>/' err; \
         until bjobs -a -noheader -o stat -J eats | grep -q EXIT; do sleep 0.2; done; \
         bjobs -a -noheader -o 'stat exit_code slots' -J eats; \
         echo line | bsub -I 'read x; echo got $x' 2>&1 >/dev/null | grep -c '^Job <[0-9]*> is submitted to default queue <lab>.$'; \
         printf '%s\\n' '#!/bin/bash' '#BSUB -I' 'read a; [[ $a = fed ]]; echo \"script $?\"' > i.sh; \
         bsub -I bash i.sh 2>/dev/null <<< fed; bsub -I -e split 'echo out; echo err >&2' 2>/dev/null; cat split; \
         echo line | lsrun -m n2 cat; squeue -h -t R -n eats";
    let out = said(lab, script);
    let lines: Vec<String> = out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "3",
            "<<Waiting for dispatch ...>>",
            "<<Starting on n>>",
            "3",
            "EXIT 3 2",
            "1",
            "script 0",
            "out",
            "err",
            "line"
        ],
        "{out}"
    );
    // However bsub ends, the job ends with it.
    said(
        lab,
        "bsub -I -J orphan 'echo begun; sleep 1000' </dev/null > begun 2>&1 & sub=$!; until grep -qx begun begun; do sleep 0.1; done; \
         kill -9 $sub; until [ -z \"$(squeue -h -n orphan)\" ]; do sleep 0.2; done",
    );
}

fn arrays_and_conditions(lab: &Lab) {
    let script = "bsub -J 'a[1-3]%2' -o out.%I 'test $LSB_JOBINDEX != 2'; bsub -K -w 'ended(\"a\")' true >/dev/null 2>&1; \
         bjobs -a -A -J a | tail -1 | tr -s ' '; bsub -w 'done(a)' -J never true; \
         until bjobs -p -J never | grep 'never satisfied'; do sleep 0.2; done; bkill -J never 0; \
         grep -l 'exit code 1' out.*";
    let out = said(lab, script);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].ends_with("is submitted to default queue <lab>."), "{out}");
    assert!(lines[1].contains(" a[1-3]%2 root 3 0 2 0 1 "), "{out}");
    assert!(lines[4].ends_with("is being terminated") && lines[5] == "out.2", "{out}");
}

fn holding_stopping_killing(lab: &Lab) {
    let script = "stat() { bjobs -a -noheader -o stat -J $1 | tr -d ' '; }; \
         until_is() { until [ \"$(stat $1)\" = $2 ]; do sleep 0.2; done; }; \
         bsub -H -J held true >/dev/null; until_is held PSUSP; bresume -J held 0 >/dev/null; until_is held DONE; \
         bsub -J long -o long.out 'echo begun; sleep 1000' >/dev/null; until_is long RUN; \
         until bpeek -J long | grep begun; do sleep 0.2; done; bstop -J long 0; until_is long USUSP; stat long; \
         bresume -J long 0; until_is long RUN; bkill -J long 0; until_is long EXIT; \
         until grep -A1 TERM_OWNER long.out; do sleep 0.2; done";
    let out = said(lab, script);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "begun");
    assert!(lines[1].ends_with("being stopped") && lines[4].ends_with("being terminated"), "{out}");
    assert_eq!(
        (lines[2], lines[5..].to_vec()),
        ("USUSP", vec!["TERM_OWNER: job killed by owner.", "Exited with exit code 143."])
    );
}

fn what_monitors_read(lab: &Lab) {
    let queues = said(lab, "bqueues lab urgent");
    assert!(queues.lines().any(|l| l.starts_with("lab ") && l.contains("Open:Active")), "{queues}");
    let tables =
        [("bhosts", "HOST_NAME          STATUS"), ("lsload", "HOST_NAME       status"), ("lshosts", "HOST_NAME ")];
    for (command, head) in tables {
        let out = said(lab, command);
        assert!(out.starts_with(head), "{out}");
        let mut hosts: Vec<&str> = out.lines().skip(1).filter_map(|l| l.split_whitespace().next()).collect();
        hosts.sort_unstable();
        assert_eq!(hosts, ["n1", "n2", "n3", "n4"], "{command}");
    }
}
