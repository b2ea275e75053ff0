//! Applications over a network that is modelled, not simulated: what is sent when, and what comes of it.

#![allow(clippy::unwrap_used)]

mod bulk;
mod hostile;
mod network;
mod requests;
mod short_flows;
mod starts;
mod transactions;
mod video;

use slicewise_units::{Duration, Instant};

/// So many milliseconds after the start.
fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}
