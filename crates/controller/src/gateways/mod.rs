//! Gateways: what they announce, what they have to carry out, and what they say.

mod acknowledge;
mod announce;
mod bins;
mod counter_history;
mod counters;
mod desired;
mod instance;
mod links;
mod presence;

pub(crate) use acknowledge::acknowledge;
pub(crate) use announce::{announce, note_refused};
pub(crate) use counter_history::{
    BUSIEST_MAX, Span, SpanBins, histories_of_several, link_history, link_rates, slice_history,
};
pub(crate) use counters::{
    Counters, counters_of_all, counters_of_several, link_counters, save_counters, slice_counters,
    tell_interest,
};
pub(crate) use desired::{desired, is_news};
pub(crate) use instance::{Instance, adopt, require};
pub(crate) use links::{link, links};
pub(crate) use presence::{CONNECTED, Presence, forget_gateway, gateways, mark_absent, touch};
