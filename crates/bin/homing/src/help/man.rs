//! Writes man pages: clap's sections, then examples, exit statuses, variables and files.

use super::facts::{self, FILES, Fact, STATUSES, VARIABLES};
use super::{sections_of, visible};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use homing_model::Failure;
use std::io::{self, Write};
use std::path::Path;

/// Writes homing.1 and a page for each command into a folder.
pub fn write(folder: &Path) -> Result<i32, Failure> {
    let wrong = |e| Failure::system(format!("cannot write man pages to {}: {e}", folder.display()));
    homing_os::folder::make_folders(folder).map_err(wrong)?;
    let mut grammar = <crate::grammar::Cli as clap::CommandFactory>::command().disable_help_subcommand(true);
    grammar.build();
    pages(&grammar, "homing", folder).map_err(wrong)?;
    Ok(0)
}

fn pages(command: &Command, path: &str, folder: &Path) -> io::Result<()> {
    for sub in visible(command) {
        let below = if path == "homing" { sub.get_name().to_string() } else { format!("{path} {}", sub.get_name()) };
        pages(sub, &below, folder)?;
    }
    let name = match path {
        "homing" => path.to_string(),
        _ => format!("homing-{}", path.replace(' ', "-")),
    };
    let mut page = Vec::new();
    one(command, path, &mut page)?;
    homing_os::folder::write_file(&folder.join(format!("{name}.1")), page)
}

fn one(command: &Command, path: &str, page: &mut dyn Write) -> io::Result<()> {
    let man = Man::new(command.clone());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if visible(command).next().is_some() {
        man.render_subcommands_section(page)?;
    }
    if command.get_after_help().is_some() {
        man.render_extra_section(page)?;
    }
    let mut more = Roff::new();
    verbatim(&mut more, sections_of(path).unwrap_or_default());
    for (title, facts) in [("EXIT STATUS", STATUSES), ("ENVIRONMENT", VARIABLES), ("FILES", FILES)] {
        rows(&mut more, title, facts::of(path, facts));
    }
    more.to_writer(page)
}

/// Adds sections of text that keeps its lines: a heading at the margin, lines below it.
fn verbatim(page: &mut Roff, text: &str) {
    for line in text.lines() {
        match line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            Some(heading) => page.control("SH", [heading.to_uppercase().as_str()]).control("nf", []),
            None => page.text([roman(line.strip_prefix("  ").unwrap_or(line))]),
        };
    }
    page.control("fi", []);
}

fn rows(page: &mut Roff, title: &str, facts: impl Iterator<Item = &'static Fact>) {
    let mut facts = facts.peekable();
    if facts.peek().is_some() {
        page.control("SH", [title]);
    }
    for fact in facts {
        page.control("TP", []).text([bold(fact.name)]).text([roman(fact.meaning)]);
    }
}
