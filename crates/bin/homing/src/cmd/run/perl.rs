//! Evaluates the Perl expressions of replacement strings, with one `perl` process for the whole run.

use homing_batch::{Evaluated, Expression, Perl, SLOT_TOKEN};
use homing_os::threads::lock;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const PROGRAM: &str = include_str!("perl.pl");

/// The first number of an answer without a value.
const FAILED: usize = 2;

/// An evaluator that starts `perl` for the first expression.
#[derive(Debug, Default)]
pub struct Evaluator {
    started: Mutex<Option<PerlProcess>>,
    skip: AtomicBool,
}

#[derive(Debug)]
struct PerlProcess {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    compiled: usize,
}

impl Evaluator {
    /// Returns an evaluator for [`homing_batch::InputOptions`].
    pub fn shared() -> Option<Arc<dyn Perl>> {
        Some(Arc::new(Evaluator::default()))
    }
}

impl Drop for PerlProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PerlProcess {
    fn start() -> io::Result<PerlProcess> {
        let mut command = Command::new("perl");
        command.args(["-e", PROGRAM, "--", SLOT_TOKEN]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(PerlProcess { child, to, from: BufReader::new(from), compiled: 0 })
    }

    /// Returns perl's error message, empty if the code compiles.
    fn compile(&mut self, code: &str) -> io::Result<String> {
        self.to.write_all(format!("c {}\n{code}", code.len()).as_bytes())?;
        let [length] = self.numbers()?;
        Ok(String::from_utf8_lossy(&self.bytes(length)?).trim().to_string())
    }

    /// Returns whether the task is skipped, and the value. The error is the reason why there is none.
    fn evaluate(&mut self, number: usize, with: Expression) -> io::Result<(bool, Evaluated)> {
        let Expression { value, args, seq, total } = with;
        let total = total.map_or("?".into(), |total| total.to_string());
        let values = || std::iter::once(value).chain(args.iter().map(|arg| arg.0.as_slice()));
        let lengths: String = values().map(|value| format!(" {}", value.len())).collect();
        let line = format!("e {number} {seq} {total}{lengths}\n");
        let request = std::iter::once(line.as_bytes()).chain(values()).collect::<Vec<_>>().concat();
        self.to.write_all(&request)?;
        let [skip, unquoted, length] = self.numbers()?;
        let text = self.bytes(length)?;
        match skip {
            FAILED => Err(io::Error::other(String::from_utf8_lossy(&text).trim().to_string())),
            skip => Ok((skip != 0, Evaluated { text, unquoted: unquoted != 0 })),
        }
    }

    fn numbers<const N: usize>(&mut self) -> io::Result<[usize; N]> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let numbers: Vec<usize> = line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().map_err(|_| io::Error::new(io::ErrorKind::UnexpectedEof, "perl has ended"))
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// Ends this process with the reason. Tasks that run end with it.
fn give_up(why: &str) -> ! {
    eprintln!("homing: a replacement string could not be evaluated: {why}");
    eprintln!("  try: homing run --dry-run to test the string, then homing resume for the remaining tasks");
    std::process::exit(homing_model::exit::USAGE)
}

impl Perl for Evaluator {
    fn compile(&self, code: &str) -> Result<usize, String> {
        let mut started = lock(&self.started);
        let none = |e: io::Error| format!("cannot start perl to evaluate it: {e}");
        let perl = match &mut *started {
            Some(perl) => perl,
            empty => empty.insert(PerlProcess::start().map_err(none)?),
        };
        let why = perl.compile(code).map_err(|e| format!("no answer from perl: {e}"))?;
        perl.compiled += 1;
        if why.is_empty() { Ok(perl.compiled - 1) } else { Err(why) }
    }

    /// Ends homing if the expression fails, as GNU parallel ends: a task must not run with a wrong value.
    fn evaluate(&self, number: usize, with: Expression) -> Evaluated {
        let mut started = lock(&self.started);
        match started.as_mut().map(|perl| perl.evaluate(number, with)) {
            Some(Ok((skip, made))) => {
                self.skip.fetch_or(skip, Ordering::SeqCst);
                made
            }
            Some(Err(why)) => give_up(&why.to_string()),
            None => give_up("perl was not started"),
        }
    }

    fn take_skip(&self) -> bool {
        self.skip.swap(false, Ordering::SeqCst)
    }
}
