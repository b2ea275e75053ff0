//! TCP sockets with an own port, that never block.

use super::{checked, socket};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Options of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// Name of the congestion control, as in `tcp_available_congestion_control`.
    pub congestion: &'static str,
    /// Differentiated-services code point, 0 to 63.
    pub dscp: u8,
    /// Data leaves at the rate of window and round-trip time, not as acknowledgements arrive.
    pub is_paced: bool,
}

/// A limit that no connection reaches, bytes/s: the kernel paces a connection that has any.
const UNREACHED: i32 = i32::MAX;

/// Begin to connect from one address and port to another. The stream is writable once it is connected, or has failed.
///
/// # Errors
/// As `bind(2)` and `connect(2)`; that connecting takes time is none.
pub fn connect(
    local: SocketAddr,
    remote: SocketAddr,
    options: TcpOptions,
) -> io::Result<TcpStream> {
    let opened = open(local, options)?;
    let result = match Address::of(remote) {
        Address::V4(bytes) => connect_to(&opened, &bytes),
        Address::V6(bytes) => connect_to(&opened, &bytes),
    };
    match result {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from(opened)),
    }
}

/// Listen at an address and port. Connections that are accepted have the options, too, and block until told otherwise.
///
/// # Errors
/// As `bind(2)` and `listen(2)`.
pub fn listen(local: SocketAddr, options: TcpOptions) -> io::Result<TcpListener> {
    let opened = open(local, options)?;
    // SAFETY: takes no pointers. The system lowers what is too many.
    checked(unsafe { libc::listen(opened.as_raw_fd(), i32::from(u16::MAX)) })?;
    Ok(TcpListener::from(opened))
}

fn open(local: SocketAddr, options: TcpOptions) -> io::Result<OwnedFd> {
    let family = match local {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let opened = socket::open(family, libc::SOCK_STREAM, libc::IPPROTO_TCP)?;
    let descriptor = opened.as_fd();
    // A port is used again while the connection before is remembered.
    socket::set(descriptor, libc::SOL_SOCKET, libc::SO_REUSEADDR, &1)?;
    socket::set(descriptor, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1)?;
    socket::set_congestion(descriptor, options.congestion)?;
    socket::set_dscp(descriptor, local.is_ipv6(), options.dscp)?;
    if options.is_paced {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        socket::set(descriptor, level, name, &UNREACHED)?;
    }
    match Address::of(local) {
        Address::V4(bytes) => socket::bind(descriptor, &bytes)?,
        Address::V6(bytes) => socket::bind(descriptor, &bytes)?,
    }
    Ok(opened)
}

fn connect_to<const N: usize>(opened: &OwnedFd, address: &[u8; N]) -> io::Result<()> {
    // SAFETY: the address is alive and of the length given; the kernel only reads it.
    let result = unsafe {
        libc::connect(
            opened.as_raw_fd(),
            address.as_ptr().cast(),
            libc::socklen_t::try_from(N).unwrap_or(0),
        )
    };
    checked(result).map(|_| ())
}

/// `sockaddr_in` or `sockaddr_in6`.
enum Address {
    V4([u8; 16]),
    V6([u8; 28]),
}

impl Address {
    fn of(address: SocketAddr) -> Self {
        let port = address.port().to_be_bytes();
        let family = |family: i32| u16::try_from(family).unwrap_or(0).to_ne_bytes();
        match address {
            SocketAddr::V4(v4) => {
                let mut bytes = [0; 16];
                bytes[..2].copy_from_slice(&family(libc::AF_INET));
                bytes[2..4].copy_from_slice(&port);
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                Self::V4(bytes)
            }
            SocketAddr::V6(v6) => {
                let mut bytes = [0; 28];
                bytes[..2].copy_from_slice(&family(libc::AF_INET6));
                bytes[2..4].copy_from_slice(&port);
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..].copy_from_slice(&v6.scope_id().to_ne_bytes());
                Self::V6(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    const OPTIONS: TcpOptions = TcpOptions {
        congestion: "reno",
        dscp: 10,
        is_paced: true,
    };

    #[test]
    fn connections_come_from_the_port_asked_for() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let any: SocketAddr = host.parse().unwrap();
            let listener = match listen(any, OPTIONS) {
                Ok(listener) => listener,
                Err(_) if any.is_ipv6() => continue,
                Err(error) => panic!("{error}"),
            };
            let remote = listener.local_addr().unwrap();
            let local = TcpListener::bind(any).unwrap().local_addr().unwrap();
            let mut stream = connect(local, remote, OPTIONS).unwrap();
            listener.set_nonblocking(false).unwrap();
            let (mut accepted, from) = listener.accept().unwrap();
            assert_eq!(from, local);
            accepted.write_all(b"x").unwrap();
            stream.set_nonblocking(false).unwrap();
            stream.read_exact(&mut [0]).unwrap();
        }
    }

    #[test]
    fn a_congestion_control_that_does_not_exist_is_an_error() {
        let options = TcpOptions {
            congestion: "none of these",
            dscp: 0,
            is_paced: false,
        };
        let error = listen(SocketAddr::from(([127, 0, 0, 1], 0)), options).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }
}
