//! The JSON documents that homing prints for programs. Each has the member `version`, so that a program can refuse a
//! document that it does not know.
//!
//! Lists of runs, jobs and labs are arrays: there each object has it.

use serde::Serialize;

/// Version of all documents. It rises if a member is removed, renamed or changes its meaning, and not if one is added.
pub const VERSION: u32 = 1;

/// An object that is printed with its version.
#[derive(Debug, Serialize)]
pub struct Document<T> {
    version: u32,
    #[serde(flatten)]
    body: T,
}

impl<T: Serialize> Document<T> {
    /// Adds the version to `body`, a struct or a map that has no member of that name.
    pub fn new(body: T) -> Document<T> {
        Document { version: VERSION, body }
    }
}

/// Returns a document as one line.
pub fn line(body: impl Serialize) -> String {
    serde_json::to_string(&Document::new(body)).expect("a document is plain data") + "\n"
}

/// Returns a document with indented lines.
pub fn text(body: impl Serialize) -> String {
    serde_json::to_string_pretty(&Document::new(body)).expect("a document is plain data") + "\n"
}

/// Returns an array of documents with indented lines.
pub fn array<T: Serialize>(bodies: impl IntoIterator<Item = T>) -> String {
    let all: Vec<Document<T>> = bodies.into_iter().map(Document::new).collect();
    serde_json::to_string_pretty(&all).expect("a document is plain data") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn documents_and_each_object_of_an_array_have_a_version() {
        let expected = json!({"version": 1, "hosts": ["n1"]});
        assert_eq!(parsed(&line(json!({"hosts": ["n1"]}))), expected);
        assert_eq!(parsed(&text(json!({"hosts": ["n1"]}))), expected);
        assert_eq!(line(json!({"hosts": ["n1"]})).lines().count(), 1);
        let two = [json!({"id": 1}), json!({"id": 2})];
        assert_eq!(parsed(&array(two)), json!([{"version": 1, "id": 1}, {"version": 1, "id": 2}]));
        assert_eq!(parsed(&array(Vec::<Value>::new())), json!([]));
    }
}
