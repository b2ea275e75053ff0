//! Offers that would be accepted: each number of a request pushed as far as it goes, the others unchanged.
//!
//! The conditions are linear in each number, so that with one delay the limit is a division.
//! A request that states no delay is accepted if it is with the latest deadline, so that this decides; only where a buffer is
//! limited the limit is found by halving, as the smallest delay is.

use super::sums::{NANOBITS_PER_BYTE, bytes, demands, nanobits, rate};
use super::{Admission, GuaranteeRequest, Offer};
use slicewise_units::{BitRate, ByteCount, Duration};

/// How much more a class and those longer than it bear.
struct Headroom {
    /// For each class that would be tested: how much longer its delay is than the first's, ns,
    /// and what is left in it, nanobits.
    classes: Vec<(u128, u128)>,
}

impl Admission {
    /// The largest rate with which `request` would be admitted, its burst and delay unchanged.
    #[must_use]
    pub fn largest_rate(&self, request: &GuaranteeRequest) -> Option<BitRate> {
        self.rate_offer(request, 1, u64::MAX)
    }

    /// The largest burst with which `request` would be admitted, its rate and delay unchanged.
    #[must_use]
    pub fn largest_burst(&self, request: &GuaranteeRequest) -> Option<ByteCount> {
        self.burst_offer(request, 1, ByteCount::new(u64::MAX))
    }

    /// The smallest delay with which `request` would be admitted, its rate and burst unchanged.
    #[must_use]
    pub fn smallest_delay(&self, request: &GuaranteeRequest) -> Option<Duration> {
        self.delay_offer(request, 1)
    }

    pub(super) fn offer(&self, request: &GuaranteeRequest, count: u64) -> Offer {
        Offer {
            rate: self.rate_offer(request, count, request.rate.bits_per_second()),
            burst: self.burst_offer(request, count, request.burst),
            delay: self.delay_offer(request, count),
            count: self.count_offer(request, count),
            smallest_frame: self.smallest_frame_offer(request, count),
        }
    }

    fn rate_offer(&self, request: &GuaranteeRequest, count: u64, most: u64) -> Option<BitRate> {
        if request.burst < self.params.largest_frame {
            return None;
        }
        if let Some(delay) = self.deciding_delay(request)? {
            let most = u128::from(most);
            return self.rate_in(delay, request, count, most).map(rate);
        }
        let fits = |rate| {
            let rate = BitRate::new(rate);
            let offered = GuaranteeRequest { rate, ..*request };
            self.try_class(&offered, count).is_ok()
        };
        largest(1, most, fits).map(BitRate::new)
    }

    /// The delay with which a request is accepted if it is at all: `Some(None)` if that depends on its rate and burst, and `None` if it
    /// states one that is below the shortest.
    fn deciding_delay(&self, request: &GuaranteeRequest) -> Option<Option<Duration>> {
        match (request.delay, self.params.buffer) {
            (Some(_), _) => self.delay_of(request).map(Some),
            (None, None) => Some(Some(self.params.delays.latest())),
            (None, Some(_)) => Some(None),
        }
    }

    fn rate_in(
        &self,
        delay: Duration,
        request: &GuaranteeRequest,
        count: u64,
        most: u128,
    ) -> Option<u128> {
        let count = u128::from(count.max(1));
        let inflation = self.inflation(request.smallest_frame);
        let link_burst = inflation
            .inflate(request.burst.bytes())
            .saturating_mul(NANOBITS_PER_BYTE);
        let mut on_link = self.bit_rate_left() / count;
        for &(gap, left) in &self.headroom(delay)?.classes {
            let beside_burst = (left / count).checked_sub(link_burst)?;
            on_link = on_link.min(beside_burst.checked_div(gap).unwrap_or(on_link));
        }
        let mut most = most.min(inflation.deflate(on_link));
        if let Some(left) = self.nanobits_left() {
            let beside_burst = (left / count).checked_sub(nanobits(request.burst))?;
            let delay = u128::from(delay.nanos());
            most = most.min(beside_burst.checked_div(delay).unwrap_or(most));
        }
        (most > 0).then_some(most)
    }

    fn burst_offer(
        &self,
        request: &GuaranteeRequest,
        count: u64,
        most: ByteCount,
    ) -> Option<ByteCount> {
        if request.rate == BitRate::ZERO {
            return None;
        }
        if let Some(delay) = self.deciding_delay(request)? {
            return self.burst_in(delay, request, count, most);
        }
        let fits = |bytes| {
            let burst = ByteCount::new(bytes);
            let offered = GuaranteeRequest { burst, ..*request };
            self.try_class(&offered, count).is_ok()
        };
        let least = self.params.largest_frame.bytes();
        largest(least, most.bytes(), fits).map(ByteCount::new)
    }

    pub(super) fn burst_in(
        &self,
        delay: Duration,
        request: &GuaranteeRequest,
        count: u64,
        most: ByteCount,
    ) -> Option<ByteCount> {
        let count = u128::from(count.max(1));
        let rate = u128::from(request.rate.bits_per_second());
        let inflation = self.inflation(request.smallest_frame);
        let link_rate = inflation.inflate(request.rate.bits_per_second());
        if link_rate.saturating_mul(count) > self.bit_rate_left() {
            return None;
        }
        let mut on_link = u128::MAX;
        for &(gap, left) in &self.headroom(delay)?.classes {
            let beside_rate = (left / count).checked_sub(link_rate.saturating_mul(gap))?;
            on_link = on_link.min(beside_rate);
        }
        let mut most = nanobits(most);
        if let Some(left) = self.nanobits_left() {
            let at_rate = rate.saturating_mul(u128::from(delay.nanos()));
            most = most.min((left / count).checked_sub(at_rate)?);
        }
        let fits = inflation.deflate(on_link / NANOBITS_PER_BYTE);
        let fits = ByteCount::new(u64::try_from(fits).unwrap_or(u64::MAX));
        let burst = bytes(most).min(fits);
        (burst >= self.params.largest_frame).then_some(burst)
    }

    fn delay_offer(&self, request: &GuaranteeRequest, count: u64) -> Option<Duration> {
        if self.params.delays.is_none() {
            return None;
        }
        let smallest = self.smallest_within(request, count, self.params.delays.longest())?;
        let delayed = GuaranteeRequest {
            delay: Some(smallest),
            ..*request
        };
        self.try_class(&delayed, count).ok().map(|_| smallest)
    }

    /// The smallest frame with which the request is admitted, where it would not be with small frames.
    fn smallest_frame_offer(&self, request: &GuaranteeRequest, count: u64) -> Option<ByteCount> {
        let largest = self.params.largest_frame.bytes();
        let fits = |bytes| {
            let larger = GuaranteeRequest {
                smallest_frame: ByteCount::new(bytes),
                ..*request
            };
            self.try_class(&larger, count).is_ok()
        };
        let smallest = request.smallest_frame.bytes();
        if smallest >= largest || fits(smallest) || !fits(largest) {
            return None;
        }
        Some(ByteCount::new(boundary(largest, smallest, fits)))
    }

    /// How many of `count` equal slices would be admitted; `None` for one, or where none would.
    fn count_offer(&self, request: &GuaranteeRequest, count: u64) -> Option<u64> {
        let fits = |count| self.try_class(request, count).is_ok();
        let fitting = largest(1, count, fits).filter(|_| count > 1);
        fitting.filter(|&fitting| fitting < count)
    }

    /// From the delay `first` on; `None` where that bears nothing at all.
    fn headroom(&self, first: Duration) -> Option<Headroom> {
        let empty = GuaranteeRequest {
            rate: BitRate::ZERO,
            burst: ByteCount::ZERO,
            delay: None,
            smallest_frame: ByteCount::ZERO,
        };
        let nothing = self.load(&empty.with_delay(first), 0);
        let classes = demands(self.with(&nothing))
            .filter(|(sums, _)| sums.delay >= first)
            .map(|(sums, demand)| {
                let gap = u128::from(sums.delay.nanos().saturating_sub(first.nanos()));
                Some((gap, self.limit(sums.delay).checked_sub(demand)?))
            })
            .collect::<Option<_>>()?;
        Some(Headroom { classes })
    }
}

/// The largest number from `least` to `most` that fits, if those up to some number do.
fn largest(least: u64, most: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    if least > most || !fits(least) {
        return None;
    }
    if fits(most) {
        return Some(most);
    }
    Some(boundary(least, most, fits))
}

/// The number next to one that does not fit, between a number that fits and one that does not, by halving.
pub(super) fn boundary(mut fitting: u64, mut failing: u64, fits: impl Fn(u64) -> bool) -> u64 {
    while fitting.abs_diff(failing) > 1 {
        let middle = fitting.midpoint(failing);
        if fits(middle) {
            fitting = middle;
        } else {
            failing = middle;
        }
    }
    fitting
}
