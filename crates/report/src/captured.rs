//! Findings of runs measured from captures beside slices: flows, hops and how they were measured.

use crate::populations::grouped;
use slicewise_stats::flow::{
    CaptureRecord, ClockRecord, FlowKey, FlowRecord, HopRecord, PointRecord, StampPlace,
    TimesRecord,
};
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_stats::words::{count, digits, time};

/// Flows that a report names; the others are in its data.
pub const FLOWS_SHOWN: usize = 50;
/// Runs of which a report tells how they were captured; the others are in the results folder.
pub const RUNS_SHOWN: usize = 50;

/// Findings from captures of all runs, as far as a report shows them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CapturedFindings {
    /// Runs measured from captures, the first [`RUNS_SHOWN`].
    pub runs: Vec<CapturedRun>,
    /// How many there are.
    pub run_count: u64,
    /// The flows that sent most bytes, [`FLOWS_SHOWN`] at most.
    pub flows: Vec<FlowFinding>,
    /// How many there are.
    pub flow_count: u64,
}

/// How one run was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedRun {
    /// Which run.
    pub run: RunKey,
    /// How.
    pub capture: CaptureRecord,
    /// The stretches between its measuring points, where there are more than two.
    pub hops: Vec<HopRecord>,
}

/// A flow of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowFinding {
    /// Which run.
    pub run: RunKey,
    /// Packets that it sent and received.
    pub flow: FlowRecord,
    /// Resolution of its delays, ns; 0 if unknown.
    pub resolution_ns: u64,
}

impl FlowFinding {
    /// Rate received from the first to the last frame, bit/s; `None` where that is no time.
    #[must_use]
    pub fn throughput_bits_per_second(&self) -> Option<f64> {
        let length_ns = self.flow.received?.length_ns();
        let bits = self.flow.received_bytes as f64 * 8.0;
        (length_ns > 0).then(|| bits * 1e9 / length_ns as f64)
    }

    /// Returns true where nobody named slices, so that the flow is one: its name says nothing new.
    pub(crate) fn names_its_slice(&self) -> bool {
        let (slice, key) = (&self.flow.slice, &self.flow.flow);
        slice.contains(&key.source) && slice.contains(&key.destination)
    }

    /// Lost frames / sent frames; `None` where none were sent.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        let sent = self.flow.sent_frames;
        (sent > 0).then(|| self.flow.lost_frames as f64 / sent as f64)
    }
}

/// Returns true if a run was measured from captures.
pub(crate) fn is_captured(record: &RunRecord) -> bool {
    record.capture.is_some() || !record.flows.is_empty() || !record.hops.is_empty()
}

impl CapturedFindings {
    /// Returns true where every slice is a flow that is listed: figures of slices would repeat those of flows.
    pub(crate) fn is_by_flow(&self) -> bool {
        let are_all_listed = self.flow_count > 0 && self.flow_count == self.flows.len() as u64;
        are_all_listed && self.run_count == 1 && self.flows.iter().all(FlowFinding::names_its_slice)
    }

    /// Take what one run holds.
    pub(crate) fn on_run(&mut self, record: &RunRecord) {
        if !is_captured(record) {
            return;
        }
        self.run_count += 1;
        let capture = record.capture.as_ref();
        if let Some(capture) = capture.filter(|_| self.runs.len() < RUNS_SHOWN) {
            self.runs.push(CapturedRun {
                run: record.key.clone(),
                capture: capture.clone(),
                hops: record.hops.clone(),
            });
        }
        self.flow_count += record.flows.len() as u64;
        self.flows
            .extend(record.flows.iter().map(|flow| FlowFinding {
                run: record.key.clone(),
                flow: flow.clone(),
                resolution_ns: capture.map_or(0, CaptureRecord::resolution_ns),
            }));
        // Stable: of equal ones, those that came first stay.
        self.flows
            .sort_by_key(|finding| std::cmp::Reverse(finding.flow.sent_bytes));
        self.flows.truncate(FLOWS_SHOWN);
    }
}

/// A flow in a line: "10.0.0.1:5201 → 10.0.0.2:5201 UDP, VLAN 10, DSCP 46".
#[must_use]
pub fn flow_name(flow: &FlowKey) -> String {
    let end = |address: &str, port: Option<u16>| match port {
        Some(port) if address.contains(':') => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
        None => address.to_owned(),
    };
    let protocol = match flow.protocol {
        1 => "ICMP".to_owned(),
        6 => "TCP".to_owned(),
        17 => "UDP".to_owned(),
        58 => "ICMPv6".to_owned(),
        132 => "SCTP".to_owned(),
        other => format!("protocol {other}"),
    };
    let mut name = format!(
        "{} → {} {protocol}",
        end(&flow.source, flow.source_port),
        end(&flow.destination, flow.destination_port)
    );
    if !flow.vlans.is_empty() {
        name.push_str(&format!(", VLAN {}", vlans_text(&flow.vlans)));
    }
    if flow.dscp != 0 {
        name.push_str(&format!(", DSCP {}", flow.dscp));
    }
    name
}

/// VLAN ids, the outermost first: "10/7".
pub(crate) fn vlans_text(vlans: &[u16]) -> String {
    let vlans: Vec<String> = vlans.iter().map(u16::to_string).collect();
    vlans.join("/")
}

/// Returns the warnings for readers of a captured run's figures, a sentence or two each; empty where all is well.
#[must_use]
pub fn warnings(capture: &CaptureRecord) -> Vec<String> {
    let lost = capture
        .lost_frames
        .saturating_add(capture.reverse_lost_frames);
    // Percentiles of longer delays are no better than that either.
    let smallest_ns = capture
        .clock
        .smallest_delay_ns
        .map_or(u64::MAX, i64::unsigned_abs);
    let is_coarse = smallest_ns < capture.resolution_ns().saturating_mul(COARSE);
    let points = capture.points.iter();
    let mut warnings: Vec<String> = points
        .flat_map(|point| point_warnings(point, lost > 0, is_coarse))
        .collect();
    warnings.extend(tunnel_warning(capture).filter(|_| lost > 0));
    if capture.matched_frames == 0 {
        warnings.push("No frame was seen at both ends: the captures are not of the same traffic, or something on the way rewrites packets.".to_owned());
    }
    if capture.looks_exchanged {
        warnings.push("More bytes went from the receiving end to the sending one than the other way, as in a download: they are in no figure of a slice. To measure them, give the files the other way round, `--sent` the capture of the end that sends the data.".to_owned());
    }
    warnings.extend(span_warnings(capture));
    warnings.extend(clock_warnings(&capture.clock));
    if all_arrived_early(capture) && !capture.looks_exchanged {
        warnings.push("Every frame arrived before it was sent: if both ends share one clock, the two captures have been exchanged.".to_owned());
    }
    warnings.extend(time_out_warnings(capture));
    warnings.extend(warning("", capture.unsent_frames, "frame", "seen at the receiving end only: sent before the capture at the sending end began, missed by it, sent by another host, or changed on the way."));
    if capture.reverse_lost_frames > 0 {
        warnings.push(format!(
            "{} lost on the way back, from the receiving end to the sending one; {} arrived. They are in no figure of a slice.",
            were(capture.reverse_lost_frames, "frame"),
            grouped(capture.reverse_frames)
        ));
    }
    if capture.unreceived_flows > 0 {
        warnings.push(format!(
            "{} with {} never arrived at all and count as lost. Where they were not on their way to the receiving end, leave them out by defining slices with `--slices`.",
            counted(capture.unreceived_flows, "flow"),
            counted(capture.unreceived_frames, "frame")
        ));
    }
    warnings.extend(warning(
        "",
        capture.unclassified_frames,
        "frame",
        "sent that no slice matches: they are in no figure of a slice.",
    ));
    warnings.extend(warning("", capture.decided_early_frames, "frame", "given up before the loss time-out, as too many were waiting for their match: choose a shorter time-out."));
    warnings
}

/// Where the loss time-out decides what packets are taken for.
fn time_out_warnings(capture: &CaptureRecord) -> Vec<String> {
    let mut warnings = Vec::new();
    let ambiguous = capture
        .ambiguous_sent_frames
        .saturating_add(capture.ambiguous_received_frames);
    if ambiguous > 0 {
        warnings.push(format!(
            "{} cannot be distinguished from another one ({} sent, {} received): they are not matched by guessing and have no delay. {} of them {} certainly lost.{}",
            counted(ambiguous, "frame"),
            grouped(capture.ambiguous_sent_frames),
            grouped(capture.ambiguous_received_frames),
            grouped(capture.ambiguous_lost_frames),
            if capture.ambiguous_lost_frames == 1 { "was" } else { "were" },
            capture.ambiguous_repeat_ns.map_or_else(String::new, |ns| format!(
                " They repeat after {}: only if every delay is shorter, a `--loss-timeout` longer than every delay and shorter than that tells them apart.",
                time(ns as f64)
            ))
        ));
    }
    if let Some(ns) = capture.repeat_ns {
        warnings.push(format!(
            "Frames of {} come again with the same headers and payload, after {} at the shortest: they are matched by time alone. That is right only if every delay is shorter than the loss time-out of {}.",
            counted(capture.repeating_flows, "flow"),
            time(ns as f64),
            time(capture.loss_timeout_ns as f64)
        ));
    }
    if capture.late_frames > 0 {
        warnings.push(format!(
            "At least {} received after the loss time-out, up to {} after being sent: they count as lost.",
            were(capture.late_frames, "frame"),
            time(capture.largest_late_ns as f64)
        ));
    }
    warnings
}

/// Delays shorter than so many times the resolution of timestamps: its error shows in three digits.
const COARSE: u64 = 128;

/// Nothing but negative delays, and nothing that went back.
fn all_arrived_early(capture: &CaptureRecord) -> bool {
    let early = capture.clock.negative_delays;
    early > 0
        && early == capture.matched_frames
        && capture.clock.alignment_ns == 0
        && !capture.clock.aligned
}

/// Captures that begin or end so much apart were not started or stopped together.
const CAPTURES_APART_NS: u64 = 1_000_000_000;

fn span_warnings(capture: &CaptureRecord) -> Vec<String> {
    let late = capture.received_begins_late_ns;
    let early = capture.received_ends_early_ns;
    let mut warnings = Vec::new();
    if late > CAPTURES_APART_NS {
        warnings.push(format!(
            "The first packet at the receiving end is {} later than the first one at the sending end: what was sent before counts as lost. Was that capture started later?",
            time(late as f64)
        ));
    }
    // Of a damaged capture, what was sent after its end is left out.
    let is_damaged = (capture.points.last()).is_some_and(|point| !point.incomplete.is_empty());
    if early > CAPTURES_APART_NS && !is_damaged {
        warnings.push(format!(
            "The last packet at the receiving end is {} earlier than the last one at the sending end: what was sent after counts as lost. Was that capture stopped earlier?",
            time(early as f64)
        ));
    }
    warnings
}

/// Frames above this were made by the adapter: no network carries them.
const LARGEST_ON_A_WIRE: u32 = 9_216 + 22;

/// `has_loss`: frames count as lost, for which this point may be the reason. `is_coarse`: delays are hardly longer than the resolution
/// of times.
fn point_warnings(point: &PointRecord, has_loss: bool, is_coarse: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for file in &point.incomplete {
        warnings.push(format!(
            "{} could not be read beyond byte {}: {}. The figures cover only what precedes it.",
            file.file,
            grouped(file.offset_bytes),
            file.reason
        ));
    }
    warnings.extend(time_warnings(&point.name, &point.times));
    let at = format!("At {}, ", point.name);
    let drops = point.capture_drops.unwrap_or_default();
    warnings.extend([
        warning(&at, point.truncated, "frame", "cut off before the end of what matching needs: they are not matched. A snap length of 96 bytes is enough."),
        unread_warning(&at, point).filter(|_| has_loss),
        warning(&at, point.malformed, "frame", "malformed: lengths or versions in their headers contradict each other. They are not matched."),
        warning(&at, point.without_time, "packet", "without a time (simple packet blocks of pcapng): they are not matched. Capture with `tcpdump -w FILE`."),
        warning(&at, point.copies, "packet", "captured on two interfaces (`-i any`, a bridge, a VLAN and the interface below it): the first time counts."),
        warning(&at, point.beyond_flows, "frame", "of more flows than can be tracked: they are in no slice."),
        warning(&at, point.fragments, "IP fragment", "seen of packets that did not become complete: they are not matched."),
        warning(&at, point.reassembled, "packet", "put together from fragments: each is matched, with the time of its last fragment."),
        warning(&at, drops, "packet", "lost by the capture itself: what is not in it counts as lost on the way."),
    ].into_iter().flatten());
    if point.resolution_ns > 1 && is_coarse {
        warnings.push(format!(
            "{at}times have a resolution of {}: delays are known to that. `tcpdump --nano` captures nanoseconds.",
            time(point.resolution_ns as f64)
        ));
    }
    if point.largest_l2_bytes > LARGEST_ON_A_WIRE {
        warnings.push(format!(
            "{at}frames have up to {} bytes, more than a network carries: switch segmentation offload off (`ethtool -K DEV tso off gso off gro off`), or packets cannot be matched one by one.",
            grouped(point.largest_l2_bytes.into())
        ));
    }
    warnings
}

/// Packets that are in tunnels at some of the points.
fn tunnel_warning(capture: &CaptureRecord) -> Option<String> {
    let points = capture.points.iter().map(|point| point.encapsulating);
    let most = points.clone().max()?;
    let differs = points.min() != Some(most);
    warning("", most, "packet", "in tunnels of IP in IP, GRE or VXLAN, and not at every point: they were matched by the outer packet. `--inner` matches the packets inside.").filter(|_| differs)
}

/// Frames that may hold IP packets, but were not looked into.
fn unread_warning(at: &str, point: &PointRecord) -> Option<String> {
    let kinds = point.unread.iter().filter(|kind| kind.may_hold_ip);
    let total: u64 = kinds.clone().map(|kind| kind.frames).sum();
    let kinds: Vec<String> = kinds
        .map(|kind| format!("{} × {}", grouped(kind.frames), kind.kind))
        .collect();
    let named = kinds.join(", ");
    warning(
        at,
        total,
        "frame",
        &format!(
            "not looked into: {named}. Packets in them may be among those that count as lost."
        ),
    )
}

fn time_warnings(at: &str, times: &TimesRecord) -> Vec<String> {
    let mut warnings = Vec::new();
    if times.out_of_order > 0 {
        let late = match times.beyond_window {
            0 => String::new(),
            late => format!(
                " {} than the 100 ms within which packets are sorted: reordering may be counted too high.",
                match late {
                    1 => "1 of them came later".to_owned(),
                    late => format!("{} of them came later", grouped(late)),
                }
            ),
        };
        warnings.push(format!(
            "At {at}, {} recorded out of order, by up to {}: packets were sorted by time.{late}",
            were(times.out_of_order, "packet"),
            time(times.most_out_of_order_ns as f64)
        ));
    }
    if times.wrong_stamps > 0 {
        let place = |one: &StampPlace| {
            format!(
                "{}, packet {}: {}",
                one.file,
                grouped(one.packet),
                since_epoch(one.stamped_ns)
            )
        };
        warnings.push(format!(
            "At {at}, {} stamped with an impossible time ({}{}): the time of a neighbour is used instead, and no delay.",
            were(times.wrong_stamps, "packet"),
            times.named_wrong_stamps.first().map(place).unwrap_or_default(),
            if times.wrong_stamps > 1 { " and others" } else { "" }
        ));
    }
    let steps = times
        .named_clock_steps
        .iter()
        .take(STEPS_SHOWN)
        .map(|step| {
            format!(
                "{} by {} before packet {} of {} (after {})",
                if step.by_ns < 0 { "back" } else { "forward" },
                time(step.by_ns.unsigned_abs() as f64),
                grouped(step.packet),
                step.file,
                since_epoch(step.after_ns)
            )
        });
    if times.clock_steps > 0 {
        warnings.push(format!(
            "At {at}, the clock was set {} during the capture: {}{}. Later times were moved by that, so that packets are matched; delays are not given.",
            if times.clock_steps == 1 { "once".to_owned() } else { format!("{} times", grouped(times.clock_steps)) },
            steps.collect::<Vec<_>>().join("; "),
            if times.clock_steps > STEPS_SHOWN as u64 { "; and more" } else { "" }
        ));
    }
    warnings
}

/// A time stamp as tshark prints it.
fn since_epoch(ns: u64) -> String {
    format!(
        "{}.{:06} s since 1970",
        ns / 1_000_000_000,
        ns % 1_000_000_000 / 1_000
    )
}

/// Steps of a clock that are named in a sentence.
const STEPS_SHOWN: usize = 3;

fn clock_warnings(clock: &ClockRecord) -> Option<String> {
    let estimate = clock.estimate.as_ref();
    let estimated = estimate.map(|estimate| {
        let side = if estimate.offset_ns < 0.0 { "behind" } else { "ahead of" };
        format!(
            "by the method of {} the receiving clock was {}{} {side} the sending one at the start, and drifted by {} parts per million",
            estimate.method,
            time(estimate.offset_ns.abs()),
            estimate.offset_uncertainty_ns.map_or_else(String::new, |ns| format!(" ± {}", time(ns as f64))),
            digits(estimate.drift_ppm, 3)
        )
    });
    if let (true, Some(estimated)) = (clock.aligned, &estimated) {
        return Some(format!(
            "The two clocks were aligned: {estimated}. Delays are no better than this estimate."
        ));
    }
    if !clock.disagrees() {
        return None;
    }
    let least = clock.smallest_delay_ns.unwrap_or(0).unsigned_abs();
    let how = match clock.negative_delays {
        0 => format!(
            "frames arrived {} or more after they were sent",
            time(least as f64)
        ),
        1 => format!("1 frame arrived {} before it was sent", time(least as f64)),
        more => format!(
            "each of {} frames arrived before it was sent, by {} at worst",
            grouped(more),
            time(least as f64)
        ),
    };
    Some(format!(
        "The two clocks disagree: {how}. No delays are reported or judged{}.",
        estimated.map_or_else(String::new, |text| format!(
            "; {text}. `--accept-clock-estimate` corrects delays by that, if {}",
            estimate.map_or("", |estimate| estimate.assumption.as_str())
        ))
    ))
}

/// "At sent, 3 frames were …"; `None` where there are none.
fn warning(at: &str, number: u64, thing: &str, what: &str) -> Option<String> {
    (number > 0).then(|| format!("{at}{} {what}", were(number, thing)))
}

fn counted(number: u64, thing: &str) -> String {
    if number == 1 {
        count(1, thing)
    } else {
        format!("{} {thing}s", grouped(number))
    }
}

fn were(number: u64, thing: &str) -> String {
    let verb = if number == 1 { "was" } else { "were" };
    format!("{} {verb}", counted(number, thing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_stats::flow::{ClockEstimate, ClockStep, IncompleteFile};

    fn flow() -> FlowKey {
        FlowKey {
            source: "2001:db8::1".into(),
            destination: "10.0.0.2".into(),
            source_port: Some(5201),
            destination_port: None,
            protocol: 6,
            vlans: vec![10, 7],
            dscp: 46,
        }
    }

    #[test]
    fn a_flow_is_named_as_a_person_writes_it() {
        insta::assert_snapshot!(flow_name(&flow()), @"[2001:db8::1]:5201 → 10.0.0.2 TCP, VLAN 10/7, DSCP 46");
    }

    #[test]
    fn a_sound_capture_gives_no_warning() {
        let capture = CaptureRecord {
            matched_frames: 5,
            ..CaptureRecord::default()
        };
        assert_eq!(warnings(&capture), [""; 0]);
    }

    #[test]
    fn everything_that_is_wrong_is_said_in_words() {
        let capture = CaptureRecord {
            points: vec![PointRecord {
                name: "sent".into(),
                times: TimesRecord {
                    out_of_order: 60,
                    most_out_of_order_ns: 130_000_000,
                    beyond_window: 1,
                    wrong_stamps: 1,
                    named_wrong_stamps: vec![StampPlace {
                        file: "tx.pcap".into(),
                        packet: 61,
                        stamped_ns: 4_000_000_000_000_001_000,
                    }],
                    clock_steps: 2,
                    named_clock_steps: [3_600_000_000_000, -10_000_000_000]
                        .map(|by_ns| ClockStep {
                            file: "tx.pcap".into(),
                            packet: 2_001,
                            after_ns: 1_767_225_601_500_000_000,
                            by_ns,
                        })
                        .into(),
                },
                truncated: 12_000,
                fragments: 2,
                incomplete: vec![IncompleteFile {
                    file: "tx.pcap".into(),
                    offset_bytes: 123_456,
                    reason: "the record length 4294967295 is not possible".into(),
                }],
                ..PointRecord::default()
            }],
            ambiguous_sent_frames: 3,
            ambiguous_received_frames: 4,
            unsent_frames: 1,
            clock: ClockRecord {
                negative_delays: 7,
                smallest_delay_ns: Some(-1_500_000),
                estimate: Some(ClockEstimate {
                    method: "Moon, Skelly and Towsley".into(),
                    assumption: "the smallest delay is zero".into(),
                    offset_uncertainty_ns: None,
                    offset_ns: -1_700_000.0,
                    drift_ppm: 12.3456,
                }),
                alignment_ns: 0,
                aligned: false,
                was_set: false,
            },
            ..CaptureRecord::default()
        };
        insta::assert_snapshot!(warnings(&capture).join("\n"), @"
        tx.pcap could not be read beyond byte 123 456: the record length 4294967295 is not possible. The figures cover only what precedes it.
        At sent, 60 packets were recorded out of order, by up to 130 ms: packets were sorted by time. 1 of them came later than the 100 ms within which packets are sorted: reordering may be counted too high.
        At sent, 1 packet was stamped with an impossible time (tx.pcap, packet 61: 4000000000.000001 s since 1970): the time of a neighbour is used instead, and no delay.
        At sent, the clock was set 2 times during the capture: forward by 3600 s before packet 2001 of tx.pcap (after 1767225601.500000 s since 1970); back by 10 s before packet 2001 of tx.pcap (after 1767225601.500000 s since 1970). Later times were moved by that, so that packets are matched; delays are not given.
        At sent, 12 000 frames were cut off before the end of what matching needs: they are not matched. A snap length of 96 bytes is enough.
        At sent, 2 IP fragments were seen of packets that did not become complete: they are not matched.
        No frame was seen at both ends: the captures are not of the same traffic, or something on the way rewrites packets.
        The two clocks disagree: each of 7 frames arrived before it was sent, by 1.5 ms at worst. No delays are reported or judged; by the method of Moon, Skelly and Towsley the receiving clock was 1.7 ms behind the sending one at the start, and drifted by 12.3 parts per million. `--accept-clock-estimate` corrects delays by that, if the smallest delay is zero.
        7 frames cannot be distinguished from another one (3 sent, 4 received): they are not matched by guessing and have no delay. 0 of them were certainly lost.
        1 frame was seen at the receiving end only: sent before the capture at the sending end began, missed by it, sent by another host, or changed on the way.
        ");
        let aligned = ClockRecord {
            aligned: true,
            ..capture.clock
        };
        insta::assert_snapshot!(clock_warnings(&aligned).unwrap(), @"The two clocks were aligned: by the method of Moon, Skelly and Towsley the receiving clock was 1.7 ms behind the sending one at the start, and drifted by 12.3 parts per million. Delays are no better than this estimate.");
    }
}
