//! Values of the cluster file that are texts or numbers.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Reads values that may be written as numbers: `nofile = 65536`, `nofile = "65536"`.
pub(crate) fn texts<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a whole number")]
    enum Value {
        Text(String),
        Number(i64),
    }
    let all = BTreeMap::<String, Value>::deserialize(from)?;
    let text = |value| match value {
        Value::Text(text) => text,
        Value::Number(number) => number.to_string(),
    };
    Ok(all.into_iter().map(|(key, value)| (key, text(value))).collect())
}
