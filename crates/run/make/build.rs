//! Compiles the library that is loaded into make, by the same compiler as the rest and for the same target. It needs
//! no C compiler, and is not linked to a C library: its functions are found in the process that loads it.

use std::env::var;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=hook");
    let built = PathBuf::from(var("OUT_DIR").unwrap()).join("hook.so");
    if var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux")
        || var("CARGO_CFG_TARGET_POINTER_WIDTH").as_deref() != Ok("64")
    {
        std::fs::write(built, "").unwrap();
        return;
    }
    let mut rustc = Command::new(var("RUSTC").unwrap());
    rustc.args(["--edition=2024", "--crate-name=homing_hook", "--crate-type=cdylib", "hook/main.rs"]);
    rustc.args(["-Copt-level=s", "-Cpanic=abort", "-Clto=fat", "-Ccodegen-units=1", "-Cstrip=symbols"]);
    rustc.arg("--target").arg(var("TARGET").unwrap()).arg("-o").arg(&built);
    // Only the flags of a release are passed on: its linker and its renamed paths. Others, such as a sanitizer's,
    // need a standard library.
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let wanted = |flag: &&str| ["-Clink", "--remap-path-prefix="].iter().any(|start| flag.starts_with(start));
    rustc.args(flags.split('\x1f').filter(wanted));
    if let Ok(linker) = var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    // By default, a static target makes no shared objects.
    if var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("musl") {
        rustc.arg("-Ctarget-feature=-crt-static");
    }
    let is_lld = |word: &str| word.contains("lld");
    if !(is_lld(&flags) || var("RUSTC_LINKER").is_ok_and(|linker| is_lld(&linker))) {
        rustc.args(["-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles"]);
    }
    let status = rustc.status().expect("the compiler starts");
    assert!(status.success(), "the library for make does not compile: {rustc:?}");
}
