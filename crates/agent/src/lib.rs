//! The gateway's side of a controller: it gets slices from there, keeps them on its disk, and has the data plane carry
//! them out.
//!
//! One thread decides ([`Reconciler`](reconcile::Reconciler)), asks the forwarding thread for changes and writes to the
//! disk; two others talk to the controller, so that neither waits for a network. A gateway starts from what is on its disk,
//! and forwards whether there is a controller or not.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent;
mod counters;
mod decisions;
mod mailbox;
mod reconcile;
mod refusals;
mod session;
mod store;
mod terms;

pub use agent::Agent;
pub use session::AgentParams;
pub use store::StateError;
