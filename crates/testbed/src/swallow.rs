//! The other end of a [`Sender`](crate::sender::Sender): takes datagrams, and nobody reads them.
//!
//! Without it, the kernel of the receiving host would answer each with "port unreachable" (ICMP), which is
//! load in the opposite direction. What arrives is counted by a capture, so no process needs to spend time
//! on it: once the small buffer is full, the kernel throws away the rest in silence.

use slicewise_live::sys::{namespace, socket};
use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// UDP ports that are open and swallow what comes, until this is dropped.
#[derive(Debug)]
pub struct Swallow(Vec<UdpSocket>);

impl Swallow {
    /// Open a port for each address, in a network namespace or, without a name, in this process's own.
    /// An address given twice is one.
    ///
    /// # Errors
    /// Where the namespace cannot be entered, or an address is not of it or is taken; the message says which.
    pub fn bind(namespace: Option<&str>, addresses: &[SocketAddr]) -> io::Result<Self> {
        let addresses: BTreeSet<SocketAddr> = addresses.iter().copied().collect();
        let sockets =
            namespace::open_in(namespace, || addresses.into_iter().map(opened).collect())?;
        Ok(Self(sockets))
    }

    /// The addresses that are open, with the ports that the system chose for those of port 0.
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

    /// A connected socket is told when nobody listens.
    fn is_answered(to: SocketAddr) -> bool {
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
        probe.connect(to).unwrap();
        (0..1_000).any(|_| probe.send(&[0; 1_000]).is_err())
    }

    #[test]
    fn nobody_is_told_that_nobody_reads_until_the_ports_are_closed() {
        // An address that no other test uses, so that nobody else opens the port.
        let any = SocketAddr::from(([127, 0, 0, 4], 0));
        let swallow = Swallow::bind(None, &[any, any]).unwrap();
        let open = swallow.addresses().unwrap();
        let [port] = open[..] else {
            panic!("{open:?}");
        };
        assert!(!is_answered(port));
        drop(swallow);
        assert!(is_answered(port));
    }

    #[test]
    fn says_which_address_is_taken_and_which_namespace_is_missing() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = Swallow::bind(None, &[address]).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()), "{error}");
        let error = Swallow::bind(Some("no-such-namespace"), &[address]).unwrap_err();
        assert!(error.to_string().contains("`no-such-namespace`"), "{error}");
    }
}
