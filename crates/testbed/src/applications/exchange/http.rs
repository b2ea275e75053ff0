//! As much HTTP/1.1 (RFC 9112) as an application needs: GET with a range, and the answer to it.
//!
//! A range says how many bytes are wanted, so a server needs one file that is long enough.

use std::fmt::Write;

/// Longest head that is read of a request or a response, bytes.
const LONGEST_HEAD: usize = 1 << 16;
/// Bytes of the head of [`response_head`].
pub(super) const HEAD_BYTES: u64 = 128;
/// Name of the file that is asked for.
pub(crate) const FILE: &str = "data";

/// Why a message is not understood, in words.
pub(super) type Wrong = &'static str;

/// A request for so many bytes of a body, of a length of `bytes` if it can be so short.
pub(super) fn request(bytes: u64, body: u64) -> Vec<u8> {
    let last = body.saturating_sub(1);
    let mut text = format!("GET /{FILE} HTTP/1.1\r\nHost: s\r\nRange: bytes=0-{last}\r\n");
    let room = usize::try_from(bytes).unwrap_or(0).min(LONGEST_HEAD);
    pad(&mut text, room);
    text.into_bytes()
}

/// The head of an answer with a body of so many bytes: always [`HEAD_BYTES`] long.
pub(super) fn response_head(body: u64) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 206 Partial Content\r\nContent-Length: {body}\r\n");
    pad(&mut text, usize::try_from(HEAD_BYTES).unwrap_or(0));
    text.into_bytes()
}

/// End a head, at this length if a field fits in.
fn pad(text: &mut String, bytes: usize) {
    const FIELD: &str = "X: ";
    const ENDS: usize = 4;
    if let Some(room) = bytes.checked_sub(text.len() + FIELD.len() + ENDS) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{FIELD}{:.<room$}\r\n", "");
    }
    text.push_str("\r\n");
}

/// A head that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Its length, bytes.
    pub(super) bytes: usize,
    /// Bytes of the body: that follows a response, or that a request asks for.
    pub(super) body: u64,
}

/// Read the head of a request; `None` until it is whole.
pub(super) fn read_request(text: &[u8]) -> Result<Option<Head>, Wrong> {
    let Some((bytes, head)) = whole(text)? else {
        return Ok(None);
    };
    if !head.starts_with("GET ") {
        return Err("a request that is no GET");
    }
    let range = field(head, "range").and_then(|range| range.strip_prefix("bytes=0-"));
    let last: Option<u64> = range.and_then(|last| last.parse().ok());
    let body = last.and_then(|last| last.checked_add(1));
    body.map(|body| Some(Head { bytes, body }))
        .ok_or("a request without a range from the beginning")
}

/// Read the head of a response; `None` until it is whole.
pub(super) fn read_response(text: &[u8]) -> Result<Option<Head>, Wrong> {
    let Some((bytes, head)) = whole(text)? else {
        return Ok(None);
    };
    if !head.starts_with("HTTP/1.1 206 ") {
        return Err("the server answered with an error");
    }
    let length = field(head, "content-length").and_then(|length| length.parse().ok());
    length
        .map(|body| Some(Head { bytes, body }))
        .ok_or("a response without a length")
}

/// A head and its length with the empty line behind it.
fn whole(text: &[u8]) -> Result<Option<(usize, &str)>, Wrong> {
    let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if text.len() > LONGEST_HEAD {
            Err("a head of HTTP that is too long")
        } else {
            Ok(None)
        };
    };
    let head = text.get(..end).unwrap_or_default();
    let head = std::str::from_utf8(head).map_err(|_| "a head of HTTP that is no text")?;
    Ok(Some((end + 4, head)))
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_asked_for_is_read_again(bytes in 0u64..2_000, body in 1u64..1 << 50) {
            let text = request(bytes, body);
            let head = read_request(&text).unwrap().unwrap();
            prop_assert_eq!((head.bytes, head.body), (text.len(), body));
            if bytes > 120 {
                prop_assert_eq!(text.len() as u64, bytes);
            }
            let text = response_head(body);
            let head = read_response(&text).unwrap().unwrap();
            prop_assert_eq!((head.bytes as u64, head.body), (HEAD_BYTES, body));
        }

        #[test]
        fn no_input_is_read_beyond_its_end(text in prop::collection::vec(any::<u8>(), 0..300)) {
            for head in [read_request(&text), read_response(&text)].into_iter().flatten().flatten() {
                prop_assert!(head.bytes <= text.len());
            }
        }
    }

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 206 Partial Content\r\nServer: nginx\r\nContent-Length: 7\r\n\r\nabc";
        assert_eq!(read_response(&text[..40]), Ok(None));
        let head = Head { bytes: 66, body: 7 };
        assert_eq!(read_response(text), Ok(Some(head)));
        assert!(read_response(b"HTTP/1.1 404 Not Found\r\n\r\n").is_err());
        assert!(read_request(b"GET / HTTP/1.1\r\nRange: bytes=5-9\r\n\r\n").is_err());
        assert!(read_request(&vec![b'x'; LONGEST_HEAD + 1]).is_err());
    }
}
