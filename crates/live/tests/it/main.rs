//! Integration tests between virtual interfaces. They need root, and report where they are skipped.
#![allow(clippy::unwrap_used)]

mod namespace;
mod offloads;
mod patch;
mod shrinking_mtu;
mod support;
mod tagging;
