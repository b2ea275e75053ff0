//! Output of the program: lines of JSON.

use crate::device::DeviceFacts;
use serde::Deserialize;
use slicewise_model::hqos::queue_name;
use slicewise_stats::record::DropCount;

/// A line of its output.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    Ready(Ready),
    Counters(Counters),
}

/// It forwards.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Ready {
    version: String,
    hugepages: bool,
    threads: u32,
    /// True if the one thread for all goes before ordinary processes.
    real_time: bool,
}

/// Frames since it was started.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Counters {
    /// For which a receiving interface had no room.
    missed: u64,
    /// For which the ring to the worker had none.
    ring_full: u64,
    /// The same on the way back.
    ring_full_back: u64,
    /// Drops of each queue that has any.
    queues: Vec<QueueDrops>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct QueueDrops {
    subport: u32,
    pipe: u32,
    queue: u32,
    /// For which it had no room.
    full: u64,
    /// By early detection, which the library does not divide further.
    early: u64,
}

impl Event {
    /// Parses a line; `None` for one that is for people.
    pub(super) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

impl Ready {
    /// The device in one line.
    pub(super) fn describe(&self) -> String {
        let memory = if self.hugepages {
            "hugepages"
        } else {
            "no hugepages"
        };
        let threads = match (self.threads, self.real_time) {
            (1, true) => "one thread for all".to_owned(),
            (1, false) => "one thread for all, without real-time priority".to_owned(),
            (threads, _) => format!("{threads} threads"),
        };
        format!(
            "{}, librte_sched, af_packet, {memory}, {threads}",
            self.version
        )
    }
}

impl Counters {
    pub(super) fn facts(&self, description: String) -> DeviceFacts {
        let dropped = |class: String, reason: &str, frames| DropCount {
            class,
            reason: reason.to_owned(),
            frames,
        };
        let of_queues = self.queues.iter().flat_map(|queue| {
            let reasons = [("queue_full", queue.full), ("red", queue.early)];
            let name = queue_name(queue.subport, queue.pipe, queue.queue);
            reasons.map(|(reason, frames)| dropped(name.clone(), reason, frames))
        });
        let rings = [
            ("ring", self.ring_full),
            ("ring of the way back", self.ring_full_back),
        ];
        let of_rings = rings.map(|(ring, frames)| dropped(ring.to_owned(), "buffer_full", frames));
        let drops = of_queues.chain(of_rings).filter(|drop| drop.frames > 0);
        DeviceFacts {
            description,
            departures: None,
            drops: drops.collect(),
            missed_frames: self.missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    const COUNTERS: &str = r#"{"event":"counters","missed":3,"received":100,"sent":80,"ring_full":4,"received_back":9,"sent_back":7,
        "ring_full_back":2,"queues":[{"subport":0,"pipe":9,"queue":3,"full":5,"early":0},{"subport":1,"pipe":4095,"queue":14,"full":9,"early":6}]}"#;

    fn counters(line: &str) -> Counters {
        match Event::parse(line) {
            Some(Event::Counters(counters)) => counters,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn drops_are_named_by_queue_and_reason_and_rings_by_direction() {
        let facts = counters(COUNTERS).facts("it".to_owned());
        let drops: Vec<(&str, &str, u64)> = (facts.drops.iter())
            .map(|drop| (drop.class.as_str(), drop.reason.as_str(), drop.frames))
            .collect();
        assert_eq!(
            drops,
            [
                ("subport 0 pipe 9 tc 3", "queue_full", 5),
                ("subport 1 pipe 4095 tc 12 queue 2", "queue_full", 9),
                ("subport 1 pipe 4095 tc 12 queue 2", "red", 6),
                ("ring", "buffer_full", 4),
                ("ring of the way back", "buffer_full", 2)
            ]
        );
        assert_eq!((facts.missed_frames, facts.departures), (3, None));
    }

    #[test]
    fn a_run_is_the_difference_between_two_readings() {
        let mut later = counters(COUNTERS);
        later.ring_full = 10;
        let earlier = counters(COUNTERS).facts(String::new());
        let facts = later.facts(String::new()).since(&earlier);
        assert_eq!(facts.missed_frames, 0);
        let drops: Vec<(&str, u64)> = (facts.drops.iter())
            .map(|drop| (drop.class.as_str(), drop.frames))
            .collect();
        assert_eq!(drops, [("ring", 6)]);
    }

    #[test]
    fn the_ready_line_becomes_a_description_and_other_lines_nothing() {
        let described = |threads: u32, real_time: bool| {
            let line = format!(
                r#"{{"event":"ready","version":"DPDK 22.11.11","hugepages":false,"threads":{threads},"real_time":{real_time}}}"#
            );
            match Event::parse(&line) {
                Some(Event::Ready(ready)) => ready.describe(),
                other => panic!("{other:?}"),
            }
        };
        assert_snapshot!(described(1, true), @"DPDK 22.11.11, librte_sched, af_packet, no hugepages, one thread for all");
        assert_snapshot!(described(1, false), @"DPDK 22.11.11, librte_sched, af_packet, no hugepages, one thread for all, without real-time priority");
        assert_snapshot!(described(3, false), @"DPDK 22.11.11, librte_sched, af_packet, no hugepages, 3 threads");
        for other in ["EAL: No free hugepages", "{}", "{\"event\":\"else\"}", ""] {
            assert_eq!(Event::parse(other), None);
        }
    }
}
