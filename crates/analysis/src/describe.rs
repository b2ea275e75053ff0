//! Describes in the record how a run was measured.

use crate::clocks::Clocks;
use crate::ends::{MOST_NAMED, PointTimes};
use crate::params::AnalysisParams;
use crate::pass::PassFacts;
use crate::recorder::Recorded;
use slicewise_capture::PointFacts;
use slicewise_capture::matching::{DirectionCounts, ReorderingTracker};
use slicewise_stats::flow::{
    CaptureRecord, ClockStep, IncompleteFile, PointRecord, ReorderingFigures, StampPlace,
    TimesRecord, UnreadFrames,
};
use slicewise_stats::words::time;
use slicewise_wire::LinkType;
use std::path::PathBuf;

/// The record of a pass over both ends; `via` are the points between.
pub(crate) fn capture(
    facts: &PassFacts,
    via: Vec<PointRecord>,
    timeout_ns: u64,
    ways: &DirectionCounts,
    lost_back: u64,
    recorded: &Recorded,
    clocks: &Clocks,
) -> CaptureRecord {
    let counts = &facts.counts;
    let unreceived = || {
        let flows = recorded.flows.iter();
        flows.filter(|flow| flow.sent_frames > 0 && flow.received_frames == 0)
    };
    let (sent, received) = (&facts.sent.counts, &facts.received.counts);
    let align =
        |time_ns: u64| time_ns.saturating_add_signed(clocks.alignment_ns().saturating_neg());
    let later = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => one.saturating_sub(other),
        _ => 0,
    };
    let mut points = vec![point("sent", &facts.sent, &facts.sent_times)];
    points.extend(via);
    points.push(point("received", &facts.received, &facts.received_times));
    CaptureRecord {
        points,
        loss_timeout_ns: timeout_ns,
        matched_frames: counts.matched,
        duplicate_frames: counts.duplicates,
        ambiguous_sent_frames: counts.ambiguous_sent,
        ambiguous_received_frames: counts.ambiguous_received,
        ambiguous_lost_frames: counts.ambiguous_lost,
        unsent_frames: counts.unsent.saturating_sub(lost_back + counts.late),
        late_frames: counts.late,
        largest_late_ns: counts.largest_late_ns,
        repeating_flows: facts.periods.flows_beyond,
        repeat_ns: facts.periods.beyond_ns,
        ambiguous_repeat_ns: facts.periods.within_ns,
        decided_early_frames: counts.decided_early,
        reverse_frames: ways.reverse.packets,
        reverse_lost_frames: lost_back,
        lost_frames: recorded.flows.iter().map(|flow| flow.lost_frames).sum(),
        looks_exchanged: ways.look_exchanged(),
        unclassified_frames: recorded.unclassified_frames,
        assumed_flows: ways.assumed_flows,
        unreceived_flows: unreceived().count() as u64,
        unreceived_frames: unreceived().map(|flow| flow.sent_frames).sum(),
        received_begins_late_ns: later(received.first_ns.map(align), sent.first_ns),
        received_ends_early_ns: later(sent.last_ns, received.last_ns.map(align)),
        clock: clocks.record(),
    }
}

/// Returns the record of one point's capture.
pub(crate) fn point(name: &str, facts: &PointFacts, compared: &PointTimes) -> PointRecord {
    let counts = &facts.counts;
    PointRecord {
        name: name.to_owned(),
        files: facts.files.iter().map(|file| file.name.clone()).collect(),
        packets: facts.packets(),
        fragments: counts.fragments,
        reassembled: counts.reassembled,
        resolution_ns: facts.resolution_ns(),
        not_ip: counts.not_ip + counts.arp + counts.unknown_link,
        unread: unread(facts),
        link_scope: counts.link_scope,
        copies: counts.copies,
        encapsulating: counts.encapsulating,
        beyond_flows: counts.beyond_flows,
        truncated: counts.cut_short,
        malformed: counts.malformed,
        without_time: facts.without_time(),
        capture_drops: facts.dropped(),
        largest_l2_bytes: counts.largest_l2_bytes,
        backwards_timestamps: facts.backward_steps(),
        times: times(facts, compared),
        incomplete: facts
            .incomplete()
            .map(|incomplete| IncompleteFile {
                file: incomplete.file.clone(),
                offset_bytes: incomplete.offset,
                reason: incomplete.why.clone(),
            })
            .collect(),
    }
}

/// Frames without an IP packet by kind, the most frequent first.
fn unread(facts: &PointFacts) -> Vec<UnreadFrames> {
    let kinds = facts.unread.iter().map(|kind| UnreadFrames {
        kind: kind.to_string(),
        frames: kind.frames,
        may_hold_ip: kind.may_hold_ip(),
    });
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_by(|a, b| b.frames.cmp(&a.frames).then(a.kind.cmp(&b.kind)));
    kinds
}

/// Time facts of a point, from its files and from comparison with another point.
fn times(facts: &PointFacts, compared: &PointTimes) -> TimesRecord {
    let sum = facts.times();
    let place = |file: &str, packet, stamped_ns| StampPlace {
        file: file.to_owned(),
        packet,
        stamped_ns,
    };
    let of_files = facts.files.iter().flat_map(|file| {
        let named = file.times.named_wrong_stamps.iter();
        named.map(move |one| place(&file.name, one.record, one.stamped_ns))
    });
    let of_ends = compared.wrong_stamps.iter();
    let of_ends = of_ends.map(|one| place(&one.jump.file, one.jump.record, one.stamped_ns));
    let steps = compared.steps.iter().map(|step| ClockStep {
        file: step.jump.file.clone(),
        packet: step.jump.record,
        after_ns: step.jump.before_ns,
        by_ns: step.by_ns,
    });
    TimesRecord {
        out_of_order: sum.out_of_order,
        most_out_of_order_ns: sum.most_out_of_order_ns,
        beyond_window: sum.beyond_window,
        wrong_stamps: sum.wrong_stamps + compared.wrong_stamp_count,
        named_wrong_stamps: of_files.chain(of_ends).take(MOST_NAMED).collect(),
        clock_steps: compared.step_count,
        named_clock_steps: steps.collect(),
    }
}

/// Reordering of the flow with this index.
pub(crate) fn reordering(tracker: &ReorderingTracker, flow: usize) -> ReorderingFigures {
    let figures = tracker.flow(u32::try_from(flow).unwrap_or(u32::MAX));
    ReorderingFigures {
        reordered_frames: figures.reordered,
        ratio: figures.ratio(),
        max_extent_frames: figures.extent_max,
        max_n_reordering: figures.n_reordering_max,
        max_late_ns: figures.late_time_max_ns,
        bounded_frames: figures.beyond_look_back,
    }
}

/// Why figures from these captures would be meaningless, if they otherwise look valid.
pub(crate) fn same_capture(params: &AnalysisParams) -> String {
    let first = |files: &[PathBuf]| files.first().map(|file| file.display().to_string());
    format!(
        "every packet has the same timestamp at both ends, to the nanosecond: {} and {} hold the \
         same \
         capture. Give the capture of each end",
        first(&params.sent).unwrap_or_default(),
        first(&params.received).unwrap_or_default(),
    )
}

/// Returns the advice on packets that repeat after `period_ns`.
fn repeated_advice(period_ns: Option<u64>) -> String {
    let by_time = period_ns.map_or_else(String::new, |ns| {
        format!(
            ". Otherwise, and only if every delay is shorter than the {} after which they repeat, \
             choose a `--loss-timeout` longer than every delay and shorter than that",
            time(ns as f64)
        )
    });
    format!(
        "Have the sender number its packets, as iperf3 does; if it does so at their end, as TRex, Ixia \
         and Spirent do, capture whole packets (`-s 0`){by_time}"
    )
}

/// Why packets that repeat would be matched with the wrong one: delays are as long as the time after which
/// they do.
pub(crate) fn guessed(facts: &PassFacts, timeout_ns: u64) -> Option<String> {
    let (period_ns, counts) = (facts.periods.beyond_ns?, &facts.counts);
    if counts.late == 0 || counts.largest_late_ns.saturating_add(timeout_ns) < period_ns {
        return None;
    }
    Some(format!(
        "packets repeat with the same headers and payload after {}, and {} of them arrived when none had \
         been sent within the loss time-out of {}: delays are longer than that, and each packet would be \
         taken for a later one. {}",
        time(period_ns as f64),
        counts.late,
        time(timeout_ns as f64),
        repeated_advice(Some(period_ns)),
    ))
}

/// Why nothing could be matched, as far as known.
pub(crate) fn no_match(facts: &PassFacts) -> String {
    let sides = [("sent", &facts.sent), ("received", &facts.received)];
    for (side, point) in sides {
        if point.packets() == 0 {
            return format!("the {side} side holds no packets{}", why_none(point));
        }
        if point.counts.sightings == 0 {
            return format!(
                "none of the {} packets of the {side} side can be matched: {}",
                point.packets(),
                why_unmatched(point).join(", "),
            );
        }
    }
    if facts.counts.ambiguous_sent > 0 {
        return format!(
            "no packet is unique: {} sent and {} received have the same headers and payload as \
             another one. {}",
            facts.counts.ambiguous_sent,
            facts.counts.ambiguous_received,
            repeated_advice(facts.periods.within_ns),
        );
    }
    let tunnels = sides.iter().map(|(_, point)| point.counts.encapsulating);
    let tunnels = match tunnels.sum() {
        0 => String::new(),
        packets => format!(
            " {packets} are packets of IP in IP, GRE or VXLAN: `--inner` matches those inside."
        ),
    };
    format!(
        "the two sides share no packet: {} were sent and {} received, none of them equal. Are \
         the captures from the same run? Are the clocks of the two ends far apart? Is there \
         address translation, or a tunnel, between them?{tunnels}",
        facts.sent.counts.sightings, facts.received.counts.sightings,
    )
}

/// Why a point has no packets, as far as known.
fn why_none(point: &PointFacts) -> String {
    if let Some(damage) = point.incomplete().next() {
        return format!(" ({damage})");
    }
    match point.without_time() {
        0 => String::new(),
        some => format!(
            " with a time: {some} are in simple packet blocks of pcapng, which have none. Capture \
             with `tcpdump -w FILE`"
        ),
    }
}

/// Returns the reasons why no packet of a point can be matched.
fn why_unmatched(point: &PointFacts) -> Vec<String> {
    let counts = &point.counts;
    let unread = point.unread.iter();
    let mut found: Vec<String> = unread
        .map(|kind| {
            let is_read = kind.link.is_known();
            let expected =
                (!is_read).then(|| format!(", which is not read: expected {}", LinkType::EXPECTED));
            format!("{} are {kind}{}", kind.frames, expected.unwrap_or_default())
        })
        .collect();
    let others = [
        (counts.link_scope, "are link-local"),
        (counts.fragments, "are fragments"),
        (
            counts.cut_short,
            "were captured too short (96 bytes are enough)",
        ),
        (
            counts.malformed,
            "have malformed headers (their lengths or versions contradict each other)",
        ),
    ];
    let others = others.into_iter().filter(|(packets, _)| *packets > 0);
    found.extend(others.map(|(packets, what)| format!("{packets} {what}")));
    found
}
