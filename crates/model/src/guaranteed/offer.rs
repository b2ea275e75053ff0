//! What would be accepted: each number of a request pushed as far as it goes, the others unchanged.
//!
//! The conditions are linear in each number, so that within one class the limit is a division.
//! A request without objective changes its class with its rate and burst; then every class is
//! examined with the rates or bursts that belong to it.

use super::Offer;
use super::admission::{Admission, GuaranteeRequest, Load, bytes, nanobits, rate};
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
        }
    }

    fn rate_offer(&self, request: &GuaranteeRequest, count: u64, most: u64) -> Option<BitRate> {
        if request.burst < self.params.largest_frame {
            return None;
        }
        let most = u128::from(most);
        if request.delay.is_some() {
            let delay = self.delay_class(request)?;
            return self.rate_in(delay, request.burst, count, most).map(rate);
        }
        // The shorter the class, the higher the rates that send the burst within its delay.
        let delay_classes = &self.params.delay_classes;
        delay_classes.delays().iter().find_map(|&delay| {
            let bound = if delay == delay_classes.shortest() {
                most
            } else {
                most.min(nanobits(request.burst) / u128::from(delay.nanos().max(1)))
            };
            let rate = rate(self.rate_in(delay, request.burst, count, bound)?);
            let offered = GuaranteeRequest { rate, ..*request };
            (self.delay_class(&offered) == Some(delay)).then_some(rate)
        })
    }

    fn rate_in(&self, delay: Duration, burst: ByteCount, count: u64, most: u128) -> Option<u128> {
        let count = u128::from(count.max(1));
        let burst = nanobits(burst);
        let mut most = most.min(self.rate_limit.saturating_sub(self.rate) / count);
        for &(gap, left) in &self.headroom(delay)?.classes {
            let beside_burst = (left / count).checked_sub(burst)?;
            most = most.min(beside_burst.checked_div(gap).unwrap_or(most));
        }
        if let Some(left) = self.nanobits_left() {
            let beside_burst = (left / count).checked_sub(burst)?;
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
            let delay = self.delay_class(request)?;
            return self.burst_in(delay, request.rate, count, most);
        }
        // The longer the class, the larger the bursts that the rate sends within its delay.
        let delays = self.params.delay_classes.delays();
        delays.iter().enumerate().rev().find_map(|(index, &delay)| {
            let bound = match delays.get(index + 1) {
                Some(next) => {
                    let sent =
                        u128::from(request.rate.bits_per_second()) * u128::from(next.nanos());
                    most.min(bytes(sent.saturating_sub(1)))
                }
                None => most,
            };
            let burst = self.burst_in(delay, request.rate, count, bound)?;
            let offered = GuaranteeRequest { burst, ..*request };
            (self.delay_class(&offered) == Some(delay)).then_some(burst)
        })
    }

    fn burst_in(
        &self,
        delay: Duration,
        rate: BitRate,
        count: u64,
        most: ByteCount,
    ) -> Option<ByteCount> {
        let count = u128::from(count.max(1));
        let rate = u128::from(rate.bits_per_second());
        if self.rate.saturating_add(rate.saturating_mul(count)) > self.rate_limit {
            return None;
        }
        let mut most = nanobits(most);
        for &(gap, left) in &self.headroom(delay)?.classes {
            most = most.min((left / count).checked_sub(rate.saturating_mul(gap))?);
        }
        if let Some(left) = self.nanobits_left() {
            let at_rate = rate.saturating_mul(u128::from(delay.nanos()));
            most = most.min((left / count).checked_sub(at_rate)?);
        }
        let burst = bytes(most);
        (burst >= self.params.largest_frame).then_some(burst)
    }

    fn delay_offer(&self, request: &GuaranteeRequest, count: u64) -> Option<Duration> {
        let mut delays = self.params.delay_classes.delays().iter().copied();
        delays.find(|&delay| {
            let delayed = GuaranteeRequest {
                delay: Some(delay),
                ..*request
            };
            self.try_class(&delayed, count).is_ok()
        })
    }

    /// How many of `count` equal slices would be admitted; `None` for one, or where none would.
    fn count_offer(&self, request: &GuaranteeRequest, count: u64) -> Option<u64> {
        let delay = self.delay_class(request)?;
        let fits = |count| {
            let load = Load::new(request.rate, request.burst, delay, count);
            self.try_load(&load).is_ok()
        };
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

    /// From the class with delay `first` on; `None` where that bears nothing at all.
    fn headroom(&self, first: Duration) -> Option<Headroom> {
        let classes = self
            .demands()
            .filter(|(sums, _)| sums.delay == first || (sums.delay > first && sums.count > 0))
            .map(|(sums, demand)| {
                let gap = u128::from(sums.delay.nanos().saturating_sub(first.nanos()));
                Some((gap, sums.limit.checked_sub(demand)?))
            })
            .collect::<Option<_>>()?;
        Some(Headroom { classes })
    }
}
