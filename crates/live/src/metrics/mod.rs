//! Metrics of a running gateway: a snapshot on demand, as text for Prometheus and for `slicewise top`.

mod exchange;
mod openmetrics;
mod reader;
mod server;
#[cfg(test)]
mod tests;

pub use exchange::Exchange;
pub use reader::{ReadError, Sample, Samples, printable, read};
pub use server::Server;

use crate::engine::{DirectionCounters, Engine};
use crate::histogram::Histogram;
use crate::port::PortCounters;
use slicewise_dataplane::{ClassCounters, DropReason, ElephantCounters};
use slicewise_units::Duration;
use std::collections::BTreeMap;

/// Classes of a direction that are reported one by one: those with the most offered bytes. The rest are
/// reported together, so that the size of a report does not grow with the number of classes.
pub const TOP_CLASSES: usize = 32;

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
}

/// An interface at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceSnapshot {
    /// Name.
    pub name: String,
    /// `af_xdp_native`, `af_xdp_generic`, `af_packet`, or `closed`.
    pub packet_io: &'static str,
    /// Whether frames can be sent and received.
    pub is_open: bool,
    /// What the port has counted, over all times it was opened.
    pub counters: PortCounters,
}

/// A direction at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionSnapshot {
    /// What it counted.
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
    /// What it counted.
    pub counters: ClassCounters,
    /// How long its frames waited.
    pub delay: Histogram,
}

impl DirectionSnapshot {
    /// Of a direction of an engine. Work: O(classes), copies of [`TOP_CLASSES`].
    #[must_use]
    pub fn of(engine: &Engine, direction: usize) -> Self {
        let mut classes: Vec<(&ClassCounters, &Histogram)> = engine.classes(direction).collect();
        let top = TOP_CLASSES.min(classes.len());
        if top < classes.len() {
            // Stable, so equal ones do not change places from one look to the next.
            classes.sort_by_key(|(class, _)| std::cmp::Reverse(class.offered_bytes));
        }
        let (top, rest) = classes.split_at(top);
        // Frames of a removed slice may wait while there is another of its name: both are reported as one.
        let mut named: BTreeMap<&str, ClassSnapshot> = BTreeMap::new();
        let mut order = Vec::with_capacity(top.len());
        for (counters, delay) in top {
            let name = counters.class.as_str();
            if let Some(same) = named.get_mut(name) {
                add(&mut same.counters, counters);
                same.delay.merge(delay);
            } else {
                order.push(name);
                let (counters, delay) = ((*counters).clone(), (*delay).clone());
                named.insert(name, ClassSnapshot { counters, delay });
            }
        }
        Self {
            counters: engine.counters(direction).cloned().unwrap_or_default(),
            backlog: classes.iter().map(|(class, _)| class.queued_frames).sum(),
            classes: order.iter().filter_map(|name| named.remove(name)).collect(),
            others: together(rest),
            elephants: engine
                .elephants(direction)
                .take(TOP_CLASSES)
                .map(|(class, flows)| (class.to_owned(), flows))
                .collect(),
            delay: engine.delay(direction).cloned().unwrap_or_default(),
            lateness: engine.lateness(direction).cloned().unwrap_or_default(),
        }
    }
}

fn together(classes: &[(&ClassCounters, &Histogram)]) -> Option<ClassCounters> {
    if classes.is_empty() {
        return None;
    }
    let mut sum = ClassCounters {
        class: "(other)".to_owned(),
        ..ClassCounters::default()
    };
    classes.iter().for_each(|(class, _)| add(&mut sum, class));
    Some(sum)
}

/// Count what a class has counted, too.
fn add(sum: &mut ClassCounters, class: &ClassCounters) {
    sum.offered_frames += class.offered_frames;
    sum.offered_bytes += class.offered_bytes;
    sum.sent_frames += class.sent_frames;
    sum.sent_bytes += class.sent_bytes;
    sum.marked_frames += class.marked_frames;
    sum.queued_frames += class.queued_frames;
    for reason in DropReason::ALL {
        sum.dropped_frames[reason as usize] += class.dropped(reason);
    }
}
