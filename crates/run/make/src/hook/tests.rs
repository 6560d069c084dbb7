//! Tests of the library's parsers; the tests of `homing make` run them inside make.

use super::*;
use text::{Program, base, is_make, leads_on, number, program, value};

#[test]
fn a_program_is_known_by_its_first_bytes() {
    assert_eq!(program(b"\x7fELF\x02\x01"), Program::Binary);
    assert_eq!(program(b"#! /usr/bin/env python3\nimport os"), Program::Script(b"/usr/bin/env"));
    assert_eq!(program(b"#!/bin/sh"), Program::Script(b"/bin/sh"));
    for other in [&b"#!\n/bin/sh"[..], b"#! ", b"echo", b""] {
        assert_eq!(program(other), Program::Other, "{other:?}");
    }
}

#[test]
fn make_is_known_by_its_name_and_what_may_start_it_by_its_words() {
    assert!(is_make(b"/usr/bin/make") && is_make(b"gmake") && !is_make(b"/usr/bin/cmake"));
    assert!(leads_on(b"cd x && make all") && leads_on(b"/opt/homing") && !leads_on(b"cc -c mak.c") && !leads_on(b""));
    assert_eq!(base(b"/a/b"), b"b");
}

#[test]
fn variables_and_levels_are_read_as_make_reads_them() {
    assert_eq!(value(b"MAKELEVEL=12", b"MAKELEVEL"), Some(&b"12"[..]));
    assert_eq!(value(b"MAKELEVELS=1", b"MAKELEVEL"), None);
    assert_eq!([number(b"12"), number(b"3x"), number(b"")], [12, 3, 0]);
}

#[test]
fn the_library_is_first_and_that_of_an_outer_build_goes() {
    let of = |before: &str, outer: &str| {
        let as_os = |text: &'_ str| (!text.is_empty()).then(|| OsString::from(text));
        preload(OsStr::new("/r/hook.so"), as_os(before).as_deref(), as_os(outer).as_deref()).into_string().unwrap()
    };
    assert_eq!(of("", ""), "/r/hook.so");
    assert_eq!(of("a.so b.so", ""), "/r/hook.so:a.so:b.so");
    assert_eq!(of("/q/hook.so:a.so", "/q/hook.so"), "/r/hook.so:a.so");
}

/// Loading the library must need nothing that another kind or version of C library lacks.
#[test]
fn the_library_is_one_and_asks_for_no_other() {
    assert!(LIBRARY.starts_with(b"\x7fELF") && LIBRARY.len() < 100_000);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), LIBRARY).unwrap();
    let loaded = std::process::Command::new("env").env(PRELOAD, file.path()).output().unwrap();
    assert!(loaded.status.success() && loaded.stderr.is_empty(), "{loaded:?}");
    // A library that is linked to glibc contains the versions of its symbols. The name of glibc alone may be a text
    // of the code.
    assert!(!LIBRARY.windows(7).any(|part| part == b"GLIBC_2"));
}
