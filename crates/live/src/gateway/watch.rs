//! Warnings for the operator: memory that runs low, frames that are lost.

use super::interface::Interface;
use crate::engine::Engine;
use crate::frame_memory::bytes_of;
use crate::log;
use slicewise_units::{Duration, Instant};

/// Minimum interval between log entries about the same problem.
const INTERVAL: Duration = Duration::from_secs(10);

/// A count of something that should not happen.
#[derive(Debug, Default)]
struct Trouble {
    logged: u64,
    again_at: Instant,
}

impl Trouble {
    /// How many more there are than were logged, if it is time to log them.
    fn more(&mut self, count: u64, now: Instant) -> Option<u64> {
        if count <= self.logged || now < self.again_at {
            return None;
        }
        let more = count - self.logged;
        self.logged = count;
        self.again_at = now.saturating_add(INTERVAL);
        Some(more)
    }
}

/// What was logged of a running gateway.
#[derive(Debug, Default)]
pub(super) struct Watch {
    refused: Trouble,
    lost: [Trouble; 2],
    short: [Trouble; 2],
}

impl Watch {
    /// Log what has happened since it was last logged.
    pub(super) fn look(&mut self, engine: &Engine, ports: &mut [Interface; 2], now: Instant) {
        if let Some(frames) = self.refused.more(engine.refused_frames(), now) {
            let help = "a class has used up its own frame memory and the shared part; other classes keep \
                        theirs. Raise `memory` or lower its queue limit";
            log::warn(
                "memory_low",
                &[
                    ("dropped_frames", &frames),
                    ("most_of", &engine.most_refused()),
                    ("free_bytes", &engine.free_bytes()),
                    ("so", &help),
                ],
            );
        }
        let troubles = self.lost.iter_mut().zip(&mut self.short);
        for (port, (lost, short)) in ports.iter_mut().zip(troubles) {
            let counters = port.counters();
            if let Some(frames) = lost.more(counters.ring_full, now) {
                let help = "frames arrive faster than they are fetched";
                log::warn(
                    "ring_full",
                    &[
                        ("interface", &port.name()),
                        ("lost_frames", &frames),
                        ("so", &help),
                    ],
                );
            }
            if let Some(times) = short.more(counters.short_refills, now) {
                let free = engine.free_bytes();
                log::warn(
                    "receive_memory_low",
                    &[
                        ("interface", &port.name()),
                        ("times", &times),
                        ("free_bytes", &free),
                    ],
                );
            }
        }
    }
}

/// How the memory is divided, and whether it is enough.
pub(super) fn log_memory(engine: &Engine) {
    let (needed, has) = (engine.memory_needed(), engine.memory_bytes());
    let budget = engine.budget();
    let of_ports = budget
        .ports
        .map(|port| bytes_of((port.receive + port.transmit).into()));
    let for_queues = bytes_of(budget.queues.into());
    let [first, second] = &of_ports;
    let mut fields: Vec<(&str, &dyn std::fmt::Display)> = vec![
        ("bytes", &has),
        ("first_interface_bytes", first),
        ("second_interface_bytes", second),
        ("queues_bytes", &for_queues),
        ("needed_bytes", &needed),
    ];
    if needed <= has {
        return log::info("memory", &fields);
    }
    let help = format!(
        "full queues of large frames will drop frames earlier; each class keeps its own part of the memory. \
         `memory: {} MiB` suffices for all",
        needed.div_ceil(1 << 20)
    );
    fields.push(("so", &help));
    log::warn("memory", &fields);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_logged_at_once_and_then_every_ten_seconds_with_all_there_was() {
        let at = |seconds: u64| Instant::ZERO.saturating_add(Duration::from_secs(seconds));
        let mut trouble = Trouble::default();
        assert_eq!(trouble.more(0, at(0)), None);
        assert_eq!(trouble.more(3, at(1)), Some(3));
        assert_eq!(trouble.more(5, at(2)), None);
        assert_eq!(trouble.more(9, at(11)), Some(6));
        assert_eq!(trouble.more(9, at(60)), None);
        assert_eq!(trouble.more(10, at(61)), Some(1));
    }
}
