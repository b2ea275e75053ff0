//! Orders that come over a connection, and when it counts as ended.

use super::protocol::{self, Line, Order, SILENCE};
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between looks at the time.
const WATCH: Duration = Duration::from_millis(500);

/// Orders, read by a thread of their own: silence is noticed.
pub(super) struct Orders {
    lines: Receiver<io::Result<Line<Order>>>,
    /// When bytes came last, ms since `start`.
    heard: Arc<AtomicU64>,
    start: Instant,
    patience: Duration,
}

/// Input that notes when bytes come: those of a long message take a while.
struct Heard<R> {
    input: R,
    heard: Arc<AtomicU64>,
    start: Instant,
}

impl<R: Read> Read for Heard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.heard.store(millis(self.start), Ordering::Relaxed);
        Ok(bytes)
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Orders {
    pub(super) fn of(input: impl Read + Send + 'static) -> Self {
        Self::with_patience(input, SILENCE)
    }

    fn with_patience(input: impl Read + Send + 'static, patience: Duration) -> Self {
        let (heard, start) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let mut input = BufReader::new(Heard {
            input,
            heard: Arc::clone(&heard),
            start,
        });
        let (sender, lines) = sync_channel(1);
        thread::spawn(move || {
            loop {
                let line = protocol::read(&mut input);
                if matches!(&line, Ok(Line::Other(text)) if text.is_empty()) {
                    continue;
                }
                let is_last = !matches!(line, Ok(Line::Message(..)));
                if sender.send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Self {
            lines,
            heard,
            start,
            patience,
        }
    }

    /// The next one; the end also after silence.
    pub(super) fn next(&self) -> io::Result<Line<Order>> {
        // An order may have taken long.
        let from = millis(self.start);
        loop {
            match self.lines.recv_timeout(WATCH) {
                Ok(line) => return line,
                Err(RecvTimeoutError::Disconnected) => return Ok(Line::End),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let heard = self.heard.load(Ordering::Relaxed).max(from);
            let silent = millis(self.start).saturating_sub(heard);
            if Duration::from_millis(silent) > self.patience {
                return Ok(Line::End);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Half an order, then the rest in pieces; then nothing, while the connection stays open.
    #[test]
    fn a_long_message_is_waited_for_and_silence_is_the_end() {
        let (input, mut output) = io::pipe().unwrap();
        let pause = Duration::from_millis(400);
        let writer = thread::spawn(move || {
            for piece in ["[{\"order\":", "\"stop_sending\"", "}", ",0]", "\n"] {
                output.write_all(piece.as_bytes()).unwrap();
                thread::sleep(pause);
            }
            output
        });
        let orders = Orders::with_patience(input, 3 * pause);
        let first = orders.next().unwrap();
        assert!(matches!(first, Line::Message(Order::StopSending, _)));
        let mut open = writer.join().unwrap();
        // Signs of life are no orders, and put off the end.
        let writer = thread::spawn(move || {
            for _ in 0..5 {
                protocol::write_sign_of_life(&mut open).unwrap();
                thread::sleep(pause);
            }
            open
        });
        let begin = Instant::now();
        assert!(matches!(orders.next().unwrap(), Line::End));
        assert!(begin.elapsed() > 5 * pause);
        drop(writer.join().unwrap());
    }
}
