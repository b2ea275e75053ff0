//! Phases of a run, each measured for itself.

use super::*;
use crate::objective::DelayLimit;
use crate::phase::PhaseRecord;

const BIN_MS: u64 = 50;

fn phase(name: &str, [begins, measured_from, ends]: [u64; 3]) -> MeasuredPhase {
    MeasuredPhase {
        name: name.to_owned(),
        begins: Duration::from_millis(begins),
        measured_from: Duration::from_millis(measured_from),
        ends: Duration::from_millis(ends),
        delays: Vec::new(),
    }
}

/// A run of 400 bins, so that segments of time have seven, with phases that begin within one.
fn phases() -> Vec<MeasuredPhase> {
    vec![
        phase("first", [0, 500, 6_050]),
        phase("second", [6_050, 7_000, 20_000]),
    ]
}

fn collector(phases: Vec<MeasuredPhase>) -> RunCollector {
    let collector = RunCollector::new(params(20_000, BIN_MS)).unwrap();
    collector.with_phases(phases).unwrap()
}

/// Packets of both slices, a millisecond apart, every seventh of which is lost; delays grow with time.
fn offer(collector: &mut RunCollector, during: std::ops::Range<u64>) {
    for number in 0..20_000u32 {
        let ms = u64::from(number);
        let (slice, sent) = (usize::from(number % 2 == 1), at(ms * MS));
        if !during.contains(&ms) {
            continue;
        }
        collector.on_sent(slice, true, sent, 1_000);
        if ms % 7 == 3 {
            collector.on_lost(slice, sent, 1_000);
        } else {
            let position = FlowPosition {
                flow: number % 2,
                sequence: number / 2,
            };
            let received = at(ms * MS + 100_000 + ms * 1_000);
            collector.on_received(slice, Some(position), sent, received, 1_000);
        }
    }
}

#[test]
fn a_phase_has_the_figures_of_a_run_that_was_nothing_else() {
    let mut whole = collector(phases());
    offer(&mut whole, 0..20_000);
    let record = finish(&mut whole);
    for (index, during) in [(0, 500..6_050), (1, 7_000..20_000)] {
        let mut alone = collector(phases());
        // What was received of the packets before it is received in both.
        offer(&mut alone, during.clone());
        let alone = finish(&mut alone);
        let (own, other) = (&record.phases[index], &alone.phases[index]);
        for (own, other) in own.slices.iter().zip(&other.slices) {
            assert_eq!(own.delay_cdf, other.delay_cdf);
            let (own, other) = (&own.figures, &other.figures);
            assert_eq!(own.delay, other.delay);
            assert_eq!(own.sent_frames, other.sent_frames);
            assert_eq!(own.lost_frames, other.lost_frames);
            assert_eq!(own.span_ns, (during.end - during.start) * MS);
            let earlier = own.received_frames - other.received_frames;
            assert!(earlier <= 8, "of the milliseconds before: {earlier}");
        }
        let frames = own.slices.iter().map(|s| s.figures.sent_frames);
        assert_eq!(own.aggregate.sent_frames, frames.sum::<u64>());
        let largest = own.slices.iter().map(|s| s.figures.delay.max_ns).max();
        assert_eq!(own.aggregate.delay.max_ns, largest.unwrap());
    }
}

#[test]
fn phases_change_nothing_of_the_figures_of_the_run() {
    let mut with = collector(phases());
    let mut without = collector(Vec::new());
    for collector in [&mut with, &mut without] {
        offer(collector, 0..20_000);
    }
    let record = finish(&mut with);
    let phases = record.phases.len();
    let plain = RunRecord {
        phases: Vec::new(),
        ..record
    };
    assert_eq!((phases, plain), (2, finish(&mut without)));
}

#[test]
fn a_packet_that_arrives_behind_a_later_one_of_its_flow_is_reordered_in_that_phase() {
    let mut collector = collector(phases());
    let mut receive = |flow, sequence, ms: u64| {
        let position = FlowPosition { flow, sequence };
        let sent = at((ms - 1) * MS);
        collector.on_sent(0, true, sent, 100);
        collector.on_received(0, Some(position), sent, at(ms * MS), 100);
    };
    // In order, with a loss; the other flow's numbers are its own.
    receive(0, 0, 100);
    receive(0, 1, 200);
    receive(0, 3, 300);
    receive(1, 0, 400);
    // In the settling time of the second phase, and after it.
    receive(0, 2, 6_100);
    receive(0, 9, 8_000);
    receive(0, 8, 8_100);
    receive(0, 7, 8_200);
    receive(0, 10, 8_300);
    let record = finish(&mut collector);
    let reordered = record.phases.iter().map(|p| p.slices[0].reordered_frames);
    assert_eq!(reordered.collect::<Vec<_>>(), [0, 3]);
}

#[test]
fn a_frame_is_late_by_the_limit_of_the_phase_it_is_sent_in() {
    let limit = |ms: u64| {
        Some(DelayLimit {
            limit_ns: ms * MS,
            at: Percentile::P99,
        })
    };
    let mut phases = phases();
    phases[0].delays = vec![limit(1), None];
    phases[1].delays = vec![limit(3), None];
    let mut collector = collector(phases);
    let mut run = || {
        for ms in [10, 1_000, 7_000] {
            collector.on_sent(0, true, at(ms * MS), 100);
            collector.on_received(0, None, at(ms * MS), at((ms + 2) * MS), 100);
        }
        finish(&mut collector)
    };
    let record = run();
    assert_eq!(run(), record, "the next run begins with the first phase");
    let late = &record.slices[0].series.late_frames;
    assert_eq!((late[0], late[20], late[140]), (1, 1, 0));
    assert_eq!(late.len(), 400);
    assert!(record.slices[1].series.late_frames.is_empty());
    let of_sent = |phase: usize| record.phases[phase].slices[0].delay_of_sent.unwrap();
    assert_eq!(of_sent(0).ns, Some(2 * MS));
    assert_eq!(record.phases[0].slices[1].delay_of_sent, None);
}

#[test]
fn a_phase_that_cannot_be_measured_is_refused() {
    let refused = |times| {
        let collector = RunCollector::new(params(20_000, BIN_MS)).unwrap();
        let phases = vec![phase("odd", times)];
        collector.with_phases(phases).unwrap_err().to_string()
    };
    let expected = "phase `odd` does not begin, settle and end in this order, within the run, at edges of intervals \
                    of its series";
    for times in [
        [10, 50, 100],
        [0, 60, 100],
        [0, 50, 110],
        [100, 50, 200],
        [0, 100, 100],
        [0, 50, 20_050],
    ] {
        assert_eq!(refused(times), expected, "{times:?}");
    }
}

#[test]
fn delay_variation_of_a_phase_is_counted_from_the_smallest_delay_of_frames_sent_in_the_run() {
    let mut collector = collector(phases());
    for (sent_ms, delay_ms) in [(1_000, 5), (2_000, 8), (10_000, 7), (20_000, 1)] {
        let (sent, received) = (at(sent_ms * MS), at((sent_ms + delay_ms) * MS));
        collector.on_sent(0, true, sent, 100);
        collector.on_received(0, None, sent, received, 100);
    }
    let record = finish(&mut collector);
    assert_eq!(record.slices[0].whole.variation.pdv_max_ns, 3 * MS);
    let pdv = |phase: &PhaseRecord| {
        let (own, all) = (phase.slices[0].figures.variation, phase.aggregate.variation);
        [own.pdv_max_ns, all.pdv_max_ns]
    };
    assert_eq!(
        record.phases.iter().map(pdv).collect::<Vec<_>>(),
        [[3 * MS; 2], [2 * MS; 2]]
    );
}
