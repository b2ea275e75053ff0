//! Slices with a proved delay bound: their parameters and the admission test.

mod admission;
mod counting;
mod delay_classes;
mod offer;
mod refusal;
mod reservations;

pub use admission::{
    Admission, AdmissionParams, Admitted, ClassReserved, ClassUse, GuaranteeRequest,
};
pub use delay_classes::DelayClasses;
pub use refusal::{Offer, Problem, Refusal};
pub use reservations::{Reservation, Reservations};

use crate::QueueLimitParams;
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// An admitted guarantee: frames within (rate, burst) wait no longer than the delay, plus the
/// granularity of the data plane (one bucket) and what the underlying device adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuaranteeParams {
    /// Committed rate (CIR), at least 1 bit/s.
    pub rate: BitRate,
    /// Committed burst (CBS), at least one largest frame.
    pub burst: ByteCount,
    /// The delay of the class that the objective was rounded down to.
    pub delay: Duration,
}

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
    /// The delay classes.
    pub delay_classes: DelayClasses,
    /// Tenants; never empty (a policy that names none has one).
    pub tenants: Vec<TenantParams>,
}
