//! The requirement of a job on its host, in LSF's words (`-R`): `select[mem>500] rusage[mem=500] span[hosts=1]`.
//! Pure: hosts are functions from the name of a resource to its value. The queue decides by it, and the front end
//! checks and shows it.

mod inert;
mod select;

pub use select::{Expr, NAMES, Value, amount};

use std::collections::BTreeMap;

/// All requirements of a job on its hosts. Several `-R` are one: all must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirement {
    /// The conditions on the host.
    pub select: Vec<Expr>,
    /// The resources that the job will use; mem, swp and tmp in MB.
    pub rusage: BTreeMap<String, f64>,
    /// How its slots are spread, as written: `hosts=1`, `ptile=4`.
    pub span: Option<String>,
    /// Terms that homing does not carry out, each with its replacement. They are refused at submission, but not where
    /// a requirement is read, because jobs of an earlier version may wait with some.
    pub inert: Vec<String>,
    /// The texts as given, to be shown.
    pub text: Vec<String>,
}

impl Requirement {
    /// Adds one `-R`; the error describes the fault.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for (name, body) in sections(text)? {
            match name.as_str() {
                "select" => self.select.push(selection(&body)?),
                "rusage" => self.add_rusage(&body)?,
                "span" => self.add_span(span(&body)?),
                other => match inert::section(other, &body) {
                    Some(why) => self.inert.push(why),
                    None => return Err(format!("{other}[...] is not a section")),
                },
            }
        }
        self.text.push(text.trim().to_string());
        Ok(())
    }

    /// Joins several requirements.
    pub fn all<S: AsRef<str>>(texts: &[S]) -> Result<Requirement, String> {
        let mut all = Requirement::default();
        texts.iter().try_for_each(|text| all.add(text.as_ref()))?;
        Ok(all)
    }

    fn add_rusage(&mut self, body: &str) -> Result<(), String> {
        for item in body.split(',').filter(|i| !i.trim().is_empty()) {
            let mut parts = item.split(':');
            let item = parts.next().unwrap_or_default().trim();
            self.inert.extend(parts.map(|part| inert::of_reservation(part.split('=').next().unwrap_or(part).trim())));
            let (name, value) = item.split_once('=').ok_or_else(|| format!("{item:?}: rusage is NAME=AMOUNT"))?;
            let (name, value) = (name.trim(), value.trim());
            let (value, share) = value.split_once('/').unwrap_or((value, "job"));
            let value = amount(value).ok_or_else(|| format!("{value:?} is not an amount"))?;
            self.inert.extend(inert::resource(name).into_iter().chain(inert::of_share(share.trim())));
            let own = self.rusage.entry(name.into()).or_insert(value);
            *own = own.max(value);
        }
        Ok(())
    }

    /// Sets the span; a second, different one is inert, because one of them would be ignored.
    fn add_span(&mut self, span: String) {
        match &self.span {
            Some(known) if *known != span => {
                self.inert.push(format!("span[{span}]: there is span[{known}] as well; write one of them"));
            }
            _ => self.span = Some(span),
        }
        let of_span = self.per_host().err();
        self.inert.extend(of_span);
    }

    /// Returns the MB of memory that a Slurm job must be given. The error is a term that Slurm cannot use, with the
    /// replacement.
    pub fn memory_on_slurm(&self) -> Result<Option<f64>, String> {
        if let Some(name) = self.rusage.keys().find(|name| matches!(name.as_str(), "swp" | "tmp")) {
            return Err(format!("rusage[{name}]: Slurm counts only memory; use homing sub --slurm-arg=--tmp=SIZE"));
        }
        let mut least = self.rusage.get("mem").copied().unwrap_or(0.0);
        for select in &self.select {
            let of_select = inert::memory(select).map_err(|_| {
                format!(
                    "{}: Slurm chooses nodes only by mem>=SIZE; use -m, or homing sub --slurm-arg=--constraint=FEATURE",
                    self.text.join(" ")
                )
            })?;
            least = least.max(of_select);
        }
        Ok(Some(least).filter(|least| *least > 0.0))
    }

    /// Returns the first requirement that a host does not meet, as written; `None` if it meets all.
    pub fn lacks(&self, host: &dyn Fn(&str) -> Option<Value>) -> Option<String> {
        let short = self.rusage.iter().find(|(name, want)| {
            inert::COUNTED.contains(&name.as_str()) && matches!(host(name), Some(Value::Number(has)) if has < **want)
        });
        if let Some((name, want)) = short {
            return Some(format!("rusage[{name}={want}]"));
        }
        (!self.select.iter().all(|e| e.holds(host))).then(|| self.text.join(" "))
    }

    /// Returns the most slots on one host, if the span sets it: `ptile=4`; 0 if all must be on one, `hosts=1`.
    pub fn per_host(&self) -> Result<Option<u32>, String> {
        let Some(span) = &self.span else { return Ok(None) };
        let not_here = || format!("span[{span}]: hosts=1 or ptile=N");
        match span.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some(("hosts", "1")) => Ok(Some(0)),
            Some(("ptile", n)) => n.parse().ok().filter(|n| *n > 0).map(Some).ok_or_else(not_here),
            _ => Err(not_here()),
        }
    }

    /// Returns the requirement that no state of a host can meet, as written. `most` returns the largest value that a
    /// resource of the host can have; a resource without one never fails.
    pub fn never(&self, most: &dyn Fn(&str) -> Option<f64>) -> Option<String> {
        let beyond = self.rusage.iter().find(|(name, want)| most(name).is_some_and(|most| most < **want));
        if let Some((name, want)) = beyond {
            return Some(format!("rusage[{name}={want}]"));
        }
        self.select.iter().any(|e| e.never(most)).then(|| self.text.join(" "))
    }

    /// Returns a name that is neither an index or attribute of all hosts nor, by `own`, one of the site's.
    pub fn unknown(&self, own: &dyn Fn(&str) -> bool) -> Option<&str> {
        self.select.iter().find_map(|expr| select::unknown_name(expr, own))
    }

    /// Returns it as `bjobs -l` shows it.
    pub fn shown(&self) -> String {
        self.text.join(" ")
    }
}

fn selection(body: &str) -> Result<Expr, String> {
    select::parse(body).map(select::named)
}

fn span(body: &str) -> Result<String, String> {
    let body = body.trim();
    let known = |(name, _): (&str, &str)| matches!(name.trim(), "hosts" | "ptile" | "block" | "stripe");
    let sound = body.split_once('=').is_some_and(known) || body == "stripe";
    if sound { Ok(body.into()) } else { Err(format!("span[{body}]: hosts=1 or ptile=N")) }
}

/// Splits into `name[body]` parts; text before the first, or alone, is a selection.
fn sections(text: &str) -> Result<Vec<(String, String)>, String> {
    if text.contains(['{', '}']) {
        return Err("compound requirements, N*{...}, are not supported".into());
    }
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some((before, after)) = rest.split_once('[') {
        let (body, tail) = after.split_once(']').ok_or("] is missing")?;
        let bare = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        let name = &before[bare.len()..];
        if !bare.trim().is_empty() {
            found.push(("select".into(), bare.trim().to_string()));
        }
        found.push((if name.is_empty() { "select".into() } else { name.to_string() }, body.to_string()));
        rest = tail.trim_start();
    }
    if !rest.is_empty() {
        found.push(("select".into(), rest.to_string()));
    }
    if found.is_empty() {
        return Err("it is empty".into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Option<Value> {
        match name {
            "mem" => Some(Value::Number(1000.0)),
            "tmp" => Some(Value::Number(50.0)),
            _ => None,
        }
    }

    #[test]
    fn repeated_options_are_all_kept_as_nextflow_writes_them() {
        let all = ["select[mem>=512] rusage[mem=512]", "select[tmp>=20] rusage[tmp=20]", "span[hosts=1]"];
        let all = Requirement::all(&all).unwrap();
        assert_eq!(all.lacks(&host), None);
        assert_eq!(all.rusage, BTreeMap::from([("mem".into(), 512.0), ("tmp".into(), 20.0)]));
        assert_eq!(all.span.as_deref(), Some("hosts=1"));
        let more = Requirement::all(&["select[mem>=512]", "select[tmp>=200]"]).unwrap();
        assert!(more.lacks(&host).is_some());
    }

    #[test]
    fn what_is_more_than_a_host_can_have_never_holds() {
        let most = |name: &str| (name == "mem").then_some(1000.0);
        for (text, never) in [
            ("select[mem>=1001]", true),
            ("select[mem>1000]", true),
            ("select[1000<mem]", true),
            ("select[mem==1001]", true),
            ("select[mem>=1000]", false),
            ("select[mem>5000 || bio<5]", false),
            ("select[mem>5000 && bio<5]", true),
            ("select[mem<5]", false),
            ("rusage[mem=1001]", true),
            ("rusage[mem=1000,tmp=5000]", false),
        ] {
            assert_eq!(Requirement::all(&[text]).unwrap().never(&most).is_some(), never, "{text}");
        }
    }

    #[test]
    fn letters_of_any_language_before_a_section_are_no_end_of_the_program() {
        assert!(Requirement::all(&["größe[mem>5]"]).is_err());
        let word = Requirement::all(&["ß[mem>5]"]).unwrap();
        assert_eq!(word.unknown(&|_| false), Some("ß"));
    }

    #[test]
    fn no_expression_is_too_deep_for_the_stack() {
        let nested = format!("select[{}mem{}]", "defined(".repeat(100_000), ")".repeat(100_000));
        assert!(Requirement::all(&[nested]).is_err());
        let chain = format!("select[mem{}>0]", "+mem".repeat(500_000));
        assert!(Requirement::all(&[chain]).is_err(), "a tree so deep ends the program where it is walked");
        assert_eq!(Requirement::all(&["select[defined(mem)]"]).unwrap().lacks(&host), None);
    }

    #[test]
    fn each_term_acts_or_is_refused_by_its_name() {
        for (text, names) in [
            ("rusage[ngpus_physical=1]", "bsub -gpu num=N"),
            ("rusage[nosuch=1]", "rusage[nosuch]: homing counts only mem, swp, tmp"),
            ("rusage[mem=5,r1m=1]", "rusage[r1m]"),
            ("rusage[mem=5:duration=10]", ":duration"),
            ("rusage[mem=5:decay=1]", ":decay"),
            ("rusage[mem=5/task]", "/job"),
            ("order[mem]", "-m 'first+1 second'"),
            ("same[model]", "-m names hosts"),
            ("cu[pref=minavail]", "-m names the hosts"),
            ("affinity[core(2)]", "taskset"),
            ("span[stripe]", "hosts=1 or ptile=N"),
            ("span[hosts=-1]", "hosts=1 or ptile=N"),
            ("span[hosts=1] span[ptile=2]", "span[hosts=1] as well"),
        ] {
            let inert = Requirement::all(&[text]).unwrap().inert.join("; ");
            assert!(inert.contains(names), "{text}: {inert}");
        }
        for acts in ["mem>1 && type==any", "rusage[mem=5/job,tmp=1/host,swp=1]", "span[hosts=1]", "span[ptile=4]"] {
            assert_eq!(Requirement::all(&[acts]).unwrap().inert, [] as [&str; 0], "{acts}");
        }
    }

    #[test]
    fn slurm_goes_by_memory_alone() {
        let of = |text: &str| Requirement::all(&[text]).unwrap().memory_on_slurm();
        assert_eq!(of("select[mem>=500 && type==any] rusage[mem=100]"), Ok(Some(500.0)));
        assert_eq!(of("rusage[mem=100]"), Ok(Some(100.0)));
        assert_eq!(of("span[hosts=1]"), Ok(None));
        for bad in ["r1m<2", "mem>1 || ut<5", "hname==n1", "rusage[tmp=5]"] {
            assert!(of(bad).unwrap_err().contains("--slurm-arg"), "{bad}");
        }
    }

    #[test]
    fn sections_in_all_their_forms() {
        for (text, fits) in [
            ("mem>500", true),
            ("mem>5000", false),
            ("mem>500 rusage[mem=500]", true),
            ("rusage[mem=5000]", false),
            ("rusage[mem=500:duration=10:decay=0,tmp=10]", true),
            ("rusage[mem=1GB/job]", false),
            ("type==any order[r1m:-mem]", true),
            ("select[mem>1]select[mem>5000]", false),
        ] {
            let all = Requirement::all(&[text]).unwrap();
            assert_eq!(all.lacks(&host).is_none(), fits, "{text}");
        }
        for bad in ["", "select[mem>1", "colour[red]", "rusage[mem]", "span[x]", "2*{mem>1}"] {
            assert!(Requirement::all(&[bad]).is_err(), "{bad}");
        }
        let own = Requirement::all(&["select[colour>1 && mem>1]"]).unwrap();
        assert_eq!((own.unknown(&|_| false), own.unknown(&|name| name == "colour")), (Some("colour"), None));
    }
}
