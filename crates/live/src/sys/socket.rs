//! Sockets and their options.

use super::checked;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A structure of the kernel's interface: plain integers, any bits are a value.
///
/// # Safety
/// Implemented only for `repr(C)` types for which every bit pattern is valid.
pub unsafe trait Plain: Copy {}

// SAFETY: integers.
unsafe impl Plain for i32 {}
// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl<const N: usize> Plain for [u8; N] {}

/// Bytes of the name of a congestion control (`TCP_CA_NAME_MAX`).
const CONGESTION_BYTES: usize = 16;

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

/// Read an option. Fields that an older kernel does not report stay zero.
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

/// Mark what is sent with a differentiated-services code point, 0 to 63 (RFC 2474), and as not capable
/// of congestion notification.
///
/// # Errors
/// As `setsockopt(2)`: if `is_v6` does not match the socket.
pub fn set_dscp(socket: BorrowedFd<'_>, is_v6: bool, dscp: u8) -> io::Result<()> {
    let field = i32::from(dscp) << 2;
    if is_v6 {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &field)
    } else {
        set(socket, libc::IPPROTO_IP, libc::IP_TOS, &field)
    }
}

/// Hold at most so many bytes that nobody has read, or the least that the kernel allows (about 2 kB);
/// its own records of them count.
///
/// # Errors
/// As `setsockopt(2)`.
pub fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: u16) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &i32::from(bytes))
}

/// Have a TCP socket use the congestion control of this name; root may ask for every one that the kernel has.
///
/// # Errors
/// As `setsockopt(2)`: `ENOENT` where the kernel has none of this name.
pub fn set_congestion(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut padded = [0u8; CONGESTION_BYTES];
    // The kernel knows no name that is longer.
    let fits = padded.iter_mut().zip(name.bytes());
    fits.for_each(|(to, from)| *to = from);
    set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &padded)
}

/// Returns true if an error of sending means that the system could not take this datagram, and may well take the next:
/// buffers full, or nobody listened at the other end.
#[must_use]
pub fn was_refused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ECONNREFUSED)
    )
}

/// Have the kernel send what a transmit ring holds; false where it could not take everything at once.
///
/// # Errors
/// As `sendto(2)`.
pub fn kick(socket: BorrowedFd<'_>) -> io::Result<bool> {
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
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(false),
        _ => Err(error),
    }
}

/// Have the kernel go on receiving into a ring that was empty. What fails is reported when frames are next
/// waited for.
pub fn wake_receiver(socket: BorrowedFd<'_>) {
    // SAFETY: no buffer and no address are passed.
    unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn a_code_point_is_the_upper_six_bits_of_the_field() {
        let v4 = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_dscp(v4.as_fd(), false, 46).unwrap();
        let tos = get::<i32>(v4.as_fd(), libc::IPPROTO_IP, libc::IP_TOS);
        assert_eq!(tos.unwrap(), 0xb8);
        let Ok(v6) = UdpSocket::bind("[::1]:0") else {
            return;
        };
        set_dscp(v6.as_fd(), true, 10).unwrap();
        let class = get::<i32>(v6.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_TCLASS);
        assert_eq!(class.unwrap(), 0x28);
    }

    #[test]
    fn full_buffers_and_absent_listeners_are_refusals_and_a_missing_route_is_none() {
        for code in [libc::EWOULDBLOCK, libc::ENOBUFS, libc::ECONNREFUSED] {
            assert!(was_refused(&io::Error::from_raw_os_error(code)));
        }
        for code in [libc::ENETUNREACH, libc::EMSGSIZE, libc::EPERM] {
            assert!(!was_refused(&io::Error::from_raw_os_error(code)));
        }
    }
}
