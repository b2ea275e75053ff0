//! Integration tests of the data plane.
#![allow(clippy::unwrap_used)]

mod apply;
mod burst;
mod classifier;
mod deficit_round_robin;
mod elephants;
mod flow_queue;
mod guaranteed;
mod hqos;
mod librte_sched;
mod named_queues;
mod no_allocation;
mod policing;
mod reallocation;
mod schedulers;
mod single_slices;
mod support;
