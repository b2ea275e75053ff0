//! The four meters, written as their RFCs word them: a counter goes up by one so many times a
//! second. Every rate is a whole number of bytes a nanosecond, so that this is exact.

use slicewise_model::{Colour, MeterAlgorithm};

/// Rates of the first and the second bucket in every test.
pub(super) const SPEC_RATES_BYTES_PER_NANO: [u64; 2] = [1, 2];

pub(super) struct Reference {
    algorithm: MeterAlgorithm,
    aware: bool,
    /// Tc.
    committed: u64,
    /// Te or Tp.
    second: u64,
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
            MeterAlgorithm::TwoRateThreeColourEfficient { cbs, ebs, .. } => {
                (cbs.bytes(), ebs.bytes())
            }
        }
    }

    fn tick(&mut self) {
        let (cbs, second_burst) = Self::bursts(self.algorithm);
        for _ in 0..SPEC_RATES_BYTES_PER_NANO[0] {
            if self.committed < cbs {
                self.committed += 1;
            } else if matches!(self.algorithm, MeterAlgorithm::SingleRateThreeColour { .. })
                && self.second < second_burst
            {
                self.second += 1;
            }
        }
        let two_rates = matches!(
            self.algorithm,
            MeterAlgorithm::TwoRateThreeColour { .. }
                | MeterAlgorithm::TwoRateThreeColourEfficient { .. }
        );
        if two_rates {
            for _ in 0..SPEC_RATES_BYTES_PER_NANO[1] {
                if self.second < second_burst {
                    self.second += 1;
                }
            }
        }
    }

    pub(super) fn colour(&mut self, bytes: u64, incoming: Colour, nanos: u64) -> Colour {
        while self.nanos < nanos {
            self.tick();
            self.nanos += 1;
        }
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
            MeterAlgorithm::SingleRateThreeColour { .. }
            | MeterAlgorithm::TwoRateThreeColourEfficient { .. } => {
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
