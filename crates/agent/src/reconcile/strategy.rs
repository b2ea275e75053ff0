//! Common interface of the ways in which slices get in force: one after the other, or all in one commit.

use crate::store::{Kept, Record};
use slicewise_api::{Acknowledgement, Desired, FlowTerms};
use slicewise_live::DirectionParams;
use slicewise_live::engine::Engine;
use slicewise_live::gateway::{Answer, Request};
use slicewise_units::{Instant, Way};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// Brings what is in force in line with what the controller wants, without a clock or I/O.
pub(crate) trait Reconcile: Debug + Send {
    /// Takes what the controller answered. Returns the records that keep it.
    fn take(&mut self, desired: Desired) -> Result<Vec<Record>, String>;

    /// Returns what is wanted, as it is to be kept.
    fn kept(&self) -> Kept;

    /// Returns what the controller may know.
    fn acknowledgement(&self) -> Acknowledgement;

    /// Notes that the controller knows this. Returns the records that keep it.
    fn on_acknowledged(&mut self, acknowledgement: &Acknowledgement) -> Vec<Record>;

    /// Returns the newest generation that was taken.
    fn reached(&self) -> u64;

    /// Returns the names of slices that are known as refused.
    fn refused(&self) -> &BTreeSet<String>;

    /// Returns the number of slices that cannot be put in force.
    fn refused_now(&self) -> u64;

    /// Returns whether a slice is in force.
    fn is_in_force(&self, name: &str) -> bool;

    /// Returns the terms in force for the flows of a slice in a direction.
    fn flows_in_force(&self, name: &str, way: Way) -> Option<&FlowTerms>;

    /// Notes that another configuration of the gateway is in force.
    fn on_reloaded(&mut self, directions: [DirectionParams; 2]);

    /// Puts in force what is kept, before anything is forwarded.
    fn restore(&mut self, engine: &mut Engine, now: Instant);

    /// Returns when to poll again, if nothing happens before.
    fn poll_at(&self) -> Option<Instant>;

    /// Returns the next request to the forwarding thread. While classes are being counted, they keep their numbers.
    fn poll_request(&mut self, is_counting: bool, now: Instant) -> Option<Request>;

    /// Takes an answer of the forwarding thread.
    fn on_answer(&mut self, answer: Answer, now: Instant);
}
