//! Frame views: what the data plane needs to know of a frame's headers.
//!
//! [`Headers`] is the parsed form the classifier matches on. A live frame is parsed into it
//! once at ingress; the simulator's sources make it directly, once a flow.

#![forbid(unsafe_code)]

mod headers;

pub use headers::{Ecn, Headers, IpVersion};
