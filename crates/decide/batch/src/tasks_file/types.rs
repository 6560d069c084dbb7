//! Names the key of a line whose value has a wrong type. The parser of JSON reports its column alone.

use homing_model::RawText;
use homing_model::text::shown;
use serde_json::{Map, Value};

/// Most characters of a value that a message shows.
const SHOWN: usize = 60;

const TEXT: &str = "a text";

/// Returns the fault of the first key with a wrong type. `None` if the line is no object, or all types are right.
pub(super) fn wrong_type(line: &[u8]) -> Option<String> {
    let line: Map<String, Value> = serde_json::from_slice(line).ok()?;
    line.iter().find_map(|(key, value)| wrong(key, value))
}

fn wrong(key: &str, value: &Value) -> Option<String> {
    let unless = |right: bool, must: &str| (!right).then(|| format!("'{key}' is {}; it must be {must}", short(value)));
    match key {
        "name" | "command" | "cwd" | "argv" | "cpus" | "memory" | "mem" | "timeout" if value.is_null() => None,
        "name" | "command" | "cwd" => unless(is_text(value), TEXT),
        "argv" | "inputs" | "outputs" => wrong_list(key, value, "texts", TEXT, is_text),
        "after" => {
            let is_other = |other: &Value| other.is_u64() || is_text(other);
            wrong_list(key, value, "names or numbers of tasks", "the name or the number of a task", is_other)
        }
        "env" => wrong_object(key, value, r#"texts, such as {"LANG": "C"}"#, TEXT, is_text),
        "resources" => wrong_object(key, value, r#"numbers, such as {"gpu": 1}"#, "a number", Value::is_number),
        "cpus" if value.is_u64() => {
            let most = u32::MAX;
            unless(value.as_u64() <= Some(most.into()), &format!("at most {most}"))
        }
        "cpus" => unless(false, "a whole number"),
        "memory" | "mem" => {
            unless(value.is_number() || value.is_string(), r#"a whole number of bytes, or a size such as "4G""#)
        }
        "timeout" => unless(value.is_number() || value.is_string(), r#"a number of seconds, or a time such as "2m""#),
        _ => None,
    }
}

/// `of`: the elements; `each`: one of them.
fn wrong_list(key: &str, value: &Value, of: &str, each: &str, right: impl Fn(&Value) -> bool) -> Option<String> {
    let Value::Array(elements) = value else {
        return Some(format!("'{key}' is {}; it must be a list of {of}", short(value)));
    };
    let one = elements.iter().find(|element| !right(element))?;
    Some(format!("'{key}' has {}; each must be {each}", short(one)))
}

/// As [`wrong_list`], for an object.
fn wrong_object(key: &str, value: &Value, of: &str, each: &str, right: impl Fn(&Value) -> bool) -> Option<String> {
    let Value::Object(members) = value else {
        return Some(format!("'{key}' is {}; it must be an object of {of}", short(value)));
    };
    let (name, one) = members.iter().find(|(_, member)| !right(member))?;
    Some(format!("'{key}': {} is {}; it must be {each}", shown(name), short(one)))
}

/// Whether it is a string, or the base64 of bytes.
fn is_text(value: &Value) -> bool {
    serde_json::from_value::<RawText>(value.clone()).is_ok()
}

fn short(value: &Value) -> String {
    let text = shown(&value.to_string());
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}
