//! Coarse offset between two clocks, from the first packets of two captures.

use crate::Sighting;

/// Apparent offset between the clocks of two points, from packets seen at both.
///
/// The differences include the delay: offset + delay for forward packets, offset − delay for packets
/// going back. That is enough to order the two captures in time, not to measure delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Median of the differences, received clock − sent clock, ns.
    pub median_ns: i64,
    /// Smallest of the differences, ns.
    pub smallest_ns: i64,
    /// Largest of the differences, ns.
    pub largest_ns: i64,
    /// Number of packets compared.
    pub shared: usize,
}

impl Alignment {
    /// Compares the first sightings of two points by the keys that occur once in each. `None` if they
    /// share no packet.
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

    /// The offset to use for matching: 0 where the clocks differ too little to need one.
    ///
    /// Clocks count as aligned if the median is within `tolerance_ns` of 0, so that captures of one
    /// clock are compared unchanged.
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

/// Sightings with a unique key, in order of keys.
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
