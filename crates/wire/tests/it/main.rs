//! Integration tests of the frame parser.
#![allow(clippy::unwrap_used)]

mod control;
mod links;
mod parse;
mod shim;
