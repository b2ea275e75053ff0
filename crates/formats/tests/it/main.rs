//! Integration tests of foreign configurations.
#![allow(clippy::unwrap_used)]

mod defaults;
mod dpdk;
mod export;
mod foreign_lines;
mod golden;
mod messages;
mod ovs;
mod ovs_switch;
mod p4_tins;
mod robustness;
mod round_trip;
mod running_config;
mod support;
mod tc_export;
mod tc_filter;
mod tc_kernel;
mod tc_properties;
mod tc_refusals;
