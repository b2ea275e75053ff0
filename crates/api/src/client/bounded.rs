//! An answer as it is read: bounded by the memory that it can take, whoever sends it.

use std::io::{self, Read};

/// Cost of an object beside its text: about the memory of the largest that occurs in arrays.
const OBJECT_COST: u64 = 128;
/// Cost of a text beside its characters.
const TEXT_COST: u64 = 16;

/// JSON from `inner` until it costs more than `left`: bytes, and what objects and texts take beside theirs once they are read.
#[derive(Debug)]
pub(super) struct Bounded<R> {
    inner: R,
    left: u64,
    is_text: bool,
    is_escaped: bool,
}

impl<R> Bounded<R> {
    pub(super) const fn new(inner: R, limit: u64) -> Self {
        Self {
            inner,
            left: limit,
            is_text: false,
            is_escaped: false,
        }
    }

    fn cost(&mut self, bytes: &[u8]) -> u64 {
        let mut cost = 0u64;
        for &byte in bytes {
            cost += 1;
            if std::mem::take(&mut self.is_escaped) {
                continue;
            }
            match byte {
                b'"' => {
                    self.is_text = !self.is_text;
                    cost += if self.is_text { TEXT_COST } else { 0 };
                }
                b'\\' => self.is_escaped = self.is_text,
                b'{' if !self.is_text => cost += OBJECT_COST,
                _ => {}
            }
        }
        cost
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let cost = self.cost(buffer.get(..count).unwrap_or_default());
        match self.left.checked_sub(cost) {
            Some(left) => self.left = left,
            None => return Err(io::ErrorKind::FileTooLarge.into()),
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, limit: u64, chunk: usize) -> io::Result<usize> {
        let mut bounded = Bounded::new(text.as_bytes(), limit);
        let (mut buffer, mut sum) = (vec![0; chunk], 0);
        loop {
            match bounded.read(&mut buffer)? {
                0 => return Ok(sum),
                count => sum += count,
            }
        }
    }

    #[test]
    fn objects_and_texts_cost_more_than_their_bytes_wherever_the_reader_stops() {
        let text = r#"{"a{\"{": [{}, {}, "\\"], "b": 1}"#;
        let cost = text.len() as u64 + 3 * OBJECT_COST + 3 * TEXT_COST;
        for chunk in 1..text.len() {
            assert_eq!(read(text, cost, chunk).unwrap(), text.len());
            let error = read(text, cost - 1, chunk).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        }
    }
}
