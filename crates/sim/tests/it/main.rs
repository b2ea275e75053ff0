//! Integration tests of the simulator.
#![allow(clippy::unwrap_used)]

mod acknowledgements;
mod adversary;
mod ahead;
mod bound_cases;
mod bounds;
mod build_errors;
mod captures;
mod chain;
mod deferred;
mod ecn;
mod flow_control;
mod hosts;
mod impairments;
mod objectives;
mod overhead;
mod paths;
mod pipes;
mod populations;
mod port_series;
mod qos_sched;
mod queue_lengths;
mod queueing_theory;
mod reallocation;
mod starts;
mod studies;
mod support;
mod switch;
mod tc;
mod timelines;
mod topology;
mod transactions;
mod virtual_queues;
