//! Samples of every TCP connection from the kernel of the sending host, bin by bin.
//!
//! One thread in its namespace asks for all connections at the end of each bin of the study, and hears of those that
//! have ended meanwhile. So the figures of a connection do not depend on the program that opened it.

use crate::error::AttemptError;
use crate::sender::TimeZero;
use slicewise_live::sys::diag::{TcpConnection, TcpDiagnostics, TcpFigures};
use slicewise_live::sys::{namespace, time};
use slicewise_units::Duration as Span;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest time until an order to stop is heard.
const NAP: Duration = Duration::from_millis(20);
/// Longest wait for the kernel to tell of connections that are open no longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection as it was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct History {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// Its figures at the ends of bins, in order, each with the number of its bin; once it has ended, those it ended
    /// with, for the bin in which that was noticed.
    pub(crate) samples: Vec<(usize, TcpFigures)>,
    pub(crate) has_ended: bool,
}

/// A running thread. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Sampling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Vec<History>>>>,
}

impl Sampling {
    /// Start at time zero, in a network namespace: a run of this duration, in such bins.
    pub(crate) fn start(
        namespace: &str,
        zero: TimeZero,
        (bin, duration): (Span, Span),
    ) -> Result<Self, AttemptError> {
        let failed =
            AttemptError::failed("figures of TCP connections (the kernel's module tcp_diag)");
        let diagnostics =
            namespace::open_in(Some(namespace), TcpDiagnostics::new).map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let ordered = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("tcp figures".to_owned())
            .spawn(move || sample(diagnostics, zero, (bin, duration), &ordered))
            .map_err(AttemptError::failed("figures of TCP connections"))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Hear of what has ended, and stop.
    pub(crate) fn finish(mut self) -> Result<Vec<History>, AttemptError> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else {
            return Ok(Vec::new());
        };
        let sampled = thread.join();
        let sampled = sampled.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sampled.map_err(|error| {
            AttemptError::Retryable(format!("figures of TCP connections: {error}"))
        })
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn sample(
    mut diagnostics: TcpDiagnostics,
    zero: TimeZero,
    (bin, duration): (Span, Span),
    stop: &AtomicBool,
) -> io::Result<Vec<History>> {
    let mut seen = Seen::default();
    // The last bin of the run.
    let last = (duration.nanos() / bin.nanos().max(1)).saturating_sub(1);
    let mut next = 0;
    loop {
        let ends = bin.nanos().saturating_mul(next + 1);
        let due = zero.monotonic.saturating_add(Span::from_nanos(ends));
        let is_last = wait_until(due, stop);
        if is_last {
            // What has ended since, belongs to the last bin.
            let index = usize::try_from(last).unwrap_or(usize::MAX);
            hear_of_the_rest(&mut diagnostics, index, &mut seen)?;
            return Ok(seen.histories);
        }
        let index = usize::try_from(next).unwrap_or(usize::MAX);
        seen.note(index, diagnostics.ended()?, true);
        seen.note(index, diagnostics.open()?, false);
        // Bins that passed while the machine was busy are left out.
        let passed = time::now().saturating_since(zero.monotonic).nanos();
        next = (next + 1).max(passed / bin.nanos().max(1));
    }
}

/// The kernel tells of ends from a work queue, some time after they happened: what is open no longer is still to be
/// heard of.
fn hear_of_the_rest(
    diagnostics: &mut TcpDiagnostics,
    bin: usize,
    seen: &mut Seen,
) -> io::Result<()> {
    let patience = Instant::now() + PATIENCE;
    loop {
        thread::sleep(NAP);
        // Asked first, so that what ends between the two is in one of them.
        let open = diagnostics.open()?;
        seen.note(bin, diagnostics.ended()?, true);
        let is_open = |cookie: &u64| open.iter().any(|one| one.cookie == *cookie);
        if seen.not_ended().all(|cookie| is_open(&cookie)) || Instant::now() >= patience {
            return Ok(());
        }
    }
}

/// True where the order to stop came first.
fn wait_until(due: slicewise_units::Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        let left = due.saturating_since(time::now());
        if left == Span::ZERO {
            return false;
        }
        thread::sleep(Duration::from_nanos(left.nanos()).min(NAP));
    }
}

/// Connections seen, in the order in which they were.
#[derive(Debug, Default)]
struct Seen {
    histories: Vec<History>,
    by_cookie: HashMap<u64, usize>,
}

impl Seen {
    /// Cookies of connections whose end was not reported yet.
    fn not_ended(&self) -> impl Iterator<Item = u64> {
        let waits = |place: usize| self.histories.get(place).is_some_and(|one| !one.has_ended);
        let known = self.by_cookie.iter();
        known.filter_map(move |(cookie, place)| waits(*place).then_some(*cookie))
    }

    fn note(&mut self, bin: usize, connections: Vec<TcpConnection>, have_ended: bool) {
        for connection in connections {
            let next = self.histories.len();
            let place = *self.by_cookie.entry(connection.cookie).or_insert(next);
            if place == next {
                self.histories.push(History {
                    local: connection.local,
                    remote: connection.remote,
                    samples: Vec::new(),
                    has_ended: false,
                });
            }
            if let Some(history) = self.histories.get_mut(place) {
                history.samples.push((bin, connection.figures));
                history.has_ended = have_ended;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_followed_by_its_cookie_from_bin_to_bin() {
        let connection = |cookie: u64, data_segments: u32| TcpConnection {
            cookie,
            local: SocketAddr::from(([10, 0, 0, 1], 4_000)),
            remote: SocketAddr::from(([10, 0, 0, 2], 5_201)),
            figures: TcpFigures {
                data_segments,
                ..TcpFigures::default()
            },
        };
        let mut seen = Seen::default();
        seen.note(0, vec![connection(7, 1)], false);
        seen.note(1, vec![connection(8, 5), connection(7, 2)], false);
        seen.note(2, vec![connection(7, 3)], true);
        let segments = |history: &History| -> Vec<(usize, u32)> {
            let samples = history.samples.iter();
            samples
                .map(|(bin, one)| (*bin, one.data_segments))
                .collect()
        };
        let all: Vec<_> = seen.histories.iter().map(segments).collect();
        assert_eq!(all, [vec![(0, 1), (1, 2), (2, 3)], vec![(1, 5)]]);
        let ended: Vec<bool> = seen.histories.iter().map(|one| one.has_ended).collect();
        assert_eq!(ended, [true, false]);
        assert_eq!(seen.not_ended().collect::<Vec<_>>(), [8]);
    }
}
