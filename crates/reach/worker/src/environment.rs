//! The environment of tasks. The variables of a run are put into the form of the system call once; only those of a
//! task are made for each task.

use homing_model::RawText;
use std::ffi::CString;
use std::io;

/// A variable, ready for the system call.
struct Variable {
    name: Vec<u8>,
    /// `NAME=value`
    entry: CString,
}

impl Variable {
    fn new(name: &RawText, value: &RawText) -> io::Result<Variable> {
        Ok(Variable { name: name.0.clone(), entry: c_string(&[&name.0[..], b"=", &value.0[..]].concat())? })
    }

    fn value(&self) -> RawText {
        RawText(self.entry.as_bytes()[self.name.len() + 1..].to_vec())
    }
}

/// The environment that all tasks of a run share.
#[derive(Default)]
pub(crate) struct Environment(Vec<Variable>);

impl Environment {
    /// Makes it. The last of several values of a name counts. A variable with a NUL byte is left out: no system call
    /// can pass it.
    pub fn new(variables: &[(RawText, RawText)]) -> Environment {
        let mut made: Vec<Variable> = Vec::new();
        for (name, value) in variables {
            let Ok(variable) = Variable::new(name, value) else { continue };
            made.retain(|known| known.name != variable.name);
            made.push(variable);
        }
        Environment(made)
    }

    /// Adds a task's own variables, of which the last of a name counts.
    pub fn with(&self, own: &[(RawText, RawText)]) -> io::Result<TaskEnvironment<'_>> {
        let mut made: Vec<Variable> = Vec::with_capacity(own.len());
        for (name, value) in own {
            made.retain(|known| known.name != name.0);
            made.push(Variable::new(name, value)?);
        }
        Ok(TaskEnvironment { shared: self, own: made })
    }
}

/// The environment of one task.
pub(crate) struct TaskEnvironment<'a> {
    shared: &'a Environment,
    own: Vec<Variable>,
}

impl TaskEnvironment<'_> {
    /// Returns the value that the task will see.
    pub fn value(&self, name: &str) -> Option<RawText> {
        let is = |v: &&Variable| v.name == name.as_bytes();
        self.own.iter().find(is).or_else(|| self.shared.0.iter().find(is)).map(Variable::value)
    }

    /// Returns pointers for `envp`, which are valid as long as `self`.
    pub fn pointers(&self) -> Vec<*const libc::c_char> {
        let hidden = |v: &&Variable| !self.own.iter().any(|own| own.name == v.name);
        let all = self.shared.0.iter().filter(hidden).chain(&self.own);
        all.map(|v| v.entry.as_ptr()).chain([std::ptr::null()]).collect()
    }
}

/// Returns an error for a NUL byte, which ends a string in every system call.
pub(crate) fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "an argument holds a NUL byte"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (RawText, RawText) {
        (name.into(), value.into())
    }

    #[test]
    fn a_tasks_own_value_hides_the_runs_and_the_last_one_counts() {
        let run = Environment::new(&[pair("A", "1"), pair("B", "old"), pair("B", "2"), pair("NUL", "a\0b")]);
        let task = run.with(&[pair("A", "x"), pair("A", "own=1")]).unwrap();
        assert_eq!(task.value("A"), Some("own=1".into()));
        assert_eq!(task.value("B"), Some("2".into()));
        assert_eq!(task.value("NUL"), None);
        // Two variables and the final null pointer.
        assert_eq!(task.pointers().len(), 3);
    }

    #[test]
    fn what_no_system_call_carries_is_an_error_of_its_task() {
        assert!(Environment::default().with(&[pair("A", "a\0b")]).is_err());
    }
}
