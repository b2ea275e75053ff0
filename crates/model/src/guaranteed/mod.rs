//! Slices with a proved delay bound: their parameters and the admission test.

mod admission;
mod choice;
mod counting;
mod delay_range;
mod offer;
mod refusal;
mod reservations;
mod set;
mod sums;

pub use admission::{Admission, AdmissionParams, Admitted};
pub use choice::{DelayReason, GuaranteeRequest};
pub use counting::{Inflation, largest_as};
pub use delay_range::DelayRange;
pub use refusal::{Free, Offer, Problem, Refusal};
pub use reservations::{Reservation, Reservations};
pub use set::SetMember;
pub use sums::{ClassReserved, ClassUse};

use counting::smallest_as;

use crate::QueueLimitParams;
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// An admitted guarantee: a frame within (rate, burst) leaves, last bit included, no later than its delay after it
/// arrived, plus what the underlying device adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuaranteeParams {
    /// Committed rate (CIR), at least 1 bit/s.
    pub rate: BitRate,
    /// Committed burst (CBS), at least one largest frame.
    pub burst: ByteCount,
    /// The delay D + δ, at most the objective.
    pub delay: Duration,
    /// The smallest frame it was admitted for: smaller ones are charged as this. Zero where none is stated.
    pub smallest_frame: ByteCount,
}

impl GuaranteeParams {
    /// The request that it was given for, which stated this delay.
    #[must_use]
    pub const fn request(&self, delay: Option<Duration>) -> GuaranteeRequest {
        GuaranteeRequest {
            rate: self.rate,
            burst: self.burst,
            delay,
            smallest_frame: self.smallest_frame,
        }
    }

    /// The most that a slice within its guarantee has waiting (step 5 of the proof): σ + ρ (D + δ), rounded up.
    #[must_use]
    pub fn largest_backlog(&self) -> ByteCount {
        self.burst + self.rate.bytes_in(self.delay) + ByteCount::new(1)
    }

    /// The same as L2 counts it at most, as queues do.
    #[must_use]
    pub fn largest_backlog_l2(&self, common: &GuaranteedParams) -> ByteCount {
        let inflation = Inflation::between(
            common.accounting,
            Accounting::L2,
            self.smallest_frame,
            common.largest_frame.max(self.smallest_frame),
        );
        let bytes = inflation.inflate(self.largest_backlog().bytes());
        ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The same in packets, where all are as small as they may be.
    #[must_use]
    pub fn largest_backlog_packets(&self, accounting: Accounting) -> u64 {
        let smallest = smallest_as(accounting).max(self.smallest_frame);
        let backlog = self.largest_backlog().bytes();
        backlog.div_ceil(smallest.bytes().max(1))
    }
}

/// Most distinct delays of the guarantees of one policy. The admission test rounds the delays beyond a smaller number of them.
pub const MAX_DELAYS: usize = 256;

/// The most a slice may send, even if the link is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaximumParams {
    /// Peak rate (PIR), at least the committed rate.
    pub rate: BitRate,
    /// Peak burst (PBS), at least one largest frame.
    pub burst: ByteCount,
}

/// One validated slice of a guaranteed scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceParams {
    /// Its guarantee; `None` for best effort.
    pub guarantee: Option<GuaranteeParams>,
    /// Its maximum; `None` if limited only by the link.
    pub maximum: Option<MaximumParams>,
    /// Weight of its share of the excess among the slices of its tenant, at least 1.
    pub weight: u32,
    /// Its tenant: a position in [`GuaranteedParams::tenants`].
    pub tenant: u32,
    /// Its queue limit.
    pub queue_limit: QueueLimitParams,
}

/// A tenant: slices that share one portion of the excess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantParams {
    /// The tenant's name.
    pub name: String,
    /// Weight of its share of the excess among tenants, at least 1.
    pub weight: u32,
}

/// Parameters common to all slices of one guaranteed scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteedParams {
    /// Accounting of rates and bursts.
    pub accounting: Accounting,
    /// The largest possible frame, as `accounting` counts it.
    pub largest_frame: ByteCount,
    /// The delays that may be guaranteed.
    pub delays: DelayRange,
    /// Tenants; never empty (a policy that names none has one).
    pub tenants: Vec<TenantParams>,
}
