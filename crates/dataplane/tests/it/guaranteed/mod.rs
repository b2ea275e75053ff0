//! The guaranteed scheduler: bound, excess, order and change, each against an oracle of its own.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod apply;
mod bound;
mod codel;
mod excess;
mod fairness;
mod flow_queues;
mod lending;
mod rig;
mod wakes;
