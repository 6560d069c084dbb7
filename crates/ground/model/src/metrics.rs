//! Writes metrics for Prometheus (its text format 0.0.4).

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// The most names of one label, so that a file does not grow without bound. The names with the smallest values are
/// merged.
const MOST: usize = 50;
/// The label of the merged names. No user, host or queue has such a name.
const OTHERS: &str = "(others)";

/// How a value behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It goes up and down.
    Gauge,
    /// It only grows, or begins anew; its name ends with `_total`.
    Counter,
}

/// The whole file, family by family.
#[derive(Debug, Default)]
pub struct Metrics(String);

impl Metrics {
    /// Begins a family; the next samples belong to it.
    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) {
        let kind = match kind {
            MetricKind::Gauge => "gauge",
            MetricKind::Counter => "counter",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample. Label values are escaped.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(label, of)| format!("{label}=\"{}\"", escaped(of))).collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{}}} {value}", labels.join(",")),
        };
    }

    /// Adds a family of one sample.
    pub fn only(&mut self, name: &str, kind: MetricKind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Returns the text.
    pub fn text(self) -> String {
        self.0
    }
}

/// Returns the names with the largest values, and the sum of all others as one row.
pub fn bounded(all: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut rows: Vec<(&str, u64)> = all.iter().map(|(name, held)| (name.as_str(), *held)).collect();
    rows.sort_by_key(|(_, held)| std::cmp::Reverse(*held));
    let others: u64 = rows.iter().skip(MOST).map(|(_, held)| held).sum();
    let more = (rows.len() > MOST).then_some((OTHERS, others));
    rows.truncate(MOST);
    rows.into_iter().chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out() {
        let mut metrics = Metrics::default();
        metrics.family("a_total", MetricKind::Counter, "Of a\nline.");
        metrics.sample("a_total", &[("host", "n\"1\\"), ("what", "x\ny")], 1.5);
        metrics.only("b", MetricKind::Gauge, "B.", 3);
        let told = "# HELP a_total Of a\\nline.\n# TYPE a_total counter\na_total{host=\"n\\\"1\\\\\",what=\"x\\ny\"} 1.5\n\
                    # HELP b B.\n# TYPE b gauge\nb 3\n";
        assert_eq!(metrics.text(), told);
    }

    #[test]
    fn those_with_most_are_named_and_the_others_add_up() {
        let all: BTreeMap<String, u64> = (1..=60).map(|n| (format!("u{n}"), n)).collect();
        let told = bounded(&all);
        assert_eq!((told.len(), told[0], told[MOST - 1]), (MOST + 1, ("u60", 60), ("u11", 11)));
        assert_eq!(told[MOST], (OTHERS, (1..=10).sum()));
        assert_eq!(bounded(&[("a".to_string(), 0)].into()), [("a", 0)]);
    }
}
