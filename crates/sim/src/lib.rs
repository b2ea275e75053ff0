//! The simulator: discrete events under virtual time drive the same data plane as the gateway.
//!
//! A [`Topology`] of endpoints and devices, joined by duplex links between their ports, becomes a [`Network`]; its flows are paced by
//! [`Source`](slicewise_traffic::Source)s or by applications over [`Transports`], and an [`Observer`] sees every packet sent,
//! received and lost.
//! [`Simulator`] does all that for a run of a study. `docs/simulator.md` describes what is
//! modelled.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backend;
pub mod capture;
mod carry;
pub mod device;
mod elephants;
pub mod endpoint;
pub mod event;
mod flow_control;
pub mod impairment;
pub mod link;
mod losses;
mod measurement;
mod network;
mod observer;
pub mod packet;
mod population;
mod port;
mod queue_lengths;
mod reallocation;
mod run;
mod scheduler_delay;
mod sources;
mod timeline;
mod topology;
mod transport;
mod varying;
mod wires;

pub use backend::Simulator;
pub use measurement::Measurement;
pub use network::{Network, Outcome};
pub use observer::{FlowId, Observer};
pub use port::{Node, PortId};
pub use scheduler_delay::SchedulerDelays;
pub use topology::{FlowParams, Topology, TopologyError};
pub use transport::{ApplicationFlows, SeriesParams, Transports};
