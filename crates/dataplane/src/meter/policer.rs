//! The policer: a meter, and an action per colour.

use super::MeterState;
use crate::frame::Frame;
use slicewise_model::{Action, Colour, PolicerParams};
use slicewise_units::Instant;

/// Running policer. It has no queue: a frame passes immediately or not at all.
#[derive(Debug, Clone, Copy)]
pub struct PolicerState {
    meter: MeterState,
    conform: Step,
    exceed: Step,
    violate: Step,
}

/// An action, as far as it is carried out here: which queue a colour chooses is known where queues are.
#[derive(Debug, Clone, Copy)]
enum Step {
    Transmit,
    Drop,
    SetDscp(u8),
    SetQosGroup(u8),
}

impl From<&Action> for Step {
    fn from(action: &Action) -> Self {
        match *action {
            Action::Transmit | Action::Queue(_) => Self::Transmit,
            Action::Drop => Self::Drop,
            Action::SetDscp(dscp) => Self::SetDscp(dscp),
            Action::SetQosGroup(group) => Self::SetQosGroup(group),
        }
    }
}

/// Decision of a policer on a frame.
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
            meter: MeterState::with_interval(
                params.algorithm,
                params.mode,
                params.refill_interval,
                now,
            ),
            conform: (&params.conform).into(),
            exceed: (&params.exceed).into(),
            violate: (&params.violate).into(),
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
            Step::Transmit => PolicerVerdict::Transmit,
            Step::Drop => PolicerVerdict::Drop,
            Step::SetDscp(dscp) => {
                frame.traffic_class = frame.traffic_class.with_dscp(dscp);
                PolicerVerdict::Transmit
            }
            Step::SetQosGroup(group) => PolicerVerdict::TransmitInGroup(group),
        }
    }

    /// Continue with the credit of `old` after a change of parameters; see
    /// [`MeterState::resume_from`].
    pub fn resume_from(&mut self, old: &Self, now: Instant) {
        self.meter.resume_from(&old.meter, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_model::{ColourMode, MeterAlgorithm, Rate};
    use slicewise_units::{BitRate, ByteCount, FrameLengths};
    use slicewise_wire::{Ecn, TrafficClass};

    fn frame(bytes: u32) -> Frame {
        let lengths = FrameLengths {
            l2_bytes: bytes,
            l3_offset: 14,
        };
        Frame {
            handle: 7,
            lengths,
            traffic_class: TrafficClass::new(46, Ecn::Ect0),
            colour: Colour::Green,
        }
    }

    /// RFC 4115 with buckets for one frame of 100 bytes each, and nothing earned in time.
    fn policer(mode: ColourMode, [conform, exceed, violate]: [Action; 3]) -> PolicerState {
        let rate = Rate::l2(BitRate::new(1));
        let burst = ByteCount::new(100);
        let algorithm = MeterAlgorithm::TwoRateThreeColourEfficient {
            cir: rate,
            cbs: burst,
            eir: rate,
            ebs: burst,
        };
        let params = PolicerParams {
            algorithm,
            mode,
            refill_interval: None,
            conform,
            exceed,
            violate,
        };
        PolicerState::new(&params, Instant::ZERO)
    }

    #[test]
    fn applies_the_action_of_each_colour_and_writes_the_colour() {
        let actions = [Action::Transmit, Action::SetDscp(8), Action::Drop];
        let mut policer = policer(ColourMode::Blind, actions);
        let expected = [
            (PolicerVerdict::Transmit, Colour::Green, 46),
            (PolicerVerdict::Transmit, Colour::Yellow, 8),
            (PolicerVerdict::Drop, Colour::Red, 46),
        ];
        for (verdict, colour, dscp) in expected {
            let mut frame = frame(100);
            assert_eq!(policer.on_frame(&mut frame, Instant::ZERO), verdict);
            assert_eq!((frame.colour, frame.traffic_class.dscp()), (colour, dscp));
            assert_eq!(frame.traffic_class.ecn(), Ecn::Ect0, "as it was");
            assert_eq!(frame.handle, 7);
        }
    }

    #[test]
    fn a_second_policer_respects_the_colour_of_the_first() {
        let actions = [Action::Transmit, Action::Transmit, Action::Drop];
        let mut first = policer(ColourMode::Blind, actions.clone());
        let mut second = policer(ColourMode::Aware, actions);
        let colours = [0; 3].map(|_| {
            let mut frame = frame(100);
            let _ = first.on_frame(&mut frame, Instant::ZERO);
            let _ = second.on_frame(&mut frame, Instant::ZERO);
            frame.colour
        });
        assert_eq!(colours, [Colour::Green, Colour::Yellow, Colour::Red]);
    }
}
