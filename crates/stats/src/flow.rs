//! Additional data of captured runs: flows, hops, and how they were measured.
//!
//! Units are last in names, as in [`record`](crate::record). Simulated runs have none of these.

use crate::figures::DelayFigures;
use serde::{Deserialize, Serialize};

/// Traffic of one flow between the two ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowRecord {
    /// Which flow, by its headers where it was sent.
    pub flow: FlowKey,
    /// The slice it belongs to.
    pub slice: String,
    /// Frames sent.
    pub sent_frames: u64,
    /// Bytes sent, L2 without FCS.
    pub sent_bytes: u64,
    /// Frames received, the second and further copies of a frame left out.
    pub received_frames: u64,
    /// Bytes received, L2 without FCS, copies left out.
    pub received_bytes: u64,
    /// Frames sent and not received within the loss time-out (RFC 7680).
    pub lost_frames: u64,
    /// Further copies received of a frame that was received before (RFC 5560).
    pub duplicate_frames: u64,
    /// Sent frames that are indistinguishable from another one: without delay. Those received count as
    /// received; the difference to those sent counts as lost.
    pub ambiguous_frames: u64,
    /// Frames that arrived after frames sent later.
    pub reordering: ReorderingFigures,
    /// One-way delay.
    pub delay: DelayFigures,
    /// First and last frame sent; `None` where none was.
    pub sent: Option<Span>,
    /// First and last frame received; `None` where none was.
    pub received: Option<Span>,
    /// Of a TCP flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpFigures>,
}

/// A flow's headers, as a person writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowKey {
    /// Source address: `10.0.0.1`, `2001:db8::1`.
    pub source: String,
    /// Destination address.
    pub destination: String,
    /// Source port; `None` for a protocol without ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Destination port; `None` for a protocol without ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// IP protocol number: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// VLAN ids, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<u16>,
    /// Differentiated-services code point where it was sent, 0–63.
    pub dscp: u8,
}

/// Two points in time, ns from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first.
    pub first_ns: u64,
    /// The last.
    pub last_ns: u64,
}

impl Span {
    /// The span that holds `at_ns` as well.
    #[must_use]
    pub fn with(self, at_ns: u64) -> Self {
        Self {
            first_ns: self.first_ns.min(at_ns),
            last_ns: self.last_ns.max(at_ns),
        }
    }

    /// How long, ns.
    #[must_use]
    pub const fn length_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}

/// Packet reordering (RFC 4737).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderingFigures {
    /// Frames that arrived after one sent later (section 3.3).
    pub reordered_frames: u64,
    /// Those / frames received (section 4.1); 0 where none were received.
    pub ratio: f64,
    /// Largest reordering extent, frames (section 4.2.2).
    pub max_extent_frames: u64,
    /// Largest n for which a frame was n-reordered (section 5.4): a sender that treats a frame as lost
    /// after n later ones would have retransmitted it.
    pub max_n_reordering: u64,
    /// Largest late time, ns (section 4.3).
    pub max_late_ns: u64,
    /// Reordered frames whose extent, n and late time are counted too low, because they came behind too
    /// many gaps: with one of them, the maxima above are lower bounds.
    #[serde(default)]
    pub bounded_frames: u64,
}

/// TCP figures of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpFigures {
    /// Bytes of the stream sent, each counted once.
    pub data_bytes: u64,
    /// Their rate over the time from the first to the last frame received, bit/s.
    pub throughput_bits_per_second: f64,
    /// Retransmitted segments.
    pub retransmitted_segments: u64,
    /// Retransmitted bytes.
    pub retransmitted_bytes: u64,
    /// From a segment to its acknowledgement, both where the segment was sent; of segments sent
    /// once only (Karn's algorithm).
    pub round_trip: RoundTripFigures,
}

/// Round-trip times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundTripFigures {
    /// Round trips measured. All else is 0 where this is 0.
    pub samples: u64,
    /// Smallest, ns.
    pub min_ns: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
}

impl From<DelayFigures> for RoundTripFigures {
    fn from(figures: DelayFigures) -> Self {
        Self {
            samples: figures.samples,
            min_ns: figures.min_ns,
            mean_ns: figures.mean_ns,
            p50_ns: figures.p50_ns,
            p99_ns: figures.p99_ns,
        }
    }
}

/// One hop of the path, from one measuring point to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopRecord {
    /// Names of the two points: `tx → router`.
    pub name: String,
    /// Frames seen at the start of the hop.
    pub in_frames: u64,
    /// Of these, frames seen at its end.
    pub out_frames: u64,
    /// Of these, frames not seen at its end within the loss time-out.
    pub lost_frames: u64,
    /// One-way delay of the hop; without samples if the clocks of its ends disagree.
    pub delay: DelayFigures,
    /// The clocks of its ends disagree.
    #[serde(default)]
    pub clocks_disagree: bool,
}

/// How a run was measured from captures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureRecord {
    /// The measuring points in the order that packets pass them: the sending end first, the
    /// receiving one last.
    pub points: Vec<PointRecord>,
    /// Loss time-out, ns (RFC 7680).
    pub loss_timeout_ns: u64,
    /// Frames matched between both ends.
    pub matched_frames: u64,
    /// Duplicates of matched frames.
    pub duplicate_frames: u64,
    /// Sent frames that are indistinguishable from another one.
    pub ambiguous_sent_frames: u64,
    /// Received frames that are indistinguishable from another one.
    pub ambiguous_received_frames: u64,
    /// Lower bound of losses among indistinguishable frames: sent minus received. They count as lost, at
    /// the time the first of them was sent.
    pub ambiguous_lost_frames: u64,
    /// Frames seen at the receiving end only, without those sent back from there and late ones.
    pub unsent_frames: u64,
    /// Frames that are known to have arrived after the loss time-out: they count as lost. A lower bound.
    #[serde(default)]
    pub late_frames: u64,
    /// The longest time between sending and arrival of these, ns.
    #[serde(default)]
    pub largest_late_ns: u64,
    /// Flows that repeat a frame after more than the loss time-out, though delays may be as long: such
    /// frames are matched by time alone.
    #[serde(default)]
    pub repeating_flows: u64,
    /// The shortest time after which one of these flows repeats a frame, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_ns: Option<u64>,
    /// The shortest time after which a flow repeats a frame within the loss time-out, ns: such frames are
    /// indistinguishable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambiguous_repeat_ns: Option<u64>,
    /// Frames decided before the loss time-out because too many were waiting.
    pub decided_early_frames: u64,
    /// Frames from the receiving end to the sending one.
    pub reverse_frames: u64,
    /// Frames sent from the receiving end to the sending one, and not seen there.
    #[serde(default)]
    pub reverse_lost_frames: u64,
    /// Frames sent and not received within the loss time-out, of all flows and slices.
    #[serde(default)]
    pub lost_frames: u64,
    /// Frames sent that no slice matches.
    pub unclassified_frames: u64,
    /// More traffic went back than forward: the captures of the two ends may be swapped.
    pub looks_exchanged: bool,
    /// Flows assumed to go forward for lack of evidence.
    pub assumed_flows: u64,
    /// Flows never seen at the receiving end. They count as lost, but the capture may contain traffic
    /// not destined for there.
    pub unreceived_flows: u64,
    /// Frames of these flows.
    pub unreceived_frames: u64,
    /// How much later the first packet at the receiving end is than that at the sending end, ns; 0 if it
    /// is not.
    #[serde(default)]
    pub received_begins_late_ns: u64,
    /// How much earlier the last packet at the receiving end is than that at the sending end, ns; 0 if
    /// it is not.
    #[serde(default)]
    pub received_ends_early_ns: u64,
    /// Relation between the clocks of the two ends.
    pub clock: ClockRecord,
}

impl CaptureRecord {
    /// Resolution of delays, ns: that of the coarser timestamps of both ends; 0 if unknown.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        let ends = self.points.first().into_iter().chain(self.points.last());
        ends.map(|point| point.resolution_ns).max().unwrap_or(0)
    }
}

/// Frames of one kind in which no IP packet was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnreadFrames {
    /// Kind of frames: `EtherType 0x8847 (MPLS)`.
    pub kind: String,
    /// How many there are.
    pub frames: u64,
    /// An IP packet may be in them, which was not looked for.
    pub may_hold_ip: bool,
}

/// Captures of one measuring point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointRecord {
    /// Name of the point: `sent`, `received`, or a hop's name.
    pub name: String,
    /// The files, in time order.
    pub files: Vec<String>,
    /// Packets read.
    pub packets: u64,
    /// IP fragments of packets that did not become complete: counted, not matched.
    pub fragments: u64,
    /// Packets that were put together from fragments: matched, with the time of the last fragment.
    #[serde(default)]
    pub reassembled: u64,
    /// Coarsest resolution of its timestamps, ns; 0 if unknown.
    #[serde(default)]
    pub resolution_ns: u64,
    /// Frames that are not IP: counted, not matched.
    pub not_ip: u64,
    /// These frames by kind, the most frequent first; at most 64 kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadFrames>,
    /// Link-local packets, which routers do not forward: counted, not matched.
    #[serde(default)]
    pub link_scope: u64,
    /// Packets seen less than 1 ms earlier on another interface of the same host: not matched.
    #[serde(default)]
    pub copies: u64,
    /// Packets of IP in IP, GRE and VXLAN, matched as outer packets.
    #[serde(default, skip_serializing_if = "crate::figures::is_zero")]
    pub encapsulating: u64,
    /// Packets of flows beyond the limit: they share one flow, in no slice.
    pub beyond_flows: u64,
    /// Frames captured too short for matching.
    pub truncated: u64,
    /// Packets whose headers contradict themselves.
    pub malformed: u64,
    /// Packets without a timestamp (pcapng simple packet blocks): not read.
    pub without_time: u64,
    /// Packets lost by the capturing host, if the files state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_drops: Option<u64>,
    /// The longest frame, bytes, L2 without FCS: longer than the network carries where the adapter
    /// splits or joins segments (offload).
    pub largest_l2_bytes: u32,
    /// Packets with a timestamp earlier than that of the preceding packet.
    pub backwards_timestamps: u64,
    /// Time facts of its packets.
    #[serde(default)]
    pub times: TimesRecord,
    /// Files that could not be read completely.
    pub incomplete: Vec<IncompleteFile>,
}

/// Times of the packets of a measuring point.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimesRecord {
    /// Packets that follow one with a later time in their file.
    pub out_of_order: u64,
    /// Largest such difference, ns.
    pub most_out_of_order_ns: u64,
    /// Those that came too late to be sorted by time.
    pub beyond_window: u64,
    /// Packets with an impossible timestamp: without delay.
    pub wrong_stamps: u64,
    /// The first of them.
    pub named_wrong_stamps: Vec<StampPlace>,
    /// Number of clock steps during the capture.
    pub clock_steps: u64,
    /// The first of them.
    pub named_clock_steps: Vec<ClockStep>,
}

/// Where a timestamp is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StampPlace {
    /// The file.
    pub file: String,
    /// The packet's number in it, from 1.
    pub packet: u64,
    /// The timestamp, ns since the epoch.
    pub stamped_ns: u64,
}

/// A clock step during a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockStep {
    /// The file.
    pub file: String,
    /// Number of the first packet after it in that file, from 1.
    pub packet: u64,
    /// The last timestamp before it, ns since the epoch.
    pub after_ns: u64,
    /// Size of the step, ns; negative if set back.
    pub by_ns: i64,
}

/// A file that could not be read completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncompleteFile {
    /// The file.
    pub file: String,
    /// Where reading stopped, bytes from its start (before compression).
    pub offset_bytes: u64,
    /// Why.
    pub reason: String,
}

/// Relation between the clocks of two measuring points.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockRecord {
    /// Frames that arrived before they were sent, by the uncorrected clocks: the clocks disagree.
    pub negative_delays: u64,
    /// Smallest delay by the uncorrected clocks, ns; `None` if no frame was matched.
    pub smallest_delay_ns: Option<i64>,
    /// Estimated offset between the two clocks, if estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<ClockEstimate>,
    /// How far the receiving clock seemed ahead at the first packets, ns, if by more than any delay:
    /// received times of the series are corrected by it. Otherwise 0.
    #[serde(default)]
    pub alignment_ns: i64,
    /// True if delays are corrected by the estimate, which the user accepted; false if they are by the
    /// uncorrected clocks.
    pub aligned: bool,
    /// One of them was set during the capture.
    #[serde(default)]
    pub was_set: bool,
}

impl ClockRecord {
    /// Returns true if the uncorrected clocks cannot give delays.
    #[must_use]
    pub const fn disagrees(&self) -> bool {
        self.negative_delays > 0 || self.alignment_ns != 0
    }

    /// Returns true if delays are missing: a clock was set, or the clocks disagree and no estimate was accepted.
    #[must_use]
    pub const fn leaves_no_delays(&self) -> bool {
        self.was_set || (self.disagrees() && !self.aligned)
    }
}

/// How far the receiving clock is ahead of the sending one, estimated from packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockEstimate {
    /// The method, with its source.
    pub method: String,
    /// Assumption under which it is right.
    pub assumption: String,
    /// At the start of the run, ns.
    pub offset_ns: f64,
    /// Drift, parts per million.
    pub drift_ppm: f64,
    /// Largest error of the offset if the drift is constant, ns; `None` if no bound is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_uncertainty_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_without_ports_vlans_or_tcp_is_written_without_them() {
        let flow = FlowKey {
            source: "10.0.0.1".into(),
            destination: "10.0.0.2".into(),
            protocol: 47,
            ..FlowKey::default()
        };
        let text = serde_json::to_string(&flow).unwrap();
        insta::assert_snapshot!(text, @r#"{"source":"10.0.0.1","destination":"10.0.0.2","protocol":47,"dscp":0}"#);
        assert_eq!(serde_json::from_str::<FlowKey>(&text).unwrap(), flow);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = r#"{"first_ns":1,"last_ns":2,"middle_ns":3}"#;
        assert!(serde_json::from_str::<Span>(text).is_err());
    }

    #[test]
    fn clocks_leave_no_delays_where_they_disagree_unless_an_estimate_is_accepted() {
        let agreeing = ClockRecord::default();
        let late = ClockRecord {
            negative_delays: 1,
            ..agreeing.clone()
        };
        let ahead = ClockRecord {
            alignment_ns: -1,
            ..agreeing.clone()
        };
        assert!(!agreeing.disagrees() && !agreeing.leaves_no_delays());
        for clocks in [late, ahead] {
            assert!(clocks.disagrees() && clocks.leaves_no_delays());
            let aligned = ClockRecord {
                aligned: true,
                ..clocks
            };
            assert!(aligned.disagrees() && !aligned.leaves_no_delays());
            let set = ClockRecord {
                was_set: true,
                ..aligned
            };
            assert!(set.leaves_no_delays());
        }
    }

    #[test]
    fn a_span_grows_to_both_sides() {
        let at = |ns| Span {
            first_ns: ns,
            last_ns: ns,
        };
        let span = at(5).with(9).with(2);
        assert_eq!((span.first_ns, span.last_ns, span.length_ns()), (2, 9, 7));
    }
}
