//! Modules of a folder do not import each other in a circle.
//!
//! A folder of modules is one module to its neighbours. Only the uses between modules that are side by side count. A
//! module and those inside it know each other. A name that is handed on by `pub use` counts as used in the module
//! that makes it. Tests do not count.

use proc_macro2::TokenTree::{Group, Ident, Punct};
use proc_macro2::{Delimiter, TokenStream};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The path of a module, or of an item in it, from the crate's root down.
type Name = Vec<String>;
type Uses = BTreeMap<String, BTreeSet<String>>;

/// A crate's modules.
#[derive(Default)]
struct Modules {
    /// The names that each module uses.
    names: BTreeMap<Name, BTreeSet<Name>>,
    /// Names that are handed on, and the names that they mean.
    handed_on: BTreeMap<Name, Name>,
}

fn sources() -> Vec<PathBuf> {
    crate::architecture::crates().iter().map(|folder| folder.join("src")).collect()
}

impl Modules {
    fn read(&mut self, folder: &Path, src: &Path) {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                self.read(&path, src);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
                let below = path.strip_prefix(src).unwrap().with_extension("");
                let mut module: Name = below.iter().map(|part| part.to_str().unwrap().into()).collect();
                module.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
                self.names.entry(module.clone()).or_default();
                self.walk(std::fs::read_to_string(&path).unwrap().parse().unwrap(), &module, &[], false);
            }
        }
    }

    /// Notes the paths in code. `before` is the path before the braces of a `use`.
    fn walk(&mut self, code: TokenStream, module: &Name, before: &[String], mut handed_on: bool) {
        let (mut path, mut colons, mut public, mut test) = (before.to_vec(), 0, false, false);
        for token in code {
            match &token {
                Punct(p) if p.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                Ident(word) if colons == 2 => {
                    path.push(word.to_string());
                    colons = 0;
                    continue;
                }
                Group(tree) if colons == 2 => self.walk(tree.stream(), module, &path, handed_on),
                _ => self.note(module, std::mem::take(&mut path), handed_on),
            }
            let in_tree = std::mem::replace(&mut colons, 0) == 2;
            path = before.to_vec();
            match token {
                Ident(word) if word == "pub" => public = true,
                Ident(word) if word == "use" => handed_on = public,
                Ident(word) => path.push(word.to_string()),
                Punct(end) if end.as_char() == ';' => (public, test, handed_on) = (false, false, false),
                Group(code) => {
                    test |= code.delimiter() == Delimiter::Bracket && code.stream().to_string() == "cfg (test)";
                    if !test && !in_tree {
                        self.walk(code.stream(), module, &[], false);
                    }
                    if code.delimiter() == Delimiter::Brace {
                        (public, test) = (false, false);
                    }
                }
                _ => {}
            }
        }
        self.note(module, path, handed_on);
    }

    fn note(&mut self, module: &Name, path: Name, handed_on: bool) {
        let ups = path.iter().take_while(|part| *part == "super").count();
        let (from, rest) = match path.first().map(String::as_str) {
            Some("crate") => (&[][..], &path[1..]),
            Some("self") => (&module[..], &path[1..]),
            _ => (&module[..module.len().saturating_sub(ups)], &path[ups..]),
        };
        let named = [from, rest].concat();
        if let (true, Some(last)) = (handed_on, path.last()) {
            self.handed_on.insert([module.as_slice(), std::slice::from_ref(last)].concat(), named);
        } else {
            self.names.entry(module.clone()).or_default().insert(named);
        }
    }

    /// Returns the module that makes an item.
    fn home(&self, mut name: Name) -> Name {
        while !self.names.contains_key(&name) {
            // A module may hand on a name that another crate or a macro also has as a module's name.
            let made = |name: &[String]| {
                self.handed_on.get(name).filter(|made| !self.names.contains_key(name) && !made.starts_with(name))
            };
            match (1..=name.len()).rev().find_map(|n| Some([made(&name[..n])?, &name[n..]].concat())) {
                Some(made) => name = made,
                None => drop(name.pop()),
            }
        }
        name
    }

    /// Returns for each folder of modules which of them uses which other.
    fn neighbours(&self) -> BTreeMap<Name, Uses> {
        let mut all: BTreeMap<Name, Uses> = BTreeMap::new();
        for (user, named) in self.names.iter().flat_map(|(user, all)| all.iter().map(move |name| (user, name))) {
            let home = self.home(named.clone());
            let shared = user.iter().zip(&home).take_while(|(a, b)| a == b).count();
            if let (Some(one), Some(other)) = (user.get(shared), home.get(shared)) {
                let folder = all.entry(user[..shared].to_vec()).or_default();
                folder.entry(one.clone()).or_default().insert(other.clone());
            }
        }
        all
    }
}

/// Removes modules that use none of the rest, until none is left to remove. Returns the circles, and the modules that
/// use them.
fn circles(mut uses: Uses) -> Uses {
    loop {
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.values_mut().for_each(|used| used.retain(|name| left.contains(name)));
        uses.retain(|_, used| !used.is_empty());
        if uses.len() == left.len() {
            return uses;
        }
    }
}

#[test]
fn modules_do_not_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for src in sources() {
        let mut modules = Modules::default();
        modules.read(&src, &src);
        let all = modules.neighbours().into_iter().map(|(folder, uses)| (folder, circles(uses)));
        found.extend(all.filter(|(_, circles)| !circles.is_empty()).map(|circle| (src.clone(), circle)));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_circle_is_seen_through_a_name_that_is_handed_on() {
    let mut modules = Modules::default();
    for (module, code) in [
        ("", "mod a; mod b; mod c; pub use a::{A, other::X};"),
        ("a", "use crate::b::B; pub struct A; #[cfg(test)] mod tests { use crate::c::C; }"),
        ("b", "pub struct B; fn f() -> u8 { crate::A::new() }"),
        ("c", "use super::{a::A, b};"),
    ] {
        let module: Name = module.split('/').filter(|m| !m.is_empty()).map(String::from).collect();
        modules.names.entry(module.clone()).or_default();
        modules.walk(code.parse().unwrap(), &module, &[], false);
    }
    let uses = modules.neighbours().remove(&Name::new()).unwrap();
    let used = |name: &str| uses[name].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((used("a"), used("b"), used("c")), (vec!["b"], vec!["a"], vec!["a", "b"]));
    assert_eq!(circles(uses).len(), 3);
}
