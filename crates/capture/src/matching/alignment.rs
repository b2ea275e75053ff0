//! The coarse offset between two clocks, from the first packets of two captures.

use crate::Sighting;

/// How far the clocks of two points seem apart, from packets seen at both.
///
/// The differences hold the delay too: of forward packets they are offset + delay, of packets going back
/// offset − delay. It is enough to bring the two captures into one order, not to measure delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Median of the differences, received clock − sent clock, ns.
    pub median_ns: i64,
    /// Smallest of the differences, ns.
    pub smallest_ns: i64,
    /// Largest of the differences, ns.
    pub largest_ns: i64,
    /// Packets the differences are of.
    pub shared: usize,
}

impl Alignment {
    /// Compares the first sightings of two points by those keys that occur once in each. `None` where
    /// no packet is in both.
    #[must_use]
    pub fn probe(sent: &[Sighting], received: &[Sighting]) -> Option<Self> {
        let mut differences: Vec<i64> = shared(sent, received)
            .into_iter()
            .map(|(sent, received)| {
                let sent = i64::try_from(sent.time_ns).unwrap_or(i64::MAX);
                let received = i64::try_from(received.time_ns).unwrap_or(i64::MAX);
                received - sent
            })
            .collect();
        differences.sort_unstable();
        Some(Self {
            median_ns: *differences.get(differences.len() / 2)?,
            smallest_ns: *differences.first()?,
            largest_ns: *differences.last()?,
            shared: differences.len(),
        })
    }

    /// The offset to match with: 0 where clocks that differ by so little need none.
    ///
    /// Clocks are taken as aligned where the median is within `tolerance_ns` of 0, so that captures of
    /// one clock are compared as they are.
    #[must_use]
    pub const fn offset_ns(&self, tolerance_ns: u64) -> i64 {
        if self.median_ns.unsigned_abs() <= tolerance_ns {
            0
        } else {
            self.median_ns
        }
    }
}

/// Pairs of sightings with a key that occurs once on each side, in order of keys.
pub(super) fn shared(sent: &[Sighting], received: &[Sighting]) -> Vec<(Sighting, Sighting)> {
    let sent = unique(sent);
    let mut received = unique(received).into_iter().peekable();
    let mut pairs = Vec::new();
    for one in sent {
        while received.next_if(|other| other.key < one.key).is_some() {}
        if let Some(other) = received.next_if(|other| other.key == one.key) {
            pairs.push((one, other));
        }
    }
    pairs
}

/// The sightings whose key no other has, in order of keys.
fn unique(sightings: &[Sighting]) -> Vec<Sighting> {
    let mut sorted = sightings.to_vec();
    sorted.sort_unstable_by_key(|sighting| sighting.key);
    sorted
        .chunk_by(|one, other| one.key == other.key)
        .filter_map(|equal| match equal {
            [one] => Some(*one),
            _ => None,
        })
        .collect()
}
