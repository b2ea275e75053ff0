//! Data that has arrived in order and is not acknowledged, and whether it is to be acknowledged at once.
//!
//! RFC 5681, section 4.2, wants an acknowledgement for every second full segment. Linux acknowledges more, as measured with
//! 6.18: what is longer than one full segment, and the end of what the other application has written, unless this end
//! answers with data. What "full" means it takes from what arrives.

use crate::behaviour::{Behaviour, Immediate};
use slicewise_units::Instant;

/// A full segment before a longer one has arrived: the default MSS (RFC 9293, section 3.7.1).
const LEAST_FULL_BYTES: u32 = 536;

/// Data that waits for its acknowledgement.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) bytes: u64,
    /// Parts of it that end what the other application has written; not counted beyond 2.
    ends: u8,
    /// Length of the other end's full segments, as far as it is known.
    full_bytes: u32,
    /// The last segment was so long, shorter than a full one; 0: it was not, or is too short to be a full one.
    short_bytes: u32,
    /// Acknowledgements that are still sent at once.
    quick_acks: u32,
    /// This end answers with data, which carries its acknowledgements.
    is_answering: bool,
}

impl Pending {
    pub(super) const fn new(behaviour: &Behaviour) -> Self {
        Self {
            bytes: 0,
            ends: 0,
            full_bytes: LEAST_FULL_BYTES,
            short_bytes: 0,
            quick_acks: behaviour.quick_acks,
            is_answering: false,
        }
    }

    /// The other end begins anew: acknowledgements are quick again.
    pub(super) const fn quicken(&mut self, behaviour: &Behaviour) {
        self.quick_acks = behaviour.quick_acks;
    }

    /// A segment of `segment_bytes` brought `bytes` in order, those behind a gap that it closes included. `is_pushed`: it is
    /// the last of what its application has written. True if an acknowledgement is due at once.
    pub(super) fn on_arrived(
        &mut self,
        bytes: u64,
        segment_bytes: u64,
        is_pushed: bool,
        behaviour: &Behaviour,
    ) -> bool {
        self.bytes += bytes;
        let mss = behaviour.mss_bytes;
        if behaviour.immediate == Immediate::SecondFull {
            return self.bytes >= 2 * u64::from(mss);
        }
        // What receive offload has joined are full segments.
        let frame_bytes = u32::try_from(segment_bytes).map_or(mss, |bytes| bytes.min(mss));
        self.learn(frame_bytes, is_pushed, behaviour);
        let is_quick = self.quick_acks > 0 || self.ends > 0;
        self.bytes > u64::from(self.full_bytes) || self.ends > 1 || (is_quick && !self.is_answering)
    }

    /// Learns from a frame the length of full segments, and whether it ends what was written: one that is shorter does,
    /// unless the one before it was as long.
    fn learn(&mut self, frame_bytes: u32, is_pushed: bool, behaviour: &Behaviour) {
        let before = std::mem::take(&mut self.short_bytes);
        if frame_bytes >= self.full_bytes {
            self.full_bytes = frame_bytes;
            if is_pushed && behaviour.immediate == Immediate::Pushed {
                self.ends = self.ends.max(1);
            }
            return;
        }
        if frame_bytes >= LEAST_FULL_BYTES {
            if frame_bytes == before {
                self.full_bytes = frame_bytes;
                return;
            }
            self.short_bytes = frame_bytes;
        }
        self.ends = (self.ends + 1).min(2);
    }

    /// This end sends data. If it answers what has arrived just before, its next answers will carry acknowledgements, too.
    pub(super) fn on_data_sent(
        &mut self,
        arrived_at: Option<Instant>,
        behaviour: &Behaviour,
        now: Instant,
    ) {
        let answers = |at: Instant| now < at.saturating_add(behaviour.ack_delay);
        self.is_answering |= arrived_at.is_some_and(answers);
    }

    /// An acknowledgement had to wait until its time was over: this end does not answer.
    pub(super) const fn on_delayed(&mut self) {
        self.is_answering = false;
    }

    /// All of it is acknowledged.
    pub(super) const fn on_acknowledged(&mut self) {
        if self.bytes > 0 {
            self.quick_acks = self.quick_acks.saturating_sub(1);
        }
        (self.bytes, self.ends) = (0, 0);
    }
}
