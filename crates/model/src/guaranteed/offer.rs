//! What would be accepted: each number of a request pushed as far as it goes, the others unchanged.
//!
//! The conditions are linear in each number, so that with one delay the limit is a division.
//! The delay of a request without objective changes with its rate and burst; then every step is
//! examined with the rates or bursts that belong to it. The smallest delay is found by halving between two steps.

use super::Offer;
use super::admission::{Admission, GuaranteeRequest};
use super::sums::{NANOBITS_PER_BYTE, bytes, demands, nanobits, rate};
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
        let most = u128::from(most);
        if request.delay.is_some() {
            let delay = self.delay_of(request)?;
            return self.rate_in(delay, request, count, most).map(rate);
        }
        // The shorter the step, the higher the rates that send the burst within its delay.
        let delays = self.params.delays;
        delays.steps().find_map(|delay| {
            let bound = if delay == delays.shortest() {
                most
            } else {
                most.min(nanobits(request.burst) / u128::from(delay.nanos().max(1)))
            };
            let rate = rate(self.rate_in(delay, request, count, bound)?);
            let offered = GuaranteeRequest { rate, ..*request };
            (self.delay_of(&offered) == Some(delay)).then_some(rate)
        })
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
        if request.delay.is_some() {
            let delay = self.delay_of(request)?;
            return self.burst_in(delay, request, count, most);
        }
        // The longer the step, the larger the bursts that the rate sends within its delay.
        let delays: Vec<Duration> = self.params.delays.steps().collect();
        delays.iter().enumerate().rev().find_map(|(index, &delay)| {
            let bound = match delays.get(index + 1) {
                Some(next) => {
                    let sent =
                        u128::from(request.rate.bits_per_second()) * u128::from(next.nanos());
                    most.min(bytes(sent.saturating_sub(1)))
                }
                None => most,
            };
            let burst = self.burst_in(delay, request, count, bound)?;
            let offered = GuaranteeRequest { burst, ..*request };
            (self.delay_of(&offered) == Some(delay)).then_some(burst)
        })
    }

    fn burst_in(
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

    /// The conditions other than that of the buffer hold from some delay on: between one that fails and a longer one that does
    /// not, the smallest is found by halving.
    fn delay_offer(&self, request: &GuaranteeRequest, count: u64) -> Option<Duration> {
        let fits = |delay| {
            let delayed = GuaranteeRequest {
                delay: Some(delay),
                ..*request
            };
            self.try_class(&delayed, count).is_ok()
        };
        let range = self.params.delays;
        let mut delays = range.steps().chain([range.longest()]);
        let mut failing = 0;
        let first = delays.find(|delay| {
            let is_first = fits(*delay);
            if !is_first {
                failing = delay.nanos();
            }
            is_first
        })?;
        let mut fitting = first.nanos();
        while fitting - failing > 1 {
            let middle = failing + (fitting - failing) / 2;
            if fits(Duration::from_nanos(middle)) {
                fitting = middle;
            } else {
                failing = middle;
            }
        }
        Some(Duration::from_nanos(fitting))
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
        let (mut failing, mut fitting) = (request.smallest_frame.bytes(), largest);
        if failing >= fitting || fits(failing) || !fits(fitting) {
            return None;
        }
        while fitting - failing > 1 {
            let middle = failing + (fitting - failing) / 2;
            if fits(middle) {
                fitting = middle;
            } else {
                failing = middle;
            }
        }
        Some(ByteCount::new(fitting))
    }

    /// How many of `count` equal slices would be admitted; `None` for one, or where none would.
    fn count_offer(&self, request: &GuaranteeRequest, count: u64) -> Option<u64> {
        let delay = self.delay_of(request)?;
        let guarantee = request.with_delay(delay);
        let fits = |count| self.try_load(&self.load(&guarantee, count)).is_ok();
        let is_sound = request.rate != BitRate::ZERO && request.burst >= self.params.largest_frame;
        if count <= 1 || !is_sound || !fits(1) {
            return None;
        }
        let (mut fitting, mut failing) = (1, count);
        while failing - fitting > 1 {
            let middle = fitting + (failing - fitting) / 2;
            if fits(middle) {
                fitting = middle;
            } else {
                failing = middle;
            }
        }
        Some(fitting)
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
