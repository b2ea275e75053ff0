//! Any text of Open vSwitch commands: no panic, and whatever is read is written so that it reads the same.
//!
//! `cargo +nightly fuzz run ovs_commands`. The corpus also runs in `crates/formats/tests/it/ovs.rs`.

#![no_main]

#[path = "../../crates/formats/tests/it/support/ovs_fixpoint.rs"]
mod ovs_fixpoint;

libfuzzer_sys::fuzz_target!(|text: &str| ovs_fixpoint::check(text));
