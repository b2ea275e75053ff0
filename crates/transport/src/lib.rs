//! TCP without a clock and without I/O: the two ends of a connection, for a simulator.
//!
//! A [`Connection`] is one end. What arrives and what time it is are given to it; what it sends are [`Segment`]s, which say how
//! long they are and hold no bytes. What differs between hosts is [`Behaviour`], shared by all connections of a host.
//!
//! Each mechanism names its RFC in the file that holds it; `docs/tcp.md` lists them.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod behaviour;
mod congestion;
mod connection;
mod receive;
mod segment;
mod send;
mod timers;

pub use behaviour::{Behaviour, Immediate};
pub use connection::{Connection, State};
pub use segment::{Flags, SackBlocks, Segment, stamp};
pub use send::SendFigures;
pub use timers::Ticks;
