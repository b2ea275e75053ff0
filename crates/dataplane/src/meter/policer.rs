//! The policer: a meter, and what each colour means for the packet.

use super::MeterState;
use crate::frame::Frame;
use slicewise_model::{Action, Colour, PolicerParams};
use slicewise_units::Instant;

/// A policer at work. It has no queue: a frame passes at once or not at all.
#[derive(Debug, Clone, Copy)]
pub struct PolicerState {
    meter: MeterState,
    conform: Action,
    exceed: Action,
    violate: Action,
}

/// What a policer decided on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum PolicerVerdict {
    /// It passes; its DSCP may have been rewritten.
    Transmit,
    /// It passes, tagged with a device-internal QoS group.
    TransmitInGroup(u8),
    /// It is to be dropped.
    Drop,
}

impl PolicerState {
    /// A policer whose buckets are full at `now`.
    #[must_use]
    pub fn new(params: &PolicerParams, now: Instant) -> Self {
        Self {
            meter: MeterState::new(params.algorithm, params.mode, now),
            conform: params.conform,
            exceed: params.exceed,
            violate: params.violate,
        }
    }

    /// Meter `frame`, write its new colour into it, and apply the action of that colour. O(1).
    #[inline]
    pub fn on_frame(&mut self, frame: &mut Frame, now: Instant) -> PolicerVerdict {
        frame.colour = self.meter.colour(frame.lengths, frame.colour, now);
        let action = match frame.colour {
            Colour::Green => self.conform,
            Colour::Yellow => self.exceed,
            Colour::Red => self.violate,
        };
        match action {
            Action::Transmit => PolicerVerdict::Transmit,
            Action::Drop => PolicerVerdict::Drop,
            Action::SetDscp(dscp) => {
                frame.dscp = dscp;
                PolicerVerdict::Transmit
            }
            Action::SetQosGroup(group) => PolicerVerdict::TransmitInGroup(group),
        }
    }

    /// Go on with the credit of `old` after a change of parameters; see
    /// [`MeterState::resume_from`].
    pub fn resume_from(&mut self, old: &Self, now: Instant) {
        self.meter.resume_from(&old.meter, now);
    }
}
