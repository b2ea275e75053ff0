//! Metrics of a running gateway: a snapshot on demand, as text for Prometheus and for `slicewise top`.

mod exchange;
mod look;
mod openmetrics;
mod reader;
mod server;
#[cfg(test)]
mod tests;

pub use exchange::Exchange;
pub use look::Look;
pub use reader::{ReadError, Sample, Samples, printable, read};
pub use server::Server;

use crate::engine::DirectionCounters;
use crate::gateway::ControllerSnapshot;
use crate::histogram::Histogram;
use crate::port::PortCounters;
use slicewise_dataplane::{ClassCounters, ElephantCounters};
use slicewise_units::{BitRate, BothWays, Duration};

/// Classes of a direction that are reported one by one: those with the most offered bytes. The rest are
/// reported together, so that the size of a report does not grow with the number of classes.
pub const TOP_CLASSES: usize = 32;

/// Classes that a gateway looks at between frames.
pub const LOOKED_AT_ONCE: u32 = 512;

/// A running gateway at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Since it started.
    pub uptime: Duration,
    /// The two interfaces.
    pub interfaces: [InterfaceSnapshot; 2],
    /// From the first to the second interface, and back.
    pub directions: [DirectionSnapshot; 2],
    /// Configurations applied while running.
    pub reloads: u64,
    /// Configurations refused while running.
    pub refused_reloads: u64,
    /// Memory for frames, bytes, and how much of it is free.
    pub memory_bytes: u64,
    /// Of that, free.
    pub free_bytes: u64,
    /// Frames that were dropped because their class had used up the memory that it may use.
    pub refused_frames: u64,
    /// Lines of the log that could not be written.
    pub lost_log_lines: u64,
    /// State of the controller of its slices, if there is one.
    pub controller: Option<ControllerSnapshot>,
    /// State of the loops over rates of its policies, if there are any.
    pub reallocation: Option<ReallocationSnapshot>,
}

/// Loops over rates at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReallocationSnapshot {
    /// Commits of policies with other rates.
    pub commits: u64,
    /// Intervals at whose end nothing was read, because the reading before was late.
    pub skipped: u64,
    /// Decisions that were not carried out.
    pub refused: u64,
    /// How much later than due decisions were in force.
    pub lateness: Histogram,
    /// Rates in force of the classes of each direction's loop.
    pub rates: BothWays<Vec<(String, BitRate)>>,
}

/// An interface at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceSnapshot {
    /// Name.
    pub name: String,
    /// `af_xdp_native`, `af_xdp_generic`, `af_packet`, or `closed`.
    pub packet_io: &'static str,
    /// True if frames can be sent and received.
    pub is_open: bool,
    /// Counters of the port, over all times it was opened.
    pub counters: PortCounters,
}

/// A direction at one moment. Classes are looked at [one after the other](Look): with many, each at a moment of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionSnapshot {
    /// Its counters.
    pub counters: DirectionCounters,
    /// Frames waiting.
    pub backlog: u64,
    /// At most [`TOP_CLASSES`], most bytes offered first.
    pub classes: Vec<ClassSnapshot>,
    /// All others together.
    pub others: Option<ClassCounters>,
    /// At most [`TOP_CLASSES`] classes that move elephants, and what became of their flows.
    pub elephants: Vec<(String, ElephantCounters)>,
    /// How long frames waited, of all classes.
    pub delay: Histogram,
    /// How much later than due frames left.
    pub lateness: Histogram,
}

/// A class at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSnapshot {
    /// Its counters.
    pub counters: ClassCounters,
    /// How long its frames waited.
    pub delay: Histogram,
}
