//! Integration tests of the command.
#![allow(clippy::unwrap_used)]

mod analyse;
mod analyse_bad_input;
mod analyse_changed;
mod analyse_encapsulated;
mod analyse_times;
mod analyse_unclear;
mod architecture;
mod beside;
mod cases;
mod check;
mod check_on;
mod command;
mod compare;
mod controlled;
mod dashboard;
mod doctor;
mod export;
mod files_of_others;
mod ios;
mod libreqos;
mod network_control;
mod output;
mod pages;
mod plan;
mod round_trip;
mod scripts;
mod seeds;
mod service;
mod slice;
mod support;
mod tenant;
mod timeline;
