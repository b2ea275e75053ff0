//! Integration tests of study files.
#![allow(clippy::unwrap_used)]

mod applications;
mod bounds;
mod cases;
mod clocks;
mod dpdk;
mod elephants;
mod examples;
mod extends;
mod files;
mod gateway;
mod hostile;
mod hosts;
mod left_out;
mod limits;
mod load;
mod measured;
mod mistakes;
mod mistakes_applications;
mod mistakes_form;
mod mistakes_policies;
mod named_queues;
mod objectives;
mod ovs;
mod p4_tins;
mod paths;
mod policies;
mod populations;
mod quick;
mod runs;
mod schemas;
mod shipped;
mod support;
mod switch;
mod timelines;
mod unmodelled;
