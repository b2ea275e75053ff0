//! Any bytes as a capture file: read or refused, without panic and without end.
//!
//! `cargo +nightly fuzz run pcap`

#![no_main]

#[path = "../../crates/capture/tests/it/support/robust.rs"]
#[allow(dead_code)]
mod robust;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    robust::check_capture(bytes);
});
