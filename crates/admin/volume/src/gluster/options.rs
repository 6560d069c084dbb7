//! Options of a GlusterFS volume: those that a user wants, those in force, and GlusterFS's defaults.

use super::{GlusterPlanResult, gluster, no_volume, speaker_of, volume, xml::GlusterVolume};
use crate::observe::Observed;
use crate::refuse::Refusal;
use crate::spec::{OptionChanges, Spec};
use crate::step::{CommandStep, VolumePlan, script, words};
use roxmltree::Document;
use std::collections::BTreeMap;

/// Options by name, each with a value.
pub type OptionValues = BTreeMap<String, String>;

/// Prints the names of all options that this GlusterFS can set.
const KNOWN: &str = "gluster --mode=script volume set help";

/// Sets options again as they were: `NAME KEY VALUE ...`. A key with an empty value had none.
const SET_BACK: &str = r#"
    name=$1; shift
    gluster --mode=script volume info "$name" >/dev/null 2>&1 || exit 0
    while [ $# -gt 1 ]; do
    if [ -n "$2" ]; then gluster --mode=script volume set "$name" "$1" "$2"; else gluster --mode=script volume reset "$name" "$1"; fi || exit
    shift 2; done
"#;

/// Returns the query for [`read_known`].
pub fn known_question() -> Vec<String> {
    script(KNOWN, &[])
}

/// Reads the options that a GlusterFS knows, with their defaults. Empty if its daemon does not answer.
pub fn read_known(text: &str) -> OptionValues {
    let mut known = OptionValues::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(option) = line.strip_prefix("Option: ") {
            name = Some(option.trim().to_string());
            known.entry(option.trim().to_string()).or_default();
        } else if let (Some(default), Some(name)) = (line.strip_prefix("Default Value: "), name.take()) {
            known.insert(name, default.trim().to_string());
        }
    }
    known
}

/// Returns the query for [`read_in_force`].
pub fn in_force_question(name: &str) -> Vec<String> {
    gluster(&["volume", "get", name, "all", "--xml"])
}

/// Reads the values in force, defaults included; `None` if the daemon reports an error.
pub fn read_in_force(text: &str) -> Option<OptionValues> {
    let document = Document::parse(text.trim()).ok()?;
    let list = document.descendants().find(|node| node.has_tag_name("volGetopts"))?;
    let text = |node: roxmltree::Node, name: &str| {
        let child = node.children().find(|child| child.has_tag_name(name));
        child.and_then(|child| child.text()).unwrap_or("").trim().to_string()
    };
    let mut values = OptionValues::new();
    for node in list.children().filter(|node| node.has_tag_name("Opt")) {
        let value = text(node, "Value");
        // One name may belong to two parts of GlusterFS, each with a default of its own.
        values.entry(text(node, "Option")).or_insert(value.strip_suffix("(DEFAULT)").unwrap_or(&value).trim().into());
    }
    Some(values)
}

/// Whether two values have one meaning: GlusterFS keeps `true` and `4MB` as they were written.
pub fn is_same(a: &str, b: &str) -> bool {
    let meaning = |text: &str| {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "on" | "yes" | "true" | "enable" => "on".into(),
            "off" | "no" | "false" | "disable" => "off".into(),
            _ => byte_count(&text).map_or(text, |bytes| bytes.to_string()),
        }
    };
    meaning(a) == meaning(b)
}

/// Reads a size in GlusterFS's words: `4MB`, `64KB`, `1024`. Its units are powers of 1,024.
fn byte_count(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let power = ["b", "kb", "mb", "gb", "tb"].iter().position(|unit| *unit == text[digits..].trim());
    let power = if digits == text.len() { Some(0) } else { power };
    number.checked_mul(1u64 << (10 * power?))
}

/// Refuses options that this GlusterFS does not have, with names that are near.
pub fn refusals<'k>(keys: impl IntoIterator<Item = &'k String>, known: &OptionValues) -> Vec<Refusal> {
    if known.is_empty() {
        return Vec::new();
    }
    let unknown = keys.into_iter().filter(|key| !known.contains_key(*key));
    let refusal = |key: &String| {
        let near = near(key, known);
        let near = if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) };
        let help = Some("gluster volume set help, on a server, lists them".into());
        Refusal { remedy: help, ..Refusal::never(format!("GlusterFS has no option {key}{near}")) }
    };
    unknown.map(refusal).collect()
}

/// Returns up to four known names that contain the word, such as `performance.io-thread-count` for `io-threads`.
fn near<'k>(key: &str, known: &'k OptionValues) -> Vec<&'k str> {
    let word = key.rsplit('.').next().unwrap_or(key).trim_end_matches('s');
    let names = known.keys().map(String::as_str).filter(|name| !word.is_empty() && name.contains(word));
    names.filter(|name| !name.contains(".nfs.")).take(4).collect()
}

/// Returns the options of a new or existing volume that are to be set: those that it has already stay out.
pub(super) fn lacking<'s>(wanted: &'s OptionValues, there: Option<&GlusterVolume>) -> Vec<(&'s str, &'s str)> {
    let is_set = |key: &str, value: &str| {
        there.and_then(|volume| volume.options.get(key)).is_some_and(|present| is_same(present, value))
    };
    let pairs = wanted.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    pairs.filter(|(key, value)| !is_set(key, value)).collect()
}

/// Returns options as text: `a.b 1, c.d 2`.
pub(super) fn listed(options: &[(&str, &str)]) -> String {
    options.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
}

/// Returns notes on options whose effect may surprise.
pub(super) fn notes(wanted: &OptionValues) -> Vec<String> {
    let mut notes = Vec::new();
    let cache = ["performance.cache-size", "performance.io-cache-size"];
    let is_on = |key: &str| wanted.get(key).is_some_and(|value| is_same(value, "on"));
    if cache.iter().any(|key| wanted.contains_key(*key)) && !is_on("performance.io-cache") {
        notes.push(
            "the size of io-cache is without effect while performance.io-cache is off, as it is by default since \
             GlusterFS 6"
                .into(),
        );
    }
    if wanted.contains_key("auth.allow") || wanted.contains_key("auth.reject") {
        notes.push(
            "auth.allow and auth.reject cut off clients at once, also those that have the volume mounted; servers of \
             the volume are always let in"
                .into(),
        );
    }
    notes
}

/// Refuses addresses in `auth.allow` that shut out a client of the volume. Servers are always let in. A name that is
/// none of the volume's hosts may be another name of one of them: then nothing is refused.
pub(crate) fn shut_out(spec: &Spec, seen: &Observed, options: &OptionValues) -> Option<Refusal> {
    let allowed: Vec<&str> = options.get("auth.allow")?.split(',').map(str::trim).collect();
    let hosts = spec.hosts();
    let is_address = |pattern: &str| !pattern.contains(|c: char| c.is_ascii_alphabetic()) || pattern.contains(':');
    if !allowed.iter().all(|pattern| is_address(pattern) || hosts.iter().any(|host| host == pattern)) {
        return None;
    }
    let servers = spec.servers();
    let shut = spec.clients.iter().filter(|host| !servers.contains(host)).filter_map(|host| {
        let addresses = seen.host(host)?.texts.get("addresses")?.trim();
        let mut own = addresses.split_whitespace().chain([host.as_str()]);
        let is_in = own.any(|name| allowed.iter().any(|pattern| fits(pattern, name)));
        (!addresses.is_empty() && !is_in).then(|| format!("{host} ({addresses})"))
    });
    let shut: Vec<String> = shut.collect();
    (!shut.is_empty()).then(|| {
        let why = format!("auth.allow does not let in {}, where the volume is to be mounted", shut.join(", "));
        Refusal::never(format!("{why}: add the address to auth.allow"))
    })
}

/// Whether an address fits a pattern of `auth.allow`: `*` is any text, `a.b.c.d/BITS` a network.
fn fits(pattern: &str, address: &str) -> bool {
    if let Some((network, bits)) = pattern.split_once('/') {
        let number = |text: &str| text.parse::<std::net::Ipv4Addr>().ok().map(u32::from);
        let bits = bits.parse::<u32>().ok().filter(|bits| *bits <= 32);
        let (Some(network), Some(bits), Some(address)) = (number(network), bits, number(address)) else { return false };
        return (network ^ address).checked_shr(32 - bits).unwrap_or(0) == 0;
    }
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == address };
    let Some(rest) = address.strip_prefix(head) else { return false };
    (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| fits(tail, &rest[at..]))
}

/// Sets options of a volume, and resets those without a value. The undo sets the former values.
pub fn set_options(spec: &Spec, seen: &Observed, changes: &OptionChanges) -> GlusterPlanResult {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    let (speaker, _) = speaker_of(spec, seen)?;
    let wanted: OptionValues = changes.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?))).collect();
    if let Some(refusal) = shut_out(spec, seen, &wanted) {
        return Err(vec![refusal]);
    }
    let set = lacking(&wanted, Some(there));
    let is_reset = |(key, value): &(&String, &Option<String>)| value.is_none() && there.options.contains_key(*key);
    let reset: Vec<&str> = changes.iter().filter(is_reset).map(|(key, _)| key.as_str()).collect();
    let mut plan = VolumePlan { notes: notes(&wanted), ..VolumePlan::default() };
    let before = |keys: &[&str]| {
        let pairs = keys.iter().flat_map(|key| [*key, there.options.get(*key).map_or("", String::as_str)]);
        let args: Vec<&str> = std::iter::once(spec.name.as_str()).chain(pairs).collect();
        script(SET_BACK, &args)
    };
    if !set.is_empty() {
        let keys: Vec<&str> = set.iter().map(|(key, _)| *key).collect();
        let mut argv = gluster(&["volume", "set", &spec.name]);
        argv.extend(set.iter().flat_map(|(key, value)| words(&[key, value])));
        let changed = set.iter().map(|(key, value)| match there.options.get(*key) {
            Some(former) => format!("{key} {value} (was {former})"),
            None => format!("{key} {value}"),
        });
        let why = format!("set {}", changed.collect::<Vec<_>>().join(", "));
        plan.phase("set the options", vec![CommandStep::new(&speaker, argv, why).undo(before(&keys))]);
    }
    for key in reset {
        let argv = gluster(&["volume", "reset", &spec.name, key]);
        let step = CommandStep::new(&speaker, argv, format!("reset {key} to its default"));
        plan.phase("reset an option", vec![step.undo(before(&[key]))]);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gluster::tests::{four, running};

    const HELP: &str = "Option: performance.io-thread-count\nDefault Value: 16\nDescription: Number of threads\n\n\
                        Option: performance.client-io-threads\nDefault Value: on\nDescription: x\n\n\
                        Option: auth.allow\nDefault Value: *\nDescription: a\n  b\n";

    fn values(pairs: &[(&str, &str)]) -> OptionValues {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn lines(plan: &VolumePlan) -> Vec<String> {
        plan.phases.iter().flat_map(|phase| &phase.steps).map(|step| crate::shown(&step.argv)).collect()
    }

    #[test]
    fn an_unknown_option_is_refused_with_names_that_are_near() {
        let known = read_known(HELP);
        assert_eq!((known.len(), known["auth.allow"].as_str()), (3, "*"));
        let refused = refusals(&["io-threads".to_string(), "auth.allow".into()], &known);
        assert_eq!(refused.len(), 1, "{refused:?}");
        let why = "GlusterFS has no option io-threads; near: performance.client-io-threads";
        assert!(refused[0].why.starts_with(why), "{}", refused[0].why);
        // Without an answer, the step that sets the option refuses it.
        assert!(refusals(&["io-threads".to_string()], &read_known("Connection failed.")).is_empty());
    }

    #[test]
    fn values_are_compared_by_their_meaning() {
        for (a, b) in [("on", "true"), ("4MB", "4194304"), ("1GB", "1024MB"), ("10.0.0.*", "10.0.0.*"), ("8", "8")] {
            assert!(is_same(a, b), "{a} {b}");
        }
        for (a, b) in [("8", "16"), ("on", "off"), ("4MB", "4KB"), ("n1,n2", "n1"), ("10%", "10")] {
            assert!(!is_same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn values_in_force_are_read_without_their_mark() {
        let opt = |key: &str, value: &str| format!("<Opt><Option>{key}</Option><Value>{value}</Value></Opt>");
        let text = format!(
            "<cliOutput><volGetopts><count>3</count>{}{}{}</volGetopts></cliOutput>",
            opt("performance.cache-size", "32MB (DEFAULT)"),
            opt("performance.cache-size", "128MB (DEFAULT)"),
            opt("auth.allow", "n1,n2"),
        );
        let read = read_in_force(&text).unwrap();
        assert_eq!((read["performance.cache-size"].as_str(), read["auth.allow"].as_str()), ("32MB", "n1,n2"));
        assert_eq!(read_in_force("<cliOutput><opRet>-1</opRet></cliOutput>"), None);
    }

    #[test]
    fn a_change_sets_what_differs_and_its_undo_sets_the_former_values() {
        let spec = four();
        let mut seen = running(&spec, "");
        let there = seen.hosts.values_mut().flatten().filter_map(|facts| facts.gluster.as_mut());
        there.flat_map(|cluster| &mut cluster.volumes).for_each(|volume| {
            volume.options = values(&[("performance.io-thread-count", "4"), ("performance.io-cache", "true")]);
        });
        let changes: OptionChanges = [
            ("performance.io-thread-count".to_string(), Some("8".to_string())),
            ("performance.io-cache".into(), Some("on".into())),
            ("auth.allow".into(), Some("10.0.0.*".into())),
        ]
        .into();
        let plan = set_options(&spec, &seen, &changes).unwrap();
        let set = "gluster --mode=script volume set data auth.allow '10.0.0.*' performance.io-thread-count 8";
        assert_eq!(lines(&plan), [set], "an option that is in force is left alone");
        let step = &plan.phases[0].steps[0];
        assert!(step.why.contains("performance.io-thread-count 8 (was 4)"), "{}", step.why);
        let undo = step.undo.as_ref().unwrap();
        assert_eq!(undo[4..], ["data", "auth.allow", "", "performance.io-thread-count", "4"]);
        assert!(plan.notes.iter().any(|note| note.contains("cut off clients at once")), "{:?}", plan.notes);
        let reset: OptionChanges =
            [("performance.io-cache".to_string(), None), ("auth.reject".to_string(), None)].into();
        let plan = set_options(&spec, &seen, &reset).unwrap();
        assert_eq!(lines(&plan), ["gluster --mode=script volume reset data performance.io-cache"]);
        assert!(set_options(&spec, &seen, &OptionChanges::new()).unwrap().is_empty());
    }

    #[test]
    fn addresses_that_shut_out_a_client_are_refused() {
        let mut spec = four();
        spec.clients.push("n5".into());
        let mut seen = running(&spec, "");
        let of_n5 = seen.hosts.get_mut("n5").unwrap().as_mut().unwrap();
        of_n5.texts.insert("addresses".into(), "10.77.1.5 fd00::5 \n".into());
        let refused = |allow: &str| shut_out(&spec, &seen, &values(&[("auth.allow", allow)]));
        for allow in
            ["*", "10.77.*", "10.77.1.0/24", "10.77.1.5", "n1,n5", "10.0.0.1,fd00::5", "0.0.0.0/0", "other.lan"]
        {
            assert_eq!(refused(allow), None, "{allow}");
        }
        for allow in ["10.77.1.2", "n1", "10.78.*", "10.77.1.5/33", "10.77.2.0/24", "*.6"] {
            let why = refused(allow).unwrap_or_else(|| panic!("{allow}")).why;
            assert!(why.contains("does not let in n5 (10.77.1.5 fd00::5)"), "{why}");
        }
        let change = [("auth.allow".to_string(), Some("n1".to_string()))].into();
        assert!(set_options(&spec, &seen, &change).is_err());
        assert_eq!(shut_out(&spec, &seen, &values(&[])), None);
    }

    #[test]
    fn a_cache_that_is_off_is_noted() {
        let size = ("performance.cache-size", "1GB");
        assert_eq!(notes(&values(&[size])).len(), 1);
        assert!(notes(&values(&[size, ("performance.io-cache", "on")])).is_empty());
    }
}
