//! The admission test: whether every delay bound can be kept at once.
//!
//! With σ_k and ρ_k the sums of bursts and rates of delay class k, whose delay is D_k, on a link
//! of rate C whose largest frame is L, every bound is met by serving the earliest deadline first
//! if and only if, whatever the slices send within their guarantees,
//!
//! > Σ ρ_k ≤ C, and for every class m that holds a slice:
//! > Σ_{k≤m} (σ_k + ρ_k (D_m − D_k)) + L ≤ C D_m.
//!
//! That is the condition of Liebeherr, Wrege and Ferrari (IEEE/ACM Transactions on Networking 4(6),
//! 1996) for arrivals bounded by leaky buckets, with one largest frame always counted as being
//! transmitted, because it may be a frame of the excess. The left side less C t is, as a function of the
//! interval t, a line of slope Σ_{k≤m} ρ_k − C ≤ 0 between two delays and jumps up only where a class
//! has a burst. So it is enough to test the delays of classes that hold slices:
//! - a class without slices adds no burst, so the line only falls since the class before it;
//! - below the shortest class in use nothing has to be sent, so nothing is tested (even L ≤ C t may fail
//!   there, harmlessly);
//! - beyond the longest class in use the line keeps falling, because Σ ρ_k ≤ C.

use super::counting::{Inflation, largest_as};
use super::{DelayClasses, GuaranteeParams, Problem, Refusal, Reservation};
use crate::Rate;
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, NANOS_PER_SECOND};

/// Link parameters of the admission test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionParams {
    /// The link's rate, or the part of it that may be guaranteed, and what it counts.
    pub link: Rate,
    /// Accounting of guaranteed rates and bursts, and of `largest_frame` and `buffer`. If the link
    /// counts more bytes per frame, guarantees are tested as if all their frames had the size for which
    /// the difference matters most: the smallest.
    pub accounting: Accounting,
    /// The largest frame of any traffic on the link, guaranteed or not.
    pub largest_frame: ByteCount,
    /// Buffer size, if limited: no guaranteed frame may then be lost because it is full.
    pub buffer: Option<ByteCount>,
    /// The delay classes.
    pub delay_classes: DelayClasses,
}

impl AdmissionParams {
    /// Whether another link has the same parameters but for its rate and buffer.
    #[must_use]
    pub fn differs_in_capacity_only(&self, other: &Self) -> bool {
        let mut changed = self.clone();
        changed.link.rate = other.link.rate;
        changed.buffer = other.buffer;
        changed == *other
    }

    /// How long the largest frame takes on the link.
    #[must_use]
    pub fn frame_time(&self) -> Duration {
        let frame = largest_as(self.accounting, self.link.accounting, self.largest_frame);
        let time = self.link.rate.time_to_send(frame);
        time.unwrap_or(Duration::from_nanos(u64::MAX))
    }
}

/// A requested guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuaranteeRequest {
    /// Committed rate (CIR).
    pub rate: BitRate,
    /// Committed burst (CBS).
    pub burst: ByteCount,
    /// Delay bound of frames within both; `None` for the time the rate takes to send the burst.
    pub delay: Option<Duration>,
}

impl GuaranteeRequest {
    /// The delay of its class: the objective rounded down; without one, the time that the rate takes to send the burst, rounded down (at
    /// least the shortest class). `None` if the objective is shorter than every class.
    #[must_use]
    pub fn delay_class(&self, classes: &DelayClasses) -> Option<Duration> {
        match self.delay {
            Some(objective) => classes.within(objective),
            None => {
                let rate = u128::from(self.rate.bits_per_second()).max(1);
                let nanos = u64::try_from(nanobits(self.burst) / rate).unwrap_or(u64::MAX);
                let own = Duration::from_nanos(nanos).max(classes.shortest());
                classes.within(own)
            }
        }
    }
}

/// An admitted guarantee: proof that it was tested, and the handle to release it.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted {
    params: GuaranteeParams,
    count: u64,
}

impl Admitted {
    const fn one(params: &GuaranteeParams) -> Self {
        Self {
            params: *params,
            count: 1,
        }
    }

    /// The guarantee, with its delay class.
    #[must_use]
    pub const fn params(&self) -> GuaranteeParams {
        self.params
    }

    /// Number of equal slices that have it.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

/// Guarantees admitted on one link, as sums per delay class: each operation is one pass over the delay
/// classes, however many slices there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    pub(super) params: AdmissionParams,
    pub(super) classes: Vec<ClassSums>,
    /// Largest sum of guaranteed rates, bit/s as the guarantees count.
    pub(super) rate_limit: u128,
    pub(super) rate: u128,
    /// Largest backlog of all guarantees, nanobits.
    pub(super) waiting: u128,
    /// Conversion of the guarantees' bytes to those of the link.
    inflation: Inflation,
    /// The largest frame as the link counts it.
    link_frame: ByteCount,
}

/// One class. All amounts are exact: bit/s, and nanobits (bit/s × ns), as the guarantees count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClassSums {
    pub(super) delay: Duration,
    /// What the link sends within the delay in addition to one largest frame.
    pub(super) limit: u128,
    pub(super) count: u64,
    pub(super) rate: u128,
    pub(super) burst: u128,
}

/// Resources of some equal slices together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Of their class.
    pub(super) delay: Duration,
    pub(super) count: u64,
    pub(super) rate: u128,
    pub(super) burst: u128,
}

/// Usage of a delay class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassUse {
    /// Its delay.
    pub delay: Duration,
    /// Slices in it.
    pub count: u64,
    /// Sum of their guaranteed rates.
    pub rate: BitRate,
    /// Sum of their bursts.
    pub burst: ByteCount,
    /// How much more burst this class could admit before its own condition fails, as the guarantees
    /// count (longer classes may allow less).
    pub slack: ByteCount,
}

/// What is reserved in one delay class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassReserved {
    /// Its delay.
    pub delay: Duration,
    /// Slices in it.
    pub count: u64,
    /// Sum of their guaranteed rates.
    pub rate: BitRate,
    /// Sum of their bursts.
    pub burst: ByteCount,
}

/// Nanobits in a byte.
pub(super) const NANOBITS_PER_BYTE: u128 = 8 * NANOS_PER_SECOND as u128;

impl Admission {
    /// No guarantees yet. The largest frame is at least one byte.
    #[must_use]
    pub fn new(mut params: AdmissionParams) -> Self {
        params.largest_frame = params.largest_frame.max(ByteCount::new(1));
        let AdmissionParams {
            link, accounting, ..
        } = params;
        let inflation = Inflation::between(accounting, link.accounting, params.largest_frame);
        let deflated = |amount: u128| {
            let whole = amount / u128::from(inflation.numerator);
            let rest = amount % u128::from(inflation.numerator);
            let denominator = u128::from(inflation.denominator);
            whole
                .saturating_mul(denominator)
                .saturating_add(rest * denominator / u128::from(inflation.numerator))
        };
        let link_frame = largest_as(accounting, link.accounting, params.largest_frame);
        let delays = params.delay_classes.delays().iter();
        let classes = delays
            .map(|&delay| ClassSums {
                delay,
                // Below 2^128 - 2^64: a sum that saturates is above it, and so rejected.
                limit: deflated(earned(link.rate, delay).saturating_sub(nanobits(link_frame))),
                count: 0,
                rate: 0,
                burst: 0,
            })
            .collect();
        Self {
            classes,
            rate_limit: deflated(u128::from(link.rate.bits_per_second())),
            rate: 0,
            waiting: 0,
            inflation,
            link_frame,
            params,
        }
    }

    /// As [`new`](Self::new), with what was reserved before and is kept elsewhere as sums. Nothing is tested.
    #[must_use]
    pub fn resume(
        params: AdmissionParams,
        reserved: impl IntoIterator<Item = ClassReserved>,
    ) -> Self {
        let mut admission = Self::new(params);
        for sums in reserved {
            let load = Load {
                delay: sums.delay,
                count: sums.count,
                rate: u128::from(sums.rate.bits_per_second()),
                burst: nanobits(sums.burst),
            };
            admission.add_load(&load);
        }
        admission
    }

    /// Whether nothing is reserved in other classes than these.
    pub(super) fn is_within(&self, classes: &DelayClasses) -> bool {
        let mut classes_in_use = self.classes_of_slices();
        classes_in_use.all(|sums| classes.position(sums.delay).is_some())
    }

    fn classes_of_slices(&self) -> impl Iterator<Item = &ClassSums> {
        self.classes.iter().filter(|sums| sums.count > 0)
    }

    /// The same guarantees on another link with the same accounting, and the delay classes that are in use.
    pub(super) fn moved_to(&self, params: AdmissionParams) -> Result<Self, Problem> {
        let mut moved = Self::new(params);
        for sums in self.classes_of_slices() {
            let load = Load {
                delay: sums.delay,
                count: sums.count,
                rate: sums.rate,
                burst: sums.burst,
            };
            moved.add_load(&load);
        }
        moved.waiting = self.waiting;
        if moved.rate > moved.rate_limit {
            return Err(Problem::Rate {
                asked: rate(moved.rate),
                left: moved.rate_limit(),
            });
        }
        let fails = |(sums, demand): &(ClassSums, u128)| sums.count > 0 && *demand > sums.limit;
        if let Some((sums, demand)) = moved.demands().find(fails) {
            return Err(moved.too_much(demand, sums.delay));
        }
        match moved.params.buffer {
            Some(buffer) if moved.waiting > nanobits(buffer) => Err(Problem::Buffer {
                asked: bytes_up(moved.waiting),
                left: buffer,
            }),
            _ => Ok(moved),
        }
    }

    /// The link parameters.
    #[must_use]
    pub const fn params(&self) -> &AdmissionParams {
        &self.params
    }

    /// Admit one slice with the requested guarantee.
    ///
    /// # Errors
    /// If not every bound, its own and those already admitted, could be met.
    pub fn try_admit(&mut self, request: &GuaranteeRequest) -> Result<Admitted, Refusal> {
        self.try_admit_many(request, 1)
    }

    /// Admit `count` equal slices, or none of them.
    ///
    /// # Errors
    /// As [`try_admit`](Self::try_admit).
    pub fn try_admit_many(
        &mut self,
        request: &GuaranteeRequest,
        count: u64,
    ) -> Result<Admitted, Refusal> {
        let delay = self.test(request, count)?;
        let admitted = Admitted {
            params: GuaranteeParams {
                rate: request.rate,
                burst: request.burst,
                delay,
            },
            count,
        };
        self.add(&admitted);
        Ok(admitted)
    }

    /// Release a guarantee.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a guarantee can be released only once"
    )]
    pub fn release(&mut self, admitted: Admitted) {
        self.subtract(&admitted);
    }

    /// Reserve for one slice what was admitted before, without another test.
    pub(super) fn restore(&mut self, reservation: &Reservation) {
        self.add(&Admitted::one(&reservation.guarantee));
        self.waiting = self.waiting.saturating_add(self.held(reservation));
    }

    /// Release what one slice has reserved here.
    pub(super) fn give_back(&mut self, reservation: &Reservation) {
        self.subtract(&Admitted::one(&reservation.guarantee));
        self.waiting = self.waiting.saturating_sub(self.held(reservation));
    }

    /// What it takes of the buffer beyond its guarantee, nanobits.
    fn held(&self, reservation: &Reservation) -> u128 {
        let Reservation { guarantee, longest } = reservation;
        let longer = longest.nanos().saturating_sub(guarantee.delay.nanos());
        u128::from(guarantee.rate.bits_per_second()) * u128::from(longer)
    }

    /// Replace an admitted guarantee. Only the change is tested: lowering a guarantee never fails.
    ///
    /// # Errors
    /// As [`try_admit`](Self::try_admit); then `admitted` is unchanged.
    pub fn try_change(
        &mut self,
        admitted: &mut Admitted,
        request: &GuaranteeRequest,
    ) -> Result<(), Refusal> {
        self.subtract(admitted);
        match self.try_admit_many(request, admitted.count) {
            Ok(changed) => {
                *admitted = changed;
                Ok(())
            }
            Err(refusal) => {
                self.add(admitted);
                Err(refusal)
            }
        }
    }

    /// Largest sum of guaranteed rates, as the guarantees count.
    #[must_use]
    pub fn rate_limit(&self) -> BitRate {
        rate(self.rate_limit)
    }

    /// Unreserved rate of the link, as the guarantees count.
    #[must_use]
    pub fn rate_left(&self) -> BitRate {
        rate(self.rate_limit.saturating_sub(self.rate))
    }

    /// Unreserved buffer; `None` if unlimited.
    #[must_use]
    pub fn buffer_left(&self) -> Option<ByteCount> {
        self.nanobits_left().map(bytes)
    }

    /// The delay classes that hold slices, shortest first.
    pub fn classes_in_use(&self) -> impl Iterator<Item = ClassUse> {
        self.demands()
            .filter(|(sums, _)| sums.count > 0)
            .map(|(sums, demand)| ClassUse {
                delay: sums.delay,
                count: sums.count,
                rate: rate(sums.rate),
                burst: bytes(sums.burst),
                slack: bytes(sums.limit.saturating_sub(demand)),
            })
    }

    /// The delay of the class of a request: its objective rounded down; without one, the time its rate takes to send
    /// its burst, rounded down (at least the shortest class). `None` if the objective is shorter than
    /// every class.
    #[must_use]
    pub fn delay_class(&self, request: &GuaranteeRequest) -> Option<Duration> {
        request.delay_class(&self.params.delay_classes)
    }

    pub(super) fn test(&self, request: &GuaranteeRequest, count: u64) -> Result<Duration, Refusal> {
        self.try_class(request, count).map_err(|problem| Refusal {
            offer: self.offer(request, count),
            problem,
        })
    }

    /// The delay of the class that `count` such slices would be in, or the violated condition.
    pub(super) fn try_class(
        &self,
        request: &GuaranteeRequest,
        count: u64,
    ) -> Result<Duration, Problem> {
        if request.rate == BitRate::ZERO {
            return Err(Problem::ZeroRate);
        }
        if request.burst < self.params.largest_frame {
            return Err(Problem::BurstBelowFrame {
                burst: request.burst,
                largest_frame: self.params.largest_frame,
            });
        }
        let Some(delay) = self.delay_class(request) else {
            return Err(Problem::DelayBelowShortest {
                delay: request.delay.unwrap_or_default(),
                shortest: self.params.delay_classes.shortest(),
            });
        };
        self.try_load(&Load::new(request.rate, request.burst, delay, count))?;
        Ok(delay)
    }

    pub(super) fn try_load(&self, load: &Load) -> Result<(), Problem> {
        let rate_sum = self.rate.saturating_add(load.rate);
        if rate_sum > self.rate_limit {
            return Err(Problem::Rate {
                asked: rate(load.rate),
                left: self.rate_left(),
            });
        }
        let (mut demand, mut rate_before, mut delay_before) = (0u128, 0u128, 0u64);
        for sums in &self.classes {
            let mut sums = *sums;
            if sums.delay == load.delay {
                sums.count = sums.count.saturating_add(load.count);
                sums.rate += load.rate;
                sums.burst = sums.burst.saturating_add(load.burst);
            }
            let gap = sums.delay.nanos() - delay_before;
            // Rates add up to at most the link's, a u64: the product fits.
            demand = demand
                .saturating_add(rate_before * u128::from(gap))
                .saturating_add(sums.burst);
            if sums.count > 0 && demand > sums.limit {
                return Err(self.too_much(demand, sums.delay));
            }
            delay_before = sums.delay.nanos();
            rate_before += sums.rate;
        }
        match self.nanobits_left() {
            Some(left) if load.waiting() > left => Err(Problem::Buffer {
                asked: bytes_up(load.waiting()),
                left: bytes(left),
            }),
            _ => Ok(()),
        }
    }

    fn too_much(&self, demand: u128, within: Duration) -> Problem {
        let inflated = demand.saturating_mul(u128::from(self.inflation.numerator))
            / u128::from(self.inflation.denominator);
        Problem::Delay {
            within,
            demand: bytes_up(inflated.saturating_add(nanobits(self.link_frame))),
            supply: self.params.link.rate.bytes_in(within),
        }
    }

    /// Every class with the demand within its delay.
    pub(super) fn demands(&self) -> impl Iterator<Item = (ClassSums, u128)> {
        self.classes.iter().scan(
            (0u128, 0u128, 0u64),
            |(demand, rate_before, delay_before), &sums| {
                let gap = sums.delay.nanos() - *delay_before;
                *demand = demand
                    .saturating_add(*rate_before * u128::from(gap))
                    .saturating_add(sums.burst);
                *delay_before = sums.delay.nanos();
                *rate_before += sums.rate;
                Some((sums, *demand))
            },
        )
    }

    /// Unreserved buffer, nanobits.
    pub(super) fn nanobits_left(&self) -> Option<u128> {
        let buffer = nanobits(self.params.buffer?);
        Some(buffer.saturating_sub(self.waiting))
    }

    fn add(&mut self, admitted: &Admitted) {
        self.add_load(&Load::of(admitted));
    }

    fn add_load(&mut self, load: &Load) {
        self.rate = self.rate.saturating_add(load.rate);
        self.waiting = self.waiting.saturating_add(load.waiting());
        if let Some(sums) = self.class_mut(load.delay) {
            sums.count = sums.count.saturating_add(load.count);
            sums.rate = sums.rate.saturating_add(load.rate);
            sums.burst = sums.burst.saturating_add(load.burst);
        }
    }

    /// The inverse of [`add`](Self::add); only for guarantees admitted here.
    fn subtract(&mut self, admitted: &Admitted) {
        let load = Load::of(admitted);
        self.rate = self.rate.saturating_sub(load.rate);
        self.waiting = self.waiting.saturating_sub(load.waiting());
        if let Some(sums) = self.class_mut(load.delay) {
            sums.count = sums.count.saturating_sub(load.count);
            sums.rate = sums.rate.saturating_sub(load.rate);
            sums.burst = sums.burst.saturating_sub(load.burst);
        }
    }

    fn class_mut(&mut self, delay: Duration) -> Option<&mut ClassSums> {
        let position = self.params.delay_classes.position(delay);
        debug_assert!(position.is_some(), "{delay} is the delay of a class");
        self.classes.get_mut(position?)
    }
}

impl Load {
    pub(super) fn new(rate: BitRate, burst: ByteCount, delay: Duration, count: u64) -> Self {
        Self {
            delay,
            count,
            rate: u128::from(rate.bits_per_second()) * u128::from(count),
            burst: nanobits(burst).saturating_mul(u128::from(count)),
        }
    }

    fn of(admitted: &Admitted) -> Self {
        let GuaranteeParams { rate, burst, delay } = admitted.params;
        Self::new(rate, burst, delay, admitted.count)
    }

    /// Its largest backlog, nanobits: the bursts, plus the rates times the delay.
    fn waiting(&self) -> u128 {
        self.rate
            .saturating_mul(u128::from(self.delay.nanos()))
            .saturating_add(self.burst)
    }
}

/// Rate times time, nanobits.
fn earned(rate: BitRate, time: Duration) -> u128 {
    u128::from(rate.bits_per_second()) * u128::from(time.nanos())
}

pub(super) fn nanobits(size: ByteCount) -> u128 {
    u128::from(size.bytes()) * NANOBITS_PER_BYTE
}

/// Whole bytes, rounded down.
pub(super) fn bytes(nanobits: u128) -> ByteCount {
    ByteCount::new(u64::try_from(nanobits / NANOBITS_PER_BYTE).unwrap_or(u64::MAX))
}

fn bytes_up(nanobits: u128) -> ByteCount {
    ByteCount::new(u64::try_from(nanobits.div_ceil(NANOBITS_PER_BYTE)).unwrap_or(u64::MAX))
}

pub(super) fn rate(bits_per_second: u128) -> BitRate {
    BitRate::new(u64::try_from(bits_per_second).unwrap_or(u64::MAX))
}
