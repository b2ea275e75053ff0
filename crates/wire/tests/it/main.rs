//! Integration tests of the frame parser.
#![allow(clippy::unwrap_used)]

mod links;
mod parse;
