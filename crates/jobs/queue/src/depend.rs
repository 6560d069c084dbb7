//! Dependency conditions, LSF's `-w`: `done(1) && (ended("x") || exit(2, !=0))`. Pure.

use crate::state::ElementState;

/// State and exit status of each element of a job. Empty if there is no such job.
pub type ElementStates = Vec<(ElementState, Option<i32>)>;

/// Looks up the jobs that a condition names.
pub trait JobLookup {
    /// Returns the elements of a job, by id (and index) or by name.
    fn parts(&self, job: &str) -> ElementStates;
}

/// The result of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionVerdict {
    /// The job may start.
    Holds,
    /// The job may not start yet.
    Waits,
    /// The condition can never hold.
    Never,
}

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Test { word: String, job: String, code: Option<(String, i32)> },
}

/// Checks the form of a condition; the error describes the fault.
pub fn check(text: &str) -> Result<(), String> {
    parse(text).map(|_| ())
}

/// Returns the jobs that a condition names, ids and names as written.
pub fn jobs(text: &str) -> Vec<String> {
    fn walk(expr: &Expr, into: &mut Vec<String>) {
        match expr {
            Expr::And(a, b) | Expr::Or(a, b) => {
                walk(a, into);
                walk(b, into);
            }
            Expr::Not(a) => walk(a, into),
            Expr::Test { job, .. } => into.push(job.clone()),
        }
    }
    let mut found = Vec::new();
    if let Ok(expr) = parse(text) {
        walk(&expr, &mut found);
    }
    found
}

/// Replaces each `name*` by the jobs that `find` returns for it. A name without a star stays. The error is the name
/// that matches no job.
pub fn expanded(text: &str, find: &dyn Fn(&str) -> Vec<u64>) -> Result<String, String> {
    if !jobs(text).iter().any(|job| job.contains('*')) {
        return Ok(text.into());
    }
    fn of(expr: &Expr, find: &dyn Fn(&str) -> Vec<u64>) -> Result<String, String> {
        Ok(match expr {
            Expr::And(a, b) => format!("({} && {})", of(a, find)?, of(b, find)?),
            Expr::Or(a, b) => format!("({} || {})", of(a, find)?, of(b, find)?),
            Expr::Not(a) => format!("!({})", of(a, find)?),
            Expr::Test { word, job, code } => {
                let code = code.as_ref().map_or(String::new(), |(op, number)| format!(", {op} {number}"));
                let ids: Vec<String> = match job.strip_suffix('*') {
                    Some(_) => find(job).iter().map(u64::to_string).collect(),
                    None => vec![format!("\"{job}\"")],
                };
                if ids.is_empty() {
                    return Err(job.clone());
                }
                let tests: Vec<String> = ids.iter().map(|id| format!("{word}({id}{code})")).collect();
                format!("({})", tests.join(" && "))
            }
        })
    }
    parse(text).map_err(|_| text.to_string()).and_then(|expr| of(&expr, find))
}

/// Decides a condition.
pub fn judge(text: &str, known: &dyn JobLookup) -> ConditionVerdict {
    parse(text).map_or(ConditionVerdict::Never, |expr| eval(&expr, known))
}

fn eval(expr: &Expr, known: &dyn JobLookup) -> ConditionVerdict {
    use ConditionVerdict::{Holds, Never, Waits};
    match expr {
        Expr::And(a, b) => match (eval(a, known), eval(b, known)) {
            (Never, _) | (_, Never) => Never,
            (Holds, Holds) => Holds,
            _ => Waits,
        },
        Expr::Or(a, b) => match (eval(a, known), eval(b, known)) {
            (Holds, _) | (_, Holds) => Holds,
            (Never, Never) => Never,
            _ => Waits,
        },
        Expr::Not(a) => match eval(a, known) {
            Holds => Never,
            Never => Holds,
            Waits => Waits,
        },
        Expr::Test { word, job, code } => test(word, &known.parts(job), code.as_ref()),
    }
}

fn test(word: &str, parts: &[(ElementState, Option<i32>)], code: Option<&(String, i32)>) -> ConditionVerdict {
    // An unknown job was cleaned up after its end.
    if parts.is_empty() {
        return ConditionVerdict::Never;
    }
    let over = parts.iter().all(|(s, _)| s.is_over());
    let failed = |state: &ElementState| matches!(state, ElementState::Exit | ElementState::Lost);
    // homing has no command that follows a job's own: `post_done` is `done`, and `post_err` is never true.
    let (now, hopeless) = match word {
        "done" | "post_done" => {
            (parts.iter().all(|(s, _)| *s == ElementState::Done), over || parts.iter().any(|(s, _)| failed(s)))
        }
        "ended" => (over, over),
        "exit" => (over && parts.iter().any(|(s, c)| *s != ElementState::Done && fits(*c, code)), over),
        "post_err" => (false, over),
        "started" => (parts.iter().all(|(s, _)| s.is_over() || s.is_running()), over),
        counting => (fits_count(counting, parts, code), over),
    };
    match (now, hopeless) {
        (true, _) => ConditionVerdict::Holds,
        (false, true) => ConditionVerdict::Never,
        (false, false) => ConditionVerdict::Waits,
    }
}

/// Whether as many elements are in the state of a `num` word as its number requires.
fn fits_count(word: &str, parts: &[(ElementState, Option<i32>)], code: Option<&(String, i32)>) -> bool {
    let counted: fn(ElementState) -> bool = match word {
        "numdone" => |state| state == ElementState::Done,
        "numended" => ElementState::is_over,
        "numexit" => |state| matches!(state, ElementState::Exit | ElementState::Lost),
        "numhold" => |state| state == ElementState::Psusp,
        "numpend" => |state| state == ElementState::Pend,
        "numrun" => ElementState::is_running,
        // "numstart"
        _ => |state| state.is_running() || state.is_over(),
    };
    let count = parts.iter().filter(|(state, _)| counted(*state)).count();
    match code {
        Some((op, _)) if op == ALL => count == parts.len(),
        code => fits(Some(count as i32), code),
    }
}

fn fits(exit: Option<i32>, code: Option<&(String, i32)>) -> bool {
    let Some((op, want)) = code else { return true };
    exit.is_some_and(|exit| match op.as_str() {
        "!=" => exit != *want,
        "<" => exit < *want,
        "<=" => exit <= *want,
        ">" => exit > *want,
        ">=" => exit >= *want,
        _ => exit == *want,
    })
}

/// Words that are followed by a job in parentheses. No word comes after a prefix of itself.
const WORDS: [&str; 13] = [
    "done",
    "ended",
    "exit",
    "started",
    "post_done",
    "post_err",
    "numdone",
    "numended",
    "numexit",
    "numhold",
    "numpend",
    "numrun",
    "numstart",
];
/// The number in `numdone(1, *)`: it means all elements.
const ALL: &str = "*";

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
}

pub(crate) fn parse(text: &str) -> Result<Expr, String> {
    let mut parser = Parser { rest: text, depth: 0 };
    let expr = parser.or()?;
    match parser.rest.trim() {
        "" => Ok(expr),
        left => Err(format!("unexpected {left:?}")),
    }
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest.trim_start().strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }
    fn need(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) { Ok(()) } else { Err(format!("{token} is missing before {:?}", self.rest)) }
    }
    fn or(&mut self) -> Result<Expr, String> {
        let mut left = self.and()?;
        while self.eat("||") {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }
    fn and(&mut self) -> Result<Expr, String> {
        let mut left = self.not()?;
        while self.eat("&&") {
            left = Expr::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }
    fn not(&mut self) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > 100 {
            return Err("too deep".into());
        }
        let expr = if self.eat("!") {
            Expr::Not(Box::new(self.not()?))
        } else if self.eat("(") {
            let inner = self.or()?;
            self.need(")")?;
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(expr)
    }
    fn test(&mut self) -> Result<Expr, String> {
        for word in WORDS {
            let rest = self.rest;
            if self.eat(word) && self.eat("(") {
                let job = self.job()?;
                let code = if self.eat(",") { Some(self.code()?) } else { None };
                if word.starts_with("num") && code.is_none() {
                    return Err(format!("{word}({job}) takes a number of elements, as in {word}({job}, > 2), or *"));
                }
                self.need(")")?;
                return Ok(Expr::Test { word: word.into(), job, code });
            }
            self.rest = rest;
        }
        // A bare id or name means done().
        let job = self.job()?;
        Ok(Expr::Test { word: "done".into(), job, code: None })
    }
    fn job(&mut self) -> Result<String, String> {
        if self.eat("\"") {
            let (name, rest) = self.rest.split_once('"').ok_or("a quote is not closed")?;
            self.rest = rest;
            return Ok(name.into());
        }
        let text = self.rest.trim_start();
        let end = text.find(|c: char| "(),&|! ".contains(c)).unwrap_or(text.len());
        let (job, rest) = text.split_at(end);
        self.rest = rest;
        if job.is_empty() { Err("a job id or name is missing".into()) } else { Ok(job.into()) }
    }
    fn code(&mut self) -> Result<(String, i32), String> {
        if self.eat("*") {
            return Ok((ALL.into(), 0));
        }
        let op = ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|op| self.eat(op)).unwrap_or("==");
        let text = self.job()?;
        Ok((op.into(), text.parse().map_err(|_| format!("{text:?} is no exit status"))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FakeLookup;
    impl JobLookup for FakeLookup {
        fn parts(&self, job: &str) -> Vec<(ElementState, Option<i32>)> {
            match job {
                "1" => vec![(ElementState::Done, Some(0))],
                "2" | "bad name" => vec![(ElementState::Exit, Some(3))],
                "3" => vec![(ElementState::Run, None)],
                "4" => vec![(ElementState::Done, Some(0)), (ElementState::Pend, None)],
                "5" => vec![(ElementState::Exit, Some(1)), (ElementState::Run, None)],
                _ => vec![],
            }
        }
    }

    #[test]
    fn conditions() {
        use ConditionVerdict::*;
        for (text, want) in [
            ("done(1)", Holds),
            ("1", Holds),
            ("done(2)", Never),
            ("ended(2)", Holds),
            ("exit(2,3)", Holds),
            ("exit(2, !=3)", Never),
            ("exit(\"bad name\", > 2)", Holds),
            ("done(3)", Waits),
            ("started(3)", Holds),
            ("started(4)", Waits),
            ("done(4)", Waits),
            ("done(5)", Never),
            ("done(1) && done(3)", Waits),
            ("done(2) && done(3)", Never),
            ("done(2) || done(3)", Waits),
            ("!done(2) && (done(9) || ended(1))", Holds),
            ("done(9)", Never),
            ("post_done(1)", Holds),
            ("post_err(1)", Never),
            ("numdone(4, 1)", Holds),
            ("numdone(4, *)", Waits),
            ("numdone(1, *)", Holds),
            ("numpend(4, > 1)", Waits),
            ("numexit(2, > 1)", Never),
            ("numrun(5, >= 1)", Holds),
        ] {
            assert_eq!(judge(text, &FakeLookup), want, "{text}");
        }
        for bad in ["", "done(", "done(1", "done(1))", "done()", "1 &&", "exit(1,x)", "numdone(1)"] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert_eq!(jobs("done(1) && (ended(\"x\") || !3)"), ["1", "x", "3"]);
        // A name may begin like a word.
        assert_eq!(jobs("donut && exitus"), ["donut", "exitus"]);
        let find = |name: &str| if name == "ab*" { vec![3, 4] } else { vec![] };
        let expanded = |text: &str| expanded(text, &find);
        assert_eq!(expanded("ended(\"ab*\")").unwrap(), "(ended(3) && ended(4))");
        assert_eq!(
            expanded("exit(ab*, > 2) || done(\"x y\")").unwrap(),
            "((exit(3, > 2) && exit(4, > 2)) || (done(\"x y\")))"
        );
        assert_eq!((expanded("done(x)"), expanded("cd*")), (Ok("done(x)".into()), Err("cd*".into())));
    }
}
