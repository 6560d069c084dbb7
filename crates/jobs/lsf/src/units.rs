//! The unit of amounts of memory that are written without one: `LSF_UNIT_FOR_LIMITS` of `lsf.conf`.

use crate::bsub::BsubRequest;
use homing_queue::require::amount;

/// The unit if no `lsf.conf` names another, and of homing's own `lsf.conf`: that of LSF's load indices.
pub const USUAL: &str = "MB";
/// The units that `LSF_UNIT_FOR_LIMITS` may name and amounts may have.
const KNOWN: [&str; 4] = ["KB", "MB", "GB", "TB"];
/// Resources that are counted in the unit.
const MEMORY: [&str; 6] = ["mem", "swp", "tmp", "maxmem", "maxswp", "maxtmp"];

/// Returns the unit that the text of an `lsf.conf` names; the error is a value that is no unit.
pub fn of_conf(text: &str) -> Result<&'static str, String> {
    let mut said = text.lines().filter_map(|line| line.split('#').next()?.split_once('='));
    let Some((_, value)) = said.rfind(|(key, _)| key.trim() == "LSF_UNIT_FOR_LIMITS") else {
        return Ok(USUAL);
    };
    let value = value.trim().trim_matches(['"', '\'']);
    let known =
        KNOWN.into_iter().find(|unit| unit.eq_ignore_ascii_case(value) || unit[..1].eq_ignore_ascii_case(value));
    known.ok_or_else(|| value.to_string())
}

/// A request with its amounts read in a unit.
#[derive(Debug, PartialEq)]
pub struct Meant {
    /// `-M`, MiB, of all processes of the job together.
    pub memory_mib: Option<f64>,
    /// `-R`, with the unit added to each amount that has none and would be read in another.
    pub require: Vec<String>,
    /// A note for the user.
    pub note: Option<String>,
}

/// Reads the amounts of a request that have no unit of their own.
pub fn meant(request: &BsubRequest, unit: &str) -> Meant {
    let texts = &request.require.text;
    if let Some((select, rusage)) = in_two_units(request).filter(|_| unit == USUAL) {
        let only = |amount: &str| amount == select;
        return Meant {
            memory_mib: amount(&format!("{select}KB")),
            require: texts.iter().map(|text| with_unit(text, "KB", &only)).collect(),
            note: Some(format!(
                "-M and mem>={select} are taken in KB, because rusage[mem={rusage}] in MB is the same amount; with \
                 LSF_ENVDIR set to the folder of an lsf.conf that has LSF_UNIT_FOR_LIMITS=MB, Nextflow writes MB"
            )),
        };
    }
    let scale = |text: &String| if unit == USUAL { text.clone() } else { with_unit(text, unit, &|_| true) };
    let memory = request.memory.as_ref().map(|text| text.trim_end_matches('!'));
    let memory = memory.map(|text| if is_bare(text) { format!("{text}{unit}") } else { text.to_string() });
    Meant { memory_mib: memory.and_then(|m| amount(&m)), require: texts.iter().map(scale).collect(), note: None }
}

/// Converts MiB to bytes.
pub fn bytes(mib: f64) -> u64 {
    (mib * f64::from(1 << 20)) as u64
}

/// Recognizes a request of Nextflow without an `lsf.conf`. Nextflow then writes the limit, for the job or for each
/// slot, and the selection in kilobytes, but the reservation in megabytes. Three amounts that agree in this way are
/// no accident.
fn in_two_units(request: &BsubRequest) -> Option<(String, String)> {
    let amounts: Vec<(String, String)> = request.require.text.iter().flat_map(|text| amounts(text)).collect();
    let of = |op: &str| amounts.iter().find(|(o, _)| o == op).map(|(_, amount)| amount);
    let (select, rusage) = (of(">=")?, of("=")?);
    let number = |text: &str| text.parse::<u64>().ok();
    let (all, megabytes, limit) = (number(select)?, number(rusage)?, number(request.memory.as_ref()?)?);
    let slots = u64::from(request.slots.unwrap_or(1));
    let agree = megabytes > 0 && all / 1024 == megabytes && (limit == all || limit == all / slots);
    agree.then(|| (select.clone(), rusage.clone()))
}

fn is_bare(amount: &str) -> bool {
    amount.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Splits a text into words and the text between them.
fn pieces(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || "._".contains(c);
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        found.push(piece);
        rest = after;
    }
    found
}

/// Whether the piece at a place is an amount without a unit in a comparison with `mem` or a similar resource, on
/// either side.
fn compared(pieces: &[&str], at: usize) -> bool {
    let operator = |at: Option<usize>| at.and_then(|at| pieces.get(at)).is_some_and(|p| is_operator(p));
    let memory = |at: Option<usize>| at.and_then(|at| pieces.get(at)).is_some_and(|p| MEMORY.contains(p));
    let before = operator(at.checked_sub(1)) && memory(at.checked_sub(2));
    is_bare(pieces[at]) && (before || (operator(Some(at + 1)) && memory(Some(at + 2))))
}

fn is_operator(piece: &str) -> bool {
    let bare = piece.trim();
    !bare.is_empty() && bare.chars().all(|c| "<>=!".contains(c))
}

/// Returns the amounts of `mem` in a text, each with the operator before it.
fn amounts(text: &str) -> Vec<(String, String)> {
    let pieces = pieces(text);
    let of_mem = |at: usize| at >= 2 && pieces[at - 2] == "mem" && compared(&pieces, at);
    (0..pieces.len()).filter(|at| of_mem(*at)).map(|at| (pieces[at - 1].trim().into(), pieces[at].into())).collect()
}

/// Adds the unit to amounts of memory in a text that have none, if they are `meant`.
fn with_unit(text: &str, unit: &str, meant: &dyn Fn(&str) -> bool) -> String {
    let pieces = pieces(text);
    let with = |at: usize| {
        let unit = if compared(&pieces, at) && meant(pieces[at]) { unit } else { "" };
        format!("{}{unit}", pieces[at])
    };
    (0..pieces.len()).map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsub::with_script;

    fn of(script: &str, unit: &str) -> Meant {
        meant(&with_script(BsubRequest::default(), script.as_bytes()).unwrap(), unit)
    }

    #[test]
    fn a_conf_names_the_unit() {
        for (text, unit) in [
            ("", Ok("MB")),
            ("# LSF_UNIT_FOR_LIMITS=KB\nLSF_X=1\n", Ok("MB")),
            ("LSF_UNIT_FOR_LIMITS = \"GB\"  # as of May\n", Ok("GB")),
            ("LSF_UNIT_FOR_LIMITS=MB\nLSF_UNIT_FOR_LIMITS=k\n", Ok("KB")),
            ("LSF_UNIT_FOR_LIMITS=parsec\n", Err("parsec".to_string())),
        ] {
            assert_eq!(of_conf(text), unit, "{text}");
        }
    }

    #[test]
    fn amounts_without_a_unit_have_the_one_of_the_conf() {
        let script =
            "#BSUB -M 100\n#BSUB -R 'select[mem>=100 && 5 < swp && bio<9 && mem>2GB] rusage[mem=50/task:duration=3]'\n";
        let kb = of(script, "KB");
        assert_eq!(kb.memory_mib, Some(100.0 / 1024.0));
        let want = "select[mem>=100KB && 5KB < swp && bio<9 && mem>2GB] rusage[mem=50KB/task:duration=3]";
        assert_eq!(kb.require, [want]);
        let mb = of(script, "MB");
        assert_eq!((mb.memory_mib, mb.note), (Some(100.0), None));
        assert!(mb.require[0].contains("mem>=100 &&"), "{:?}", mb.require);
        assert_eq!(of("#BSUB -M 2GB\n", "KB").memory_mib, Some(2048.0), "its own unit counts");
    }

    #[test]
    fn nextflow_without_a_conf_writes_two_units_and_is_understood() {
        for (limit, slots) in [("102400", "1"), ("51200", "2")] {
            let script =
                format!("#BSUB -n {slots}\n#BSUB -M {limit}\n#BSUB -R \"select[mem>=102400] rusage[mem=100]\"\n");
            let read = of(&script, "MB");
            assert_eq!(read.memory_mib, Some(100.0), "{script}");
            assert_eq!(read.require, ["select[mem>=102400KB] rusage[mem=100]"]);
            assert!(read.note.unwrap().contains("LSF_ENVDIR"));
        }
        let apart = of("#BSUB -M 4000\n#BSUB -R \"select[mem>=4000] rusage[mem=100]\"\n", "MB");
        assert_eq!((apart.memory_mib, apart.note), (Some(4000.0), None));
    }
}
