//! `qos_sched`, the sample application of DPDK 22.11: a scheduler between threads that hand packets on in bursts.
//!
//! `examples/qos_sched/app_thread.c`: the receive thread gives what has arrived to a ring, all of it or nothing
//! (`rte_ring_sp_enqueue_bulk`). The worker takes what is there, enqueues it, dequeues up to a burst, and waits until the
//! second ring has room for all of that. The transmit thread takes a *whole* burst from that ring or none
//! (`rte_ring_sc_dequeue_bulk`), collects packets up to a burst of its own, and hands them to the interface; what it has
//! collected, and not what is in the ring, goes out after a while without a burst. Without a transmit thread
//! (`app_mixed_thread`) the worker itself collects what it dequeues, and nothing waits in a second ring. Threads poll
//! without pause and take no time here. `docs/devices/qos-sched.md` says what follows from it.

use super::port::port;
use super::{Forwarding, Leaving};
use slicewise_dataplane::{BuildError, Frame, Pipeline, Verdict};
use slicewise_model::PolicyParams;
use slicewise_study::{QosSchedParams, QosSchedThreads};
use slicewise_units::Instant;
use slicewise_wire::Headers;
use std::collections::VecDeque;

/// An egress port behind the threads of `qos_sched`.
#[derive(Debug)]
pub struct QosSched {
    pipeline: Pipeline,
    params: QosSchedParams,
    /// Entries that a ring between threads holds: one stays empty.
    room: usize,
    /// Ring from the receive thread to the worker.
    received: VecDeque<(Frame, Headers)>,
    /// Frames that the worker has dequeued, and that wait for the second ring, or for the interface.
    dequeued: VecDeque<Frame>,
    /// Ring from the worker to the transmit thread.
    ring: VecDeque<Frame>,
    /// Frames that the thread that transmits has taken.
    taken: VecDeque<Frame>,
    /// How many of them it is handing to the interface; it does nothing else meanwhile.
    handing: usize,
    /// When it hands over what it has taken, if nothing comes before.
    drain_at: Instant,
    /// Descriptors of the interface.
    descriptors: VecDeque<Frame>,
    /// Dropped after they had been queued.
    dropped: VecDeque<Frame>,
    /// Nobody comes any more who would complete a burst.
    is_over: bool,
}

impl QosSched {
    /// A port under `policy`. Its rate is that of the link that the topology connects to it.
    ///
    /// # Errors
    /// Where the data plane cannot hold the policy.
    pub fn new(
        policy: PolicyParams,
        params: QosSchedParams,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let room = params.ring.software.saturating_sub(1);
        Ok(Self {
            pipeline: port(policy, seed)?,
            params,
            room: size(room),
            received: VecDeque::new(),
            dequeued: VecDeque::new(),
            ring: VecDeque::new(),
            taken: VecDeque::new(),
            handing: 0,
            drain_at: Instant::MAX,
            descriptors: VecDeque::new(),
            dropped: VecDeque::new(),
            is_over: false,
        })
    }

    /// Packets that have left their queue and not the device.
    #[must_use]
    pub fn in_threads(&self) -> usize {
        let after = self.dequeued.len() + self.ring.len() + self.taken.len();
        self.received.len() + after + self.descriptors.len()
    }

    /// From `now` on, hand on whatever there is, without waiting for others.
    pub(super) fn stop_waiting(&mut self, now: Instant) {
        self.is_over = true;
        self.run(now);
    }

    /// Number of packets that a thread waits for: `burst`, or any.
    fn awaited(&self, burst: u32) -> usize {
        if self.is_over { 1 } else { size(burst) }
    }

    /// Let the threads poll until nothing moves.
    fn run(&mut self, now: Instant) {
        loop {
            let moved = self.work(now) | self.transmit(now);
            if !moved {
                return;
            }
        }
    }

    fn is_mixed(&self) -> bool {
        self.params.threads == QosSchedThreads::Mixed
    }

    /// One turn of the worker (`app_worker_thread`, `app_mixed_thread`); false where it did nothing.
    fn work(&mut self, now: Instant) -> bool {
        if self.is_blocked() {
            return false;
        }
        if self.dequeued.is_empty() {
            let received = size(self.params.burst.enqueue).min(self.received.len());
            for (frame, headers) in self.received.drain(..received) {
                if let Verdict::Dropped(_) = self.pipeline.on_frame(frame, &headers, now) {
                    self.dropped.push_back(frame);
                }
            }
            for _ in 0..self.params.burst.dequeue {
                let Some(frame) = self.pipeline.poll_egress(now) else {
                    break;
                };
                self.dequeued.push_back(frame);
            }
            if self.dequeued.is_empty() {
                return received > 0;
            }
            if self.is_mixed() {
                self.drain_at = now.saturating_add(self.params.drain);
            }
        }
        if self.is_mixed() {
            let room = self
                .awaited(self.params.burst.transmit)
                .saturating_sub(self.taken.len());
            let collected = room.min(self.dequeued.len());
            self.taken.extend(self.dequeued.drain(..collected));
        } else if !self.is_blocked() {
            self.ring.append(&mut self.dequeued);
        }
        true
    }

    /// The worker waits: for room in the ring for all that it has dequeued, or, if it transmits, for the interface.
    fn is_blocked(&self) -> bool {
        match self.params.threads {
            QosSchedThreads::Separate => {
                !self.dequeued.is_empty() && self.ring.len() + self.dequeued.len() > self.room
            }
            QosSchedThreads::Mixed => self.handing > 0,
        }
    }

    /// One turn of the thread that transmits (`app_tx_thread`, or the end of a turn of `app_mixed_thread`); false where it
    /// did nothing.
    fn transmit(&mut self, now: Instant) -> bool {
        if self.handing > 0 {
            let free = size(self.params.ring.transmit).saturating_sub(self.descriptors.len());
            let handed = free.min(self.handing);
            self.descriptors.extend(self.taken.drain(..handed));
            self.handing -= handed;
            if handed == 0 {
                return false;
            }
        } else {
            let burst = self.awaited(self.params.burst.dequeue);
            if self.taken.len() < self.awaited(self.params.burst.transmit) {
                if self.ring.len() >= burst {
                    self.taken.extend(self.ring.drain(..burst));
                    self.drain_at = now.saturating_add(self.params.drain);
                } else if self.drain_at <= now && !self.taken.is_empty() {
                    self.handing = self.taken.len();
                } else {
                    return false;
                }
            }
        }
        let whole = self.awaited(self.params.burst.transmit);
        if self.handing == 0 && self.taken.len() >= whole {
            self.handing = whole;
        }
        true
    }
}

impl Forwarding for QosSched {
    #[inline]
    fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    fn pipeline_mut(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    fn on_classified(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        now: Instant,
    ) -> Verdict {
        self.run(now);
        if self.received.is_empty() && !self.is_blocked() {
            let verdict = self.pipeline.on_classified(frame, headers, class, now);
            self.run(now);
            return verdict;
        }
        if self.received.len() >= self.room {
            return self.refuse(frame, headers, class, now);
        }
        self.received.push_back((frame, *headers));
        Verdict::Queued
    }

    fn poll_egress(&mut self, now: Instant) -> Option<Leaving> {
        self.run(now);
        let frame = self.descriptors.pop_front()?;
        self.run(now);
        Some(frame.into())
    }

    fn has_dropped(&self) -> bool {
        !self.dropped.is_empty() || self.pipeline.has_dropped()
    }

    fn poll_dropped(&mut self) -> Option<Frame> {
        let dropped = self.dropped.pop_front();
        dropped.or_else(|| Forwarding::poll_dropped(&mut self.pipeline))
    }

    fn poll_at(&self) -> Instant {
        if !self.descriptors.is_empty() {
            return Instant::ZERO;
        }
        let poll_at = Forwarding::poll_at(&self.pipeline);
        if self.taken.is_empty() {
            poll_at
        } else {
            poll_at.min(self.drain_at)
        }
    }
}

fn size(packets: u32) -> usize {
    usize::try_from(packets).unwrap_or(usize::MAX)
}
