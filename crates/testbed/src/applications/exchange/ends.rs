//! The two ends of a connection: what each still has to send, and what it reads.

use super::http::{self, Wrong};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Bytes written or read at a time.
const PIECE: usize = 1 << 16;
static NOTHING: [u8; PIECE] = [0; PIECE];

/// Data still to be sent: a head, then bytes without meaning, then perhaps the end.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    head: Vec<u8>,
    written: usize,
    body: u64,
    ends: bool,
}

impl Outgoing {
    /// Send this behind what is still to be sent.
    pub(super) fn push(&mut self, head: Vec<u8>, body: u64) {
        if self.is_empty() {
            self.head = head;
            self.written = 0;
        } else {
            self.head.extend(head);
        }
        self.body = self.body.saturating_add(body);
    }

    /// Send no more than that, and then the end; what has no end, ends now.
    pub(super) fn end(&mut self) {
        if self.body > u64::MAX / 2 {
            self.body = 0;
        }
        self.ends = true;
    }

    /// Returns true if there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.written == self.head.len() && self.body == 0
    }

    /// Write until everything is sent, or the stream takes no more.
    pub(super) fn write_to(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while !self.is_empty() {
            let head = self.head.get(self.written..).unwrap_or_default();
            let most = usize::try_from(self.body).unwrap_or(PIECE).min(PIECE);
            let is_head = !head.is_empty();
            let piece = if is_head { head } else { &NOTHING[..most] };
            match stream.write(piece) {
                Ok(sent) if is_head => self.written += sent,
                Ok(sent) => self.body -= u64::try_from(sent).unwrap_or(0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if std::mem::take(&mut self.ends) {
            stream.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }
}

/// The response to a request, as it comes in.
#[derive(Debug)]
pub(super) struct Awaited {
    /// Bytes that the application expects, and those that were reported to it.
    expected: u64,
    reported: u64,
    head: Vec<u8>,
    /// Bytes of the body that are still to come; `None` while the head is read.
    left: Option<u64>,
    /// Length of the head.
    pub(super) head_bytes: u64,
}

impl Awaited {
    pub(super) const fn new(expected: u64) -> Self {
        Self {
            expected,
            reported: 0,
            head: Vec::new(),
            left: None,
            head_bytes: 0,
        }
    }

    /// More of it; returns how many bytes to report to the application, and whether it is complete.
    ///
    /// Once it is complete, as many as the application expects have been reported, whatever the length of the head.
    pub(super) fn on_bytes(&mut self, mut bytes: &[u8]) -> Result<(u64, bool), Wrong> {
        let came = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.left.is_none() {
            let before = self.head.len();
            self.head.extend(bytes);
            if let Some(head) = http::read_response(&self.head)? {
                self.left = Some(head.body);
                self.head_bytes = u64::try_from(head.bytes).unwrap_or(0);
                bytes = bytes
                    .get(head.bytes.saturating_sub(before)..)
                    .unwrap_or_default();
                self.head = Vec::new();
            }
        }
        if let Some(left) = &mut self.left {
            let body = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            *left = left.checked_sub(body).ok_or("more than was asked for")?;
        }
        let is_complete = self.left == Some(0);
        let tell = if is_complete {
            self.expected - self.reported
        } else {
            // One is kept back for the end.
            came.min((self.expected - self.reported).saturating_sub(1))
        };
        self.reported += tell;
        Ok((tell, is_complete))
    }
}

/// Result of a read.
pub(super) enum Came {
    /// So many bytes, at the beginning of the buffer.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The other end sends no more.
    End,
}

/// Read once.
pub(super) fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<Came> {
    match stream.read(buffer) {
        Ok(0) => Ok(Came::End),
        Ok(count) => Ok(Came::Bytes(count)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(Came::Nothing)
        }
        Err(error) => Err(error),
    }
}

/// A buffer to read into.
pub(super) fn buffer() -> Vec<u8> {
    vec![0; PIECE]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_application_is_told_of_what_it_expects_however_it_arrives(
            expected in 1u64..3_000, body in 1u64..3_000, piece in 1usize..500,
        ) {
            let mut text = http::response_head(body);
            text.resize(text.len() + usize::try_from(body).unwrap(), 0);
            let mut awaited = Awaited::new(expected);
            let mut told = 0;
            for (at, bytes) in text.chunks(piece).enumerate() {
                let (more, is_complete) = awaited.on_bytes(bytes).unwrap();
                told += more;
                prop_assert_eq!(is_complete, (at + 1) * piece >= text.len());
                prop_assert!(is_complete || told < expected);
            }
            prop_assert_eq!(told, expected);
            prop_assert!(awaited.on_bytes(&[0]).is_err());
        }
    }
}
