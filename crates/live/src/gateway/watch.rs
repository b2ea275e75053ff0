//! Warnings for the operator: memory that runs low, frames that are lost.

use super::interface::Interface;
use crate::engine::Engine;
use crate::frame_memory::bytes_of;
use crate::log;
use slicewise_model::{Inflation, Rate};
use slicewise_units::{Accounting, BitRate, BothWays, ByteCount, Duration, Instant, Rounded};

/// Minimum interval between log entries about the same problem.
const INTERVAL: Duration = Duration::from_secs(10);
/// How much faster than the interface's the gateway's clock may run, parts per million: IEEE 802.3 allows the
/// interface 100, and the processor's oscillator may be off by as much.
const CLOCK_TOLERANCE_PPM: u64 = 200;

/// A count of something that should not happen.
#[derive(Debug, Default)]
pub(super) struct FaultLog {
    logged: u64,
    again_at: Instant,
}

impl FaultLog {
    /// How many more there are than were logged, if it is time to log them.
    pub(super) fn more(&mut self, count: u64, now: Instant) -> Option<u64> {
        if count <= self.logged || now < self.again_at {
            return None;
        }
        let more = count - self.logged;
        self.logged = count;
        self.again_at = now.saturating_add(INTERVAL);
        Some(more)
    }
}

/// Problems of a running gateway that were logged.
#[derive(Debug, Default)]
pub(super) struct Watch {
    refused: FaultLog,
    lost: [FaultLog; 2],
    short: [FaultLog; 2],
    lost_link_time: BothWays<FaultLog>,
    /// Rates of each link and of its interface that were compared last.
    rates: [Option<(Rate, BitRate)>; 2],
}

impl Watch {
    /// Log what has happened since it was last logged.
    pub(super) fn look(
        &mut self,
        engine: &Engine,
        links: [Rate; 2],
        ports: &mut [Interface; 2],
        now: Instant,
    ) {
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
        self.look_at_lost_time(engine, ports, now);
        self.compare_rates(links, ports);
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

    fn look_at_lost_time(
        &mut self,
        engine: &Engine,
        [first, second]: &[Interface; 2],
        now: Instant,
    ) {
        let interfaces = BothWays::from([[first, second], [second, first]]);
        for (way, ([from, to], lost)) in interfaces.zip(self.lost_link_time.as_mut()) {
            let counters = engine.counters(way);
            if let Some(nanos) = lost.more(counters.lost_link_time.nanos(), now) {
                let help = "frames left more than 1 ms late, because the gateway did not run or the interface accepted \
                            none: delays may exceed their bounds by the lost time. Give the gateway a processor of \
                            its own (`--busy-poll`), and leave 0.02 % of the interface's rate";
                log::warn(
                    "link_time_lost",
                    &[
                        ("direction", &format!("{}>{}", from.name(), to.name())),
                        ("lost", &Duration::from_nanos(nanos).rounded_up()),
                        ("stalls_in_total", &counters.link_stalls),
                        ("so", &help),
                    ],
                );
            }
        }
    }

    /// Warn of a link that may be faster than its interface, each time that one of them has another rate.
    fn compare_rates(&mut self, links: [Rate; 2], ports: &[Interface; 2]) {
        for ((link, port), compared) in links
            .into_iter()
            .zip(ports.iter().rev())
            .zip(&mut self.rates)
        {
            let rates = port.line_rate().map(|line_rate| (link, line_rate));
            if std::mem::replace(compared, rates) == rates {
                continue;
            }
            let Some((link, line_rate)) = rates else {
                continue;
            };
            if let Some(most) = excessive(link, line_rate) {
                let help = format!(
                    "the interface may send more slowly than frames are handed to it: they fill its transmit ring, which \
                     delays all of them. Set `link: {{rate: {most}, counts: L1}}` or less"
                );
                log::warn(
                    "link_not_slower_than_interface",
                    &[
                        ("interface", &port.name()),
                        ("interface_rate", &line_rate),
                        ("link_rate", &link.rate),
                        ("link_counts", &link.accounting),
                        ("so", &help),
                    ],
                );
            }
        }
    }
}

/// Highest rate (L1) at which an interface sends whatever its clock, if a link sends faster with the frames of which it counts least.
fn excessive(link: Rate, line_rate: BitRate) -> Option<BitRate> {
    let bits = u128::from(line_rate.bits_per_second());
    let most = bits * u128::from(1_000_000 - CLOCK_TOLERANCE_PPM) / 1_000_000;
    let (smallest, largest) = (ByteCount::ZERO, ByteCount::MAX);
    let on_wire = Inflation::between(link.accounting, Accounting::L1, smallest, largest);
    let is_excessive = on_wire.inflate(link.rate.bits_per_second()) > most;
    is_excessive.then(|| BitRate::new(u64::try_from(most).unwrap_or(u64::MAX)))
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
    fn a_link_leaves_200_millionths_of_the_rate_of_its_interface() {
        let gigabit = BitRate::new(1_000_000_000);
        let most = |rate, accounting| {
            let rate = BitRate::new(rate);
            excessive(Rate { rate, accounting }, gigabit).map(BitRate::bits_per_second)
        };
        assert_eq!(most(999_800_000, Accounting::L1), None);
        assert_eq!(most(999_800_001, Accounting::L1), Some(999_800_000));
        assert_eq!(most(10_000_000_000, Accounting::L1), Some(999_800_000));
        // 84 bytes on the wire for 60 bytes of L2 and 38 of L3.
        let [l2, l3] = [60, 38].map(|bytes| 999_800_000 * bytes / 84);
        for (most_of_layer, accounting) in [(l2, Accounting::L2), (l3, Accounting::L3)] {
            assert_eq!(most(most_of_layer, accounting), None);
            assert_eq!(most(most_of_layer + 1, accounting), Some(999_800_000));
        }
        // A modem that adds more than preamble and gap is slowest with the longest frames, which the link hardly counts as longer.
        let pppoe = "L2 + 40 B".parse().unwrap();
        assert_eq!(most(999_800_000, pppoe), None);
        assert_eq!(most(999_800_001, pppoe), Some(999_800_000));
    }

    #[test]
    fn the_same_trouble_is_logged_at_once_and_then_every_ten_seconds_with_all_there_was() {
        let at = |seconds: u64| Instant::ZERO.saturating_add(Duration::from_secs(seconds));
        let mut trouble = FaultLog::default();
        assert_eq!(trouble.more(0, at(0)), None);
        assert_eq!(trouble.more(3, at(1)), Some(3));
        assert_eq!(trouble.more(5, at(2)), None);
        assert_eq!(trouble.more(9, at(11)), Some(6));
        assert_eq!(trouble.more(9, at(60)), None);
        assert_eq!(trouble.more(10, at(61)), Some(1));
    }
}
