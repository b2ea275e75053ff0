//! Any text: no panic, and whatever is read is written so that it reads the same.
//!
//! `cargo +nightly fuzz run ios_policy_map`, with the texts of `crates/formats/tests/golden`
//! beside the corpus as seeds.

#![no_main]

#[path = "../../crates/formats/tests/it/support/fixpoint.rs"]
mod fixpoint;

libfuzzer_sys::fuzz_target!(|text: &str| fixpoint::check(text));
