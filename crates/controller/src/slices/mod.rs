//! Slices: admission, changes, lists.

mod apply;
mod capacity;
mod delay_choice;
mod for_gateway;
mod list;
mod offer;
mod overlap;
mod purge;
mod ranges;
mod recount;
mod stored;
mod write;

pub(crate) use apply::{Applied, Guard, apply, apply_any};
pub(crate) use capacity::{Capacity, DirectionState, bounds};
pub(crate) use delay_choice::{HopDelays, requests};
pub(crate) use for_gateway::gateway_slice;
pub(crate) use list::{PAGE_MAX, list};
pub(crate) use offer::offer;
pub(crate) use purge::purge;
pub(crate) use recount::Recount;
pub(crate) use stored::{Hop, Hops, Stored, TenantState, free_names, record, records};
