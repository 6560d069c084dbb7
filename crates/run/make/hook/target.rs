//! Finds the target of a recipe. Make passes it to no function that starts a program, so this module searches make's
//! own memory. The record of a child contains the environment of the program, and a file that make knows by its name.
//! Both are compared. Memory is read as from another process, so an invalid address only ends the search. If make
//! exports none of its functions, or has other records, targets are unknown. Recipes then run on the same hosts, but
//! the critical path is unknown.

use crate::libc::{self, Weak};
use crate::memory::Grown;
use core::ffi::{c_char, c_int, c_long, c_ulong, c_void};

/// Number of searched words of the stack: the frames of make's functions that start a job.
const STACK: usize = 768;
/// Number of words of a child's record.
const RECORD: usize = 24;
/// The longest name of a target.
const NAME: usize = 4096;
const PAGE: usize = 4096;

type Lookup = unsafe extern "C" fn(*const c_char) -> *const usize;
type Expand = unsafe extern "C" fn(*const c_char, *const c_void) -> *mut c_char;
type Read = unsafe extern "C" fn(c_int, *const Span, c_ulong, *const Span, c_ulong, c_ulong) -> c_long;

#[repr(C)]
struct Span {
    start: usize,
    bytes: usize,
}

/// The wanted property of a target.
#[derive(Clone, Copy)]
pub enum Asked {
    Target,
    Needs,
}

/// Copies memory from this address on. Returns how many bytes could be read.
fn copy(from: usize, into: *mut c_void, bytes: usize) -> usize {
    let read = libc::weak(Weak::ReadMemory);
    if read == 0 || from < PAGE {
        return 0;
    }
    let (here, there) = (Span { start: into as usize, bytes }, Span { start: from, bytes });
    // SAFETY: it is the C library's function; the buffer has so many bytes.
    let copied = unsafe {
        core::mem::transmute::<usize, Read>(read)(libc::getpid(), &raw const here, 1, &raw const there, 1, 0)
    };
    usize::try_from(copied).unwrap_or(0)
}

/// Returns the words from this address on, and how many could be read.
fn words<const N: usize>(from: usize) -> ([usize; N], usize) {
    let mut words = [0; N];
    let copied = copy(from, words.as_mut_ptr().cast(), size_of_val(&words));
    (words, copied / size_of::<usize>())
}

/// Returns the record of the target whose recipe gets this environment; null if it is not found. The frames of make
/// are above `stack`. Not inlined, because the copy must not be in one of the searched frames.
#[inline(never)]
pub fn find(environment: *const *const c_char, stack: usize) -> *const c_void {
    if libc::weak(Weak::LookupFile) == 0 || libc::weak(Weak::ExpandForFile) == 0 {
        return core::ptr::null();
    }
    let bottom = stack & !7;
    let (stack, count) = words::<STACK>(bottom);
    let mut last = 0;
    for word in stack.iter().take(count).copied() {
        // Records come from `malloc`, and are not on the stack.
        let is_of_stack = word >= bottom && word < bottom + (8 << 20);
        if word % 16 != 0 || word < PAGE || is_of_stack || word == last {
            continue;
        }
        last = word;
        let file = of_child(word, environment as usize);
        if file != 0 {
            return file as *const c_void;
        }
    }
    core::ptr::null()
}

/// Returns the target of a child's record; 0 if it is no such record.
fn of_child(record: usize, environment: usize) -> usize {
    let (record, count) = words::<RECORD>(record);
    let record = record.get(..count).unwrap_or_default();
    if !record.contains(&environment) {
        return 0;
    }
    record.iter().copied().find(|word| is_file(*word)).unwrap_or(0)
}

/// Whether make has a file record at this address, by its name. It may be another record of a name with double-colon
/// rules.
#[inline(never)]
fn is_file(address: usize) -> bool {
    let ([name], 1) = words::<1>(address) else { return false };
    let mut text = [0u8; NAME];
    let mut length = 0;
    // Page by page, because the next page may not be mapped.
    while length < NAME && !text.get(..length).unwrap_or_default().contains(&0) {
        let bytes = (PAGE - (name + length) % PAGE).min(NAME - length);
        let Some(rest) = text.get_mut(length..length + bytes) else { return false };
        if copy(name + length, rest.as_mut_ptr().cast(), bytes) != bytes {
            return false;
        }
        length += bytes;
    }
    if matches!(text.first(), None | Some(0)) || !text.contains(&0) {
        return false;
    }
    // SAFETY: make's function takes any name but the empty one.
    let found = unsafe { core::mem::transmute::<usize, Lookup>(libc::weak(Weak::LookupFile))(text.as_ptr().cast()) };
    // SAFETY: the result is a record that begins with the name, which make stores once.
    !found.is_null() && (found as usize == address || unsafe { *found } == name)
}

/// Adds a property of a target, expanded by make itself.
///
/// # Safety
/// The result of [`find`].
pub unsafe fn expand(file: *const c_void, asked: Asked, into: &mut Grown<u8>) {
    if file.is_null() {
        return;
    }
    let words = match asked {
        Asked::Target => c"$@",
        Asked::Needs => c"$^ $|",
    };
    // SAFETY: it is make's function of this name, and returns a string of `malloc`.
    unsafe {
        let expand = core::mem::transmute::<usize, Expand>(libc::weak(Weak::ExpandForFile));
        let text = expand(words.as_ptr(), file);
        into.extend(libc::bytes(text));
        libc::free(text.cast());
    }
}
