//! Delays that guarantees may ask for, and the resolution of deadlines that follows from the longest.

use slicewise_units::Duration;

/// The shortest and the longest delay that can be guaranteed on a link.
///
/// A delay is the whole bound D + δ of the theorem: from the eligible time of a frame to its last bit.
/// D is what the admission test and the deadlines use, δ the [resolution](Self::bucket_width) of deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayRange {
    shortest: Duration,
    longest: Duration,
}

/// The longest delay in relation to the shortest: as many doublings as the steps are.
const MAX_RATIO: u64 = 55_110;
/// Largest number of steps.
const MAX_STEPS: usize = 64;
/// The fourth roots of two, in ten-thousandths: the steps within a doubling.
const STEPS: [u64; 4] = [10_000, 11_892, 14_142, 16_818];

impl DelayRange {
    /// No delay is promised at all: guarantees are admitted by their rates alone, and each has the delay zero.
    pub const NONE: Self = Self {
        shortest: Duration::ZERO,
        longest: Duration::ZERO,
    };

    /// Most buckets from now to the latest deadline.
    pub const BUCKETS_AHEAD: u64 = 1 << 17;

    /// Delays from `shortest`, at least 1 µs, up to `longest`, at most 55,110 times that: then the shortest is longer than a
    /// [bucket](Self::bucket_width).
    #[must_use]
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        let shortest = shortest.max(Duration::from_micros(1));
        let farthest = Duration::from_nanos(shortest.nanos().saturating_mul(MAX_RATIO));
        let longest = longest.clamp(shortest, farthest);
        Self { shortest, longest }
    }

    /// Returns true if no delay is promised.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The shortest delay.
    #[must_use]
    pub const fn shortest(self) -> Duration {
        self.shortest
    }

    /// The longest delay.
    #[must_use]
    pub const fn longest(self) -> Duration {
        self.longest
    }

    /// Width of the buckets that a data plane keeps deadlines in: a power of two nanoseconds, the
    /// narrowest with which the longest delay ends within [`BUCKETS_AHEAD`](Self::BUCKETS_AHEAD)
    /// of them. It is δ of the theorem: a frame may leave this much after its deadline.
    #[must_use]
    pub fn bucket_width(self) -> Duration {
        let buckets = self.longest.nanos() / Self::BUCKETS_AHEAD;
        // At most 2^47: the longest delay has 64 bits.
        Duration::from_nanos(1 << (u64::BITS - buckets.leading_zeros()))
    }

    /// The latest deadline that this resolution reaches: less than twice the longest delay. A guarantee that states no delay may be
    /// given as much.
    #[must_use]
    pub fn latest(self) -> Duration {
        if self.is_none() {
            return Duration::ZERO;
        }
        let width = self.bucket_width().nanos();
        Duration::from_nanos(width.saturating_mul(Self::BUCKETS_AHEAD) - 1)
    }

    /// D of a delay: the time from the eligible time of a frame to its deadline.
    #[must_use]
    pub fn to_deadline(self, delay: Duration) -> Duration {
        delay - self.bucket_width()
    }

    /// At most 64 delays from the shortest to the longest, four per doubling (a factor of 55,110): a delay is
    /// rounded down to one of them where no further distinct delay can be had, and by default.
    pub fn steps(self) -> impl Iterator<Item = Duration> {
        let shortest = self.shortest.nanos();
        (0..MAX_STEPS)
            .map_while(move |step| {
                let doubled = u128::from(shortest) << (step / STEPS.len());
                let nanos = doubled * u128::from(STEPS[step % STEPS.len()]) / u128::from(STEPS[0]);
                u64::try_from(nanos).ok().map(Duration::from_nanos)
            })
            .take_while(move |delay| *delay <= self.longest)
    }

    /// The longest [step](Self::steps) within `delay`; `None` if even the shortest is longer.
    #[must_use]
    pub fn step_within(self, delay: Duration) -> Option<Duration> {
        self.steps().take_while(|step| *step <= delay).last()
    }
}
