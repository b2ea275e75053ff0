//! Any profile of DPDK's scheduler: no panic, and whatever is read is written so that it reads the same.
//!
//! `cargo +nightly fuzz run dpdk_profile`. The corpus also runs in `crates/formats/tests/it/dpdk.rs`.

#![no_main]

#[path = "../../crates/formats/tests/it/support/dpdk_fixpoint.rs"]
mod dpdk_fixpoint;

libfuzzer_sys::fuzz_target!(|text: &str| dpdk_fixpoint::check(text));
