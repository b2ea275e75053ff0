//! A folder on this machine and the same files as objects in S3, or any storage that speaks its protocol.
//!
//! Objects cannot be appended to, locked or renamed, so programs work in a folder, the *copy*: [`Mirror::open`] fetches
//! what differs from the objects, and [`Mirror::put`] puts the files that changed. Each object is put on condition that
//! it is still the one that was read (`If-Match`, `If-None-Match`; RFC 9110, section 13.1): of two writers, the later one
//! learns of the other, and overwrites nothing.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod copy;
mod error;
mod location;
mod mirror;
mod objects;
mod transport;

pub use error::MirrorError;
pub use location::Location;
pub use mirror::{Access, Mirror};
