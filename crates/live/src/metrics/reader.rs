//! Reads what a gateway tells, for `slicewise top`.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// More than a gateway ever tells.
const MOST_BYTES: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(3);

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
    /// Nobody listens, or it went away.
    #[error("no gateway answers on 127.0.0.1:{port}: {error}")]
    NoGateway {
        /// The port that was asked.
        port: u16,
        /// What the system answered.
        error: io::Error,
    },
    /// Something else than a gateway, or one that does not answer.
    #[error("what answers on 127.0.0.1:{port} is no gateway that is at work: {answer}")]
    Refused {
        /// The port that was asked.
        port: u16,
        /// The first line of the answer.
        answer: String,
    },
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

    /// From OpenMetrics text; lines that are none are left out.
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

/// Up to the closing quotation mark, and what is behind it.
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
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_any_character_are_read_back() {
        let samples =
            Samples::parse("# TYPE a counter\na_total{x=\"1\\\"},\\\\\",y=\"b\"} 2.5\nb 7\nno");
        assert_eq!(samples.value("a_total", &[("x", "1\"},\\")]), Some(2.5));
        assert_eq!(samples.value("b", &[]), Some(7.0));
        assert_eq!(samples.0.len(), 2);
    }
}
