//! The process of a job: its words, its variables, its streams.

use super::Keeper;
use crate::files::{self, write_json};
use crate::tree;
use crate::words::{interpreter, shell, substitute};
use homing_model::{Command as Words, RawText};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

impl Keeper<'_> {
    pub(super) fn input(&self) -> Result<Stdio, String> {
        if let Some(input) = &self.private.input {
            return self.kept(input).map(Stdio::from).map_err(|e| format!("cannot keep its input: {e}"));
        }
        let Some(name) = &self.spec.stdin else { return Ok(Stdio::null()) };
        let path = self.spec.cwd.as_path().join(substitute(name, self.id, self.index).as_path());
        let file = File::open(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Ok(Stdio::from(file))
    }

    /// A file without a name that holds this.
    fn kept(&self, text: &RawText) -> io::Result<File> {
        let path = self.dir.join(format!(".input.{}", self.index));
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        file.write_all(&text.0)?;
        file.rewind()?;
        Ok(file)
    }

    /// The file of a stream.
    pub(super) fn path(&self, stream: &str, asked: &Option<RawText>) -> PathBuf {
        match asked {
            Some(name) => self.spec.cwd.as_path().join(substitute(name, self.id, self.index).as_path()),
            None => self.dir.join(format!("{stream}.{}", self.index)),
        }
    }

    pub(super) fn output(&self, stream: &str, asked: &Option<RawText>) -> Result<File, String> {
        let path = self.path(stream, asked);
        let mode = if asked.is_some() { 0o666 & !self.private.umask } else { 0o600 };
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(mode);
        if self.spec.overwrite && stream == "out" {
            let _ = File::create(&path);
        }
        options.open(&path).map_err(|e| format!("cannot write its output to {}: {e}", path.display()))
    }

    /// The words that run it: here, or on its host by way of a worker.
    fn words(&self) -> Result<Vec<RawText>, String> {
        if self.private.script.is_some() {
            let script = self.dir.join("script");
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

    pub(super) fn command(&self) -> Result<Command, String> {
        if let Some(script) = &self.private.script {
            let path = self.dir.join("script");
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o700).open(&path);
            let wrote = file.as_mut().map_err(|e| io::Error::from(e.kind())).and_then(|f| f.write_all(&script.0));
            wrote.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        }
        let words = self.words()?;
        let mut command = match &self.spec.host {
            Some(host) if *host != files::host_name() => self.far(host, &words)?,
            _ => {
                let first = words.first().ok_or("it has no command")?;
                let mut command = Command::new(first.as_os());
                command.args(words[1..].iter().map(RawText::as_os)).current_dir(self.spec.cwd.as_path());
                command
            }
        };
        command.env_clear().envs(self.private.env.iter().map(|(n, v)| (n.as_os(), v.as_os())));
        command.envs(self.variables());
        let umask = self.private.umask;
        let parent = std::process::id();
        // SAFETY: only system calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                libc::umask(umask);
                // The job ends with its keeper, also when that is killed.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                if libc::getppid() as u32 != parent {
                    libc::_exit(137);
                }
                Ok(())
            });
        }
        Ok(command)
    }

    /// A run of one task on another host: its worker ends with this process.
    fn far(&self, host: &str, words: &[RawText]) -> Result<Command, String> {
        let task = serde_json::json!({ "argv": words, "cwd": self.spec.cwd });
        let path = self.dir.join(format!("task.{}.json", self.index));
        write_json(&path, &task, 0o600).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        let exe = std::env::current_exe().map_err(|e| format!("cannot find homing itself: {e}"))?;
        let mut command = Command::new(exe);
        command.args(["run", "--on", "ssh", "-j1", "-q", "--line-buffer", "--no-locality", "--no-detect"]);
        command.args(["--halt", "now,fail=1", "-w", host, "--tasks"]).arg(path).current_dir("/");
        Ok(command)
    }

    /// LSF's variables, which scripts read, and homing's own.
    fn variables(&self) -> Vec<(String, String)> {
        let host = self.host();
        let hosts = vec![host.as_str(); self.spec.slots as usize].join(" ");
        let text = |raw: &RawText| String::from_utf8_lossy(&raw.0).into_owned();
        let mut all = vec![
            ("HOMING_JOB".to_string(), self.id.to_string()),
            ("HOMING_JOB_INDEX".into(), self.index.to_string()),
            (tree::MARK.into(), tree::mark(self.dir, self.index)),
            ("LSB_JOBID".into(), self.id.to_string()),
            ("LSB_JOBINDEX".into(), self.index.to_string()),
            ("LSB_JOBNAME".into(), self.spec.name.clone()),
            ("LSB_QUEUE".into(), self.spec.queue.clone()),
            ("LSB_HOSTS".into(), hosts),
            ("LSB_MCPU_HOSTS".into(), format!("{host} {} ", self.spec.slots)),
            ("LSB_DJOB_NUMPROC".into(), self.spec.slots.to_string()),
            ("LSB_SUB_HOST".into(), self.spec.from.clone()),
            ("LS_SUBCWD".into(), text(&self.spec.cwd)),
            ("LS_JOBPID".into(), std::process::id().to_string()),
        ];
        if let Some(out) = &self.spec.stdout {
            all.push(("LSB_OUTPUTFILE".into(), text(&substitute(out, self.id, self.index))));
        }
        all
    }
}
