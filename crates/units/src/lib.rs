//! Exact integer quantities: rates, sizes, time and token-bucket credit.
//!
//! Everything here is an integer newtype with dimensional operators, so that a
//! rate cannot be added to a size and nothing drifts: `bit/s × ns` is a whole
//! number of *nanobits* ([`Credit`]), and only "how long until" rounds, upward.
//!
//! Human text goes in and out with units (`"17.5 Mbit/s"`, `"10 ms"`,
//! `"1500 B"`); a bare number where a unit is needed is an error that says so.

#![forbid(unsafe_code)]

mod bytes;
mod credit;
mod layer;
mod meant;
mod rate;
mod round;
mod text;
mod time;
mod way;

pub use bytes::ByteCount;
pub use credit::Credit;
pub use layer::{
    ATM_CELL_BYTES, ATM_PAYLOAD_BYTES, Accounting, FrameLengths, L1_OVERHEAD_BYTES, Layer,
    MAX_OVERHEAD_BYTES,
};
pub use rate::BitRate;
pub use round::Rounded;
pub use text::{QuantityError, is_hidden};
pub use time::{Duration, Instant};
pub use way::{BothWays, Way};

/// Nanoseconds in a second, as the divisor between bit/s × ns and bits.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;
