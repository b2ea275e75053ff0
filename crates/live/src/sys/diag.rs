//! TCP connections of a network namespace, and what the kernel knows of each (`sock_diag(7)`, `tcp(7)`: `TCP_INFO`).

use super::{checked, socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// `linux/sock_diag.h`, `linux/inet_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const GROUPS_TCP_DESTROYED: u32 = 1 << 0 | 1 << 2;
/// Bytes of `nlmsghdr`, and of `inet_diag_msg` behind it.
const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 72;
/// States in which a connection has figures: all but listening, waiting to be forgotten, and half open at a server.
const STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// Bytes read at a time: the kernel writes at most 32 KiB.
const READ_BYTES: usize = 1 << 16;
/// Room for reports of connections that end between two readings.
const ENDED_BYTES: i32 = 8 << 20;

/// A connection at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpConnection {
    /// Identity of the connection, different also from a later one of the same addresses and ports.
    pub cookie: u64,
    /// Its own end.
    pub local: SocketAddr,
    /// The other.
    pub remote: SocketAddr,
    /// Its figures.
    pub figures: TcpFigures,
}

/// `TCP_INFO` of a connection, since it was opened. A field that an older kernel does not report is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpFigures {
    /// Smoothed round-trip time, µs (RFC 6298).
    pub rtt_us: u32,
    /// Smallest round-trip time, µs.
    pub min_rtt_us: u32,
    /// Congestion window, segments.
    pub window_segments: u32,
    /// Longest segment that it sends, bytes of payload.
    pub segment_bytes: u32,
    /// Bytes that the other end has acknowledged.
    pub acknowledged_bytes: u64,
    /// Bytes received in order.
    pub received_bytes: u64,
    /// Segments with data that it sent.
    pub data_segments: u32,
    /// Segments that it sent again.
    pub retransmitted_segments: u32,
    /// Retransmission time-outs (Linux 6.7).
    pub timeouts: u16,
}

/// Asks for the connections of one network namespace.
#[derive(Debug)]
pub struct TcpDiagnostics {
    asking: OwnedFd,
    /// Where the kernel reports connections that end.
    ended: OwnedFd,
    buffer: Vec<u8>,
}

impl TcpDiagnostics {
    /// Of the network namespace that this thread is in. Connections that end from now on are kept until
    /// [`ended`](Self::ended) asks for them.
    ///
    /// # Errors
    /// Without the module `tcp_diag`, or without CAP_NET_ADMIN.
    pub fn new() -> io::Result<Self> {
        let open = || socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG);
        let ended = open()?;
        // More than the limit of other users needs the privilege that the testbed has.
        socket::set(
            ended.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            &ENDED_BYTES,
        )?;
        socket::bind(
            ended.as_fd(),
            &NetlinkAddress {
                family: u16::try_from(libc::AF_NETLINK).unwrap_or(0),
                padding: 0,
                port: 0,
                groups: GROUPS_TCP_DESTROYED,
            },
        )?;
        Ok(Self {
            asking: open()?,
            ended,
            buffer: vec![0; READ_BYTES],
        })
    }

    /// All connections that are open.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn open(&mut self) -> io::Result<Vec<TcpConnection>> {
        let mut found = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            send(&self.asking, &request(u8::try_from(family).unwrap_or(0)))?;
            loop {
                let read = receive(&self.asking, &mut self.buffer)?;
                let Some(messages) = self.buffer.get(..read) else {
                    break;
                };
                if parse(messages, &mut found)? {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Connections that have ended since this was asked last, with their final figures. The kernel reports an end
    /// some time after it happened.
    ///
    /// # Errors
    /// Where so many have ended that some are not known (`ENOBUFS`).
    pub fn ended(&mut self) -> io::Result<Vec<TcpConnection>> {
        let mut found = Vec::new();
        loop {
            match receive(&self.ended, &mut self.buffer) {
                Ok(read) => {
                    parse(self.buffer.get(..read).unwrap_or_default(), &mut found)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    }
}

/// `sockaddr_nl`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct NetlinkAddress {
    family: u16,
    padding: u16,
    port: u32,
    groups: u32,
}

// SAFETY: integers without padding.
unsafe impl socket::Plain for NetlinkAddress {}

/// A request for all TCP connections of a family, as `nlmsghdr` and `inet_diag_req_v2`.
fn request(family: u8) -> Vec<u8> {
    const BYTES: u32 = 16 + 56;
    let flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_DUMP).unwrap_or(0);
    let mut message = Vec::new();
    message.extend(BYTES.to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    let protocol = u8::try_from(libc::IPPROTO_TCP).unwrap_or(0);
    message.extend([family, protocol, 1 << (INET_DIAG_INFO - 1), 0]);
    message.extend(STATES.to_ne_bytes());
    message.extend([0; 48]);
    message
}

fn send(to: &OwnedFd, message: &[u8]) -> io::Result<()> {
    // SAFETY: `message` is alive and of the length given; the kernel only reads it.
    let sent = unsafe { libc::send(to.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
    checked(i32::try_from(sent).unwrap_or(-1)).map(|_| ())
}

/// Bytes read. The kernel has answers ready when it has taken a question, so there is nothing to wait for.
fn receive(from: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes to memory that is alive.
    let read = unsafe {
        libc::recv(
            from.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            0,
        )
    };
    let read = checked(i32::try_from(read).unwrap_or(-1))?;
    Ok(usize::try_from(read).unwrap_or(0))
}

/// Adds the connections of netlink messages; true after the last message of an answer.
fn parse(mut messages: &[u8], found: &mut Vec<TcpConnection>) -> io::Result<bool> {
    while let Some(length) = number(messages, 0) {
        let length = usize::try_from(length).unwrap_or(0);
        let (Some(message), Some(kind)) = (messages.get(..length), short(messages, 4)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if length < HEADER_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let negative = number(message, HEADER_BYTES).unwrap_or(0).cast_signed();
                return Err(io::Error::from_raw_os_error(negative.saturating_neg()));
            }
            _ => found.extend(message.get(HEADER_BYTES..).and_then(connection)),
        }
        messages = messages
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Ok(false)
}

/// From `inet_diag_msg` and the attributes behind it; `None` without figures.
fn connection(message: &[u8]) -> Option<TcpConnection> {
    let is_v4 = i32::from(*message.first()?) == libc::AF_INET;
    let address = |at: usize| -> Option<IpAddr> {
        if is_v4 {
            let bytes: [u8; 4] = message.get(at..at + 4)?.try_into().ok()?;
            Some(Ipv4Addr::from(bytes).into())
        } else {
            let bytes: [u8; 16] = message.get(at..at + 16)?.try_into().ok()?;
            // A socket of IPv6 may have a connection of IPv4.
            Some(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical())
        }
    };
    let port = |at: usize| {
        let bytes = message.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_be_bytes(bytes))
    };
    Some(TcpConnection {
        cookie: long(message, 44)?,
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        figures: figures(attribute(message.get(MESSAGE_BYTES..)?, INET_DIAG_INFO)?),
    })
}

/// The value of an attribute of this kind.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(short(attributes, 0)?);
        let kind = short(attributes, 2)?;
        let value = attributes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// From `tcp_info` (`linux/tcp.h`), of which older kernels know the beginning.
fn figures(info: &[u8]) -> TcpFigures {
    let number = |at| number(info, at).unwrap_or(0);
    let long = |at| long(info, at).unwrap_or(0);
    TcpFigures {
        rtt_us: number(68),
        min_rtt_us: number(148),
        window_segments: number(80),
        segment_bytes: number(16),
        acknowledged_bytes: long(120),
        received_bytes: long(128),
        data_segments: number(156),
        retransmitted_segments: number(100),
        timeouts: short(info, 240).unwrap_or(0),
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::{Duration, Instant};

    /// `None` where the kernel has no `tcp_diag`, or this user may not have so long a queue.
    fn diagnostics() -> Option<TcpDiagnostics> {
        let mut diagnostics = TcpDiagnostics::new().ok()?;
        diagnostics.open().is_ok().then_some(diagnostics)
    }

    #[test]
    fn a_connection_is_found_with_what_it_sent_and_again_when_it_has_ended() {
        let Some(mut diagnostics) = diagnostics() else {
            return;
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 1_000]).unwrap();
        let mut received = [0; 1_000];
        receiver.read_exact(&mut received).unwrap();
        // An answer carries the acknowledgement.
        receiver.write_all(&[7]).unwrap();
        sender.read_exact(&mut received[..1]).unwrap();
        let local = sender.local_addr().unwrap();
        let open = diagnostics.open().unwrap();
        let found = open.iter().find(|one| one.local == local).unwrap();
        assert_eq!(found.remote, listener.local_addr().unwrap());
        assert_eq!(found.figures.acknowledged_bytes, 1_001, "and the SYN");
        assert_eq!(found.figures.received_bytes, 1);
        assert!(found.figures.rtt_us > 0 && found.figures.window_segments > 1);
        drop(receiver);
        assert_eq!(sender.read(&mut received).unwrap(), 0);
        drop(sender);
        // The kernel reports it from a work queue.
        let patience = Instant::now() + Duration::from_secs(60);
        let last = loop {
            let ended = diagnostics.ended().unwrap();
            let last = ended.into_iter().find(|one| one.cookie == found.cookie);
            if last.is_some() || Instant::now() > patience {
                break last;
            }
            thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(
            last.map(|one| one.figures.data_segments),
            Some(found.figures.data_segments)
        );
    }

    #[test]
    fn truncated_messages_are_rejected_and_not_read_beyond_their_end() {
        let whole = request(2);
        assert!(parse(&whole[..40], &mut Vec::new()).is_err());
        let mut found = Vec::new();
        assert!(!parse(&whole, &mut found).unwrap());
        assert_eq!(found, []);
        assert_eq!(figures(&[0; 90]), TcpFigures::default());
        assert_eq!(attribute(&[3, 0, 2, 0], 2), None);
    }
}
