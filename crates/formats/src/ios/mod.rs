//! Cisco IOS policy-map text (the modular QoS command line) in and out.
//!
//! [`parse`] reads class maps, access lists and policy maps of a text, which may be a whole
//! configuration; [`IosConfig::policy`] turns a policy map, with everything it refers to, into a
//! [`PolicySpec`](slicewise_model::PolicySpec).
//! [`write()`] goes the other way, in one canonical form, so that for everything that can be read
//! `parse(write(policy))` is `policy` again.
//!
//! Settings left to default in the text stay `None` in the specification;
//! [`PolicySpec::resolve`](slicewise_model::PolicySpec::resolve) fills in the defaults of IOS. Keywords are read in
//! either case but never abbreviated. `docs/formats/ios.md` lists the commands, their meaning, and what is refused.

mod access_list;
mod attach;
mod class_map;
mod code_point;
mod config;
mod definition;
mod fair_queue;
mod lexer;
mod link;
mod mode;
mod notes;
mod number;
mod parser;
mod police;
mod policy;
mod policy_map;
mod port_name;
mod queueing;
mod reach;
mod rules;
mod sections;
mod shares;
mod words;
mod write;

pub use attach::{Attached, Direction};
pub use config::{IosConfig, IosPolicy, IosPolicyError, PolicyChoiceError};
pub use parser::{TEXT_BYTES_MAX, parse};
pub use sections::Skipped;
pub use write::{IosExportError, write};
