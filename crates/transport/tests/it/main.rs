//! Connections: exchanges with a test as the other end, and two ends over simulated paths.
#![allow(clippy::unwrap_used, missing_docs)]

mod acknowledgements;
mod bbr;
mod bulk;
mod congestion;
mod exchanges;
mod hosts;
mod idle;
mod linux;
mod path;
mod robust;
mod script;
