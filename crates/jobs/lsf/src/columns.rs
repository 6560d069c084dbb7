//! Columns that the user names: `-o` of `bjobs`, `bqueues` and `bhosts`.

use crate::jobs::cut_left;

/// The columns of one `-o`.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    columns: Vec<TableColumn>,
    delimiter: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct TableColumn {
    field: &'static Field,
    width: usize,
    right: bool,
}

/// A field that a user can name.
#[derive(Debug, PartialEq)]
pub struct Field {
    /// Its names, the first for the head.
    pub names: &'static [&'static str],
    /// Its width, characters, unless the user names one.
    pub width: usize,
}

/// Makes a row of a table of fields.
pub const fn field(names: &'static [&'static str], width: usize) -> Field {
    Field { names, width }
}

/// Returns the value of a field, by its first name. `None`: homing keeps no such value.
pub type ValueOf<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Columns {
    /// Parses `jobid stat:10 job_name:-20 delimiter=','`.
    pub fn parse(text: &str, fields: &'static [Field]) -> Result<Columns, String> {
        let (text, delimiter) = delimiter(text);
        let mut columns = Vec::new();
        for word in text.split_whitespace() {
            let (name, width) = word.split_once(':').unwrap_or((word, ""));
            let lower = name.to_lowercase();
            if lower == "all" {
                columns.extend(fields.iter().map(|field| TableColumn { field, width: field.width, right: false }));
                continue;
            }
            let field = fields.iter().find(|f| f.names.contains(&lower.as_str()));
            let field = field.ok_or_else(|| format!("{name}: Field name is not supported."))?;
            let bad = |_| format!("{word}: Output width is not valid.");
            let asked = if width.is_empty() { None } else { Some(width.parse::<i32>().map_err(bad)?) };
            let width = asked.map_or(field.width, |w| w.unsigned_abs() as usize);
            columns.push(TableColumn { field, width, right: asked.is_some_and(|w| w < 0) });
        }
        if columns.is_empty() { Err("no field is named".into()) } else { Ok(Columns { columns, delimiter }) }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|c| c.field.names[0].to_uppercase())
    }

    /// Returns the line of names.
    pub fn head(&self) -> String {
        self.line(&self.names().collect::<Vec<_>>())
    }

    /// Returns the line of one row.
    pub fn row(&self, value: ValueOf) -> String {
        self.line(&self.values(value))
    }

    /// Returns the fields of one row by upper-case names, for `-json`.
    pub fn record(&self, value: ValueOf) -> Vec<(String, String)> {
        let plain = |text: String| if text == "-" { String::new() } else { text };
        self.names().zip(self.values(value).into_iter().map(plain)).collect()
    }

    fn values(&self, value: ValueOf) -> Vec<String> {
        let of =
            |c: &TableColumn| value(c.field.names[0]).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".into());
        self.columns.iter().map(of).collect()
    }

    fn line(&self, row: &[String]) -> String {
        if let Some(between) = &self.delimiter {
            return row.join(between) + "\n";
        }
        let cell = |(text, c): (&String, &TableColumn)| {
            // A cut job id would be that of another job.
            let name = c.field.names[0];
            let text = match name {
                "jobid" => text.clone(),
                "job_name" => cut_left(text, c.width),
                _ => text.chars().take(c.width).collect(),
            };
            if c.right {
                format!("{text:>width$} ", width = c.width)
            } else {
                format!("{text:<width$} ", width = c.width)
            }
        };
        row.iter().zip(&self.columns).map(cell).collect::<String>() + "\n"
    }
}

/// Cuts out `delimiter='x'`.
fn delimiter(text: &str) -> (String, Option<String>) {
    let Some((before, after)) = text.split_once("delimiter=") else { return (text.into(), None) };
    let quote = after.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let (value, rest) = match quote {
        Some(q) => after[1..].split_once(q).unwrap_or((&after[1..], "")),
        None => after.split_once(' ').unwrap_or((after, "")),
    };
    (format!("{before} {rest}"), Some(value.into()))
}
