//! Any text as a configuration of a gateway: no panic, and what is read has a link.
//!
//! `cargo +nightly fuzz run gateway_config`. Mutations also run in `crates/study/tests/it/gateway.rs`.

#![no_main]

use slicewise_study::{GatewayConfig, MemoryFiles};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(config) = GatewayConfig::parse(text, "gateway.yaml", &MemoryFiles::default()) {
        assert!(
            config
                .directions
                .iter()
                .all(|one| one.link.rate.bits_per_second() > 0)
        );
    }
});
