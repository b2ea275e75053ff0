//! The other end of a [`Sender`](crate::sender::Sender): open ports whose datagrams are never read.
//!
//! Without it, the receiving kernel would answer each datagram with an ICMP "port unreachable", which is
//! load in the opposite direction. Arrivals are counted by a capture, so no process needs to spend time
//! on them: once the small buffer is full, the kernel silently discards the rest.

use slicewise_live::sys::{namespace, socket};
use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// Open UDP ports that discard what they receive, until dropped.
#[derive(Debug)]
pub struct UdpSink(Vec<UdpSocket>);

impl UdpSink {
    /// Open a port for each distinct address, in a network namespace or, without a name, in that of this
    /// process.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or an address is not local or in use; the message says which.
    pub fn bind(namespace: Option<&str>, addresses: &[SocketAddr]) -> io::Result<Self> {
        let addresses: BTreeSet<SocketAddr> = addresses.iter().copied().collect();
        let sockets =
            namespace::open_in(namespace, || addresses.into_iter().map(opened).collect())?;
        Ok(Self(sockets))
    }

    /// The open addresses, with the ports chosen by the system for port 0.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.0.iter().map(UdpSocket::local_addr).collect()
    }
}

fn opened(address: SocketAddr) -> io::Result<UdpSocket> {
    let open = || {
        let socket = UdpSocket::bind(address)?;
        socket::set_receive_buffer(socket.as_fd(), 0)?;
        Ok(socket)
    };
    open().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("UDP port {address}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connected socket reports ICMP errors.
    fn is_answered(to: SocketAddr) -> bool {
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
        probe.connect(to).unwrap();
        (0..1_000).any(|_| probe.send(&[0; 1_000]).is_err())
    }

    #[test]
    fn no_icmp_is_sent_until_the_ports_are_closed() {
        // An address that no other test uses.
        let any = SocketAddr::from(([127, 0, 0, 4], 0));
        let udp_sink = UdpSink::bind(None, &[any, any]).unwrap();
        let open = udp_sink.addresses().unwrap();
        let [port] = open[..] else {
            panic!("{open:?}");
        };
        assert!(!is_answered(port));
        drop(udp_sink);
        assert!(is_answered(port));
    }

    #[test]
    fn reports_an_address_in_use_and_a_missing_namespace() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = UdpSink::bind(None, &[address]).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()), "{error}");
        let error = UdpSink::bind(Some("no-such-namespace"), &[address]).unwrap_err();
        assert!(error.to_string().contains("`no-such-namespace`"), "{error}");
    }
}
