//! The process of a job: its words, its variables, its streams.

use super::Keeper;
use super::several::{hostfile, mcpu, mpi, slotfile};
use crate::far::Word;
use crate::job::{JobSpec, Private, Share};
use crate::tree;
use crate::words::{interpreter, shell, substitute};
use homing_model::{Command as Words, RawText};
use homing_os::folder::{Existing, make_file};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The longest file of standard input that is sent to another host, bytes.
const LONGEST_INPUT: u64 = 4 << 20;

impl Keeper<'_> {
    pub(super) fn input(&self) -> Result<Stdio, String> {
        if let Some(input) = &self.private.input {
            return self.kept(input).map(Stdio::from).map_err(|e| format!("cannot store its input: {e}"));
        }
        let Some(name) = &self.spec.stdin else { return Ok(Stdio::null()) };
        let path = self.spec.cwd.as_path().join(substitute(name, self.id, self.index).as_path());
        let file = File::open(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Ok(Stdio::from(file))
    }

    /// Makes a file without a name that holds `text`.
    fn kept(&self, text: &RawText) -> io::Result<File> {
        let path = self.dir.join(format!(".input.{}", self.index));
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        file.write_all(&text.0)?;
        file.rewind()?;
        Ok(file)
    }

    /// Returns the path of a stream's file.
    pub(super) fn path(&self, stream: &str, asked: &Option<RawText>) -> PathBuf {
        match asked {
            Some(name) => self.spec.cwd.as_path().join(substitute(name, self.id, self.index).as_path()),
            None => self.dir.join(format!("{stream}.{}", self.index)),
        }
    }

    pub(super) fn output(&self, stream: &str, asked: &Option<RawText>) -> Result<File, String> {
        let path = self.path(stream, asked);
        let mode = if asked.is_some() { 0o666 & !self.private.umask } else { 0o600 };
        let emptied = match self.spec.overwrite && stream == "out" {
            true => make_file(&path, Existing::Empty, mode).map(drop),
            false => Ok(()),
        };
        emptied
            .and_then(|()| make_file(&path, Existing::Append, mode))
            .map_err(|e| format!("cannot write its output to {}: {e}", path.display()))
    }

    /// Returns the words that run it.
    fn words(&self) -> Result<Vec<RawText>, String> {
        if self.private.script.is_some() {
            let script = self.script_path();
            return Ok(interpreter(self.private.script.as_ref().map_or(&[][..], |s| &s.0))
                .into_iter()
                .chain([RawText::from(script.as_path())])
                .collect());
        }
        Ok(match &self.spec.command {
            Words::Argv(words) => words.clone(),
            Words::Shell(line) => vec![shell(&self.spec, &self.private), "-c".into(), line.clone()],
        })
    }

    /// Puts the script in its place in one step: the shell of another element of the array may be reading it.
    fn write_script(&self, script: &RawText) -> io::Result<()> {
        let part = self.dir.join(format!(".script.{}", self.index));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o700).open(&part)?;
        file.write_all(&script.0)?;
        fs::rename(&part, self.script_path())
    }

    fn script_path(&self) -> PathBuf {
        self.dir.join("script")
    }

    pub(super) fn command(&self) -> Result<Command, String> {
        if let Some(script) = &self.private.script {
            self.write_script(script).map_err(|e| format!("cannot write {}: {e}", self.script_path().display()))?;
        }
        let words = self.started(self.words()?);
        let first = words.first().ok_or("it has no command")?;
        let mut command = Command::new(first.as_os());
        command.args(words[1..].iter().map(RawText::as_os)).current_dir(self.spec.cwd.as_path());
        self.surround(&mut command);
        self.hold_back(&mut command);
        Ok(command)
    }

    /// Gives a process the job's variables, and lets it end with the keeper.
    pub(super) fn surround(&self, command: &mut Command) {
        command.env_clear().envs(self.private.env.iter().map(|(n, v)| (n.as_os(), v.as_os())));
        command.envs(self.variables());
        command.envs(self.units.borrow().iter().map(|(name, value)| (name, value)));
        let umask = self.private.umask;
        let parent = std::process::id();
        // SAFETY: only system calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                libc::umask(umask);
                // The job ends with its keeper, also if that is killed.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                if libc::getppid() as u32 != parent {
                    libc::_exit(137);
                }
                Ok(())
            });
        }
    }

    /// Returns the command of the channel to another host. It ends with this process.
    pub(super) fn channel(&self, host: &str) -> Result<Command, String> {
        let exe = std::env::current_exe().map_err(|e| format!("cannot find the path of this program: {e}"))?;
        let mut command = Command::new(exe);
        command.args(["queue-far", host]).current_dir("/");
        self.surround(&mut command);
        Ok(command)
    }

    /// Returns the job as sent to its host. Fields that were decided on this machine are cleared, and its streams
    /// stay here.
    pub(super) fn sent(&self, spec: JobSpec) -> Result<Word, String> {
        let spec = JobSpec {
            array: None,
            after: None,
            stdin: None,
            stdout: None,
            stderr: None,
            host: None,
            held: false,
            bound: None,
            ..spec
        };
        let mut private = Private { on_exit: None, ..self.private.clone() };
        private.input = private.input.map_or_else(|| self.input_text(), |input| Ok(Some(input)))?;
        private.env.extend(self.output_file().map(|(name, value)| (name.into(), value)));
        Ok(Word::Job(Box::new((spec, private)), self.id, self.index))
    }

    /// Returns the content of its file of standard input, because the host may not have that file.
    fn input_text(&self) -> Result<Option<RawText>, String> {
        let Some(name) = &self.spec.stdin else { return Ok(None) };
        let path = self.spec.cwd.as_path().join(substitute(name, self.id, self.index).as_path());
        let cannot = |e: io::Error| format!("cannot read {}: {e}", path.display());
        let mut text = Vec::new();
        File::open(&path).map_err(cannot)?.take(LONGEST_INPUT + 1).read_to_end(&mut text).map_err(cannot)?;
        if text.len() as u64 > LONGEST_INPUT {
            let path = path.display();
            return Err(format!("{path} is longer than {LONGEST_INPUT} bytes: a job on another host reads it by name"));
        }
        Ok(Some(RawText(text)))
    }

    fn output_file(&self) -> Option<(&'static str, RawText)> {
        Some(("LSB_OUTPUTFILE", substitute(self.spec.stdout.as_ref()?, self.id, self.index)))
    }

    /// Returns LSF's variables, which scripts read, and homing's own.
    fn variables(&self) -> Vec<(String, String)> {
        let host = self.host();
        let alone = [Share { host: host.clone(), slots: self.spec.slots }];
        let hosts = if self.spec.hosts.is_empty() { &alone[..] } else { &self.spec.hosts };
        let slots: u32 = hosts.iter().map(|share| share.slots).sum();
        let text = |raw: &RawText| String::from_utf8_lossy(&raw.0).into_owned();
        // Its user knows it by the number that it has where it was submitted.
        let (id, index) = self.spec.origin.as_ref().map_or((self.id, self.index), |o| (o.id, o.index));
        let mut all = vec![
            ("HOMING_JOB".to_string(), id.to_string()),
            ("HOMING_JOB_INDEX".into(), index.to_string()),
            (tree::MARK.into(), tree::mark(self.dir, self.index)),
            ("LSB_JOBID".into(), id.to_string()),
            ("LSB_JOBINDEX".into(), index.to_string()),
            ("LSB_JOBNAME".into(), self.spec.name.clone()),
            ("LSB_QUEUE".into(), self.spec.queue.clone()),
            ("LSB_HOSTS".into(), hostfile(hosts).trim_end().replace('\n', " ")),
            ("LSB_MCPU_HOSTS".into(), mcpu(hosts)),
            ("LSB_DJOB_NUMPROC".into(), slots.to_string()),
            ("LSB_SUB_HOST".into(), self.spec.from.clone()),
            ("LSFUSER".into(), self.spec.user.clone()),
            ("LS_SUBCWD".into(), text(&self.spec.cwd)),
            ("LS_JOBPID".into(), std::process::id().to_string()),
        ];
        if self.private.script.is_some() {
            all.push(("LSB_JOBFILENAME".into(), self.script_path().display().to_string()));
        }
        if slots > 1 {
            all.extend(self.for_ranks(hosts));
        }
        all.extend(self.output_file().map(|(name, value)| (name.into(), text(&value))));
        all
    }

    /// Writes the files that name the hosts, and returns their variables; over several hosts also those of the
    /// launcher of ranks. Without those files the job still starts, because not every job of several slots reads
    /// them.
    fn for_ranks(&self, hosts: &[Share]) -> Vec<(String, String)> {
        let path = self.dir.join(format!("hosts.{}", self.index));
        let slots = path.with_extension(format!("{}.slots", self.index));
        for (path, text) in [(&path, hostfile(hosts)), (&slots, slotfile(hosts))] {
            if let Err(e) = fs::write(path, text) {
                homing_os::say!("homing: job {}: cannot write {}: {e}", self.id, path.display());
            }
        }
        let [path, slots] = [path, slots].map(|path| path.display().to_string());
        let mut all = vec![("HOMING_HOSTFILE".into(), path.clone()), ("LSB_DJOB_HOSTFILE".into(), path.clone())];
        let launcher = self.launcher();
        if self.spec.gated && launcher.exists() {
            all.extend(mpi(&path, &slots, &launcher.display().to_string()));
        }
        all.extend(crate::network::of_interface(&self.private.env));
        all
    }

    /// Returns the path of the launcher that starts commands on the other hosts of a job. Each user has one, at the
    /// same path on all hosts.
    fn launcher(&self) -> PathBuf {
        self.dir.with_file_name("blaunch")
    }

    /// Makes it. One that an older program left is replaced in one step.
    pub(super) fn make_launcher(&self) {
        let launcher = self.launcher();
        let part = self.dir.join(".blaunch");
        let made = std::env::current_exe().and_then(|exe| match fs::read_link(&launcher) {
            Ok(known) if known == exe => Ok(()),
            _ => std::os::unix::fs::symlink(exe, &part).and_then(|()| fs::rename(&part, &launcher)),
        });
        if let Err(e) = made {
            homing_os::say!("homing: job {}: cannot make {}: {e}", self.id, launcher.display());
        }
    }
}
