//! What a job asks of its host, in LSF's words (`-R`):
//! `select[mem>500] rusage[mem=500] span[hosts=1]`. Pure: hosts are functions
//! from the name of a resource to its value. The queue decides by it, and the
//! front end checks and shows it.

mod select;

pub use select::{Expr, Value, amount};

use std::collections::BTreeMap;

/// All that a job asks of its hosts. Several `-R` are one: all must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirement {
    /// What must be true of the host.
    pub select: Vec<Expr>,
    /// What the job will use, by resource; mem, swp and tmp in MB.
    pub rusage: BTreeMap<String, f64>,
    /// How its slots are spread, as written: `hosts=1`, `ptile=4`.
    pub span: Option<String>,
    /// Which hosts come first, as written: `r1m:-mem`.
    pub order: Option<String>,
    /// The texts, for showing.
    pub text: Vec<String>,
}

impl Requirement {
    /// Adds one `-R`; the error says what is wrong with it.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for (name, body) in sections(text)? {
            match name.as_str() {
                "select" => self.select.push(selection(&body)?),
                "rusage" => self.add_rusage(&body)?,
                "span" => self.span = Some(span(&body)?),
                "order" => self.order = Some(body),
                // How processes lie within a host and between hosts: all hosts here are alike.
                "same" | "cu" | "affinity" => {}
                other => return Err(format!("{other}[...] is no section")),
            }
        }
        self.text.push(text.trim().to_string());
        Ok(())
    }

    /// Several requirements in one.
    pub fn all<S: AsRef<str>>(texts: &[S]) -> Result<Requirement, String> {
        let mut all = Requirement::default();
        texts.iter().try_for_each(|text| all.add(text.as_ref()))?;
        Ok(all)
    }

    fn add_rusage(&mut self, body: &str) -> Result<(), String> {
        for item in body.split(',').filter(|i| !i.trim().is_empty()) {
            // `:duration=10:decay=1` says for how long the reservation holds; until the end, here.
            let item = item.split(':').next().unwrap_or_default().trim();
            let (name, value) = item.split_once('=').ok_or_else(|| format!("{item:?}: rusage is NAME=AMOUNT"))?;
            let value = value.trim().split('/').next().unwrap_or_default();
            let value = amount(value).ok_or_else(|| format!("{value:?} is no amount"))?;
            let own = self.rusage.entry(name.trim().into()).or_insert(value);
            *own = own.max(value);
        }
        Ok(())
    }

    /// The first thing that a host lacks, as written; `None` when it will do.
    pub fn lacks(&self, host: &dyn Fn(&str) -> Option<Value>) -> Option<String> {
        let short = self.rusage.iter().find(|(name, want)| {
            let decreasing = matches!(name.as_str(), "mem" | "swp" | "tmp");
            decreasing && matches!(host(name), Some(Value::Number(has)) if has < **want)
        });
        if let Some((name, want)) = short {
            return Some(format!("rusage[{name}={want}]"));
        }
        (!self.select.iter().all(|e| e.holds(host))).then(|| self.text.join(" "))
    }

    /// Slots that may lie on one host, where the span says so: `ptile=4`; 0 where all must, `hosts=1`.
    pub fn per_host(&self) -> Result<Option<u32>, String> {
        let Some(span) = &self.span else { return Ok(None) };
        let not_here = || format!("span[{span}]: hosts=1 or ptile=N");
        match span.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some(("hosts", "1")) => Ok(Some(0)),
            Some(("ptile", n)) => n.parse().ok().filter(|n| *n > 0).map(Some).ok_or_else(not_here),
            _ => Err(not_here()),
        }
    }

    /// What no state of a host can fulfil, as written, where `most` is the largest value that a resource of the host
    /// can have; a resource that it does not know has none.
    pub fn never(&self, most: &dyn Fn(&str) -> Option<f64>) -> Option<String> {
        let beyond = self.rusage.iter().find(|(name, want)| most(name).is_some_and(|most| most < **want));
        if let Some((name, want)) = beyond {
            return Some(format!("rusage[{name}={want}]"));
        }
        self.select.iter().any(|e| e.never(most)).then(|| self.text.join(" "))
    }

    /// What it names that is neither an index or attribute of all hosts nor, as `own` tells, one of the site's.
    pub fn unknown(&self, own: &dyn Fn(&str) -> bool) -> Option<&str> {
        self.select.iter().find_map(|expr| select::unknown_name(expr, own))
    }

    /// As `bjobs -l` shows it.
    pub fn shown(&self) -> String {
        self.text.join(" ")
    }
}

fn selection(body: &str) -> Result<Expr, String> {
    select::parse(body).map(select::named)
}

fn span(body: &str) -> Result<String, String> {
    let body = body.trim();
    let sound = body.split_once('=').is_some_and(|(name, _)| matches!(name, "hosts" | "ptile" | "block" | "stripe"));
    if sound || body == "stripe" { Ok(body.into()) } else { Err(format!("span[{body}]: hosts=1 or ptile=N")) }
}

/// `name[body]` parts; text before the first, and alone, is a selection.
fn sections(text: &str) -> Result<Vec<(String, String)>, String> {
    if text.contains(['{', '}']) {
        return Err("compound requirements, N*{...}, are not known here".into());
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
    fn sections_in_all_their_forms() {
        for (text, fits) in [
            ("mem>500", true),
            ("mem>5000", false),
            ("mem>500 rusage[mem=500]", true),
            ("rusage[mem=5000]", false),
            ("rusage[mem=500:duration=10:decay=0,tmp=10]", true),
            ("rusage[mem=1GB/task]", false),
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
