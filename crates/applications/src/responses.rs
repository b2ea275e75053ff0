//! Sizes of responses and transfers, drawn; and one on its way.

use slicewise_traffic::Random;
use slicewise_traffic::application::TransferSizes;

/// Draws sizes.
#[derive(Debug, Clone)]
pub struct Sizes {
    sizes: TransferSizes,
    /// Sum of the weights of a mix.
    weights: u64,
}

impl Sizes {
    pub fn new(sizes: &TransferSizes) -> Self {
        let weights = match sizes {
            TransferSizes::Mix(mix) => mix.iter().map(|&(_, weight)| u64::from(weight)).sum(),
            _ => 0,
        };
        Self {
            sizes: sizes.clone(),
            weights,
        }
    }

    /// The next size, at least 1 byte: a response that is empty could not be seen to arrive.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let bytes = match &self.sizes {
            TransferSizes::Equal(bytes) => *bytes,
            TransferSizes::Exponential(mean) => random.exponential(*mean as f64),
            TransferSizes::Mix(mix) => {
                let mut drawn = random.below(self.weights);
                mix.iter()
                    .find(|&&(_, weight)| {
                        let is_it = drawn < u64::from(weight);
                        drawn = drawn.saturating_sub(u64::from(weight));
                        is_it
                    })
                    .map_or(1, |&(bytes, _)| bytes)
            }
        };
        bytes.max(1)
    }
}

/// Bytes of a response that have not yet arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited(u64);

impl Awaited {
    pub fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `bytes` more arrived: true if it is complete.
    pub fn on_received(&mut self, bytes: u64) -> bool {
        self.0 = self.0.saturating_sub(bytes);
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(sizes: TransferSizes) -> f64 {
        let sizes = Sizes::new(&sizes);
        let mut random = Random::stream(1, 0);
        (0..100_000)
            .map(|_| sizes.draw(&mut random) as f64)
            .sum::<f64>()
            / 1e5
    }

    #[test]
    fn sizes_have_the_mean_of_their_distribution() {
        assert_eq!(mean(TransferSizes::Equal(700)), 700.0);
        // Four standard errors: 4 · 10,000 / √100,000.
        let exponential = mean(TransferSizes::Exponential(10_000));
        assert!((exponential - 10_000.0).abs() < 127.0, "{exponential}");
        // (3 · 100 + 1 · 900) / 4; standard deviation 346.
        let mix = mean(TransferSizes::Mix(vec![(100, 3), (5, 0), (900, 1)]));
        assert!((mix - 300.0).abs() < 4.4, "{mix}");
    }

    #[test]
    fn no_response_is_empty() {
        assert_eq!(mean(TransferSizes::Equal(0)), 1.0);
        assert_eq!(mean(TransferSizes::Exponential(0)), 1.0);
        assert_eq!(mean(TransferSizes::Mix(Vec::new())), 1.0);
        assert_eq!(mean(TransferSizes::Mix(vec![(0, 1)])), 1.0);
    }

    #[test]
    fn a_response_is_complete_with_its_last_byte_in_whatever_portions() {
        let mut awaited = Awaited::new(10);
        assert!(!awaited.on_received(4));
        assert!(!awaited.on_received(5));
        assert!(awaited.on_received(1));
        assert!(Awaited::new(10).on_received(11));
    }
}
