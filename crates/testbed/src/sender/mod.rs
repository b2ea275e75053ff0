//! Sends real datagrams when sources of a study are due: the patterns that iperf3 does not have.
//!
//! One thread serves all flows of a [`Sender`]. It sleeps until the next packet is due, sends all that are
//! due by then back to back, and sleeps again; so it may run before every other thread (`SCHED_FIFO`) without
//! starving them. A packet is never early. If the thread is late, it catches up; how late it was is measured
//! against the time the packet was due, and a run can be thrown away for it.

mod flow;
mod stamp;

pub use stamp::{STAMP_BYTES, Stamp};

use flow::Flows;
use slicewise_live::sys::{namespace, scheduling, time};
use slicewise_stats::live::SenderRecord;
use slicewise_traffic::Source;
use slicewise_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// Longest time without sleep. Only a sender that cannot keep up comes to it.
const LONGEST_STRETCH: Duration = Duration::from_millis(20);
/// How long it then leaves the processor to others.
const BREAK: Duration = Duration::from_millis(1);

/// A flow of datagrams.
#[derive(Debug, Clone)]
pub struct SendingFlow {
    /// The source's name.
    pub name: String,
    /// When they leave, from time zero of the run, and how long their frames are.
    pub source: Source,
    /// Where they come from. Flows from the same address share a socket.
    pub local: SocketAddr,
    /// Where they go.
    pub remote: SocketAddr,
    /// Differentiated-services code point, 0 to 63.
    pub dscp: u8,
    /// Bytes of a frame before the payload, as the source counts them.
    pub header_bytes: u32,
    /// Bytes behind the UDP header, of the longest. From [`STAMP_BYTES`] on they hold a whole [`Stamp`].
    pub payload_bytes: u32,
}

/// The start of a run, on the two clocks that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeZero {
    /// On `CLOCK_MONOTONIC`, as [`time::now`] reads it: what senders go by.
    pub monotonic: Instant,
    /// The same moment on `CLOCK_REALTIME`, ns since 1970: what captures and [`Stamp`]s go by.
    pub unix_ns: u64,
}

impl TimeZero {
    /// So long from now.
    #[must_use]
    pub fn after(wait: Duration) -> Self {
        let (monotonic, wall) = (time::now(), SystemTime::now());
        let unix = wall.duration_since(SystemTime::UNIX_EPOCH);
        let unix_ns = u64::try_from(unix.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
        Self {
            monotonic: monotonic.saturating_add(wait),
            unix_ns: unix_ns.saturating_add(wait.nanos()),
        }
    }
}

/// A thread that sends, once it is told time zero. Dropping it stops it.
#[derive(Debug)]
pub struct Sender {
    orders: Arc<Orders>,
    /// `None` only once it has been waited for.
    thread: Option<JoinHandle<io::Result<Vec<SenderRecord>>>>,
}

/// What the thread is told. Whoever gives an order wakes it.
#[derive(Debug, Default)]
struct Orders {
    start: OnceLock<TimeZero>,
    stop: AtomicBool,
}

impl Sender {
    /// Open the sockets of `flows` in a network namespace, or, without a name, in this process's own; and
    /// wait for [`start_at`](Self::start_at). The thread is real-time where that is allowed.
    ///
    /// # Errors
    /// Where the namespace cannot be entered, an address is not of it or is taken, or a flow is none that UDP
    /// can carry; the message says which.
    pub fn start(namespace: Option<&str>, flows: Vec<SendingFlow>) -> io::Result<Self> {
        let flows = namespace::open_in(namespace, || Flows::open(flows))?;
        let orders = Arc::new(Orders::default());
        let given = Arc::clone(&orders);
        let thread = thread::Builder::new()
            .name("sender".to_owned())
            .spawn(move || Pacer::new(given).send(flows))?;
        Ok(Self {
            orders,
            thread: Some(thread),
        })
    }

    /// Begin: a packet that its source lists at `t` is due at `t` after time zero. What was due before now is
    /// sent at once. Only the first time zero counts.
    pub fn start_at(&self, zero: TimeZero) {
        self.orders.start.get_or_init(|| zero);
        self.wake();
    }

    /// End at once, whatever is still due.
    pub fn stop(&self) {
        self.orders.stop.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Whether all flows have ended, or it was stopped or failed: [`join`](Self::join) would not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Wait until all flows have ended, and say how each went, in their order. One that was never given a
    /// time zero has nothing to wait for, and ends.
    ///
    /// # Errors
    /// Where the system would not send at all (no route, interface down). That it could not take single
    /// datagrams is no error but counted.
    pub fn join(mut self) -> io::Result<Vec<SenderRecord>> {
        if self.orders.start.get().is_none() {
            self.stop();
        }
        self.wait()
    }

    fn wait(&mut self) -> io::Result<Vec<SenderRecord>> {
        let Some(thread) = self.thread.take() else {
            return Ok(Vec::new());
        };
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the sender panicked")))
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop();
        // Nobody is left to be told how it went.
        let _ = self.wait();
    }
}

/// When the thread sleeps.
struct Pacer {
    orders: Arc<Orders>,
    rested: Instant,
}

impl Pacer {
    fn new(orders: Arc<Orders>) -> Self {
        // Where it is not allowed, lateness tells.
        let _ = scheduling::become_real_time();
        scheduling::without_timer_slack();
        let rested = time::now();
        Self { orders, rested }
    }

    fn send(mut self, mut flows: Flows) -> io::Result<Vec<SenderRecord>> {
        let Some(zero) = self.wait_for_start() else {
            return Ok(flows.into_records());
        };
        // Of packets due at the same moment, that of the first flow leaves first.
        let mut due = BinaryHeap::with_capacity(flows.len());
        for flow in 0..flows.len() {
            due.extend(flows.next_departure(flow).map(|at| Reverse((at, flow))));
        }
        while let Some(Reverse((at, flow))) = due.pop() {
            let after_zero = Duration::from_nanos(at.nanos());
            if !self.sleep_until(zero.monotonic.saturating_add(after_zero)) {
                break;
            }
            flows.send(flow, at, zero)?;
            due.extend(flows.next_departure(flow).map(|at| Reverse((at, flow))));
        }
        Ok(flows.into_records())
    }

    fn is_stopped(&self) -> bool {
        self.orders.stop.load(Ordering::Relaxed)
    }

    /// Time zero; `None` where it was stopped before.
    fn wait_for_start(&mut self) -> Option<TimeZero> {
        while !self.is_stopped() {
            if let Some(zero) = self.orders.start.get() {
                self.rested = time::now();
                return Some(*zero);
            }
            thread::park();
        }
        None
    }

    /// Sleep until a packet is due; not at all where it is overdue. False once stopped.
    fn sleep_until(&mut self, due: Instant) -> bool {
        while !self.is_stopped() {
            let now = time::now();
            let left = if now < due {
                due.saturating_since(now)
            } else if now.saturating_since(self.rested) < LONGEST_STRETCH {
                return true;
            } else {
                BREAK
            };
            thread::park_timeout(std::time::Duration::from_nanos(left.nanos()));
            self.rested = time::now();
        }
        false
    }
}

#[cfg(test)]
mod tests;
