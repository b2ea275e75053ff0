//! The qualities that a stream is offered in.

use slicewise_units::{BitRate, Duration};

/// Qualities from the lowest, numbered from 0, and the length of a segment.
#[derive(Debug, Clone)]
pub struct Ladder {
    pub bit_rates: Vec<f64>,
    pub segment: Duration,
}

impl Ladder {
    pub fn new(rates: &[BitRate], segment: Duration) -> Self {
        let bit_rates = rates.iter().map(|rate| rate.bits_per_second() as f64);
        Self {
            bit_rates: bit_rates.collect(),
            segment,
        }
    }

    /// The highest quality.
    pub fn top(&self) -> usize {
        self.bit_rates.len().saturating_sub(1)
    }

    /// Bit rate of a quality, bit/s.
    pub fn bit_rate(&self, quality: usize) -> f64 {
        self.bit_rates.get(quality).copied().unwrap_or(0.0)
    }

    /// The highest quality that needs no more than this, bit/s; the lowest where none does.
    pub fn within(&self, bits_per_second: f64) -> usize {
        let within = self.bit_rates.iter().take_while(|&&r| r <= bits_per_second);
        within.count().saturating_sub(1)
    }

    /// Bytes of a segment: all of a quality are alike.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a product of positive numbers; from float to integer saturates"
    )]
    pub fn segment_bytes(&self, quality: usize) -> u64 {
        let bytes = self.bit_rate(quality) * self.segment.as_secs_f64() / 8.0;
        (libm::round(bytes) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        let rates = [1_000_000, 2_500_000, 5_000_000].map(BitRate::new);
        Ladder::new(&rates, Duration::from_millis(1_500))
    }

    #[test]
    fn the_highest_quality_within_a_rate_is_found() {
        let ladder = ladder();
        let found = [0.0, 1e6, 2.4e6, 2.5e6, 4.9e6, 9e9].map(|rate| ladder.within(rate));
        assert_eq!(found, [0, 0, 0, 1, 1, 2]);
        assert_eq!(ladder.top(), 2);
    }

    #[test]
    fn a_segment_has_the_bytes_of_its_rate_and_length() {
        assert_eq!(ladder().segment_bytes(1), 468_750);
        assert_eq!(ladder().segment_bytes(3), 1, "none has no bytes at all");
    }
}
