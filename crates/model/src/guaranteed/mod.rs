//! Slices with a proved delay bound: what each is promised, and whether all of it can be kept.

mod admission;
mod counting;
mod delay_classes;
mod offer;
mod refusal;

pub use admission::{Admission, AdmissionParams, Admitted, ClassUse, GuaranteeRequest};
pub use delay_classes::{DelayClass, DelayClasses};
pub use refusal::{Offer, Problem, Refusal};

use crate::QueueLimitParams;
use slicewise_units::{Accounting, BitRate, ByteCount};

/// A promise that can be kept: frames within (rate, burst) wait no longer than their delay class,
/// plus what the data plane adds for its granularity (one bucket) and the device beneath it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuaranteeParams {
    /// Committed rate (CIR), at least 1 bit/s.
    pub rate: BitRate,
    /// Committed burst (CBS), at least one largest frame.
    pub burst: ByteCount,
    /// The delay class the objective was rounded down to.
    pub class: DelayClass,
}

/// The most a slice may send, whatever is free.
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
    /// What is kept for it in any case; `None` for best effort.
    pub guarantee: Option<GuaranteeParams>,
    /// What it may have at most; `None` for no limit but the link.
    pub maximum: Option<MaximumParams>,
    /// Part of the excess relative to the other slices of its tenant, at least 1.
    pub weight: u32,
    /// Its tenant: a position in [`GuaranteedParams::tenants`].
    pub tenant: u32,
    /// How much may wait.
    pub queue_limit: QueueLimitParams,
}

/// A tenant: slices that share one part of the excess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantParams {
    /// The tenant's name.
    pub name: String,
    /// Part of the excess relative to the other tenants, at least 1.
    pub weight: u32,
}

/// What all slices of one guaranteed scheduler have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteedParams {
    /// What the rates and bursts count.
    pub accounting: Accounting,
    /// The largest frame there can be, as `accounting` counts it.
    pub largest_frame: ByteCount,
    /// The delay classes there are.
    pub delay_classes: DelayClasses,
    /// Tenants; never empty (a policy that names none has one).
    pub tenants: Vec<TenantParams>,
}
