//! Integration tests of the gateway between virtual interfaces. They need root, and report where they
//! are skipped.
//!
//! A binary of its own, without the usual harness: a gateway handles signals of its process, so it must
//! run in the first thread, and this very program is what is started to be one.
#![allow(clippy::unwrap_used)]

mod interfaces;
mod reallocation;
mod robustness;
#[path = "../it/support/mod.rs"]
mod support;

fn main() {
    if support::be_gateway() {
        return;
    }
    let started = std::time::Instant::now();
    interfaces::all();
    robustness::all();
    reallocation::all();
    println!(
        "\ntest result: ok, in {:.1} s\n",
        started.elapsed().as_secs_f64()
    );
}
