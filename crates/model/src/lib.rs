//! Slicing configurations: class maps, policies and their parameters, validated.
//!
//! A [`PolicySpec`] holds what a user wrote (percentages, omitted settings);
//! [`PolicySpec::resolve`] turns it into [`PolicyParams`] for a link of known rate, with
//! every default filled in and every contradiction rejected. The data plane takes only the latter.

#![forbid(unsafe_code)]

pub mod class_map;
pub mod elephants;
pub mod guaranteed;
pub mod hqos;
pub mod meter;
pub mod metered;
mod named_queue;
mod percent;
pub mod policy;
pub mod queue;
mod rate;
pub mod reallocation;
mod resolve;

pub use class_map::{AccessEntry, AccessList, ClassMap, Condition, IpPrefix, MatchMode};
pub use elephants::{Detector, ElephantsParams, ElephantsSpec};
pub use guaranteed::{
    Admission, AdmissionParams, Admitted, ClassReserved, ClassUse, DelayRange, DelayReason, Free,
    GuaranteeParams, GuaranteeRequest, GuaranteedParams, Inflation, MAX_DELAYS, MaximumParams,
    Offer, Problem, Refusal, Reservation, Reservations, SetMember, SliceParams, TenantParams,
    largest_as,
};
pub use hqos::{HqosError, HqosParams, HqosSpec};
pub use meter::{Action, Colour, ColourMode, MeterAlgorithm, PolicerParams, PolicerSpec};
pub use metered::MeteredParams;
pub use named_queue::{NamedQueueParams, NamedQueueSpec};
pub use policy::{
    CLASS_DEFAULT, ClassParams, ClassSpec, Discipline, GuaranteeSpec, GuaranteedSpec, MaximumSpec,
    PolicyParams, PolicySpec,
};
pub use queue::{
    CoDelParams, CoDelSpec, FlowQueueParams, FlowQueueSpec, FlowsParams, FlowsSpec, ManagerSpec,
    PriorityLevels, QueueLimitParams, QueueLimitSpec, QueueManager, QueueParams, QueueSpec,
    RedCurve, RedCurveSpec, Separation, WredKey, WredParams, WredSpec,
};
pub use rate::{
    BurstBits, BurstSpec, PriorityParams, PrioritySpec, Rate, RateSpec, ShaperParams, ShaperSpec,
};
pub use reallocation::{RateDemand, RateLimits, ReallocatedClass, ReallocationParams};
pub use resolve::{
    MAX_PRIORITY_LEVELS, Part, PolicyError, PortParams, ReallocatedClassSpec, ReallocatedPolicy,
    ReallocationError, ReallocationSpec,
};
