//! Runs first in a process: determines the role of the process, and hides the library's variables from it.

use crate::libc::{self, Weak};
use crate::memory::Grown;
use crate::text;
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};

/// The role of this process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Not below a build, or homing itself.
    Other,
    /// A program below a recipe that starts makes.
    Between,
    /// GNU make.
    Make,
}

/// Names as in `lib.rs`.
pub const SOCKET: usize = 0;
pub const SELF: usize = 1;
pub const HOOK: usize = 2;
pub const OUTER: usize = 3;
const PROBE: usize = 4;
const NAMES: [&[u8]; 5] =
    [b"HOMING_MAKE", b"HOMING_SELF", b"HOMING_MAKE_HOOK", b"HOMING_MAKE_OUTER", b"HOMING_MAKE_PROBE"];
const PRELOAD: &[u8] = b"LD_PRELOAD";
/// The longest path of a program that is kept, with its null.
const PATH: usize = 4096;

/// The findings of the first moment. They are written once, before all other code runs.
pub struct State {
    role: Role,
    pid: c_int,
    /// Make's own level.
    pub level: i64,
    /// The library's variables, as whole entries.
    entries: [*const c_char; NAMES.len()],
    /// The original `LD_PRELOAD`, as a whole entry.
    preload: Grown<u8>,
    /// Path of this program.
    program: [u8; PATH],
}

struct Kept(UnsafeCell<State>);

// SAFETY: it is written before the first thread of the program begins, and only read afterwards.
unsafe impl Sync for Kept {}

static STATE: Kept = Kept(UnsafeCell::new(State {
    role: Role::Other,
    pid: 0,
    level: 0,
    entries: [core::ptr::null(); NAMES.len()],
    preload: Grown::new(),
    program: [0; PATH],
}));

/// Returns the findings.
pub fn state() -> &'static State {
    // SAFETY: nothing writes it any more.
    unsafe { &*STATE.0.get() }
}

/// Returns the role of this process.
pub fn role() -> Role {
    state().role
}

/// Whether it is make, and not a child of it before its exec.
pub fn is_make_itself() -> bool {
    // SAFETY: it takes nothing.
    unsafe { libc::getpid() == state().pid }
}

impl State {
    /// Returns the value of a variable of the library.
    pub fn value(&self, which: usize) -> *const c_char {
        let (Some(entry), Some(name)) = (self.entries.get(which), NAMES.get(which)) else { return core::ptr::null() };
        match entry.is_null() {
            true => core::ptr::null(),
            // SAFETY: the entry begins with its name and an equals sign.
            false => unsafe { entry.add(name.len() + 1) },
        }
    }

    /// Path of this program.
    pub fn program(&self) -> *const c_char {
        self.program.as_ptr().cast()
    }

    /// Returns the variables that load the library into another process.
    pub fn ours(&self) -> impl Iterator<Item = *const c_char> {
        let entries = self.entries.iter().copied().filter(|entry| !entry.is_null());
        entries.chain(core::iter::once(self.preload.start().cast()))
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn() = first;

extern "C" fn first() {
    // SAFETY: nothing else runs yet in this process.
    let state = unsafe { &mut *STATE.0.get() };
    let environment = libc::environ().cast_mut();
    // SAFETY: the environment is a list of strings.
    unsafe {
        find(environment, state);
        if state.value(HOOK).is_null() || state.value(SELF).is_null() || state.value(SOCKET).is_null() {
            return;
        }
        let length = libc::readlink(c"/proc/self/exe".as_ptr(), state.program.as_mut_ptr().cast(), PATH - 1);
        let program = state.program.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
        // homing reads the variables itself.
        if text::base(program) == text::base(libc::bytes(state.value(SELF))) {
            return;
        }
        let is_make = libc::weak(Weak::GmkExpand) != 0 || text::is_make(program);
        state.role = if is_make { Role::Make } else { Role::Between };
        state.pid = libc::getpid();
        hide(environment, state);
        if is_make {
            report(state);
        }
    }
}

/// Finds the relevant variables in the environment.
unsafe fn find(environment: *mut *const c_char, state: &mut State) {
    // SAFETY: as the caller's.
    for entry in unsafe { libc::list(environment) } {
        // SAFETY: the caller's promise includes the strings.
        let bytes = unsafe { libc::bytes(entry) };
        for (name, kept) in NAMES.iter().zip(&mut state.entries) {
            if text::value(bytes, name).is_some() {
                *kept = entry;
            }
        }
        if text::value(bytes, PRELOAD).is_some() {
            state.preload.clear();
            state.preload.extend(bytes);
            state.preload.push(0);
        }
        if let Some(level) = text::value(bytes, b"MAKELEVEL") {
            state.level = text::number(level);
        }
    }
}

/// Removes the variables from the environment, in place, because `main` gets the same list.
unsafe fn hide(environment: *mut *const c_char, state: &State) {
    if environment.is_null() {
        return;
    }
    // SAFETY: as the caller's; the end is not passed, and kept entries only move forward.
    unsafe {
        let (mut from, mut to) = (environment, environment);
        while !(*from).is_null() {
            let entry = *from;
            let bytes = libc::bytes(entry);
            let is_ours = NAMES.iter().any(|name| text::value(bytes, name).is_some());
            let kept = match text::value(bytes, PRELOAD) {
                Some(all) => others(entry, all, libc::bytes(state.value(HOOK))),
                None => entry,
            };
            if !is_ours && !kept.is_null() {
                *to = kept;
                to = to.add(1);
            }
            from = from.add(1);
        }
        *to = core::ptr::null();
    }
}

/// Returns the entry without this library; null if the library was alone in it. The new entry is written in place:
/// the library's path and the colon behind it leave room for the name.
unsafe fn others(entry: *const c_char, all: &[u8], hook: &[u8]) -> *const c_char {
    let Some(rest) = all.strip_prefix(hook) else { return entry };
    if rest.first() != Some(&b':') || hook.len() < PRELOAD.len() + 1 {
        return core::ptr::null();
    }
    // SAFETY: entry is NAME=HOOK:REST, and the bytes of NAME= before REST are part of it.
    unsafe {
        let start = entry.add(PRELOAD.len() + 1 + hook.len() + 1 - (PRELOAD.len() + 1)).cast_mut().cast::<u8>();
        PRELOAD.iter().chain(b"=").enumerate().for_each(|(at, byte)| start.add(at).write(*byte));
        start.cast()
    }
}

/// Makes the file that the probe waits for, if make can be served.
unsafe fn report(state: &State) {
    const WRITE_NEW: c_int = 0o1 | 0o100 | 0o2000000;
    let can = crate::next!(c"posix_spawn" as crate::Spawn).is_some() && crate::next!(c"execvp" as crate::Exec).is_some();
    if can && !state.value(PROBE).is_null() {
        // SAFETY: its path is a string.
        unsafe { libc::close(libc::open(state.value(PROBE), WRITE_NEW, 0o600)) };
    }
}
