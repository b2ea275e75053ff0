//! Any bytes as a frame, behind two bytes of link type: parsed, without panic, as far as they go.
//!
//! `cargo +nightly fuzz run frame`

#![no_main]

#[path = "../../crates/capture/tests/it/support/robust.rs"]
#[allow(dead_code)]
mod robust;

use slicewise_wire::LinkType;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((&link, frame)) = bytes.split_first_chunk() {
        let wire_bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        robust::check_frame(LinkType(u16::from_be_bytes(link)), frame, wire_bytes);
    }
});
