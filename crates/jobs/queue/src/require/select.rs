//! The expressions of `select[...]`: `mem>500 && (bio<1500 || type==any)`.

/// Resources that an expression may name: load indices and host attributes, each known of every host. A name that no
/// host has, such as LSF's `model`, would be ignored.
pub const NAMES: [&str; 23] = [
    "r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem", "bio", "rpc", "status", "type", "hname",
    "ncpus", "ncores", "nprocs", "nthreads", "maxmem", "maxswp", "server",
];
/// The deepest nesting; no real requirement is deeper.
const DEEPEST: u32 = 100;
/// The most operators. A chain of them is a tree as deep, which is walked by recursion.
const MOST_OPERATORS: u32 = 1000;

/// The value of a resource of a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An index or a count.
    Number(f64),
    /// A name.
    Text(String),
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number, in MB if it had a unit.
    Number(f64),
    /// A resource of the host.
    Name(String),
    /// A word on the other side of a comparison.
    Word(String),
    /// `!x` or `-x`.
    Unary(char, Box<Expr>),
    /// `a OP b`.
    Binary(&'static str, Box<Expr>, Box<Expr>),
}

/// Operators, from the loosest binding to the tightest; longer ones before their prefixes.
const LEVELS: [&[&str]; 5] = [&["||"], &["&&"], &["<=", ">=", "==", "!=", "<", ">", "="], &["+", "-"], &["*", "/"]];

/// Parses an expression; the error describes the fault.
pub fn parse(text: &str) -> Result<Expr, String> {
    let mut parser = Parser { rest: text, depth: 0, operators: 0 };
    let expr = parser.level(0)?;
    match parser.rest.trim() {
        "" => Ok(expr),
        left => Err(format!("unexpected {left:?}")),
    }
}

impl Expr {
    /// Whether it holds on a host. An unknown value does not make it fail: a kernel without a counter must not stop a
    /// queue.
    pub fn holds(&self, host: &dyn Fn(&str) -> Option<Value>) -> bool {
        self.truth(host).unwrap_or(true)
    }

    /// Whether it cannot hold while no resource is above its `most`.
    pub(crate) fn never(&self, most: &dyn Fn(&str) -> Option<f64>) -> bool {
        match self {
            Expr::Binary("||", a, b) => a.never(most) && b.never(most),
            Expr::Binary("&&", a, b) => a.never(most) || b.never(most),
            Expr::Binary(op, a, b) => match (op, a.as_ref(), b.as_ref()) {
                (&">" | &">=" | &"==" | &"=", Expr::Name(name), Expr::Number(n))
                | (&"<" | &"<=" | &"==" | &"=", Expr::Number(n), Expr::Name(name)) => {
                    let strictly = matches!(*op, ">" | "<");
                    most(name).is_some_and(|most| most < *n || (strictly && most == *n))
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn truth(&self, host: &dyn Fn(&str) -> Option<Value>) -> Option<bool> {
        match self {
            Expr::Binary("||", a, b) => match (a.truth(host), b.truth(host)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Expr::Binary("&&", a, b) => match (a.truth(host), b.truth(host)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Expr::Unary('!', a) => a.truth(host).map(|t| !t),
            other => match other.value(host)? {
                Value::Number(n) => Some(n != 0.0),
                Value::Text(text) => Some(!text.is_empty()),
            },
        }
    }

    fn value(&self, host: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
        let flag = |truth: bool| Some(Value::Number(f64::from(u8::from(truth))));
        match self {
            Expr::Number(n) => Some(Value::Number(*n)),
            Expr::Word(word) => Some(Value::Text(word.clone())),
            Expr::Name(name) => host(name),
            Expr::Unary('-', a) => match a.value(host)? {
                Value::Number(n) => Some(Value::Number(-n)),
                Value::Text(_) => None,
            },
            Expr::Unary(..) | Expr::Binary("||" | "&&", ..) => flag(self.truth(host)?),
            Expr::Binary(op, a, b) => match (a.value(host)?, b.value(host)?) {
                (Value::Number(a), Value::Number(b)) => number(op, a, b),
                (Value::Text(a), Value::Text(b)) => flag(compare_words(op, &a, &b)?),
                // Words such as `any` in `type==any` mean every host.
                _ => None,
            },
        }
    }
}

fn number(op: &str, a: f64, b: f64) -> Option<Value> {
    let flag = |truth: bool| f64::from(u8::from(truth));
    Some(Value::Number(match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "<" => flag(a < b),
        "<=" => flag(a <= b),
        ">" => flag(a > b),
        ">=" => flag(a >= b),
        "!=" => flag(a != b),
        "==" | "=" => flag(a == b),
        _ => return None,
    }))
}

/// Compares words: `any` and `local` are every type, because all hosts here are of one.
fn compare_words(op: &str, a: &str, b: &str) -> Option<bool> {
    let same = a == b || matches!(b, "any" | "local");
    match op {
        "==" | "=" => Some(same),
        "!=" => Some(!same),
        _ => None,
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
    operators: u32,
}

impl<'a> Parser<'a> {
    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest.trim_start().strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn level(&mut self, level: usize) -> Result<Expr, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some(op) = operators.iter().copied().find(|op| self.eat(op)) {
            self.operators += 1;
            if self.operators > MOST_OPERATORS {
                return Err(format!("more than {MOST_OPERATORS} operators"));
            }
            left = Expr::Binary(op, Box::new(left), Box::new(self.level(level + 1)?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("too deep".into());
        }
        let expr = if self.eat("!") {
            Expr::Unary('!', Box::new(self.unary()?))
        } else if self.eat("-") {
            Expr::Unary('-', Box::new(self.unary()?))
        } else if self.eat("(") {
            let inner = self.level(0)?;
            if !self.eat(")") {
                return Err(format!(") is missing before {:?}", self.rest));
            }
            inner
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn atom(&mut self) -> Result<Expr, String> {
        if let Some(text) = self.quoted()? {
            return Ok(Expr::Word(text.into()));
        }
        let word = self.word()?;
        if word == "defined" && self.eat("(") {
            // Only a name, not an expression: the expression is copied, so that each level would double.
            let inner = simple(self.word()?)?;
            // An unknown value counts as defined; see `holds`.
            return if self.eat(")") {
                Ok(Expr::Binary("==", inner.clone().into(), inner.into()))
            } else {
                Err(") is missing".into())
            };
        }
        simple(word)
    }

    /// Parses a name in quotes, which names with a hyphen need.
    fn quoted(&mut self) -> Result<Option<&'a str>, String> {
        let text = self.rest.trim_start();
        let Some(quote) = text.chars().next().filter(|c| "'\"".contains(*c)) else { return Ok(None) };
        let (inside, rest) = text[1..].split_once(quote).ok_or_else(|| format!("a quote is not closed in {text:?}"))?;
        self.rest = rest;
        Ok(Some(inside))
    }

    fn word(&mut self) -> Result<&'a str, String> {
        let text = self.rest.trim_start();
        let inside = |c: char| c.is_alphanumeric() || "_.".contains(c);
        let end = text.find(|c| !inside(c)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if word.is_empty() {
            return Err(format!("a resource or a number is missing before {text:?}"));
        }
        Ok(word)
    }
}

fn simple(word: &str) -> Result<Expr, String> {
    if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return amount(word).map(Expr::Number).ok_or_else(|| format!("{word:?} is not a number"));
    }
    Ok(if NAMES.contains(&word) { Expr::Name(word.into()) } else { Expr::Word(word.into()) })
}

/// Parses `500`, `1.5G` or `2TB`: in MB if a unit is given, the unit of memory, swap and disk.
pub fn amount(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim_end_matches(['b', 'B']) {
        "" | "M" | "m" => 1.0,
        "K" | "k" => 1.0 / 1024.0,
        "G" | "g" => 1024.0,
        "T" | "t" => 1024.0 * 1024.0,
        _ => return None,
    };
    number.parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| n * factor)
}

/// Turns words into names if only a resource can be there: on the left side of a comparison, or alone. A site has
/// names of its own.
pub(crate) fn named(expr: Expr) -> Expr {
    let of = |inner: Box<Expr>| Box::new(named(*inner));
    match expr {
        Expr::Word(word) => Expr::Name(word),
        Expr::Unary(op, a) => Expr::Unary(op, of(a)),
        Expr::Binary(op @ ("==" | "=" | "!="), a, b) if matches!(*b, Expr::Word(_)) => Expr::Binary(op, of(a), b),
        Expr::Binary(op, a, b) => Expr::Binary(op, of(a), of(b)),
        other => other,
    }
}

/// Returns a name that neither all hosts nor, by `own`, the site has.
pub(crate) fn unknown_name<'a>(expr: &'a Expr, own: &dyn Fn(&str) -> bool) -> Option<&'a str> {
    match expr {
        Expr::Name(name) => Some(name.as_str()).filter(|name| !NAMES.contains(name) && !own(name)),
        Expr::Unary(_, a) => unknown_name(a, own),
        Expr::Binary(_, a, b) => unknown_name(a, own).or_else(|| unknown_name(b, own)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Option<Value> {
        Some(match name {
            "mem" => Value::Number(1000.0),
            "bio" => Value::Number(10.0),
            "ncpus" => Value::Number(8.0),
            "type" => Value::Text("X86_64".into()),
            "hname" => Value::Text("rcss1".into()),
            _ => return None,
        })
    }

    #[test]
    fn expressions_hold_or_do_not() {
        for (text, want) in [
            ("mem>=500", true),
            ("mem > 500 && bio < 5", false),
            ("mem>5000 || bio<50", true),
            ("!(mem>5000) && type==any", true),
            ("type==X86_64", true),
            ("type!=X86_64", false),
            ("hname==rcss2", false),
            ("mem/ncpus >= 125", true),
            ("mem > 2G", false),
            ("mem > 0.5GB", true),
            ("mem - 2*400 > 100 + 99", true),
            ("rpc > 5", true),
            ("defined(bio)", true),
            ("-1 < bio", true),
            // Binds as in C: the && first.
            ("bio>50 || mem>1 && bio<5", false),
        ] {
            assert_eq!(parse(text).unwrap().holds(&host), want, "{text}");
        }
    }

    #[test]
    fn mistakes_are_found() {
        for bad in ["", "mem>", "(mem", "mem>5)", "5x", "mem >> 5", "1e999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&"(".repeat(100_000)).is_err());
        let unknown = |text: &str, own: bool| unknown_name(&named(parse(text).unwrap()), &|_| own).map(String::from);
        assert_eq!(unknown("nonsense>5 && mem>1", false).as_deref(), Some("nonsense"));
        assert_eq!(unknown("nonsense>5 && mem>1", true), None, "a site has indices of its own");
        assert_eq!(unknown("type==any && mem>1", false), None);
    }
}
