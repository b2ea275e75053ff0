//! Counters of slices since the last report: frames sent, dropped and waiting.

use slicewise_api::{
    CounterReport, DelayPercentiles, DirectionCounters, FlowCounters, LinkCounters, SliceCounters,
    SliceFlows,
};
use slicewise_dataplane::{ClassCounters, DropReason};
use slicewise_live::engine::{ClassesCounted, FlowsCounted};
use slicewise_live::histogram::Histogram;
use slicewise_units::{BothWays, Duration, Instant};
use std::collections::BTreeMap;

/// Flows of a slice in a report.
const MOST_FLOWS: usize = 100;

/// Counters of a class until now.
#[derive(Debug, Clone, Default)]
struct Counted {
    counters: ClassCounters,
    delay: Histogram,
    /// In which report it was seen last.
    report: u64,
    /// Something was counted in the last report: the next one says that it is over.
    was_busy: bool,
}

/// Counters of one way, at the last report and since.
#[derive(Debug, Default)]
struct WayCounted {
    /// At the last report, by name.
    before: BTreeMap<String, Counted>,
    delay: Histogram,
    lost_link_time: Duration,
    /// Since the last report.
    link: DirectionCounters,
}

/// The counters of all classes, at the last report.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    ways: BothWays<WayCounted>,
    reports: u64,
    since: Instant,
    slices: BTreeMap<String, BothWays<Option<DirectionCounters>>>,
}

impl Counters {
    /// Count from here on.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            ..Self::default()
        }
    }

    /// Some classes of a direction were counted; `is_slice` tells those that are slices of the controller.
    pub(crate) fn on_counted(&mut self, counted: ClassesCounted, is_slice: impl Fn(&str) -> bool) {
        let way = counted.direction;
        let WayCounted {
            before,
            delay,
            lost_link_time: lost,
            link,
        } = &mut self.ways[way];
        if let Some(now) = counted.delay {
            link.delay_ns = percentiles(&now, delay);
            *delay = now;
            let more = (counted.lost_link_time - *lost).nanos();
            link.lost_link_time_ns = (more > 0).then_some(more);
            *lost = counted.lost_link_time;
        }
        for (counters, delay) in counted.classes {
            let name = counters.class.clone();
            let old = before.entry(name.clone()).or_default();
            if old.report == self.reports + 1 {
                // Frames of a removed slice of this name wait.
                continue;
            }
            if counters.offered_frames < old.counters.offered_frames {
                // Another of the same name.
                *old = Counted::default();
            }
            let new = since(&counters, &old.counters, percentiles(&delay, &old.delay));
            add(link, &new);
            let is_busy = new.sent_frames > 0 || !new.dropped.is_empty() || new.waiting_frames > 0;
            if is_slice(&name) && (is_busy || old.was_busy || old.report == 0) {
                self.slices.entry(name).or_default()[way] = Some(new);
            }
            *old = Counted {
                counters,
                delay,
                report: self.reports + 1,
                was_busy: is_busy,
            };
        }
    }

    /// All classes of both directions were counted: the report.
    pub(crate) fn report(&mut self, link: &str, now: Instant) -> CounterReport {
        self.reports += 1;
        let reports = self.reports;
        let links = self.ways.as_mut().map(|way| {
            way.before.retain(|_, counted| counted.report == reports);
            std::mem::take(&mut way.link)
        });
        let interval = now.saturating_since(self.since);
        self.since = now;
        let slices = std::mem::take(&mut self.slices).into_iter();
        CounterReport {
            interval_ns: interval.nanos(),
            links: vec![LinkCounters {
                name: link.to_owned(),
                forward: links.forward,
                backward: links.backward,
            }],
            slices: slices
                .map(|(name, counted)| SliceCounters {
                    name,
                    forward: counted.forward,
                    backward: counted.backward,
                })
                .collect(),
            ..CounterReport::default()
        }
    }
}

/// The flows of slices, those with the most bytes first.
pub(crate) fn flows(counted: Vec<FlowsCounted>) -> Vec<SliceFlows> {
    let mut slices: BTreeMap<String, Vec<FlowCounters>> = BTreeMap::new();
    for FlowsCounted {
        name,
        direction,
        flows,
    } in counted
    {
        let flows = flows.into_iter().map(|(key, count)| FlowCounters {
            direction,
            source: key.source.to_string(),
            destination: key.destination.to_string(),
            protocol: key.protocol,
            source_port: key.source_port,
            destination_port: key.destination_port,
            frames: count.frames,
            bytes: count.bytes,
        });
        slices.entry(name).or_default().extend(flows);
    }
    let mut flows = Vec::new();
    for (slice, mut of_slice) in slices {
        of_slice.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.source.cmp(&b.source)));
        of_slice.truncate(MOST_FLOWS);
        flows.push(SliceFlows {
            slice,
            flows: of_slice,
        });
    }
    flows
}

/// Returns the difference between two moments.
fn since(
    now: &ClassCounters,
    before: &ClassCounters,
    delay_ns: Option<DelayPercentiles>,
) -> DirectionCounters {
    let dropped = DropReason::ALL.into_iter().filter_map(|reason| {
        let more = now.dropped(reason).saturating_sub(before.dropped(reason));
        (more > 0).then(|| (reason.name().to_owned(), more))
    });
    DirectionCounters {
        sent_frames: now.sent_frames.saturating_sub(before.sent_frames),
        sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
        dropped: dropped.collect(),
        waiting_frames: now.queued_frames,
        delay_ns,
        lost_link_time_ns: None,
    }
}

/// Count what a class has counted for its link, too.
fn add(link: &mut DirectionCounters, class: &DirectionCounters) {
    link.sent_frames += class.sent_frames;
    link.sent_bytes += class.sent_bytes;
    link.waiting_frames += class.waiting_frames;
    for (reason, frames) in &class.dropped {
        *link.dropped.entry(reason.clone()).or_default() += frames;
    }
}

/// Delays counted between two moments: upper ends of buckets that are a quarter wide.
fn percentiles(now: &Histogram, before: &Histogram) -> Option<DelayPercentiles> {
    let count = now
        .count()
        .checked_sub(before.count())
        .filter(|&count| count > 0)?;
    let largest = now.largest();
    let at = |thousandths: u64| -> Duration {
        let rank = (u128::from(count) * u128::from(thousandths)).div_ceil(1000);
        let buckets = now.cumulative().zip(before.cumulative());
        let mut ends = buckets.map(|((end, now), (_, before))| (end, now - before));
        let found = ends.find(|&(_, below)| u128::from(below) >= rank);
        found.map_or(largest, |(end, _)| end.min(largest))
    };
    Some(DelayPercentiles {
        p50: at(500).nanos(),
        p99: at(990).nanos(),
        largest: at(1000).nanos(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_units::Way;

    fn counted(class: &str, sent: u64, delays_us: &[u64]) -> (ClassCounters, Histogram) {
        let mut delay = Histogram::default();
        let delays = delays_us.iter();
        delays.for_each(|&delay_us| delay.record(Duration::from_micros(delay_us)));
        let counters = ClassCounters {
            class: class.to_owned(),
            offered_frames: sent,
            sent_frames: sent,
            sent_bytes: sent * 100,
            ..ClassCounters::default()
        };
        (counters, delay)
    }

    fn report(
        counters: &mut Counters,
        classes: Vec<(ClassCounters, Histogram)>,
        lost_us: u64,
    ) -> CounterReport {
        let mut all = Histogram::default();
        classes.iter().for_each(|(_, delay)| all.merge(delay));
        let counted = ClassesCounted {
            at: Instant::ZERO,
            flows: Vec::new(),
            direction: Way::Forward,
            delay: Some(all),
            lost_link_time: Duration::from_micros(lost_us),
            classes,
            next: None,
        };
        counters.on_counted(counted, |name| name != "class-default");
        let now = counters.since.saturating_add(Duration::from_secs(1));
        counters.report("uplink", now)
    }

    #[test]
    fn a_report_has_what_was_counted_since_the_last_and_says_once_that_nothing_was() {
        let mut counters = Counters::new(Instant::ZERO);
        let sent = |counters: &mut Counters, a: u64, delays: &[u64]| {
            let report = report(
                counters,
                vec![counted("a", a, delays), counted("class-default", a, delays)],
                0,
            );
            let link = report.links[0].forward.clone();
            let slices = report.slices.iter().map(|slice| {
                let forward = slice.forward.clone().unwrap();
                (
                    forward.sent_frames,
                    forward.delay_ns.map(|delay| delay.largest / 1_000),
                )
            });
            (link.sent_frames, slices.collect::<Vec<_>>())
        };
        assert_eq!(
            sent(&mut counters, 3, &[10, 10, 500]),
            (6, vec![(3, Some(500))])
        );
        assert_eq!(
            sent(&mut counters, 4, &[10, 10, 500, 10]),
            (2, vec![(1, Some(10))])
        );
        assert_eq!(
            sent(&mut counters, 4, &[10, 10, 500, 10]),
            (0, vec![(0, None)])
        );
        assert_eq!(sent(&mut counters, 4, &[10, 10, 500, 10]), (0, vec![]));
        // A new slice of the same name.
        assert_eq!(sent(&mut counters, 1, &[20]), (2, vec![(1, Some(20))]));
    }
    #[test]
    fn a_report_has_the_link_time_that_was_lost_since_the_last() {
        let mut counters = Counters::new(Instant::ZERO);
        let lost = [0, 300, 300, 1_000].map(|lost_us| {
            let report = report(&mut counters, vec![counted("a", 1, &[10])], lost_us);
            report.links[0].forward.lost_link_time_ns
        });
        assert_eq!(lost, [None, Some(300_000), None, Some(700_000)]);
    }
}
