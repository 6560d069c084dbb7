//! A job and its elements, as the commands show them.

use crate::job::{JobEnd, JobSpec, Start};
use crate::state::ElementState;
use std::path::PathBuf;
use std::sync::Arc;

/// One job, or one element of an array.
#[derive(Clone, Debug, Default)]
pub struct JobElement {
    /// Index, 0 without an array.
    pub index: u32,
    /// Its state.
    pub state: ElementState,
    /// Its start, once there is one.
    pub start: Option<Start>,
    /// Its end.
    pub end: Option<JobEnd>,
    /// The load index that suspended it.
    pub stopped_by: Option<String>,
    /// Why the host that was requested to start it has not. The request is repeated while `kept`.
    pub start_refusal: Option<String>,
    /// Whether a keeper has it, though it may not have started.
    pub kept: bool,
    /// Its output file, if the engine has named one itself.
    pub out: Option<PathBuf>,
    /// Its error file, likewise; the same as `out` if both streams go to one file.
    pub err: Option<PathBuf>,
}

impl JobElement {
    /// Makes an element of which nothing is known yet.
    pub fn new(index: u32) -> JobElement {
        JobElement { index, ..JobElement::default() }
    }
}

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Its user: the owner of its folder.
    pub uid: u32,
    /// The request. For another user's job it lacks the command, its folder and its files.
    pub spec: Arc<JobSpec>,
    /// Its elements; one of index 0 without an array.
    pub parts: Vec<JobElement>,
    /// Its folder, in the embedded queue.
    pub dir: PathBuf,
}

impl Job {
    /// Returns an element by its index.
    pub fn part(&self, index: u32) -> Option<&JobElement> {
        self.parts.iter().find(|p| p.index == index)
    }
    /// Returns the chosen elements: one, or all.
    pub fn meant(&self, index: Option<u32>) -> impl Iterator<Item = &JobElement> {
        self.parts.iter().filter(move |p| index.is_none_or(|i| i == p.index))
    }
    /// Whether the chosen elements have ended for good.
    pub fn is_over(&self, index: Option<u32>) -> bool {
        self.meant(index).all(|p| p.state.is_over())
    }
    /// Returns the exit status for a command that waited for the job: the first that is not 0, or 255 if one is
    /// unknown.
    pub fn exit(&self) -> i32 {
        let mut exits = self.parts.iter().map(|p| p.end.as_ref().map(|end| end.exit));
        exits.clone().flatten().find(|exit| *exit != 0).unwrap_or(if exits.all(|exit| exit.is_some()) {
            0
        } else {
            255
        })
    }
    /// Formats `12` or `12[3]`.
    pub fn name_of(&self, part: &JobElement) -> String {
        if self.spec.array.is_none() { self.id.to_string() } else { format!("{}[{}]", self.id, part.index) }
    }
    /// Returns the file with an element's output: `out` or `err`.
    pub fn output(&self, part: &JobElement, stream: &str) -> PathBuf {
        if let Some(path) = if stream == "out" { &part.out } else { &part.err } {
            return path.clone();
        }
        let asked = if stream == "out" { &self.spec.stdout } else { &self.spec.stderr };
        match asked {
            Some(name) => {
                let text = crate::words::substitute(name, self.id, part.index);
                self.spec.cwd.as_path().join(text.as_path())
            }
            None => self.dir.join(format!("{stream}.{}", part.index)),
        }
    }
    /// Returns the files that an element writes: output and errors, or one file if both go there, as with `-o` and no
    /// `-e`.
    pub fn outputs(&self, part: &JobElement) -> Vec<PathBuf> {
        let (out, err) = (self.output(part, "out"), self.output(part, "err"));
        let one = out == err || (self.spec.stderr.is_none() && self.spec.stdout.is_some());
        if one { vec![out] } else { vec![out, err] }
    }
}
