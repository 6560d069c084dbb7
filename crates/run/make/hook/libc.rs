//! The functions of the process's C library, of any kind.

use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

unsafe extern "C" {
    pub fn abort() -> !;
    pub fn access(path: *const c_char, mode: c_int) -> c_int;
    pub fn close(fd: c_int) -> c_int;
    pub fn free(memory: *mut c_void);
    pub fn getpid() -> c_int;
    pub fn getppid() -> c_int;
    pub fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub fn read(fd: c_int, into: *mut c_void, bytes: usize) -> isize;
    pub fn readlink(path: *const c_char, into: *mut c_char, bytes: usize) -> isize;
    pub fn realloc(memory: *mut c_void, bytes: usize) -> *mut c_void;
    pub fn strlen(text: *const c_char) -> usize;
    pub fn syscall(number: c_long, ...) -> c_long;
    pub fn write(fd: c_int, from: *const c_void, bytes: usize) -> isize;
    fn __errno_location() -> *mut c_int;
    static HOMING_HOOK_WEAK: [usize; 8];
}

// Addresses of optional functions, 0 if absent. Examples are a lookup in a C library that has no separate one, and
// exports of make. Stable Rust has no weak symbols.
global_asm!(
    ".weak dlsym",
    ".weak __libc_dlopen_mode",
    ".weak __libc_dlsym",
    ".weak environ",
    ".weak gmk_expand",
    ".weak lookup_file",
    ".weak allocated_variable_expand_for_file",
    ".weak process_vm_readv",
    ".pushsection .data.rel.ro.homing_hook,\"aw\"",
    ".balign 8",
    ".globl HOMING_HOOK_WEAK",
    ".hidden HOMING_HOOK_WEAK",
    "HOMING_HOOK_WEAK:",
    ".quad dlsym",
    ".quad __libc_dlopen_mode",
    ".quad __libc_dlsym",
    ".quad environ",
    ".quad gmk_expand",
    ".quad lookup_file",
    ".quad allocated_variable_expand_for_file",
    ".quad process_vm_readv",
    ".popsection",
);

/// Rows of the table above.
#[derive(Clone, Copy)]
pub enum Weak {
    Dlsym,
    OldDlopen,
    OldDlsym,
    Environ,
    GmkExpand,
    LookupFile,
    ExpandForFile,
    ReadMemory,
}

/// Returns the address, or 0.
pub fn weak(which: Weak) -> usize {
    // SAFETY: the table has a row for each; the dynamic linker has written it.
    unsafe { (&raw const HOMING_HOOK_WEAK).cast::<usize>().add(which as usize).read_volatile() }
}

/// Returns the address of the C library's function, cached in `kept`; 0 if there is none.
pub fn next(name: &CStr, kept: &AtomicUsize) -> usize {
    const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;
    /// `RTLD_NOW | __RTLD_DLOPEN`.
    const OLD_MODE: c_int = 0x8000_0002_u32 as c_int;
    type Look = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    let known = kept.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: these are the types of the functions of these names.
    let found = unsafe {
        if weak(Weak::Dlsym) != 0 {
            core::mem::transmute::<usize, Look>(weak(Weak::Dlsym))(RTLD_NEXT, name.as_ptr()) as usize
        } else if weak(Weak::OldDlopen) != 0 && weak(Weak::OldDlsym) != 0 {
            // The GNU C library before 2.34, in a program without libdl.
            let open = core::mem::transmute::<usize, Open>(weak(Weak::OldDlopen));
            let library = open(c"libc.so.6".as_ptr(), OLD_MODE);
            core::mem::transmute::<usize, Look>(weak(Weak::OldDlsym))(library, name.as_ptr()) as usize
        } else {
            0
        }
    };
    kept.store(found, Ordering::Relaxed);
    found
}

/// Returns the environment of the process.
pub fn environ() -> *const *const c_char {
    match weak(Weak::Environ) {
        0 => core::ptr::null(),
        // SAFETY: it is the C library's variable.
        at => unsafe { *(at as *const *const *const c_char) },
    }
}

/// Replaces the environment of the process.
pub fn set_environ(to: *const *const c_char) {
    if weak(Weak::Environ) != 0 {
        // SAFETY: it is the C library's variable.
        unsafe { *(weak(Weak::Environ) as *mut *const *const c_char) = to }
    }
}

/// Sets the error of the last call.
pub fn set_errno(to: c_int) {
    // SAFETY: the C library's own place for it.
    unsafe { *__errno_location() = to }
}

/// Makes the kernel's call directly, because this library replaces the C library's function.
///
/// # Safety
/// Strings and lists as the kernel requires them.
pub unsafe fn execve(path: *const c_char, words: *const *const c_char, environment: *const *const c_char) -> c_int {
    #[cfg(target_arch = "x86_64")]
    const NUMBER: c_long = 59;
    #[cfg(not(target_arch = "x86_64"))]
    const NUMBER: c_long = 221;
    // SAFETY: as the caller's.
    unsafe { syscall(NUMBER, path, words, environment) as c_int }
}

/// Makes a file in memory without a name, which started programs inherit; -1 if that fails.
pub fn memory_file() -> c_int {
    #[cfg(target_arch = "x86_64")]
    const NUMBER: c_long = 319;
    #[cfg(not(target_arch = "x86_64"))]
    const NUMBER: c_long = 279;
    // SAFETY: the name is a string.
    unsafe { syscall(NUMBER, c"recipe".as_ptr(), 0) as c_int }
}

/// Returns the bytes of a string.
///
/// # Safety
/// It is a string or null, and lives as long as the result.
pub unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: as the caller's.
    unsafe { core::slice::from_raw_parts(text.cast(), strlen(text)) }
}

/// Returns the strings of a list that ends with a null.
///
/// # Safety
/// It is such a list, or null.
pub unsafe fn list(of: *const *const c_char) -> impl Iterator<Item = *const c_char> {
    let mut at = of;
    core::iter::from_fn(move || {
        if at.is_null() {
            return None;
        }
        // SAFETY: the null at its end has not come yet.
        let text = unsafe { *at };
        at = unsafe { at.add(1) };
        (!text.is_null()).then_some(text)
    })
}
