//! Slice requests of P4-TINS (Chen et al. 2022) in and out.
//!
//! The controller of P4-TINS takes requests for slices by a REST interface: a guaranteed and a maximum
//! rate, the bursts of both, and the flows of the slice. [`parse`] reads a list of such requests;
//! [`SliceRequests::policy`] gives the policy that one of the two published data planes would run for
//! them. [`write()`] goes the other way. `docs/formats/p4-tins.md` says what the publication leaves open
//! and what is assumed here.

mod data_plane;
mod fields;
mod flows;
mod request;
mod write;

pub use data_plane::DataPlane;
pub use request::{SliceRequests, TEXT_BYTES_MAX, parse};
pub use write::write;

use slicewise_units::{Accounting, ByteCount};

/// Rates and bursts count what occupies the link: published rates add up to that of the link.
const COUNTS: Accounting = Accounting::L1;
/// A frame of 1522 B with FCS, preamble and gap.
const LARGEST_FRAME: ByteCount = ByteCount::new(1546);
