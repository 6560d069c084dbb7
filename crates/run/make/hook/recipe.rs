//! Replaces a program that make starts for a line of a recipe by homing's stub.

use crate::chain::{HEAD, program};
use crate::libc;
use crate::memory::{Grown, digits};
use crate::start::{HOOK, OUTER, SELF, SOCKET, is_make_itself, state};
use crate::target::{Asked, expand, find};
use crate::text::{self, Program};
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Address of the list of actions that captures output; 0 if there is none.
static CAPTURED: AtomicUsize = AtomicUsize::new(0);

/// Resets the capture, because a new list of actions captures nothing.
pub fn forget_capture() {
    CAPTURED.store(0, Ordering::Relaxed);
}

/// Notes a pipe that becomes standard output. With `-O` that is a file.
pub fn note_capture(actions: *mut c_void, from: c_int, to: c_int) {
    if to == 1 && is_pipe(b"/proc/self/fd/", from, &mut [0; 64]) {
        CAPTURED.store(actions as usize, Ordering::Relaxed);
    }
}

/// Whether make captures the output, which it does for `$(shell)` only.
pub fn is_captured(actions: *const c_void) -> bool {
    CAPTURED.load(Ordering::Relaxed) == actions as usize && !actions.is_null()
}

/// Whether a descriptor is a pipe; its name in the kernel is stored in `into`.
fn is_pipe(folder: &[u8], fd: c_int, into: &mut [u8; 64]) -> bool {
    let (mut path, mut number) = ([0u8; 64], [0u8; 12]);
    digits(fd, &mut number);
    path.iter_mut().zip(folder.iter().chain(&number)).for_each(|(to, byte)| *to = *byte);
    // SAFETY: the path ends with a null; the buffer has so many bytes.
    let length = unsafe { libc::readlink(path.as_ptr().cast(), into.as_mut_ptr().cast(), into.len()) };
    length > 0 && into.starts_with(b"pipe:")
}

/// Whether, in a child of make, standard output is a pipe that is not make's own.
fn captures_here() -> bool {
    let (mut folder, mut parent) = ([0u8; 32], [0u8; 12]);
    // SAFETY: it takes nothing.
    digits(unsafe { libc::getppid() }, &mut parent);
    let number = parent.split(|byte| *byte == 0).next().unwrap_or_default();
    let path = b"/proc/".iter().chain(number).chain(b"/fd/");
    folder.iter_mut().zip(path).for_each(|(to, byte)| *to = *byte);
    let folder = folder.split(|byte| *byte == 0).next().unwrap_or_default();
    let (mut own, mut of_make) = ([0; 64], [0; 64]);
    is_pipe(b"/proc/self/fd/", 1, &mut own) && !(is_pipe(folder, 1, &mut of_make) && own == of_make)
}

/// Buffers for one recipe, kept for the next.
struct Parts {
    words: Grown<*const c_char>,
    path: Grown<u8>,
    known: Grown<u8>,
    number: [u8; 12],
}

struct Kept(UnsafeCell<Parts>);

// SAFETY: make has one thread; a child that shares its memory runs while make waits.
unsafe impl Sync for Kept {}

static PARTS: Kept = Kept(UnsafeCell::new(Parts {
    words: Grown::new(),
    path: Grown::new(),
    known: Grown::new(),
    number: [0; 12],
}));

/// Calls `call` with the stub for a program. Returns `None` if the program is no recipe, or could not be started:
/// make reports that itself.
///
/// # Safety
/// A path, or a name for `search`; lists of strings; an address on the stack that is above those of this call.
pub unsafe fn redirect(
    file: *const c_char,
    search: bool,
    words: *const *const c_char,
    environment: *const *const c_char,
    captured: bool,
    stack: usize,
    call: impl FnOnce(*const c_char, *const *const c_char) -> c_int,
) -> Option<c_int> {
    // SAFETY: there is no other reference: see above.
    let parts = unsafe { &mut *PARTS.0.get() };
    // SAFETY: as the caller's.
    unsafe {
        if captured || !is_of_recipe(environment) || (!is_make_itself() && captures_here()) {
            return None;
        }
        find_program(file, search, environment, &mut parts.path)?;
        let path: *const c_char = parts.path.start().cast();
        if !runs(path) {
            return None;
        }
        let fd = hand_over(environment, stack, &mut parts.known);
        digits(fd, &mut parts.number);
        let list = &mut parts.words;
        list.clear();
        let own = [state().value(SELF), c"recipe".as_ptr(), state().value(SOCKET), state().value(HOOK)];
        let known = [state().program(), parts.number.as_ptr().cast(), path];
        let whole = own.into_iter().chain(known).all(|word| list.push(word))
            && list.extend_list(words)
            && list.push(core::ptr::null());
        let called = whole.then(|| call(state().value(SELF), list.start()));
        if fd >= 0 {
            libc::close(fd);
        }
        called
    }
}

/// Whether a program is of a recipe: its environment has the level of the next make.
unsafe fn is_of_recipe(environment: *const *const c_char) -> bool {
    // SAFETY: as the caller's.
    let mut levels = unsafe { libc::list(environment) }
        .filter_map(|entry| text::value(unsafe { libc::bytes(entry) }, b"MAKELEVEL"));
    levels.next().is_some_and(|level| text::number(level) == state().level + 1)
}

/// Whether the kernel can start the file.
unsafe fn runs(path: *const c_char) -> bool {
    const EXECUTE: c_int = 1;
    let mut head = [0; HEAD];
    // SAFETY: as the caller's.
    unsafe {
        if libc::access(path, EXECUTE) != 0 {
            return false;
        }
        match program(path, &mut head) {
            // An executable file may be unreadable.
            None | Some(Program::Binary) => true,
            Some(Program::Script(interpreter)) => {
                let mut name = [0u8; HEAD + 1];
                name.iter_mut().zip(interpreter).for_each(|(to, byte)| *to = *byte);
                libc::access(name.as_ptr().cast(), EXECUTE) == 0
            }
            Some(Program::Other) => false,
        }
    }
}

/// Finds a program as `execvp` does.
unsafe fn find_program(
    file: *const c_char,
    search: bool,
    environment: *const *const c_char,
    into: &mut Grown<u8>,
) -> Option<()> {
    const EXECUTE: c_int = 1;
    // SAFETY: as the caller's.
    let name = unsafe { libc::bytes(file) };
    let mut whole = |folder: &[u8]| {
        into.clear();
        let written = into.extend(folder) && (folder.is_empty() || into.push(b'/')) && into.extend(name) && into.push(0);
        written.then(|| into.start().cast::<c_char>())
    };
    if !search || name.contains(&b'/') {
        return whole(b"").map(|_| ());
    }
    // SAFETY: as the caller's.
    let mut paths = unsafe { libc::list(environment) }
        .filter_map(|entry| text::value(unsafe { libc::bytes(entry) }, b"PATH"));
    let path = paths.next().unwrap_or(b"/bin:/usr/bin");
    // SAFETY: each is a string.
    let is_there = |path: *const c_char| unsafe { libc::access(path, EXECUTE) == 0 };
    path.split(|byte| *byte == b':').any(|folder| whole(folder).is_some_and(is_there)).then_some(())
}

/// Writes make's data on the recipe into a file, which the stub reads from its start. The file has the place of
/// this make, the target and the prerequisites, separated by nulls. They may be too long for an argument.
unsafe fn hand_over(environment: *const *const c_char, stack: usize, known: &mut Grown<u8>) -> c_int {
    known.clear();
    // SAFETY: as the caller's.
    unsafe {
        let file = find(environment, stack);
        known.extend(libc::bytes(state().value(OUTER)));
        known.push(0);
        expand(file, Asked::Target, known);
        known.push(0);
        expand(file, Asked::Needs, known);
    }
    let fd = libc::memory_file();
    let mut rest = known.items();
    while fd >= 0 && !rest.is_empty() {
        // SAFETY: the buffer has so many bytes.
        let written = unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) };
        let Ok(written @ 1..) = usize::try_from(written) else { break };
        rest = rest.get(written..).unwrap_or_default();
    }
    fd
}
