//! Integration tests of quantities.
#![allow(clippy::unwrap_used)]

mod arithmetic;
mod text;
