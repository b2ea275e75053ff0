//! Delay classes: a few geometrically spaced delays to which objectives are rounded.

use slicewise_units::Duration;

/// At most 64 delays, four per doubling (those of two while one replaces the other): an objective is rounded down to one of them, so that
/// the admission test and the data plane handle classes, however many slices there are. Rounding
/// costs at most 16 % of the objective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayClasses {
    delays: Vec<Duration>,
}

/// Most classes.
const MAX_CLASSES: usize = 64;
/// The fourth roots of two, in ten-thousandths: the steps within a doubling.
const STEPS: [u64; 4] = [10_000, 11_892, 14_142, 16_818];

impl DelayClasses {
    /// Classes from `shortest` up to `longest`, four per doubling, at most 64 (a factor of 55,109).
    /// `shortest` is at least 1 µs.
    #[must_use]
    pub fn geometric(shortest: Duration, longest: Duration) -> Self {
        let shortest = shortest.nanos().max(1_000);
        let delays = (0..MAX_CLASSES)
            .map_while(|class| {
                let doubled = u128::from(shortest) << (class / 4);
                let nanos = doubled * u128::from(STEPS[class % 4]) / u128::from(STEPS[0]);
                u64::try_from(nanos).ok().map(Duration::from_nanos)
            })
            .enumerate()
            .take_while(|&(class, delay)| class == 0 || delay <= longest)
            .map(|(_, delay)| delay)
            .collect();
        Self { delays }
    }

    /// The delays, shortest first; never empty.
    #[must_use]
    pub fn delays(&self) -> &[Duration] {
        &self.delays
    }

    /// The classes of both; `None` if these are more than 128, as two that are [geometric](Self::geometric) never have.
    #[must_use]
    pub fn union(&self, other: &Self) -> Option<Self> {
        let mut delays = [&self.delays[..], &other.delays[..]].concat();
        delays.sort_unstable();
        delays.dedup();
        (delays.len() <= 2 * MAX_CLASSES).then_some(Self { delays })
    }

    /// The position of the class with this delay.
    #[must_use]
    pub fn position(&self, delay: Duration) -> Option<usize> {
        self.delays.binary_search(&delay).ok()
    }

    /// The shortest delay.
    #[must_use]
    pub fn shortest(&self) -> Duration {
        self.delays.first().copied().unwrap_or(Duration::ZERO)
    }

    /// The longest delay.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.delays.last().copied().unwrap_or(Duration::ZERO)
    }

    /// Most buckets from now to the end of the longest delay.
    pub const BUCKETS_AHEAD: u64 = 1 << 17;

    /// Width of the buckets that a data plane keeps deadlines in: a power of two nanoseconds, the
    /// narrowest with which the longest delay ends within [`BUCKETS_AHEAD`](Self::BUCKETS_AHEAD)
    /// of them. It is the δ of a delay bound: a frame may leave this much after its deadline.
    #[must_use]
    pub fn bucket_width(&self) -> Duration {
        let buckets = self.longest().nanos() / Self::BUCKETS_AHEAD;
        // At most 2^47: the longest delay has 64 bits.
        Duration::from_nanos(1 << (u64::BITS - buckets.leading_zeros()))
    }

    /// The longest delay of a class within `objective`; `None` if even the shortest is longer.
    #[must_use]
    pub fn within(&self, objective: Duration) -> Option<Duration> {
        let classes = self.delays.partition_point(|&delay| delay <= objective);
        self.delays[..classes].last().copied()
    }
}
