//! Exit statuses of homing, and that of shells without a program. `homing run` counts failed tasks as GNU parallel does
//! (1 to 100, 101 for more).

/// The request itself is wrong, for example its options, host names or input files.
pub const USAGE: i32 = 255;
/// A fault of homing itself (`EX_SOFTWARE` of sysexits.h).
pub const FAULT: i32 = 70;
/// No process reads standard output any more (`| head`): a shell's status for SIGPIPE.
pub const UNREAD: i32 = 141;
/// A host, a file system or a program that homing needs failed.
pub const SYSTEM: i32 = 254;
/// A shell did not find the program (POSIX, Shell Command Language, 2.8.2).
pub const NO_PROGRAM: i32 = 127;
