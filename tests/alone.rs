//! Separates a test program from the rest of the machine. Every test program of `homing` includes this module.

use std::ffi::c_int;
use std::path::PathBuf;

fn queue() -> PathBuf {
    std::env::temp_dir().join(format!("homing-tests-{}", std::process::id()))
}

/// Gives the program a queue of its own before any test begins. Runs share slots with the jobs of the machine's queue,
/// so a foreign job would hold them up. Removes defaults of the user who tests. Tests set the ones they need.
extern "C" fn separate(_: c_int) {
    // SAFETY: the loader calls this before `main`, when there is one thread.
    unsafe {
        std::env::set_var("HOMING_QUEUE", queue());
        // ClusterShell's package brings a file of example groups, which `-a` would mean.
        std::env::set_var("CLUSTERSHELL_CFGDIR", queue());
        for foreign in ["HOMING_CLUSTER", "HOMING_HOSTS", "HOMING_ENGINE", "PARALLEL", "PARALLEL_HOME"] {
            std::env::remove_var(foreign);
        }
    }
}

extern "C" fn clear() {
    let _ = std::fs::remove_dir_all(queue());
}

#[used]
#[unsafe(link_section = ".init_array")]
static SEPARATE: extern "C" fn(c_int) = separate;

#[used]
#[unsafe(link_section = ".fini_array")]
static CLEAR: extern "C" fn() = clear;
