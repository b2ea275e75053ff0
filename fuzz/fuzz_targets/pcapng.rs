//! Any blocks behind a good pcapng section header: read, without panic and without end.
//!
//! `cargo +nightly fuzz run pcapng`

#![no_main]

#[path = "../../crates/capture/tests/it/support/robust.rs"]
#[allow(dead_code)]
mod robust;

/// A section header block of little-endian order, without options.
const SECTION: [u8; 28] = [
    0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0,
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(&SECTION[..4]) {
        robust::check_capture(bytes);
    } else {
        robust::check_capture(&[&SECTION, bytes].concat());
    }
});
