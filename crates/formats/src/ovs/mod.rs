//! Queues and rules of Open vSwitch in and out.
//!
//! [`read`] takes `ovs-vsctl` commands that create a QoS record with its queues, and the OpenFlow rules that choose
//! queues, as `ovs-ofctl` takes them, and gives the policy that they make. [`write()`] goes the other way.
//! `docs/formats/ovs.md` lists what is read, what it means, and what is refused.

mod in_port;
mod lexer;
mod openflow;
mod policy;
mod rules;
mod values;
mod vsctl;
mod write;

pub use in_port::OvsSlice;
pub use policy::read;
pub use write::{OvsConfig, write};

use slicewise_units::{BitRate, ByteCount};

/// Largest text that is read.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Smallest bucket: one MTU of 1500 B and 64 B (`htb_parse_class_details__` of Open vSwitch).
const BURST_MIN: ByteCount = ByteCount::new(1564);
/// A queue has at least one MTU a second (the same function).
const RATE_MIN: BitRate = BitRate::new(12_000);

/// How a queue shares the excess: the `quantum` that the kernel derives from the minimum rate (`htb_change_class` of
/// Linux with the `r2q` of 10 that Open vSwitch sets), in bytes.
fn quantum(minimum: Option<BitRate>) -> u32 {
    const RATE_TO_QUANTUM: u64 = 10;
    let rate = minimum.unwrap_or(BitRate::ZERO).max(RATE_MIN);
    let quantum = (rate.bits_per_second() / 8 / RATE_TO_QUANTUM).clamp(1_000, 200_000);
    u32::try_from(quantum).unwrap_or(u32::MAX)
}
