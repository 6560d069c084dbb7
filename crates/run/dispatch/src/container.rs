//! Runs tasks in containers: reads `--container`, and wraps the command of a task. Pure.

use homing_model::container::{APPTAINER, PODMAN};
use homing_model::resource::VISIBLE_DEVICES;
use homing_model::{Command, RawText, Task};
use std::path::{Path, PathBuf};

/// The programs that run containers. Each has its own options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// podman, with images of registries.
    Podman,
    /// apptainer or singularity, with images that are files.
    Apptainer,
}

impl Runtime {
    /// Returns the names of its program, of which a host needs one.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Runtime::Podman => PODMAN,
            Runtime::Apptainer => APPTAINER,
        }
    }
}

/// The container in which each task runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The program that runs it.
    pub runtime: Runtime,
    /// The image, by name or by path.
    pub image: RawText,
    /// Folders that are bound at the same path, besides those of the task.
    pub binds: Vec<String>,
    /// Further arguments of the program, before the image.
    pub arguments: Vec<String>,
    /// Variables that tasks have from the run, by name.
    pub variables: Vec<RawText>,
    /// The name of the run, and its default folder.
    pub run: String,
    /// The folder of tasks that name none.
    pub cwd: PathBuf,
}

/// Folders of the system. An image has its own, which a bound folder would hide.
const OF_SYSTEM: [&str; 14] =
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "root", "run", "sbin", "sys", "usr"];

/// Ends the container when the task is signalled. podman starts it by a process of its own session, which no signal to
/// the task reaches; `rm` has its own session, too, and outlives the SIGKILL that follows. The words: the name of the
/// container, then those of `podman run`.
const RUN_PODMAN: &str = "name=$1; shift; ended= remover=\n\
    alone() { export HOMING_REMOVER=1; if command -v setsid >/dev/null 2>&1; then exec setsid \"$@\"; else exec \"$@\"; fi; }\n\
    trap 'ended=1; alone podman rm -f -t 0 \"$name\" </dev/null >/dev/null 2>&1 & remover=$!' TERM INT HUP\n\
    exec 3<&0\n\
    podman --cgroup-manager=cgroupfs run --name \"$name\" \"$@\" <&3 3<&- &\n\
    child=$!; wait \"$child\"; status=$?\n\
    while [ -n \"$ended\" ]; do ended=; wait \"$child\"; status=$?; done\n\
    [ -z \"$remover\" ] || wait \"$remover\"\n\
    exit \"$status\"";

/// Starts the program under the name that this host has. The words are those behind it.
const RUN_APPTAINER: &str = "for program in apptainer singularity; do\n\
    if command -v \"$program\" >/dev/null 2>&1; then exec \"$program\" \"$@\"; fi; done\n\
    echo 'homing: neither apptainer nor singularity is in the PATH of the task' >&2; exit 127";

impl Container {
    /// Reads `IMAGE[:KEY=VALUE,...]`. `is_there`: whether a path exists. An image with `.sif` at its end, or that is a
    /// path, is for apptainer; others are for podman.
    pub fn parse(text: &str, is_there: impl Fn(&Path) -> bool) -> Result<Container, String> {
        // A tag or a port has no `=`.
        let (image, options) = match text.rsplit_once(':') {
            Some((image, options)) if options.contains('=') => (image, options),
            _ => (text, ""),
        };
        if image.is_empty() {
            return Err("no image is named".into());
        }
        let is_file = image.ends_with(".sif") || image.starts_with(['/', '.']) || is_there(Path::new(image));
        let mut container = Container {
            runtime: if is_file { Runtime::Apptainer } else { Runtime::Podman },
            image: image.into(),
            binds: Vec::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            run: String::new(),
            cwd: PathBuf::new(),
        };
        for option in options.split(',').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("bind", folder)) if folder.starts_with('/') && !folder.contains(':') => {
                    container.binds.push(folder.into());
                }
                Some(("bind", folder)) => {
                    return Err(format!("bind={folder}: a folder is an absolute path without a colon"));
                }
                Some(("arg", word)) => container.arguments.push(word.into()),
                Some(("with", "podman")) => container.runtime = Runtime::Podman,
                Some(("with", "apptainer" | "singularity")) => container.runtime = Runtime::Apptainer,
                Some(("with", other)) => return Err(format!("with={other}: only podman and apptainer are supported")),
                _ => {
                    return Err(format!(
                        "{option:?} is not an option; the options are bind=FOLDER, arg=WORD and with=PROGRAM"
                    ));
                }
            }
        }
        Ok(container)
    }

    /// Returns the path of the image if it is a file, relative to the working folder.
    pub fn file(&self) -> Option<RawText> {
        let has_scheme = self.image.display().contains("://");
        (self.runtime == Runtime::Apptainer && !has_scheme).then(|| self.image.clone())
    }

    /// Returns the command that runs a task in the container. `ticket` is the number of the attempt.
    pub(crate) fn command(&self, task: &Task, ticket: u64) -> Command {
        let cwd = task.cwd.as_ref().map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd.as_path()));
        let cwd_text = RawText::from(cwd.as_path());
        let folders = self.folders(task, &cwd);
        let mut words: Vec<RawText> = Vec::new();
        match self.runtime {
            Runtime::Podman => {
                let name = format!("homing-{}-{ticket}", self.run);
                words.extend(["/bin/sh", "-c", RUN_PODMAN, "homing", &name].map(RawText::from));
                let fixed = ["--rm", "--init", "-i", "--network=host", "--log-driver=none"];
                words.extend(fixed.iter().chain(&["--security-opt=label=disable"]).map(|word| RawText::from(*word)));
                words.extend(folders.iter().flat_map(|folder| [RawText::from("--volume"), twice(folder)]));
                words.extend(self.names(task).into_iter().flat_map(|name| [RawText::from("--env"), name]));
                words.extend([RawText::from("--workdir"), cwd_text]);
            }
            Runtime::Apptainer => {
                words.extend(["/bin/sh", "-c", RUN_APPTAINER, "homing", "exec"].map(RawText::from));
                words.extend(folders.iter().flat_map(|folder| [RawText::from("--bind"), twice(folder)]));
                words.extend([RawText::from("--pwd"), cwd_text]);
            }
        }
        words.extend(self.arguments.iter().map(|word| RawText::from(word.as_str())));
        words.push(self.image.clone());
        match &task.command {
            Command::Argv(own) => words.extend(own.iter().cloned()),
            Command::Shell(line) => words.extend([RawText::from("/bin/sh"), "-c".into(), line.clone()]),
        }
        Command::Argv(words)
    }

    /// Returns the folders that are bound: the working folder, those of the task's files, and those of the option. A
    /// folder below another is left out, and so are folders of the system that are not named in the option.
    fn folders(&self, task: &Task, cwd: &Path) -> Vec<PathBuf> {
        let outputs = task.outputs.iter().filter_map(|path| cwd.join(path.as_path()).parent().map(Path::to_path_buf));
        let of_task = task.folders.iter().cloned().chain(outputs).filter(|folder| !is_of_system(folder));
        let mut all: Vec<PathBuf> =
            self.binds.iter().map(PathBuf::from).chain([cwd.to_path_buf()]).chain(of_task).collect();
        all.sort();
        all.dedup();
        let above = all.clone();
        all.retain(|folder| !above.iter().any(|other| other != folder && folder.starts_with(other)));
        all
    }

    /// Returns the names of the variables that go along: those of the run, those of the task, and homing's own.
    fn names(&self, task: &Task) -> Vec<RawText> {
        let own = ["HOMING_*", "PARALLEL_*"].into_iter().chain(VISIBLE_DEVICES).map(RawText::from);
        let named = self.variables.iter().cloned().chain(task.env.iter().map(|(name, _)| name.clone()));
        own.chain(named).collect()
    }
}

fn is_of_system(folder: &Path) -> bool {
    let mut parts = folder.components().skip(1);
    parts.next().is_none_or(|first| OF_SYSTEM.iter().any(|name| first.as_os_str() == *name))
}

/// Returns `FOLDER:FOLDER`: the same path inside.
fn twice(folder: &Path) -> RawText {
    let folder = RawText::from(folder);
    RawText([&folder.0[..], b":", &folder.0].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Container, String> {
        Container::parse(text, |path| path == Path::new("tools"))
    }

    #[test]
    fn an_image_has_options_behind_its_last_colon() {
        let plain = parse("docker.io/library/debian:12").unwrap();
        assert_eq!((plain.runtime, plain.image.display().as_str()), (Runtime::Podman, "docker.io/library/debian:12"));
        let full = parse("host:5000/qc:1:bind=/ref,bind=/db,arg=--memory=2g").unwrap();
        assert_eq!(full.image, "host:5000/qc:1".into());
        assert_eq!((full.binds, full.arguments), (vec!["/ref".into(), "/db".into()], vec!["--memory=2g".to_string()]));
        for text in ["/img/qc.sif", "qc.sif:bind=/ref", "tools", "docker://debian:with=apptainer"] {
            assert_eq!(parse(text).unwrap().runtime, Runtime::Apptainer, "{text}");
        }
        assert_eq!(parse("docker://debian:with=apptainer").unwrap().file(), None);
        assert_eq!(parse("qc.sif").unwrap().file(), Some("qc.sif".into()));
        for text in ["", "qc:bind=ref", "qc:with=docker", "qc:tmp=1", ":bind=/a"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    fn task() -> Task {
        let folders = ["/data/a", "/data", "/usr/bin", "/w/sub"].map(PathBuf::from).to_vec();
        let env = vec![("LANE".into(), "1".into())];
        Task { folders, env, outputs: vec!["/out/x".into()], ..Task::of(Command::Shell("qc a | sort".into())) }
    }

    fn words(text: &str) -> Vec<String> {
        let container =
            Container { cwd: "/w".into(), run: "r1".into(), variables: vec!["LANG".into()], ..parse(text).unwrap() };
        let Command::Argv(words) = container.command(&task(), 7) else { panic!() };
        words.iter().map(RawText::display).collect()
    }

    #[test]
    fn the_removal_is_marked_for_the_sweep() {
        assert!(RUN_PODMAN.contains(&format!("export {}=1;", homing_os::process::REMOVER)));
    }

    #[test]
    fn podman_binds_the_folders_of_a_task_at_their_paths() {
        let all = words("qc:1:bind=/usr/share/ref,arg=--pids-limit=9");
        let text = all[4..].join(" ");
        assert_eq!(
            text,
            "homing-r1-7 --rm --init -i --network=host --log-driver=none --security-opt=label=disable \
             --volume /data:/data --volume /out:/out --volume /usr/share/ref:/usr/share/ref --volume /w:/w \
             --env HOMING_* --env PARALLEL_* --env CUDA_VISIBLE_DEVICES --env ROCR_VISIBLE_DEVICES --env LANG --env LANE \
             --workdir /w --pids-limit=9 qc:1 /bin/sh -c qc a | sort"
        );
    }

    #[test]
    fn apptainer_runs_a_file() {
        let all = words("/img/qc.sif");
        assert_eq!(
            all[4..].join(" "),
            "exec --bind /data:/data --bind /out:/out --bind /w:/w --pwd /w /img/qc.sif /bin/sh -c qc a | sort"
        );
    }
}
