//! New Reno's window: slow start and congestion avoidance (RFC 5681, section 3.1), counting bytes (RFC 3465).

use super::{Acknowledged, Window};

/// Bytes acknowledged in congestion avoidance since the window last grew or was reduced; fewer than the window has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NewReno {
    acked: u64,
}

impl NewReno {
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Acknowledged) {
        if !ack.is_limited {
            return;
        }
        let mut bytes = ack.bytes;
        if window.is_slow_start() {
            let grown = (window.bytes + bytes).min(window.ssthresh);
            bytes -= grown - window.bytes;
            window.bytes = grown;
        }
        // A segment more for each window acknowledged.
        self.acked += bytes;
        if self.acked >= window.bytes {
            self.acked -= window.bytes;
            window.bytes += window.mss;
        }
    }

    /// Count from zero.
    pub(crate) const fn begin_anew(&mut self) {
        self.acked = 0;
    }
}
