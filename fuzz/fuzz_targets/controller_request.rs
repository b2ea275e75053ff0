//! Any text as the body of a request to the controller: no panic, and whatever is read is written so that it reads the same.
//!
//! `cargo +nightly fuzz run controller_request`. The corpus also runs in `crates/api/tests/it/main.rs`.

#![no_main]

#[path = "../../crates/api/tests/it/support/request_fixpoint.rs"]
mod request_fixpoint;

libfuzzer_sys::fuzz_target!(|text: &str| request_fixpoint::check(text));
