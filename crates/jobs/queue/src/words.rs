//! Resolves names of files and programs as a job's owner wrote them. Pure.

use crate::job::{JobSpec, Private, Style};
use homing_model::RawText;

/// Replaces `%J` and `%I` in the name of a file.
pub(crate) fn substitute(name: &RawText, id: u64, index: u32) -> RawText {
    let mut out = Vec::with_capacity(name.0.len());
    let mut rest = &name.0[..];
    while let Some((first, after)) = rest.split_first() {
        match (first, after.first()) {
            (b'%', Some(b'J')) => out.extend(id.to_string().bytes()),
            (b'%', Some(b'I')) => out.extend(index.to_string().bytes()),
            _ => {
                out.push(*first);
                rest = after;
                continue;
            }
        }
        rest = &after[1..];
    }
    RawText(out)
}

/// Returns the shell for a command line: the submitter's own for homing; for LSF /bin/sh.
pub(crate) fn shell(spec: &JobSpec, private: &Private) -> RawText {
    let own = private.env.iter().find(|(n, _)| n.0 == b"SHELL").map(|(_, v)| v.clone());
    own.filter(|path| spec.style == Style::Homing && path.0.starts_with(b"/")).unwrap_or_else(|| "/bin/sh".into())
}

/// Returns the interpreter of a script: that of its `#!` line, or else /bin/sh.
pub(crate) fn interpreter(script: &[u8]) -> Vec<RawText> {
    let first = script.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = first.strip_prefix(b"#!").map(|l| l.trim_ascii()).filter(|l| !l.is_empty());
    let Some(line) = line else { return vec!["/bin/sh".into()] };
    // As the kernel splits it: the program, and all the rest as one argument.
    let mut words = line.splitn(2, |b| b.is_ascii_whitespace());
    words.by_ref().map(|w| RawText(w.trim_ascii().to_vec())).filter(|w| !w.0.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_interpreters() {
        assert_eq!(substitute(&"o.%J.%I%%x%".into(), 7, 2), "o.7.2%%x%".into());
        assert_eq!(interpreter(b"#!/bin/bash -ue\ntrue"), [RawText::from("/bin/bash"), "-ue".into()]);
        assert_eq!(interpreter(b"#!/usr/bin/env python3\n"), [RawText::from("/usr/bin/env"), "python3".into()]);
        assert_eq!(interpreter(b"#BSUB -q x\n"), [RawText::from("/bin/sh")]);
    }
}
