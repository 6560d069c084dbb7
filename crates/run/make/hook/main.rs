//! A library that the dynamic linker loads into GNU make, ahead of the C library. When make starts a program for a
//! line of a recipe, it starts homing's stub instead. The stub gets the line, make's data on it, and make's
//! own environment for it. No variable, function or flag of make is used, so makefiles, recipes and `$(shell)` see no
//! difference.
//!
//! In a program other than make, below a recipe that starts makes, the library passes itself on to these makes. In
//! every process it removes the variables that load it before the program itself begins.
//!
//! If some step fails, the program runs as without the library.

#![no_std]

mod chain;
mod libc;
mod memory;
mod recipe;
mod start;
mod target;
mod text;

use core::ffi::{c_char, c_int, c_void};
use start::{Role, role};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: it takes nothing.
    unsafe { libc::abort() }
}

type Words = *const *const c_char;
type Exec = unsafe extern "C" fn(*const c_char, Words) -> c_int;
type ExecWith = unsafe extern "C" fn(*const c_char, Words, Words) -> c_int;
type Spawn = unsafe extern "C" fn(*mut c_int, *const c_char, *const c_void, *const c_void, Words, Words) -> c_int;

/// Returns the C library's function of this name, if there is one.
macro_rules! next {
    ($name:literal as $kind:ty) => {{
        static KEPT: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);
        // SAFETY: the function has this type in every C library.
        unsafe { core::mem::transmute::<usize, Option<$kind>>(libc::next($name, &KEPT)) }
    }};
}
pub(crate) use next;

const ENOSYS: c_int = 38;

fn absent() -> c_int {
    libc::set_errno(ENOSYS);
    -1
}

/// An address in the frame of the caller.
#[inline(always)]
fn here() -> usize {
    let here = 0u8;
    &raw const here as usize
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, words: Words) -> c_int {
    let Some(real) = next!(c"execvp" as Exec) else { return absent() };
    let stack = here();
    // SAFETY: the caller's arguments are valid for the C library's function.
    unsafe {
        match role() {
            Role::Make if start::is_make_itself() => chain::with_ours(|| real(file, words)),
            Role::Make => {
                let environment = libc::environ();
                recipe::redirect(file, true, words, environment, false, stack, |stub, stub_words| {
                    libc::execve(stub, stub_words, environment)
                });
                real(file, words)
            }
            Role::Between if chain::leads_on(file, words) => chain::with_ours(|| real(file, words)),
            _ => real(file, words),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, words: Words, environment: Words) -> c_int {
    let stack = here();
    // SAFETY: the caller's arguments are valid for the kernel.
    unsafe {
        match role() {
            Role::Make if start::is_make_itself() => {
                chain::extended(environment, |all| libc::execve(path, words, all))
            }
            Role::Make => {
                recipe::redirect(path, false, words, environment, false, stack, |stub, stub_words| {
                    libc::execve(stub, stub_words, environment)
                });
                libc::execve(path, words, environment)
            }
            Role::Between if chain::leads_on(path, words) => {
                chain::extended(environment, |all| libc::execve(path, words, all))
            }
            _ => libc::execve(path, words, environment),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, words: Words) -> c_int {
    // SAFETY: as the caller's.
    unsafe { execve(path, words, libc::environ()) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, words: Words, environment: Words) -> c_int {
    let Some(real) = next!(c"execvpe" as ExecWith) else { return absent() };
    // SAFETY: the caller's arguments are valid for the C library's function.
    unsafe {
        match role() {
            Role::Between if chain::leads_on(file, words) => {
                chain::extended(environment, |all| real(file, words, all))
            }
            _ => real(file, words, environment),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut c_int,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    words: Words,
    environment: Words,
) -> c_int {
    let Some(real) = next!(c"posix_spawn" as Spawn) else { return ENOSYS };
    // SAFETY: the caller's arguments are valid for the C library's function.
    unsafe {
        match role() {
            Role::Make => {
                let (captured, stack) = (recipe::is_captured(actions), here());
                let spawned = recipe::redirect(path, false, words, environment, captured, stack, |stub, stub_words| {
                    real(pid, stub, actions, attributes, stub_words, environment)
                });
                match spawned {
                    Some(0) => 0,
                    _ => real(pid, path, actions, attributes, words, environment),
                }
            }
            Role::Between if chain::leads_on(path, words) => {
                chain::extended(environment, |all| real(pid, path, actions, attributes, words, all))
            }
            _ => real(pid, path, actions, attributes, words, environment),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut c_int,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    words: Words,
    environment: Words,
) -> c_int {
    let Some(real) = next!(c"posix_spawnp" as Spawn) else { return ENOSYS };
    // SAFETY: the caller's arguments are valid for the C library's function.
    unsafe {
        match role() {
            Role::Between if chain::leads_on(file, words) => {
                chain::extended(environment, |all| real(pid, file, actions, attributes, words, all))
            }
            _ => real(pid, file, actions, attributes, words, environment),
        }
    }
}

/// Begins a list of actions for a new program, which does not yet capture output.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_init(actions: *mut c_void) -> c_int {
    type Init = unsafe extern "C" fn(*mut c_void) -> c_int;
    let Some(real) = next!(c"posix_spawn_file_actions_init" as Init) else { return ENOSYS };
    recipe::forget_capture();
    // SAFETY: the caller's arguments are valid for the C library's function.
    unsafe { real(actions) }
}

/// Notes a pipe for standard output. Only `$(shell)` has its output captured by make in this way.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_adddup2(actions: *mut c_void, from: c_int, to: c_int) -> c_int {
    type Dup = unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int;
    let Some(real) = next!(c"posix_spawn_file_actions_adddup2" as Dup) else { return ENOSYS };
    recipe::note_capture(actions, from, to);
    // SAFETY: the caller's arguments are valid for the C library's function.
    unsafe { real(actions, from, to) }
}
