//! Perl expressions of replacement strings: `{= perl =}` and `--rpl`. This crate starts no process: the caller
//! provides the evaluator.

use homing_model::RawText;
use std::fmt::Debug;
use std::sync::Arc;

/// A value that an expression was evaluated for.
#[derive(Clone, Copy, Debug)]
pub struct Expression<'a> {
    /// The value in `$_`.
    pub value: &'a [u8],
    /// All values of the task, `$arg[1]` and on.
    pub args: &'a [RawText],
    /// The task's number, `seq()`.
    pub seq: u64,
    /// The number of tasks, `total_jobs()`, where it is known.
    pub total: Option<u64>,
}

/// The result of an expression for a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluated {
    /// `$_`.
    pub text: Vec<u8>,
    /// Whether `uq()` was called: the text is not quoted for the shell.
    pub unquoted: bool,
}

/// Evaluates Perl.
pub trait Perl: Debug + Send + Sync {
    /// Compiles an expression and returns its number, or Perl's reason.
    fn compile(&self, code: &str) -> Result<usize, String>;

    /// Evaluates a compiled expression.
    fn evaluate(&self, number: usize, with: Expression) -> Evaluated;

    /// Whether an expression has called `skip()` since the last call.
    fn take_skip(&self) -> bool;
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    perl: Arc<dyn Perl>,
    number: usize,
}

impl Compiled {
    pub(crate) fn new(perl: &Arc<dyn Perl>, code: &str) -> Result<Compiled, String> {
        Ok(Compiled { number: perl.compile(code)?, perl: perl.clone() })
    }

    pub(crate) fn evaluate(&self, with: Expression) -> Evaluated {
        self.perl.evaluate(self.number, with)
    }
}
