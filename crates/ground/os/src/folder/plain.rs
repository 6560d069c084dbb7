//! Opens files in places where other users may have put something else under their names.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file that another user may have put there, for reading. Follows no link and waits for no pipe.
pub fn open_plain(path: &Path) -> io::Result<File> {
    open_plain_as(path, OpenOptions::new().read(true))
}

/// As [`open_plain`], with other options.
pub fn open_plain_as(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let file = options.clone().custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file")),
    }
}
