//! Subscribers and network of LibreQoS, as a study.
//!
//! [`read`] takes `ShapedDevices.csv` (circuits, the node each is behind, and its rates) and `network.json` (the tree of
//! nodes and their rates); [`study`] writes a study of the download direction. `docs/formats/libreqos.md` lists what is read
//! and what it means.

mod circuits;
mod network;
mod study;

pub use study::{NODE_LEVELS_MAX, study};

use crate::error::TextError;
use slicewise_model::IpPrefix;
use slicewise_units::BitRate;

/// Largest file that is read.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Most circuits of a study.
pub const CIRCUITS_MAX: usize = 2_000;

/// A circuit: the devices of a subscriber, which share its rates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circuit {
    /// Its id.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// The node that it is behind; empty for none.
    pub parent: String,
    /// The addresses of its devices; never empty.
    pub addresses: Vec<IpPrefix>,
    /// The rate that it is promised in the download direction.
    pub minimum: BitRate,
    /// The most that it may get there.
    pub maximum: BitRate,
}

/// A site or an access point, and what is behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkNode {
    /// Its name.
    pub name: String,
    /// The most that it carries in the download direction.
    pub rate: BitRate,
    /// The nodes behind it.
    pub children: Vec<NetworkNode>,
}

/// Contents of the two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaping {
    /// The circuits, in the order of the file; never empty.
    pub circuits: Vec<Circuit>,
    /// The nodes that are behind no other.
    pub network: Vec<NetworkNode>,
}

/// Read `ShapedDevices.csv`.
///
/// # Errors
/// The independent errors in the order of their places, [`ERRORS_MAX`](crate::ERRORS_MAX) at most: columns that are missing,
/// addresses and rates that cannot be read, rows of one circuit that differ.
pub fn circuits(text: &str) -> Result<Vec<Circuit>, Vec<TextError>> {
    circuits::read(text)
}

/// Read `network.json`.
///
/// # Errors
/// The first error: text that is no JSON, nodes without rates, or two of one name.
pub fn network(text: &str) -> Result<Vec<NetworkNode>, Vec<TextError>> {
    network::read(text).map_err(|error| vec![error])
}

/// A rate in Mbit/s, as both files give it.
fn megabits(text: &str) -> Option<BitRate> {
    let text = text.trim();
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let rate: BitRate = format!("{text} Mbit/s").parse().ok()?;
    (is_number && rate > BitRate::ZERO).then_some(rate)
}
