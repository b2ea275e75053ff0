//! Any text as a study file: no panic, and what is read can be described and run through.
//!
//! `cargo +nightly fuzz run study_file`. The corpus also runs in `crates/study/tests/it/hostile.rs`.

#![no_main]

#[path = "../../crates/study/tests/it/support/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|text: &str| hostile::check(text));
