//! Requests to the kernel's routing and traffic control (`rtnetlink(7)`).

use super::{checked, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes of `struct nlmsghdr`, and of the answer to a request: that, an error number, and the request's
/// own header.
const HEADER_BYTES: usize = 16;
const ANSWER_BYTES: usize = HEADER_BYTES + 4 + HEADER_BYTES;

/// A socket to ask through.
#[derive(Debug)]
pub struct Netlink(OwnedFd);

impl Netlink {
    /// To the network namespace that this thread is in.
    ///
    /// # Errors
    /// Where the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        let (family, protocol) = (libc::AF_NETLINK, libc::NETLINK_ROUTE);
        socket::open(family, libc::SOCK_RAW, protocol).map(Self)
    }

    /// Ask for something of this kind (`RTM_…`) to be made, with further `flags` (`NLM_F_…`).
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn make(&self, kind: u16, flags: i32, body: &Body) -> io::Result<()> {
        let flags = flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let length = u32::try_from(HEADER_BYTES + body.0.len()).map_err(invalid)?;
        let mut message = Vec::with_capacity(HEADER_BYTES + body.0.len());
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(u16::try_from(flags).map_err(invalid)?.to_ne_bytes());
        // Sequence number and sender: one request at a time needs neither.
        message.extend([0; 8]);
        message.extend(&body.0);
        self.send(&message)?;
        match self.answer()? {
            0 => Ok(()),
            negative => Err(io::Error::from_raw_os_error(negative.saturating_neg())),
        }
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: `message` is alive and of the length given; the kernel only reads it.
        let sent = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
            )
        };
        checked(i32::try_from(sent).unwrap_or(-1)).map(|_| ())
    }

    /// Zero, or the negative number of an error. The kernel has acted, and answered, when it has taken
    /// the request, so there is nothing to wait for.
    fn answer(&self) -> io::Result<i32> {
        let mut answer = [0u8; ANSWER_BYTES];
        // SAFETY: the kernel writes at most `answer.len()` bytes to memory that is alive, and drops what
        // more there would be.
        let read = unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                answer.as_mut_ptr().cast(),
                answer.len(),
                0,
            )
        };
        let read = checked(i32::try_from(read).unwrap_or(-1))?;
        let is_whole = usize::try_from(read).is_ok_and(|read| read >= HEADER_BYTES + 4);
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        if i32::from(kind) != libc::NLMSG_ERROR || !is_whole {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let error = [answer[16], answer[17], answer[18], answer[19]];
        Ok(i32::from_ne_bytes(error))
    }
}

/// Body of a request behind its header: a structure, then attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body(Vec<u8>);

impl Body {
    /// Of the words of a structure.
    #[must_use]
    pub fn new(words: &[u32]) -> Self {
        Self(words.iter().flat_map(|word| word.to_ne_bytes()).collect())
    }

    /// Attributes alone, to go into another.
    #[must_use]
    pub const fn nested() -> Self {
        Self(Vec::new())
    }

    /// With an attribute of this kind and value (shorter than 64 kB).
    #[must_use]
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// With an attribute that is a number.
    #[must_use]
    pub fn with_number(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_ne_bytes())
    }

    /// With an attribute of attributes.
    #[must_use]
    pub fn with_nested(self, kind: u16, attributes: &Self) -> Self {
        self.with(kind, &attributes.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested() {
        let inner = Body::nested().with(7, b"abc\0").with(6, b"x");
        let body = Body::new(&[1]).with_nested(2, &inner);
        let mut expected = 1u32.to_ne_bytes().to_vec();
        for (length, kind, rest) in [
            (20u16, 2u16, &b""[..]),
            (8, 7, b"abc\0"),
            (5, 6, b"x\0\0\0"),
        ] {
            expected.extend(length.to_ne_bytes());
            expected.extend(kind.to_ne_bytes());
            expected.extend(rest);
        }
        assert_eq!(body.0, expected);
    }

    #[test]
    fn an_error_of_the_kernel_is_reported() {
        // There is no interface of this number, or else nobody may do it.
        let body = Body::new(&[0, 0x7fff_fff0, 0, 0, 0]).with(1, b"clsact\0");
        let refused = Netlink::new().unwrap().make(libc::RTM_NEWQDISC, 0, &body);
        let code = refused.unwrap_err().raw_os_error();
        assert!(matches!(code, Some(libc::ENODEV | libc::EPERM)), "{code:?}");
    }
}
