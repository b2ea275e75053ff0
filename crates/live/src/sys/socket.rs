//! Sockets and their options.

use super::checked;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A structure of the kernel's interface: plain integers, any bits are a value.
///
/// # Safety
/// Implemented only for `repr(C)` types of which every bit pattern is valid.
pub unsafe trait Plain: Copy {}

// SAFETY: integers.
unsafe impl Plain for i32 {}
// SAFETY: integers.
unsafe impl Plain for u32 {}

/// A socket that does not outlive an `exec` and never blocks.
///
/// # Errors
/// As `socket(2)`.
pub fn open(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no pointers.
    let descriptor = checked(unsafe { libc::socket(family, kind, protocol) })?;
    // SAFETY: just opened, and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Set an option.
///
/// # Errors
/// As `setsockopt(2)`.
pub fn set<T: Plain>(socket: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>();
    // SAFETY: `value` is alive and of the length given; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            libc::socklen_t::try_from(length).unwrap_or(0),
        )
    };
    checked(result).map(|_| ())
}

/// Read an option. What an older kernel does not tell stays zero.
///
/// # Errors
/// As `getsockopt(2)`.
pub fn get<T: Plain>(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes, which `value` has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    checked(result)?;
    // SAFETY: zeroed above; `Plain` allows any bits.
    Ok(unsafe { value.assume_init() })
}

/// Bind to an address of the family's own type.
///
/// # Errors
/// As `bind(2)`.
pub fn bind<T: Plain>(socket: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    // SAFETY: `address` is alive and of the length given; the kernel only reads it.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(address).cast(),
            libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0),
        )
    };
    checked(result).map(|_| ())
}

/// Have the kernel send what a transmit ring holds.
///
/// # Errors
/// As `sendto(2)`; that it could not take everything at once is none.
pub fn kick(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no buffer and no address are passed.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            std::ptr::null(),
            0,
        )
    };
    if sent >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}

/// The error that happened to a socket since it was last asked.
///
/// # Errors
/// That error.
pub fn take_error(socket: BorrowedFd<'_>) -> io::Result<()> {
    match get::<i32>(socket, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}
