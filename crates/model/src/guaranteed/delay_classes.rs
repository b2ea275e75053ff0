//! Delay classes: a few geometrically spaced delays to which objectives are rounded.

use slicewise_units::Duration;

/// A position in [`DelayClasses`], shortest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DelayClass(u8);

impl DelayClass {
    /// Its position.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// At most 64 delays, four per doubling: an objective is rounded down to one of them, so that
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
            .map(|class| {
                let doubled = u128::from(shortest) << (class / 4);
                let nanos = doubled * u128::from(STEPS[class % 4]) / u128::from(STEPS[0]);
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
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

    /// Every class with its delay, shortest first.
    pub fn classes(&self) -> impl DoubleEndedIterator<Item = (DelayClass, Duration)> + '_ {
        self.delays.iter().enumerate().map(|(index, &delay)| {
            // There are at most 64.
            (DelayClass(u8::try_from(index).unwrap_or(u8::MAX)), delay)
        })
    }

    /// The shortest delay.
    #[must_use]
    pub fn shortest(&self) -> Duration {
        self.delays.first().copied().unwrap_or(Duration::ZERO)
    }

    /// The delay of a class; that of the longest if there is no such class.
    #[must_use]
    pub fn delay(&self, class: DelayClass) -> Duration {
        self.delays
            .get(class.index())
            .copied()
            .unwrap_or_else(|| self.longest())
    }

    /// A class, or the longest there is where that is a longer one.
    #[must_use]
    pub fn at_most(&self, class: DelayClass) -> DelayClass {
        let longest = self.delays.len().saturating_sub(1);
        class.min(DelayClass(u8::try_from(longest).unwrap_or(u8::MAX)))
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

    /// The longest class within `objective`; `None` if even the shortest is longer.
    #[must_use]
    pub fn within(&self, objective: Duration) -> Option<DelayClass> {
        let classes = self.delays.partition_point(|&delay| delay <= objective);
        classes
            .checked_sub(1)
            .and_then(|class| u8::try_from(class).ok())
            .map(DelayClass)
    }
}
