//! Passes the library on from one program to the next, down to another make.

use crate::libc;
use crate::memory::Grown;
use crate::start::state;
use crate::text::{self, Program};
use core::ffi::{c_char, c_int};

/// Whether a program may start make or homing. Its words show that, or it is a script, whose text has more words.
///
/// # Safety
/// A path and a list of words.
pub unsafe fn leads_on(file: *const c_char, words: *const *const c_char) -> bool {
    // SAFETY: as the caller's.
    unsafe {
        let mut words = libc::list(words);
        text::leads_on(libc::bytes(file))
            || words.any(|word| text::leads_on(libc::bytes(word)))
            || is_script(file)
    }
}

unsafe fn is_script(path: *const c_char) -> bool {
    let mut head = [0; HEAD];
    // SAFETY: as the caller's.
    matches!(unsafe { program(path, &mut head) }, Some(Program::Script(_)))
}

/// The number of bytes that the kernel reads of a program to recognize its format.
pub const HEAD: usize = 256;

/// Returns the format of a file; `None` if it cannot be read.
///
/// # Safety
/// A path.
pub unsafe fn program(path: *const c_char, head: &mut [u8; HEAD]) -> Option<Program<'_>> {
    const READ: c_int = 0o2000000;
    // SAFETY: as the caller's; the buffer has so many bytes. Reading a folder fails.
    let length = unsafe {
        let fd = libc::open(path, READ);
        if fd < 0 {
            return None;
        }
        let length = libc::read(fd, head.as_mut_ptr().cast(), HEAD);
        libc::close(fd);
        length
    };
    Some(text::program(head.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default()))
}

/// Calls a function with an environment that also has the variables that load the library.
///
/// # Safety
/// A list of strings.
pub unsafe fn extended(environment: *const *const c_char, call: impl FnOnce(*const *const c_char) -> c_int) -> c_int {
    let mut all: Grown<*const c_char> = Grown::new();
    // SAFETY: as the caller's.
    let whole = unsafe { all.extend_list(environment) } && state().ours().all(|entry| all.push(entry));
    let called = call(if whole && all.push(core::ptr::null()) { all.start() } else { environment });
    // SAFETY: the list belongs to this function, and is not used any more.
    unsafe { libc::free(all.start().cast_mut().cast()) };
    called
}

/// The same for a call that uses the environment of the process.
///
/// # Safety
/// There is one thread, or this is a child that has only one.
pub unsafe fn with_ours(call: impl FnOnce() -> c_int) -> c_int {
    let before = libc::environ();
    // SAFETY: it is a list of strings.
    unsafe {
        extended(before, |all| {
            libc::set_environ(all);
            let called = call();
            libc::set_environ(before);
            called
        })
    }
}
