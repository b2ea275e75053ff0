//! Profiles of DPDK's hierarchical scheduler in and out.
//!
//! [`read`] takes a profile file of the sample application `qos_sched` (DPDK 22.11), as its option `--cfg` does, and
//! gives the policy that it makes. [`write()`] goes the other way. `docs/formats/dpdk.md` lists what is read, what it
//! means, and what is refused.

mod lexer;
mod profile;
mod section;
mod write;

pub use profile::{DpdkPlace, DpdkPolicy, read};
pub use write::{DpdkConfig, write};

/// Largest text that is read.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Name of the class that holds the scheduler, and of the policy that has no other.
const POLICY: &str = "dpdk";
