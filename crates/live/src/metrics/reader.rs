//! Reads the metrics of a gateway, for `slicewise top`.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// More than a gateway ever answers.
const MOST_BYTES: usize = 4 << 20;
/// How long all of an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Characters of a text from elsewhere that are shown.
const MOST_SHOWN: usize = 64;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Name of the metric, with its suffix.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Value.
    pub value: f64,
}

/// All values at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples(pub Vec<Sample>);

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing listens on the port, or the connection was lost.
    #[error("no gateway answers on 127.0.0.1:{port}: {error}")]
    NoGateway {
        /// The port that was asked.
        port: u16,
        /// Error of the operating system.
        error: io::Error,
    },
    /// Not a gateway, or one that does not answer.
    #[error(
        "no running gateway answers on 127.0.0.1:{port}, but something that says: {}",
        printable(.answer)
    )]
    Refused {
        /// The port that was asked.
        port: u16,
        /// The first line of the answer.
        answer: String,
    },
}

/// A text that anybody may have written, as it can be shown on a terminal: at most 64 characters, with
/// control characters and those that change the direction of writing as escapes.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == MOST_SHOWN {
            shown.push('…');
            break;
        }
        if slicewise_units::is_hidden(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

impl Samples {
    /// The value of `name` with all of `labels`; others do not matter.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.of(name).find(|s| s.has(labels)).map(|s| s.value)
    }

    /// The sum of all values of `name` with all of `labels`.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.of(name)
            .filter(|s| s.has(labels))
            .map(|s| s.value)
            .fold(0.0, |sum, value| sum + value)
    }

    /// All of one name, in order.
    pub fn of(&self, name: &str) -> impl Iterator<Item = &Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// From OpenMetrics text; invalid lines are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(sample).collect())
    }
}

impl Sample {
    /// A label's value; nothing where it has none.
    #[must_use]
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels
            .iter()
            .all(|(name, value)| self.label(name) == *value)
    }
}

fn sample(line: &str) -> Option<Sample> {
    let name_end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (key, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.insert(key.to_owned(), value);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = rest.strip_prefix('}')?;
    }
    Some(Sample {
        name: name.to_owned(),
        labels,
        value: rest.trim().parse().ok()?,
    })
}

/// The text up to the closing quotation mark, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

/// Ask the gateway that listens on this port of the loopback interface.
///
/// # Errors
/// Where none does.
pub fn read(port: u16) -> Result<Samples, ReadError> {
    let text = fetch(port).map_err(|error| ReadError::NoGateway { port, error })?;
    let is_good = text.starts_with("HTTP/1.1 200 ");
    match text.split_once("\r\n\r\n") {
        Some((_, body)) if is_good => Ok(Samples::parse(body)),
        _ => Err(ReadError::Refused {
            port,
            answer: text.lines().next().unwrap_or_default().to_owned(),
        }),
    }
}

fn fetch(port: u16) -> io::Result<String> {
    let end = Instant::now() + PATIENCE;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut piece)?;
        if read == 0 && answer.is_empty() {
            return Err(io::Error::other("it hung up without an answer"));
        }
        if read == 0 {
            return String::from_utf8(answer)
                .map_err(|_| io::Error::other("the answer is not UTF-8 text"));
        }
        if answer.len() + read > MOST_BYTES {
            let problem = format!("the answer is longer than {} MiB", MOST_BYTES >> 20);
            return Err(io::Error::other(problem));
        }
        answer.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn an_answer_without_end_is_refused() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let endless = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut written = 0;
            while stream.write_all(&[b'x'; 65_536]).is_ok() {
                written += 65_536;
            }
            written
        });
        let refused = read(port).unwrap_err().to_string();
        let refused = refused.replace(&port.to_string(), "PORT");
        insta::assert_snapshot!(refused, @"no gateway answers on 127.0.0.1:PORT: the answer is longer than 4 MiB");
        // What was read, and what the system held of it.
        assert!(endless.join().unwrap() < 32 << 20);
    }

    #[test]
    fn who_hangs_up_without_an_answer_is_no_gateway() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let gone = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // What was asked is read: the system would reset the connection otherwise.
            stream.read(&mut [0; 1_024]).unwrap()
        });
        let refused = read(port).unwrap_err().to_string();
        let refused = refused.replace(&port.to_string(), "PORT");
        insta::assert_snapshot!(refused, @"no gateway answers on 127.0.0.1:PORT: it hung up without an answer");
        assert!(gone.join().unwrap() > 0);
    }

    #[test]
    fn what_would_control_a_terminal_is_shown_as_an_escape() {
        let hostile = "voice\x1b]0;title\x07\n\u{9b}2J\u{202e}\u{e9}";
        insta::assert_snapshot!(printable(hostile), @r"voice\u{1b}]0;title\u{7}\n\u{9b}2J\u{202e}é");
        assert_eq!(printable(&"x".repeat(1_000)).chars().count(), 65);
    }

    #[test]
    fn labels_with_any_character_are_read_back() {
        let samples =
            Samples::parse("# TYPE a counter\na_total{x=\"1\\\"},\\\\\",y=\"b\"} 2.5\nb 7\nno");
        assert_eq!(samples.value("a_total", &[("x", "1\"},\\")]), Some(2.5));
        assert_eq!(samples.value("b", &[]), Some(7.0));
        assert_eq!(samples.0.len(), 2);
    }
}
