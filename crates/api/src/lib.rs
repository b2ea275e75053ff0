//! The controller's API: the resources as JSON, what makes them valid, and a blocking client.
//!
//! Rates are in bit/s (`rate_bps`), sizes in bytes (`burst_bytes`), time in nanoseconds (`delay_ns`); moments are
//! milliseconds since 1970-01-01 UTC (`at_ms`). All of them are integers. `docs/controller.md` describes the routes.

#![forbid(unsafe_code)]

mod administration;
mod change;
mod client;
mod counter_history;
mod counters;
mod event;
mod flows;
mod gateway;
mod invalid;
mod link;
mod matching;
mod offer;
mod problem;
mod rule;
mod slice;
mod ways;

pub use administration::{
    AuditEntry, AuditPage, NewToken, Scope, Tenant, TenantRecord, TokenCreated, TokenRecord,
};
pub use change::{Batch, BatchAnswer, Change, GenerationPage, GenerationRecord, SliceChange};
pub use client::{Client, ClientError, ClientParams, Precondition, Versioned};
pub use counter_history::{
    Bins, DirectionHistory, HopHistory, LinkDirectionHistory, LinkHistory, NamedHistory,
    SliceHistory,
};
pub use counters::{
    CounterAnswer, CounterReport, DelayPercentiles, DirectionCounters, FlowCounters, GatewayEvent,
    HopCounters, LinkCounters, LinkCountersRecord, SliceCounters, SliceCountersRecord, SliceFlows,
};
pub use event::{Event, EventKind, EventPage};
pub use flows::{ElephantTerms, FlowTerms};
pub use gateway::{
    Acknowledgement, Announced, Desired, GatewayAnnouncement, GatewayChange, GatewayRecord,
    GatewaySlice, GatewayTerms, INSTANCE_HEADER, OTHER_STORE, RefusedSlice, STORE_HEADER,
};
pub use invalid::Invalid;
pub use link::{
    AdmissionRule, Counts, DelayClassUse, Left, LinkAnnouncement, LinkDirection,
    LinkDirectionRecord, LinkRecord, Promised,
};
pub use matching::{Match, Protocol, ProtocolName, class_map};
pub use offer::{OfferAnswer, RefusedOn};
pub use problem::{PROBLEM_TYPE, Problem};
pub use rule::{Rule, RuleRecord};
pub use slice::{
    BURST_MAX_BYTES, Bounds, DelayChoice, DelayChoices, DelayOrigin, Guarantee, MATCHES_MAX,
    Maximum, Slice, SlicePage, SliceProblem, SliceQuery, SliceRecord, SliceState, Terms,
    WEIGHT_MAX,
};

use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};

/// The longest name of a slice, link, gateway or tenant.
pub const NAME_CHARS_MAX: usize = 63;

/// A name in the description of the API.
pub(crate) struct Name;

impl utoipa::PartialSchema for Name {
    fn schema() -> RefOr<Schema> {
        let name = ObjectBuilder::new().schema_type(Type::String);
        name.pattern(Some("^[a-z0-9][a-z0-9._-]{0,62}$")).into()
    }
}

impl utoipa::ToSchema for Name {}

/// Validate a name: `[a-z0-9][a-z0-9._-]{0,62}`.
///
/// # Errors
/// The problem, with `at` as the place (a JSON pointer, RFC 6901).
pub fn check_name(name: &str, at: &str) -> Result<(), Invalid> {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_next = |byte: u8| is_first(byte) || matches!(byte, b'.' | b'_' | b'-');
    let bytes = name.as_bytes();
    let is_valid = bytes.len() <= NAME_CHARS_MAX
        && bytes.first().is_some_and(|&first| is_first(first))
        && bytes.iter().all(|&byte| is_next(byte));
    if is_valid {
        return Ok(());
    }
    Err(Invalid::new(
        at,
        format!(
            "{name:?} is not a name: expected 1 to {NAME_CHARS_MAX} of a-z, 0-9, `.`, `_` and `-`, and \
             a letter or digit first"
        ),
    ))
}
