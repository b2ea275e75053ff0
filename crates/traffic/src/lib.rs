//! When the packets of a flow leave and how long they are, for whoever sends them: the simulator or a live sender.
//!
//! A [`Source`] does not react to the network, so its departures are a sequence that a [`Pattern`]
//! computes by itself, one at a time, without a clock. Everything random is drawn from the source's
//! own stream of numbers. So the same seed gives the same departures to every policy and every back
//! end. [`Sources`] makes the sources that [`SourceParams`] describe.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod application;
pub mod arrivals;
mod cbr;
pub mod impairments;
mod iperf3;
mod on_off;
mod pace;
mod poisson;
mod random;
pub mod rate_series;
mod replay;
pub mod scenario;
mod sizes;
mod source;
mod sources;
pub mod transport;

pub use cbr::Cbr;
pub use impairments::{
    DelayDistribution, DelayVariationParams, ImpairmentParams, LinkImpairments, LossParams,
};
pub use iperf3::{Iperf3, Iperf3Params};
pub use on_off::OnOff;
pub use pace::{Interval, Pace};
pub use poisson::Poisson;
pub use random::Random;
pub use rate_series::{RateSeries, RateSeriesError, RateStep};
pub use replay::{MAX_PACKETS, Recorded, Replay, ReplayError, Timeline};
pub use scenario::{
    HostTiming, OnOffParams, PacketSize, PatternParams, Periods, SizesParams, SourceHeaders,
    SourceParams, TunnelParams, WeightedSize,
};
pub use sizes::{Mix, Sizes};
pub use source::{Departure, Pattern, Source};
pub use sources::{SourceError, Sources};
