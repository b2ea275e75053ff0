//! The four meters, as worded in their RFCs: a counter of whole bytes goes up by one so
//! many times per second, at times that do not depend on the frames.

use slicewise_model::{Colour, MeterAlgorithm, Rate};

pub(super) struct Reference {
    algorithm: MeterAlgorithm,
    aware: bool,
    /// Tc.
    pub(super) committed: u64,
    /// Te or Tp.
    pub(super) second: u64,
    nanos: u64,
}

impl Reference {
    pub(super) fn new(algorithm: MeterAlgorithm, aware: bool) -> Self {
        let (committed, second) = Self::bursts(algorithm);
        Self {
            algorithm,
            aware,
            committed,
            second,
            nanos: 0,
        }
    }

    fn bursts(algorithm: MeterAlgorithm) -> (u64, u64) {
        match algorithm {
            MeterAlgorithm::SingleRateTwoColour { cbs, .. } => (cbs.bytes(), 0),
            MeterAlgorithm::SingleRateThreeColour { cbs, ebs, .. } => (cbs.bytes(), ebs.bytes()),
            MeterAlgorithm::TwoRateThreeColour { cbs, pbs, .. } => (cbs.bytes(), pbs.bytes()),
            // RFC 4115 requires more than the frame costs, so one byte more gives the same result.
            MeterAlgorithm::TwoRateThreeColourEfficient { cbs, ebs, .. } => {
                (cbs.bytes() + 1, ebs.bytes() + 1)
            }
        }
    }

    fn advance(&mut self, nanos: u64) {
        let (cbs, second_burst) = Self::bursts(self.algorithm);
        let tokens = |rate: Rate, nanos: u64| rate.rate.bits_per_second() * nanos / 8_000_000_000;
        let new = |rate: Rate| tokens(rate, nanos) - tokens(rate, self.nanos);
        let (for_committed, for_second) = match self.algorithm {
            MeterAlgorithm::SingleRateTwoColour { cir, .. }
            | MeterAlgorithm::SingleRateThreeColour { cir, .. } => (new(cir), 0),
            MeterAlgorithm::TwoRateThreeColour { cir, pir, .. } => (new(cir), new(pir)),
            MeterAlgorithm::TwoRateThreeColourEfficient { cir, eir, .. } => (new(cir), new(eir)),
        };
        let hands_on = matches!(self.algorithm, MeterAlgorithm::SingleRateThreeColour { .. });
        for _ in 0..for_committed {
            if self.committed < cbs {
                self.committed += 1;
            } else if hands_on && self.second < second_burst {
                self.second += 1;
            }
        }
        for _ in 0..for_second {
            if self.second < second_burst {
                self.second += 1;
            }
        }
        self.nanos = nanos;
    }

    pub(super) fn colour(&mut self, bytes: u64, incoming: Colour, nanos: u64) -> Colour {
        self.advance(nanos);
        let green = !self.aware || incoming == Colour::Green;
        let yellow = self.aware && incoming == Colour::Yellow;
        let red = self.aware && incoming == Colour::Red;
        match self.algorithm {
            MeterAlgorithm::SingleRateTwoColour { .. } => {
                if green && self.committed >= bytes {
                    self.committed -= bytes;
                    Colour::Green
                } else {
                    Colour::Red
                }
            }
            MeterAlgorithm::SingleRateThreeColour { .. } => {
                if green && self.committed >= bytes {
                    self.committed -= bytes;
                    Colour::Green
                } else if (green || yellow) && self.second >= bytes {
                    self.second -= bytes;
                    Colour::Yellow
                } else {
                    Colour::Red
                }
            }
            MeterAlgorithm::TwoRateThreeColourEfficient { .. } => {
                if green && self.committed > bytes {
                    self.committed -= bytes;
                    Colour::Green
                } else if (green || yellow) && self.second > bytes {
                    self.second -= bytes;
                    Colour::Yellow
                } else {
                    Colour::Red
                }
            }
            MeterAlgorithm::TwoRateThreeColour { .. } => {
                if red || self.second < bytes {
                    Colour::Red
                } else if yellow || self.committed < bytes {
                    self.second -= bytes;
                    Colour::Yellow
                } else {
                    self.second -= bytes;
                    self.committed -= bytes;
                    Colour::Green
                }
            }
        }
    }
}
