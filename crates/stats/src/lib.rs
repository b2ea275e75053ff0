//! Estimators, confidence intervals, tests and verdicts; the schema of results.
//!
//! From packets to a verdict:
//!
//! 1. [`collect`] turns the packets of one run into a [`record::RunRecord`], in constant memory;
//! 2. [`summary::SummaryBuilder`] keeps the scalars of many records, in [`observations`];
//! 3. [`summary`] estimates each cell over repetitions, [`verdict`] judges each policy, and
//!    [`published`] compares published figures with ours, [`plotted`] has the values of declared figures.
//!
//! The underlying statistics are independent: [`estimate`], [`compare`], [`fit`], [`ks`], [`mser`], [`pooled`], [`projection`]. No function here returns NaN or panics on any record it accepts.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod application;
mod application_pool;
pub mod application_summary;
pub mod availability;
pub mod backend;
pub mod collect;
pub mod compare;
pub mod description;
pub mod distribution;
pub mod estimate;
mod figures;
pub mod fit;
pub mod flow;
pub mod flow_delays;
pub mod growth;
pub mod ks;
pub mod loss_episodes;
pub mod mser;
pub mod objective;
pub mod observation;
pub mod observations;
pub mod opportunity;
pub mod path;
pub mod phase;
pub mod plot;
pub mod plotted;
pub mod pooled;
pub mod prediction;
pub mod projection;
pub mod published;
pub mod quantity;
pub mod queues;
pub mod record;
pub mod seeds;
pub mod shell;
pub mod summary;
pub mod sweep;
pub mod tail;
pub mod testbed;
pub mod verdict;
pub mod words;
