//! Integration tests of the command.
#![allow(clippy::unwrap_used)]

mod analyse;
mod analyse_bad_input;
mod analyse_changed;
mod analyse_encapsulated;
mod analyse_shards;
mod analyse_times;
mod analyse_unclear;
mod architecture;
mod beside;
mod cases;
mod check;
#[cfg(feature = "linux")]
mod check_on;
mod command;
mod compare;
#[cfg(feature = "controller")]
mod controlled;
#[cfg(feature = "controller")]
mod dashboard;
#[cfg(feature = "linux")]
mod doctor;
mod export;
mod figures;
mod files_of_others;
mod ios;
mod libreqos;
mod measured;
#[cfg(feature = "linux")]
mod network_control;
mod output;
mod pages;
mod plan;
mod python;
mod refine;
#[cfg(feature = "controller")]
mod report_page;
mod round_trip;
#[cfg(feature = "s3")]
mod s3;
mod scripts;
mod seeds;
#[cfg(feature = "controller")]
mod service;
mod shards;
mod slice;
mod slurm;
mod submit;
mod support;
mod sweeps;
#[cfg(feature = "controller")]
mod tenant;
mod timeline;
#[cfg(feature = "linux")]
mod top;
mod transactions;

#[cfg(not(feature = "controller"))]
#[test]
#[ignore = "built without `controller`: `./test`, or `--all-features`, tests the controller"]
fn the_controller() {}

#[cfg(not(feature = "controller"))]
#[test]
fn a_part_that_was_left_out_of_the_build_is_told_with_how_to_get_it() {
    let refused = support::Sandbox::new().refused(2, &["controller"]);
    assert!(refused.contains("--features controller"), "{refused}");
}

#[cfg(not(feature = "s3"))]
#[test]
fn object_storage_that_was_left_out_of_the_build_is_told_with_how_to_get_it() {
    let sandbox = support::Sandbox::new();
    let refused = sandbox.refused(2, &["report", "s3://bucket/results"]);
    assert!(refused.contains("--features s3"), "{refused}");
}
