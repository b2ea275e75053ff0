//! Any text of slice requests: no panic, and whatever is read is written so that it reads the same.
//!
//! `cargo +nightly fuzz run slice_requests`. The corpus also runs in `crates/formats/tests/it/p4_tins.rs`.

#![no_main]

#[path = "../../crates/formats/tests/it/support/requests_fixpoint.rs"]
mod requests_fixpoint;

libfuzzer_sys::fuzz_target!(|text: &str| requests_fixpoint::check(text));
