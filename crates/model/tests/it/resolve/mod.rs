//! From what a user wrote to what a data plane runs: every default, every rejection.

mod bounds;
mod defaults;
mod flow_queue;
mod guaranteed;
mod hqos;
mod limits;
mod refusals;
mod support;
