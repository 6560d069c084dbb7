//! Lists of words and strings, which need only the C library's `realloc`. They are kept from one call to the next,
//! because a child that shares its parent's memory until it executes cannot free them.

use crate::libc;
use core::ffi::c_char;

/// A buffer that grows, used by one thread: make has no other.
pub struct Grown<T> {
    at: *mut T,
    length: usize,
    room: usize,
}

impl<T: Copy> Grown<T> {
    pub const fn new() -> Grown<T> {
        Grown { at: core::ptr::null_mut(), length: 0, room: 0 }
    }

    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Adds an item. Returns false if there is no memory.
    pub fn push(&mut self, item: T) -> bool {
        if self.length == self.room {
            let room = (self.room * 2).max(64);
            // SAFETY: `at` is null or from an earlier call.
            let at = unsafe { libc::realloc(self.at.cast(), room * size_of::<T>()) }.cast::<T>();
            if at.is_null() {
                return false;
            }
            (self.at, self.room) = (at, room);
        }
        // SAFETY: there is room for one more.
        unsafe { self.at.add(self.length).write(item) };
        self.length += 1;
        true
    }

    pub fn start(&self) -> *const T {
        self.at
    }

    pub fn items(&self) -> &[T] {
        if self.at.is_null() {
            return &[];
        }
        // SAFETY: so many were written.
        unsafe { core::slice::from_raw_parts(self.at, self.length) }
    }
}

impl Grown<u8> {
    pub fn extend(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| self.push(*byte))
    }
}

impl Grown<*const c_char> {
    /// Adds the items of a list, without its end.
    ///
    /// # Safety
    /// It is a list, or null.
    pub unsafe fn extend_list(&mut self, list: *const *const c_char) -> bool {
        // SAFETY: as the caller's.
        unsafe { libc::list(list) }.all(|word| self.push(word))
    }
}

/// Writes decimal digits and a null.
pub fn digits(number: i32, into: &mut [u8; 12]) {
    let mut reversed = [0u8; 12];
    let (mut rest, mut count) = (number.unsigned_abs(), 0);
    loop {
        if let Some(digit) = reversed.get_mut(count) {
            *digit = b'0' + (rest % 10) as u8;
        }
        (rest, count) = (rest / 10, count + 1);
        if rest == 0 {
            break;
        }
    }
    let digits = reversed.iter().take(count).rev().chain(core::iter::once(&0));
    into.iter_mut().zip(digits).for_each(|(to, digit)| *to = *digit);
}
