//! What Prometheus reads from a file (its text format 0.0.4).

use std::fmt::{Display, Write};

/// How a value goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only grows, or begins anew; its name ends with `_total`.
    Counter,
}

/// The whole file, family by family.
#[derive(Debug, Default)]
pub struct Metrics(String);

impl Metrics {
    /// Begins a family; its samples are what follows.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample with its labels, whatever is in them.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(label, of)| format!("{label}=\"{}\"", escaped(of))).collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{}}} {value}", labels.join(",")),
        };
    }

    /// A family of one sample.
    pub fn only(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The text.
    pub fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out() {
        let mut metrics = Metrics::default();
        metrics.family("a_total", Kind::Counter, "Of a\nline.");
        metrics.sample("a_total", &[("host", "n\"1\\"), ("what", "x\ny")], 1.5);
        metrics.only("b", Kind::Gauge, "B.", 3);
        let told = "# HELP a_total Of a\\nline.\n# TYPE a_total counter\na_total{host=\"n\\\"1\\\\\",what=\"x\\ny\"} 1.5\n\
                    # HELP b B.\n# TYPE b gauge\nb 3\n";
        assert_eq!(metrics.text(), told);
    }
}
