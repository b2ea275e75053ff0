//! Probes for the loss of a tail: TLP (RFC 8985, section 7).

use super::{Outgoing, Phase, Sender, Timer};
use crate::behaviour::Behaviour;
use slicewise_units::{Duration, Instant};

/// How long an acknowledgement may be delayed by the other end (section 7.2, `TLP.max_ack_delay`).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// Probe time before there is a round trip.
const INITIAL: Duration = Duration::from_secs(1);

/// A probe that is due, or under way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probe {
    /// To be sent whatever the window says.
    pub(crate) due: Option<Outgoing>,
    /// The position behind the probe under way, and whether it sent again what had been sent.
    pub(crate) under_way: Option<(u64, bool)>,
}

impl Sender {
    pub(super) fn due_probe(&mut self) -> Option<Outgoing> {
        self.probe.due.take()
    }

    /// Arm the probe timer if a probe may be sent, else that of retransmission (section 7.2). What the receiver has no room for is no tail.
    pub(super) fn arm_tail(&mut self, now: Instant) {
        let may_probe = self.phase == Phase::Open
            && self.board.una() > 0
            && self.board.sacked_bytes() == 0
            && self.probe.under_way.is_none()
            && self.board.next() <= self.window_end.max(1)
            && self.is_sacking;
        if !may_probe {
            self.arm_retransmission(now);
            return;
        }
        let mut after = self.rtt.smoothed().map_or(INITIAL, |rtt| rtt * 2);
        if self.board.in_flight() <= self.window.mss {
            after = after + MAX_ACK_DELAY;
        }
        let rto_at = match self.board.oldest_sent_at() {
            Some(sent_at) => sent_at.max(now).saturating_add(self.rtt.rto()),
            None => now.saturating_add(self.rtt.rto()),
        };
        // Not later than the time-out, and then instead of it: the time-out after a probe has its usual length.
        self.set_timer(Timer::Tail, after.min(rto_at.saturating_since(now)), now);
    }

    /// Section 7.3: new data if there is some, else the last segment again.
    pub(super) fn send_probe(&mut self, behaviour: &Behaviour, now: Instant) {
        let mss = self.window.mss;
        let new = self.choose_new(mss, behaviour, now).map(|new| Outgoing {
            end: new.end.min(new.start + mss),
            ..new
        });
        let probe = new.or_else(|| {
            let (start, end) = self.board.last_unsacked(mss)?;
            Some(Outgoing {
                start,
                end,
                is_resent: true,
            })
        });
        if let Some(probe) = probe {
            self.figures.probes += 1;
            self.probe.under_way = Some((self.board.next().max(probe.end), probe.is_resent));
            self.probe.due = Some(probe);
        }
        self.arm_retransmission(now);
    }

    /// Section 7.4: was something lost that the probe has repaired? `is_duplicate`: the probe arrived twice.
    pub(super) fn judge_probe(&mut self, una: u64, is_duplicate: bool) -> bool {
        let Some((end, is_resent)) = self.probe.under_way else {
            return false;
        };
        // Until more is acknowledged, the answer to the probe itself may still come.
        let is_open = una < end || (una == end && is_resent && !is_duplicate);
        if is_open {
            return false;
        }
        self.probe.under_way = None;
        is_resent && !is_duplicate
    }
}
