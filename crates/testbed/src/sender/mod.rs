//! Sends real datagrams at the times given by the sources of a study: for patterns iperf3 does not
//! support.
//!
//! One thread serves all flows of a [`Sender`]. It sleeps until the next packet is due, sends all that
//! are due by then back to back, and sleeps again; so it can run at real-time priority (`SCHED_FIFO`)
//! without starving other threads. Packets are never early. If the thread is late, it catches up;
//! lateness is measured against the due time of each packet, and can cause a run to be rejected.

mod flow;
mod stamp;

pub use stamp::{STAMP_BYTES, Stamp};

use flow::Flows;
use slicewise_live::sys::{namespace, scheduling, time};
use slicewise_stats::testbed::SenderRecord;
use slicewise_traffic::Source;
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// Longest time without sleep, reached only by an overloaded sender.
const LONGEST_STRETCH: Duration = Duration::from_millis(20);
/// How long it then yields the processor.
const BREAK: Duration = Duration::from_millis(1);

/// A flow of datagrams.
#[derive(Debug, Clone)]
pub struct SendingFlow {
    /// The source's name.
    pub name: String,
    /// Departure times, from time zero of the run, and lengths of frames.
    pub source: Source,
    /// Source address. Flows from the same address share a socket.
    pub local: SocketAddr,
    /// Destination address.
    pub remote: SocketAddr,
    /// Differentiated-services code point, 0 to 63.
    pub dscp: u8,
    /// Bytes of a frame before the payload, as the source counts them.
    pub header_bytes: u32,
    /// Bytes behind the UDP header, of the longest. From [`STAMP_BYTES`] on they hold a whole [`Stamp`].
    pub payload_bytes: u32,
    /// Headers of the packets that are sent in a GTP-U tunnel, whose ends are the two addresses.
    pub inner: Option<Headers>,
}

/// The start of a run, on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeZero {
    /// On `CLOCK_MONOTONIC`, as read by [`time::now`]: used by senders.
    pub monotonic: Instant,
    /// The same moment on `CLOCK_REALTIME`, ns since 1970: used by captures and [`Stamp`]s.
    pub unix_ns: u64,
}

impl TimeZero {
    /// This long from now.
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

/// A sending thread that starts once time zero is set. Dropping it stops it.
#[derive(Debug)]
pub struct Sender {
    orders: Arc<Orders>,
    /// `None` only after it has been joined.
    thread: Option<JoinHandle<io::Result<Vec<SenderRecord>>>>,
}

/// Commands to the thread. Setting one wakes it.
#[derive(Debug, Default)]
struct Orders {
    start: OnceLock<TimeZero>,
    stop: AtomicBool,
}

impl Sender {
    /// Open the sockets of `flows` in a network namespace, or, without a name, in that of this process;
    /// then wait for [`start_at`](Self::start_at). The thread is real-time if permitted.
    ///
    /// # Errors
    /// If the namespace cannot be entered, an address is not local or in use, or UDP cannot carry a
    /// flow; the message says which.
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

    /// Start: a packet listed at `t` is due at `t` after time zero. Overdue packets are sent at once.
    /// Only the first call has an effect.
    pub fn start_at(&self, zero: TimeZero) {
        self.orders.start.get_or_init(|| zero);
        self.wake();
    }

    /// Stop at once, even if packets are still due.
    pub fn stop(&self) {
        self.orders.stop.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Returns true if all flows have ended, or it was stopped or failed: [`join`](Self::join) would not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Wait until all flows have ended, and return their records in order. A sender that was never
    /// started ends at once.
    ///
    /// # Errors
    /// If the system cannot send at all (no route, interface down). Single datagrams refused by the
    /// system are counted, not errors.
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
        // The result is no longer needed.
        let _ = self.wait();
    }
}

/// Sleeping of the thread.
struct Pacer {
    orders: Arc<Orders>,
    rested: Instant,
}

impl Pacer {
    fn new(orders: Arc<Orders>) -> Self {
        // If not permitted, lateness will show it.
        let _ = scheduling::become_real_time();
        scheduling::without_timer_slack();
        let rested = time::now();
        Self { orders, rested }
    }

    fn send(mut self, mut flows: Flows) -> io::Result<Vec<SenderRecord>> {
        let Some(zero) = self.wait_for_start() else {
            return Ok(flows.into_records());
        };
        // Among packets due at the same time, that of the first flow is sent first.
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

    /// Time zero; `None` if stopped before.
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

    /// Sleep until a packet is due; not at all if overdue. False once stopped.
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
