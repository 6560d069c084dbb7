//! GNU parallel's options that homing does not have.

use homing_model::text::by_name;

/// GNU parallel's options that homing does not have, and a replacement for each. Options with the same replacement
/// are together.
const ABSENT: &[(&str, &str)] = &[
    ("--round-robin --roundrobin", "--pipe starts a command for each block; a large --block makes few commands"),
    ("--cat --fifo", "--pipe, and /dev/stdin as the name of the file"),
    ("--groupby --bin --shard --group-by", "sort the file and cut it with csplit(1)"),
    ("--noswap --memsuspend", "--memfree waits for memory"),
    ("--limit", "--memfree and --io limit the starts of tasks"),
    ("--tmux --tmuxpane", "`homing sub` runs a command detached, `homing peek` prints its output"),
    (
        "--semaphore --semaphorename --semaphoretimeout --semaphore-name --semaphore-timeout --id --st",
        "flock(1), or `homing sub` with a queue of N slots",
    ),
    (
        "--sqlmaster --sql --sql-master",
        "--tasks FILE: one JSON object a line, and --joblog or the run's journal for their results",
    ),
    ("--sqlworker --sql-worker", "--tasks FILE on a host of the run"),
    ("--sqlandworker --sql-and-worker", "--tasks FILE: one JSON object a line"),
    ("--filter", "filter the list (grep, awk), or `::: $(...)`"),
    (
        "--transfer --transferfile --tf --rsync-opts",
        "the hosts see the same files: put them on a volume that all mount, or `homing push`",
    ),
    ("--return", "--output names the files that a task writes on a volume; `homing pull` fetches from hosts"),
    ("--trc", "--output names the files that a task writes on a volume; `homing push` and `homing pull` copy"),
    ("--cleanup", "homing removes its processes on hosts by itself"),
    ("--basefile --bf", "`homing push FILE` before the run"),
    ("--nonall --exit", "`homing exec -w HOSTS COMMAND`"),
    ("--onall", "`homing exec -w HOSTS COMMAND` for each argument"),
    ("--controlmaster -M", "homing keeps connections by default"),
    ("--ssh", "HOMING_SSH names another ssh"),
    ("--csv", "--colsep ','"),
    ("--files --output-as-files --outputasfiles", "--results DIR"),
    ("--latest-line --ll", "--bar"),
    ("--termseq --term-seq", "a task ends by TERM, and by KILL if it does not"),
    ("--total-jobs", "the input determines the number of tasks"),
    ("--template --tmpl", "a script that takes the arguments"),
    ("--hostgroups --hgrp", "@group in --hosts"),
    ("--embed --shebang --shebang-wrap --hashbang", "a script that calls `homing run`"),
    ("--session --record-env", "--env names the variables that tasks get"),
    ("--parset", "x=$(homing run ...)"),
    ("--interactive -p", "--dry-run prints the commands"),
    ("-D", "`homing run --explain`"),
    ("--max-line-length-allowed --show-limits", "getconf ARG_MAX"),
    ("--number-of-cpus --number-of-cores --number-of-threads --number-of-sockets", "nproc, or `homing hosts`"),
    ("--delay-auto", "--delay TIME"),
    ("--shellquote --shell-quote", "--dry-run prints words quoted for the shell"),
    ("--wait", "homing run waits; `homing wait` waits for jobs of `homing sub`"),
    ("--bg", "`homing sub`"),
    ("--fg", "homing run waits"),
    ("--block-timeout --bt", "--pipe -N cuts after N records"),
    ("--tmpdir", "HOMING_RUNS names the folder that keeps output"),
    ("--filter-hosts", "homing leaves out a host that does not answer, and names it"),
    ("--minversion --version -V", "homing --version"),
    (
        "--use-cores-instead-of-threads --use-cpus-instead-of-cores --use-sockets-instead-of-threads",
        "-j N, or N/host in -S",
    ),
    ("--open-tty --tty -o", "a task has no terminal; `homing sub` or a shell loop"),
    ("--parens", "{= perl =}, or --rpl"),
    ("--shell-completion", "homing completions SHELL"),
    ("--ssh-delay", "HOMING_SSH names another ssh, which may wait"),
];

/// Returns an option that GNU parallel has and homing has not, with its replacement. `name` is its name, or an
/// unambiguous beginning.
pub fn absent(name: &str) -> Option<(&'static str, &'static str)> {
    let begun = || {
        let mut found = by_name(ABSENT).filter(|(known, _)| name.len() > 3 && known.starts_with(name));
        found.next().filter(|_| found.next().is_none())
    };
    by_name(ABSENT).find(|(known, _)| *known == name).or_else(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_known_by_its_name_and_by_a_beginning_that_is_its_own() {
        let name = |given| absent(given).map(|(name, _)| name);
        assert_eq!(
            (name("--tmux"), name("--semaphore"), name("--termse")),
            (Some("--tmux"), Some("--semaphore"), Some("--termseq"))
        );
        assert_eq!((name("--sem"), name("--t"), name("--no-such")), (None, None, None));
    }
}
