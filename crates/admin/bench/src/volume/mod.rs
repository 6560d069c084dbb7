//! Measures the speed of a shared folder from its clients.

mod fio;
mod limit;
mod page;
mod show;
pub mod tune;
mod visible;
mod words;

pub use fio::{Case, FioOperation};
pub use page::html;
pub use show::{compared, compared_html, load, table};
pub use visible::Delay;

use crate::ProgressReporter;
use homing_model::{Failure, NodeSet};
use homing_steps::Executor;
use homing_volume::Spec;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The results of all measurements.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BenchResults {
    /// The text of `--label`.
    pub label: String,
    /// The folder.
    pub path: String,
    /// Hosts that took part.
    pub hosts: Vec<String>,
    /// A sentence on the treatment of caches.
    pub caches: String,
    /// Size of the pieces that files are cut into, bytes, where that is known.
    #[serde(default)]
    pub stripe: Option<u64>,
    /// Bytes that each host wrote and read.
    pub size: u64,
    /// Files that these bytes were cut into, one after another; 0: not known.
    #[serde(default)]
    pub in_files: u32,
    /// One row for each case.
    pub rows: Vec<CaseResult>,
    /// How soon other hosts see a change.
    pub visible: Vec<visible::Delay>,
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The measured case.
    pub case: Case,
    /// Megabytes (10^6) a second, all hosts together; for small files 0.
    pub mb_per_s: f64,
    /// Operations, or files, a second, all hosts together.
    pub per_s: f64,
    /// 99th percentile of an operation's latency, milliseconds, of the slowest host.
    pub p99_ms: f64,
    /// Share of the theoretical limit, if `--link` gives the rate of links.
    pub share: Option<f64>,
}

/// The measurements that are wanted.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// A folder of the volume, the same on all hosts.
    pub path: String,
    /// Hosts that take part; at least one.
    pub hosts: Vec<String>,
    /// Hosts whose caches are dropped before reads.
    pub drop_on: Vec<String>,
    /// Numbers of hosts at once; one and all if empty.
    pub clients: Vec<usize>,
    /// Block sizes, in fio's words; at least one.
    pub bs: Vec<String>,
    /// Bytes that each host writes and reads.
    pub size: u64,
    /// Files that these bytes are cut into, one after another.
    pub in_files: u32,
    /// Bytes of random reads and writes of each host.
    pub random_size: u64,
    /// Small files of each host.
    pub files: u32,
    /// Numbers of copies, each in a folder of its own goal.
    pub copies: Vec<u32>,
    /// Operations to measure; all if empty.
    pub only: Vec<FioOperation>,
    /// Trials of how soon another host sees a change.
    pub trials: u32,
    /// Rate of a host's link, Mbit/s.
    pub link: Option<f64>,
    /// A name for the results.
    pub label: String,
}

/// Hosts, and the measurements to run from them.
pub struct Bench {
    setup: Setup,
    executor: Box<dyn Executor>,
    reporter: ProgressReporter,
    /// The record of the volume, if homing has one.
    volume: Option<Spec>,
}

impl Bench {
    /// Returns an error for a path that cannot be part of a command.
    pub fn new(setup: Setup, executor: Box<dyn Executor>, reporter: ProgressReporter) -> Result<Bench, Failure> {
        homing_volume::check_path(&setup.path).map_err(Failure::usage)?;
        let volume = limit::volume_of(&setup.path);
        Ok(Bench { setup, executor, reporter, volume })
    }

    /// Runs the same command on hosts, and fails at the first failure.
    fn all(
        &self,
        hosts: &[String],
        argv: impl Fn(usize, &str) -> Vec<String>,
        doing: &str,
    ) -> Result<Vec<String>, Failure> {
        let commands: Vec<_> = hosts.iter().enumerate().map(|(i, h)| (h.clone(), argv(i, h))).collect();
        let said = self.executor.programs(&commands);
        hosts
            .iter()
            .zip(said)
            .map(|(h, s)| s.map_err(|why| Failure::system(format!("{doing} on {h} in {}: {why}", self.setup.path))))
            .collect()
    }

    /// Measures every case, in a folder of its own that is removed at the end. A failure ends the measurement; the cases
    /// before it are in the results.
    pub fn measure(&self) -> (BenchResults, Result<(), Failure>) {
        let mut results = BenchResults {
            label: self.setup.label.clone(),
            path: self.setup.path.clone(),
            hosts: self.setup.hosts.clone(),
            caches: self.drop_caches(),
            size: self.setup.size,
            in_files: self.setup.in_files.max(1),
            stripe: self.volume.as_ref().and_then(|v| v.stripe),
            ..BenchResults::default()
        };
        let ended = self.measure_into(&mut results);
        (results, ended)
    }

    fn measure_into(&self, results: &mut BenchResults) -> Result<(), Failure> {
        // Other users may write to the folder, and could guess a number.
        let token = homing_os::folder::unguessable()
            .map_err(|e| Failure::system(format!("reading a random number from the kernel: {e}")))?;
        let folder = format!("{}/.homing-bench.{token}", self.setup.path);
        self.all(&self.setup.hosts[..1], |_, _| sh(r#"command -v fio >/dev/null || { echo "no fio; install the package fio"; exit 1; }; mkdir -m 700 -- "$1""#, &[&folder]), "preparing")?;
        let measured = self.check_shared(&folder).and_then(|()| self.measure_in(&folder, results));
        let swept = self.all(
            &self.setup.hosts[..1],
            |_, _| sh(r#"rm -rf --one-file-system -- "$1""#, &[&folder]),
            "cleaning up",
        );
        measured.and(swept.map(drop))
    }

    /// Checks that all hosts see the folder that the first one has made.
    fn check_shared(&self, folder: &str) -> Result<(), Failure> {
        let hosts = &self.setup.hosts;
        let seen =
            self.all(&hosts[1..], |_, _| sh(r#"[ ! -d "$1" ] || echo seen"#, &[folder]), "seeking a new folder")?;
        let blind: NodeSet =
            hosts[1..].iter().zip(seen).filter(|(_, seen)| seen.is_empty()).map(|(h, _)| h.clone()).collect();
        if blind.is_empty() {
            return Ok(());
        }
        let (path, first) = (&self.setup.path, &hosts[0]);
        let failure = Failure::usage(format!(
            "{blind} cannot see a folder that {first} made in {path}: the hosts do not share {path}"
        ));
        Err(failure.hint(format!("homing where {path} names its file system; -w {first} measures one host alone")))
    }

    fn measure_in(&self, folder: &str, results: &mut BenchResults) -> Result<(), Failure> {
        let goals: Vec<Option<u32>> = if self.setup.copies.is_empty() {
            vec![None]
        } else {
            self.setup.copies.iter().copied().map(Some).collect()
        };
        let all = goals.len() * self.cases(None).len();
        let begun = Instant::now();
        for goal in goals {
            let place = self.folder_of(folder, goal)?;
            let copies = goal.or(self.volume.as_ref().map(|v| v.copies));
            for case in self.cases(copies) {
                self.report_progress(&case, results.rows.len(), all, begun.elapsed());
                results.rows.push(self.one(&case, &place)?);
            }
        }
        if self.setup.trials > 0 && self.setup.hosts.len() > 1 {
            results.visible = visible::measure(self, folder)?;
        }
        Ok(())
    }

    /// Shows the current case, and the approximate time that the rest takes.
    fn report_progress(&self, case: &Case, done: usize, all: usize, took: Duration) {
        let left = (done > 0).then(|| took.mul_f64((all - done) as f64 / done as f64).as_secs());
        let left = left.map_or(String::new(), |s| format!(", about {s} s to go"));
        (self.reporter.progress)(&format!("[{}/{all}] {case}{left}", done + 1));
    }

    /// Makes a folder whose files have this goal.
    fn folder_of(&self, folder: &str, goal: Option<u32>) -> Result<String, Failure> {
        let Some(goal) = goal else { return Ok(folder.into()) };
        let place = format!("{folder}/goal{goal}");
        let text = r#"mkdir -- "$1" && mfssetgoal "$2" "$1""#;
        self.all(&self.setup.hosts[..1], |_, _| sh(text, &[&place, &goal.to_string()]), "setting the goal")?;
        Ok(place)
    }

    fn cases(&self, copies: Option<u32>) -> Vec<Case> {
        let mut clients = self.setup.clients.clone();
        if clients.is_empty() {
            clients = vec![1, self.setup.hosts.len()];
            clients.dedup();
        }
        clients.retain(|c| (1..=self.setup.hosts.len()).contains(c));
        let mut cases = Vec::new();
        for op in FioOperation::ALL {
            if !self.setup.only.is_empty() && !self.setup.only.contains(&op) {
                continue;
            }
            let sizes: &[String] = if op.is_small_files() { &self.setup.bs[..1] } else { &self.setup.bs };
            for bs in sizes {
                let bs = if op.is_small_files() { "4k".to_string() } else { bs.clone() };
                cases.extend(clients.iter().map(|&clients| Case { op, bs: bs.clone(), clients, copies }));
            }
        }
        cases
    }

    /// Drops the caches of the given hosts, and returns a sentence on it. If hosts share a kernel, it drops them for
    /// all.
    fn drop_caches(&self) -> String {
        let argv = sh("sync; echo 3 > /proc/sys/vm/drop_caches", &[]);
        let commands: Vec<_> = self.setup.drop_on.iter().map(|h| (h.clone(), argv.clone())).collect();
        let reads = match self.executor.programs(&commands).iter().all(Result::is_ok) {
            true => format!("before reads the caches of {} are dropped", self.setup.drop_on.join(", ")),
            false => {
                "caches could not be dropped on all hosts, which takes root and a writable /proc/sys/vm/drop_caches: reads may \
                 come from the memory of servers".into()
            }
        };
        format!(
            "written data is synced before the clock stops; hosts read what another one wrote; {reads}; \
             those of other hosts, and disks' own caches, may still help"
        )
    }

    fn one(&self, case: &Case, folder: &str) -> Result<CaseResult, Failure> {
        let hosts = &self.setup.hosts[..case.clients];
        for op in case.op.before() {
            let before = Case { op: *op, bs: "1M".into(), ..case.clone() };
            // The neighbour writes the files that a host reads: no reader finds them in its own memory.
            let turn = usize::from(case.op.reads());
            let writers: Vec<String> =
                (0..case.clients).map(|i| self.setup.hosts[(i + turn) % self.setup.hosts.len()].clone()).collect();
            self.all(&writers, |i, _| fio::argv(&before, folder, self, i), &before.to_string())?;
        }
        if case.op.reads() {
            self.drop_caches();
        }
        let texts = self.all(hosts, |i, _| fio::argv(case, folder, self, i), &case.to_string())?;
        let sweep = sh(r#"rm -rf --one-file-system -- "$1"/f.*"#, &[folder]);
        self.all(&self.setup.hosts[..1], |_, _| sweep.clone(), "cleaning up")?;
        let mut row = fio::row(case, &texts)
            .ok_or_else(|| Failure::system(format!("{case}: homing cannot read the output of fio")))?;
        row.share = self.limit(case).map(|most| row.mb_per_s / most);
        Ok(row)
    }

    /// Returns the megabytes a second that the links allow, if their rate and the volume are known.
    fn limit(&self, case: &Case) -> Option<f64> {
        let mut ways = limit::Ways::of(self.volume.as_ref()?, &self.setup.hosts);
        ways.copies = case.copies.unwrap_or(ways.copies);
        ways.limit(case.op, case.clients, self.setup.link? / 8.0)
    }
}

/// Builds a script for sh with arguments.
fn sh(text: &str, args: &[&str]) -> Vec<String> {
    ["sh", "-c", text, "sh"].iter().chain(args).map(|s| s.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_steps::{Call, CallResult};
    use std::sync::{Arc, Mutex};

    /// Hosts that answer each call with one text, and the calls that they were sent.
    #[derive(Clone)]
    struct FakeHosts {
        fio: CallResult,
        calls: Arc<Mutex<Vec<Sent>>>,
        /// Calls of fio that succeed; the next ones fail.
        fails_after: Arc<Mutex<Option<usize>>>,
        /// Whether each host has a folder of its own at the path.
        has_own_folder: bool,
    }

    /// A host, and the words that it was sent.
    type Sent = (String, Vec<String>);

    impl Executor for FakeHosts {
        fn run(&self, calls: &[(String, Call)]) -> Vec<CallResult> {
            let answer = |(host, call): &(String, Call)| {
                let Call::Program(argv) = call else { return Err("a script".into()) };
                self.calls.lock().unwrap().push((host.clone(), argv.clone()));
                if argv[2].contains("echo seen") {
                    return Ok(if self.has_own_folder { "" } else { "seen\n" }.into());
                }
                if !argv[2].contains("exec fio") {
                    return Ok(String::new());
                }
                match self.fails_after.lock().unwrap().as_mut() {
                    Some(0) => Err("No space left on device".into()),
                    Some(left) => {
                        *left -= 1;
                        self.fio.clone()
                    }
                    None => self.fio.clone(),
                }
            };
            calls.iter().map(answer).collect()
        }
    }

    fn bench(fio: CallResult) -> (Bench, FakeHosts) {
        bench_on(FakeHosts { fio, calls: Arc::default(), fails_after: Arc::default(), has_own_folder: false })
    }

    fn bench_on(fake: FakeHosts) -> (Bench, FakeHosts) {
        let hosts: Vec<String> = ["n1", "n2"].map(String::from).into();
        let setup = Setup {
            path: "/data".into(),
            drop_on: hosts.clone(),
            hosts,
            bs: vec!["1M".into()],
            size: 1 << 20,
            only: vec![FioOperation::Read],
            ..Setup::default()
        };
        let reporter = ProgressReporter { progress: |_| {}, note: |_| {} };
        (Bench::new(setup, Box::new(fake.clone()), reporter).unwrap(), fake)
    }

    #[test]
    fn a_folder_that_hosts_do_not_share_is_refused_and_removed() {
        let fio = Err("fio must not run".into());
        let (bench, fake) =
            bench_on(FakeHosts { fio, calls: Arc::default(), fails_after: Arc::default(), has_own_folder: true });
        let (results, ended) = bench.measure();
        let failure = ended.unwrap_err();
        assert!(failure.message.starts_with("n2 cannot see a folder that n1 made in /data"), "{}", failure.message);
        assert_eq!((results.rows.len(), failure.status), (0, homing_model::exit::USAGE));
        let calls = fake.calls.lock().unwrap();
        assert!(!calls.iter().any(|(_, argv)| argv[2].contains("exec fio")));
        assert!(calls.last().unwrap().1[2].contains("rm -rf"), "{calls:?}");
    }

    #[test]
    fn hosts_read_what_their_neighbour_wrote() {
        let said =
            r#"{"jobs":[{"job_runtime":1000,"read":{"total_ios":1,"io_bytes":1000000,"runtime":1000},"write":{}}]}"#;
        let (bench, fake) = bench(Ok(said.into()));
        let (BenchResults { rows, .. }, ended) = bench.measure();
        ended.unwrap();
        assert_eq!(rows.iter().map(|row| row.mb_per_s).collect::<Vec<_>>(), [1.0, 2.0], "one host, then both");
        let calls = fake.calls.lock().unwrap();
        let who = |rw: &str| -> Vec<String> {
            let of = calls.iter().filter(|(_, argv)| argv[2].contains(&format!("--rw={rw} ")));
            of.map(|(host, argv)| format!("{host} f.{}", argv[5])).collect()
        };
        assert_eq!(who("write"), ["n2 f.0", "n2 f.0", "n1 f.1"]);
        assert_eq!(who("read"), ["n1 f.0", "n1 f.0", "n2 f.1"]);
    }

    #[test]
    fn cases_before_a_failure_are_in_the_results() {
        let said =
            r#"{"jobs":[{"job_runtime":1000,"read":{"total_ios":1,"io_bytes":1000000,"runtime":1000},"write":{}}]}"#;
        let (bench, fake) = bench(Ok(said.into()));
        // The first case is one read after one write; the second one meets a full disk.
        *fake.fails_after.lock().unwrap() = Some(2);
        let (results, ended) = bench.measure();
        assert_eq!(results.rows.len(), 1);
        assert!(ended.unwrap_err().to_string().contains("by 2 clients"));
    }

    #[test]
    fn a_host_that_fails_is_named_and_the_folder_is_removed() {
        let (bench, fake) = bench(Err("No space left on device".into()));
        let why = bench.measure().1.unwrap_err().to_string();
        assert!(why.contains("on n2 in /data: No space left") && why.contains("write 1M by 1 client"), "{why}");
        let calls = fake.calls.lock().unwrap();
        let (_, last) = calls.last().unwrap();
        assert!(last[2].starts_with("rm -rf") && last[4].starts_with("/data/.homing-bench."), "{last:?}");
    }
}
