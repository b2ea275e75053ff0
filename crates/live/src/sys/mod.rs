//! Calls of the gateway to Linux: sockets, memory maps, time, scheduling, interfaces. Every call into libc is in this
//! folder, in the two folders of packet I/O, or in that of eBPF; each wraps one concept.

#![allow(unsafe_code)]

pub mod diag;
pub mod epoll;
pub mod heap;
pub mod interface;
pub mod limits;
pub mod map;
pub mod namespace;
pub mod netlink;
pub mod poll;
pub mod scheduling;
pub mod signals;
pub mod socket;
pub mod storage;
pub mod tcp;
pub mod terminal;
pub mod time;

use std::io;

/// The return value of a system call: negative is the error in `errno`.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
