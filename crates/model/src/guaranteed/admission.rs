//! The admission test: whether every delay bound can be kept at once.
//!
//! With σ_k and ρ_k the sums of bursts and rates of the slices with delay D_k, as the link counts them, on a link
//! of rate C whose largest frame is L, every bound is met by serving the earliest deadline first
//! if and only if, whatever the slices send within their guarantees,
//!
//! > Σ ρ_k ≤ C, and for every delay D_m of a slice:
//! > Σ_{k≤m} (σ_k + ρ_k (D_m − D_k)) + L ≤ C D_m.
//!
//! That is the condition of Liebeherr, Wrege and Ferrari (IEEE/ACM Transactions on Networking 4(6),
//! 1996) for arrivals bounded by leaky buckets, with one largest frame always counted as being
//! transmitted, because it may be a frame of the excess (step 3 of the proof, docs/mechanisms/guaranteed-bound.md). The left side
//! less C t is, as a function of the interval t, a line of slope Σ_{k≤m} ρ_k − C ≤ 0 between two delays and jumps up only where
//! a slice has its burst. So it is enough to test the delays of slices:
//! - below the shortest delay nothing has to be sent, so nothing is tested (even L ≤ C t may fail
//!   there, harmlessly);
//! - beyond the longest delay the line keeps falling, because Σ ρ_k ≤ C.
//!
//! Where [no delay is promised](DelayRange::NONE), the first of these conditions is the whole test.
//!
//! Slices with the same delay are one *delay class*. Up to [`MAX_EXACT`] delays are classes as they were asked for. A further delay is rounded
//! down to a class in use or to a [step](DelayRange::steps), so that a test takes a bounded time.

use super::choice::choose;
use super::counting::{Inflation, largest_as};
use super::sums::{
    ClassSums, Load, NANOBITS_PER_BYTE, bytes, bytes_up, demands, earned, nanobits, rate,
};
use super::{
    ClassReserved, ClassUse, DelayRange, Free, GuaranteeParams, GuaranteeRequest, Problem, Refusal,
    Reservation,
};
use crate::Rate;
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// Link parameters of the admission test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionParams {
    /// The link's rate, or the part of it that may be guaranteed, and what it counts.
    pub link: Rate,
    /// Accounting of guaranteed rates and bursts, and of `largest_frame` and `buffer`. If the link
    /// counts more bytes per frame, a guarantee is tested as if all its frames had the size for which
    /// the difference matters most: its [smallest](GuaranteeRequest::smallest_frame).
    pub accounting: Accounting,
    /// The largest frame of any traffic on the link, guaranteed or not.
    pub largest_frame: ByteCount,
    /// Buffer size, if limited: no guaranteed frame may then be lost because it is full.
    pub buffer: Option<ByteCount>,
    /// The delays that may be guaranteed.
    pub delays: DelayRange,
}

/// An admitted guarantee: proof that it was tested, and the handle to release it.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted {
    params: GuaranteeParams,
    count: u64,
}

impl Admitted {
    /// The guarantee, with its delay.
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

/// Number of delays that are classes as they were asked for.
pub const MAX_EXACT: usize = 128;

/// Guarantees admitted on one link, as sums per delay class: each operation is one pass over the delay
/// classes, however many slices there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    pub(super) params: AdmissionParams,
    /// Classes with slices, the shortest delay first.
    pub(super) classes: Vec<ClassSums>,
    /// Sum of guaranteed rates as the link counts them, bit/s.
    pub(super) rate: u128,
    /// Largest backlog of all guarantees, nanobits as the guarantees count.
    pub(super) waiting: u128,
    /// The largest frame as the link counts it.
    pub(super) link_frame: ByteCount,
}

impl Admission {
    /// No guarantees yet. The largest frame is at least one byte.
    #[must_use]
    pub fn new(mut params: AdmissionParams) -> Self {
        params.largest_frame = params.largest_frame.max(ByteCount::new(1));
        let AdmissionParams {
            link, accounting, ..
        } = params;
        Self {
            classes: Vec::new(),
            rate: 0,
            waiting: 0,
            link_frame: largest_as(accounting, link.accounting, params.largest_frame),
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
            admission.add(&ClassSums {
                delay: sums.delay,
                count: sums.count,
                rate: u128::from(sums.rate.bits_per_second()),
                burst: nanobits(sums.burst),
                link_rate: u128::from(sums.link_rate.bits_per_second()),
                link_burst: nanobits(sums.link_burst),
            });
        }
        admission
    }

    /// Tests everything that is reserved at once, as sums that are kept elsewhere may need.
    ///
    /// # Errors
    /// The first limit of the link that is exceeded.
    pub fn test_all(&self) -> Result<(), Problem> {
        let rate_limit = self.rate_limit();
        if self.rate > u128::from(rate_limit.bits_per_second()) {
            return Err(Problem::Rate {
                asked: rate(self.rate),
                on_link: rate(self.rate),
                free: Free {
                    rate: rate_limit,
                    ..self.free()
                },
            });
        }
        let fails = |(sums, demand): &(ClassSums, u128)| *demand > self.limit(sums.delay);
        if let Some((sums, demand)) = self.demands().find(fails) {
            return Err(self.too_much(demand, sums.delay));
        }
        match self.params.buffer {
            Some(buffer) if self.waiting > nanobits(buffer) => Err(Problem::Buffer {
                asked: bytes_up(self.waiting),
                left: buffer,
            }),
            _ => Ok(()),
        }
    }

    /// The same guarantees where the buffer is not limited.
    pub(super) fn without_buffer(&self) -> Self {
        let mut unlimited = self.clone();
        unlimited.params.buffer = None;
        unlimited
    }

    /// Returns true if the data that may wait here fits the buffer of `other`.
    pub(super) fn fits_buffer_of(&self, other: &Self) -> bool {
        let buffer = other.params.buffer.map(nanobits);
        buffer.is_none_or(|buffer| self.waiting <= buffer)
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
        let delay = choose(std::slice::from_ref(self), request, count, None)?;
        Ok(self.admit(request, count, delay))
    }

    /// Admit one slice that had the delay `kept` before: if it states no delay, it keeps that one while it fits.
    ///
    /// # Errors
    /// As [`try_admit`](Self::try_admit).
    pub fn try_admit_again(
        &mut self,
        request: &GuaranteeRequest,
        kept: Option<Duration>,
    ) -> Result<Admitted, Refusal> {
        let delay = choose(std::slice::from_ref(self), request, 1, kept)?;
        Ok(self.admit(request, 1, delay))
    }

    fn admit(&mut self, request: &GuaranteeRequest, count: u64, delay: Duration) -> Admitted {
        let params = request.with_delay(delay);
        self.add(&self.load(&params, count));
        Admitted { params, count }
    }

    /// Release a guarantee.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a guarantee can be released only once"
    )]
    pub fn release(&mut self, admitted: Admitted) {
        self.subtract(&self.load(&admitted.params, admitted.count));
    }

    /// Count a guarantee that was admitted on another link with just its delay, or the latest that there is here.
    ///
    /// # Errors
    /// If not every bound could be met. Nothing is changed then.
    pub fn try_restore(&mut self, guarantee: &GuaranteeParams) -> Result<Duration, Refusal> {
        let delays = self.params.delays;
        if delays.is_none() && guarantee.delay > Duration::ZERO {
            let delay = guarantee.delay;
            let request = guarantee.request(Some(delay));
            return Err(self.refusal(Problem::NoDelays { delay }, &request, 1));
        }
        let delay = guarantee.delay.min(delays.latest());
        let guarantee = GuaranteeParams {
            delay,
            ..*guarantee
        };
        if delay < delays.shortest() {
            let shortest = delays.shortest();
            let problem = Problem::DelayBelowShortest { delay, shortest };
            return Err(self.refusal(problem, &guarantee.request(Some(delay)), 1));
        }
        self.test_exactly(&guarantee)?;
        self.restore(&guarantee);
        Ok(delay)
    }

    /// Count a guarantee that was admitted before, without another test.
    pub fn restore(&mut self, guarantee: &GuaranteeParams) {
        self.add(&self.load(guarantee, 1));
    }

    /// Release a guarantee that was counted before. `None`, and nothing is changed, if less is counted with its delay.
    #[must_use]
    pub fn try_release(&mut self, guarantee: &GuaranteeParams) -> Option<()> {
        let load = self.load(guarantee, 1);
        let sums = self.classes.get(self.position(load.delay).ok()?)?;
        let is_counted = sums.count >= load.count
            && sums.rate >= load.rate
            && sums.burst >= load.burst
            && sums.link_rate >= load.link_rate
            && sums.link_burst >= load.link_burst;
        is_counted.then(|| self.subtract(&load))
    }

    /// Sums of the guarantees with a delay.
    #[must_use]
    pub fn class(&self, delay: Duration) -> Option<ClassReserved> {
        let at = self.position(delay).ok()?;
        self.classes.get(at).map(ClassReserved::of)
    }

    /// Reserve for one slice what was admitted before, without another test.
    pub(super) fn take(&mut self, reservation: &Reservation) {
        self.restore(&reservation.guarantee);
        self.waiting = self.waiting.saturating_add(self.held(reservation));
    }

    /// Release what one slice has reserved here.
    pub(super) fn give_back(&mut self, reservation: &Reservation) {
        self.subtract(&self.load(&reservation.guarantee, 1));
        self.waiting = self.waiting.saturating_sub(self.held(reservation));
    }

    /// Returns the buffer that it takes beyond its guarantee, nanobits.
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
        let before = self.load(&admitted.params, admitted.count);
        self.subtract(&before);
        match self.try_admit_many(request, admitted.count) {
            Ok(changed) => {
                *admitted = changed;
                Ok(())
            }
            Err(refusal) => {
                self.add(&before);
                Err(refusal)
            }
        }
    }

    /// Rate of the link: the largest sum of guaranteed rates, as the link counts them.
    #[must_use]
    pub const fn rate_limit(&self) -> BitRate {
        self.params.link.rate
    }

    /// Unreserved rate of the link, as it counts.
    #[must_use]
    pub fn rate_left(&self) -> BitRate {
        rate(self.bit_rate_left())
    }

    /// How much of the link is reserved only because frames may be small: what guarantees would not take if all
    /// frames were the largest.
    #[must_use]
    pub fn held_for_small_frames(&self) -> BitRate {
        let large = self.inflation(self.params.largest_frame);
        let rates = self.classes.iter().map(|sums| sums.rate).sum::<u128>();
        let rates = u64::try_from(rates).unwrap_or(u64::MAX);
        rate(self.rate.saturating_sub(large.inflate(rates)))
    }

    pub(super) fn bit_rate_left(&self) -> u128 {
        u128::from(self.rate_limit().bits_per_second()).saturating_sub(self.rate)
    }

    /// Unreserved buffer; `None` if unlimited.
    #[must_use]
    pub fn buffer_left(&self) -> Option<ByteCount> {
        self.nanobits_left().map(bytes)
    }

    /// The delay classes, shortest first.
    pub fn classes_in_use(&self) -> impl Iterator<Item = ClassUse> {
        self.demands().map(|(sums, demand)| ClassUse {
            reserved: ClassReserved::of(&sums),
            slack: bytes(self.limit(sums.delay).saturating_sub(demand)),
        })
    }

    /// The delay that a request [wants](GuaranteeRequest::wanted_delay), rounded down where there are too many others. `None` if it
    /// asks for less than the shortest.
    #[must_use]
    pub fn delay_of(&self, request: &GuaranteeRequest) -> Option<Duration> {
        let wanted = request.wanted_delay(self.params.delays)?;
        Some(self.available(wanted))
    }

    /// A delay, at least the shortest, as a class can have it: rounded down to a class in use or a step where there are too many others.
    pub(super) fn available(&self, wanted: Duration) -> Duration {
        let at = self.position(wanted);
        let delays = self.params.delays;
        if at.is_ok() || self.classes.len() < MAX_EXACT || wanted >= delays.latest() {
            return wanted;
        }
        let in_use = at.unwrap_or_else(|at| at).checked_sub(1);
        let in_use = in_use.and_then(|at| Some(self.classes.get(at)?.delay));
        in_use.max(delays.step_within(wanted)).unwrap_or(wanted)
    }

    /// Bits that the link sends until a deadline in addition to one largest frame, nanobits.
    pub(super) fn limit(&self, delay: Duration) -> u128 {
        if self.params.delays.is_none() {
            return nanobits(ByteCount::new(u64::MAX));
        }
        let until_deadline = self.params.delays.to_deadline(delay);
        // Below 2^128 - 2^64: a sum that saturates is above it, and so rejected.
        earned(self.rate_limit(), until_deadline).saturating_sub(nanobits(self.link_frame))
    }

    /// Checks that one slice would be admitted with just this delay.
    pub(super) fn test_exactly(&self, guarantee: &GuaranteeParams) -> Result<(), Refusal> {
        let request = guarantee.request(Some(guarantee.delay));
        let tested = match self.check(&request) {
            Ok(()) => self.try_load(&self.load(guarantee, 1)),
            Err(problem) => Err(problem),
        };
        tested.map_err(|problem| self.refusal(problem, &request, 1))
    }

    pub(super) fn refusal(
        &self,
        problem: Problem,
        request: &GuaranteeRequest,
        count: u64,
    ) -> Refusal {
        Refusal {
            offer: Box::new(self.offer(request, count)),
            free: self.free(),
            problem,
        }
    }

    fn free(&self) -> Free {
        Free {
            rate: self.rate_left(),
            link: self.params.link.accounting,
            counts: self.params.accounting,
        }
    }

    /// Checks that a request makes sense by itself.
    pub(super) fn check(&self, request: &GuaranteeRequest) -> Result<(), Problem> {
        let largest_frame = self.params.largest_frame;
        if request.rate == BitRate::ZERO {
            return Err(Problem::ZeroRate);
        }
        if request.burst < largest_frame {
            return Err(Problem::BurstBelowFrame {
                burst: request.burst,
                largest_frame,
            });
        }
        if request.smallest_frame > largest_frame {
            return Err(Problem::SmallestAboveLargest {
                smallest_frame: request.smallest_frame,
                largest_frame,
            });
        }
        Ok(())
    }

    pub(super) fn try_load(&self, load: &Load) -> Result<(), Problem> {
        self.try_deadlines(load)?;
        match self.nanobits_left() {
            Some(left) if load.waiting() > left => Err(Problem::Buffer {
                asked: bytes_up(load.waiting()),
                left: bytes(left),
            }),
            _ => Ok(()),
        }
    }

    /// The conditions other than that of the buffer: with a longer delay they hold, too.
    pub(super) fn try_deadlines(&self, load: &Load) -> Result<(), Problem> {
        if self.rate.saturating_add(load.link_rate)
            > u128::from(self.rate_limit().bits_per_second())
        {
            return Err(Problem::Rate {
                asked: rate(load.rate),
                on_link: rate(load.link_rate),
                free: self.free(),
            });
        }
        for (sums, demand) in demands(self.with(load)) {
            if demand > self.limit(sums.delay) {
                return Err(self.too_much(demand, sums.delay));
            }
        }
        Ok(())
    }

    /// The classes as they would be with a load.
    pub(super) fn with<'a>(&'a self, load: &'a Load) -> impl Iterator<Item = ClassSums> + 'a {
        let (before, own, after) = match self.position(load.delay) {
            Ok(at) => (
                &self.classes[..at],
                self.classes[at].plus(load),
                &self.classes[at + 1..],
            ),
            Err(at) => (&self.classes[..at], *load, &self.classes[at..]),
        };
        let own = std::iter::once(own);
        before
            .iter()
            .copied()
            .chain(own)
            .chain(after.iter().copied())
    }

    fn too_much(&self, demand: u128, within: Duration) -> Problem {
        let until_deadline = self.params.delays.to_deadline(within);
        Problem::Delay {
            within,
            demand: bytes_up(demand.saturating_add(nanobits(self.link_frame))),
            supply: self.params.link.rate.bytes_in(until_deadline),
        }
    }

    /// Every class with the demand until its deadline.
    pub(super) fn demands(&self) -> impl Iterator<Item = (ClassSums, u128)> {
        demands(self.classes.iter().copied())
    }

    /// Returns the load of equal slices with a guarantee.
    pub(super) fn load(&self, guarantee: &GuaranteeParams, count: u64) -> Load {
        let inflation = self.inflation(guarantee.smallest_frame);
        let many = u128::from(count);
        let link_burst = inflation.inflate(guarantee.burst.bytes());
        ClassSums {
            delay: guarantee.delay,
            count,
            rate: u128::from(guarantee.rate.bits_per_second()) * many,
            burst: nanobits(guarantee.burst).saturating_mul(many),
            link_rate: inflation
                .inflate(guarantee.rate.bits_per_second())
                .saturating_mul(many),
            link_burst: link_burst
                .saturating_mul(NANOBITS_PER_BYTE)
                .saturating_mul(many),
        }
    }

    pub(super) fn inflation(&self, smallest_frame: ByteCount) -> Inflation {
        let AdmissionParams {
            link, accounting, ..
        } = self.params;
        let largest = self.params.largest_frame.max(smallest_frame);
        Inflation::between(accounting, link.accounting, smallest_frame, largest)
    }

    /// Unreserved buffer, nanobits.
    pub(super) fn nanobits_left(&self) -> Option<u128> {
        let buffer = nanobits(self.params.buffer?);
        Some(buffer.saturating_sub(self.waiting))
    }

    pub(super) fn add(&mut self, load: &Load) {
        self.rate = self.rate.saturating_add(load.link_rate);
        self.waiting = self.waiting.saturating_add(load.waiting());
        match self.position(load.delay) {
            Ok(at) => self.classes[at] = self.classes[at].plus(load),
            Err(at) if load.count > 0 => self.classes.insert(at, *load),
            Err(_) => {}
        }
    }

    /// The inverse of [`add`](Self::add); only for what was added here.
    pub(super) fn subtract(&mut self, load: &Load) {
        self.rate = self.rate.saturating_sub(load.link_rate);
        self.waiting = self.waiting.saturating_sub(load.waiting());
        let found = self.position(load.delay);
        debug_assert!(found.is_ok(), "nothing is reserved within {}", load.delay);
        let Ok(at) = found else { return };
        let sums = &mut self.classes[at];
        sums.count = sums.count.saturating_sub(load.count);
        sums.rate = sums.rate.saturating_sub(load.rate);
        sums.burst = sums.burst.saturating_sub(load.burst);
        sums.link_rate = sums.link_rate.saturating_sub(load.link_rate);
        sums.link_burst = sums.link_burst.saturating_sub(load.link_burst);
        if sums.count == 0 {
            self.classes.remove(at);
        }
    }

    /// The position of a class, or where it would be.
    fn position(&self, delay: Duration) -> Result<usize, usize> {
        self.classes.binary_search_by_key(&delay, |sums| sums.delay)
    }
}
