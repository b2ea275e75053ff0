//! State of each flow during the pass, and its final record.

use crate::slices::address;
use slicewise_stats::flow::{FlowKey, FlowRecord, ReorderingFigures, Span, TcpFigures};
use slicewise_stats::flow_delays::FlowDelays;
use slicewise_wire::Headers;

/// One flow of the sending point.
#[derive(Debug, Clone)]
pub(crate) struct FlowState {
    pub(crate) headers: Headers,
    /// Its slice; looked up with its first packet.
    pub(crate) slice: Membership,
    /// It is the first source of its slice.
    pub(crate) is_first: bool,
    pub(crate) sent_frames: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_frames: u64,
    pub(crate) received_bytes: u64,
    pub(crate) lost_frames: u64,
    pub(crate) duplicate_frames: u64,
    pub(crate) ambiguous_frames: u64,
    pub(crate) delays: FlowDelays,
    pub(crate) sent: Option<Span>,
    pub(crate) received: Option<Span>,
}

/// Slice of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Membership {
    /// Not looked up yet.
    Unknown,
    /// To the slice with this index.
    Of(usize),
    /// To none.
    None,
}

impl FlowState {
    pub(crate) fn new(headers: Headers) -> Self {
        Self {
            headers,
            slice: Membership::Unknown,
            is_first: false,
            sent_frames: 0,
            sent_bytes: 0,
            received_frames: 0,
            received_bytes: 0,
            lost_frames: 0,
            duplicate_frames: 0,
            ambiguous_frames: 0,
            delays: FlowDelays::default(),
            sent: None,
            received: None,
        }
    }

    /// Its record, as far as measured.
    pub(crate) fn record(
        &self,
        slice: String,
        reordering: ReorderingFigures,
        tcp: Option<TcpFigures>,
    ) -> FlowRecord {
        FlowRecord {
            flow: key(&self.headers),
            slice,
            sent_frames: self.sent_frames,
            sent_bytes: self.sent_bytes,
            received_frames: self.received_frames,
            received_bytes: self.received_bytes,
            lost_frames: self.lost_frames,
            duplicate_frames: self.duplicate_frames,
            ambiguous_frames: self.ambiguous_frames,
            reordering,
            delay: self.delays.figures(),
            sent: self.sent,
            received: self.received,
            tcp,
        }
    }
}

/// Extends a span to include `at_ns`.
#[inline]
pub(crate) fn extended(span: Option<Span>, at_ns: u64) -> Option<Span> {
    Some(match span {
        Some(span) => span.with(at_ns),
        None => Span {
            first_ns: at_ns,
            last_ns: at_ns,
        },
    })
}

fn key(headers: &Headers) -> FlowKey {
    let port = |port| headers.has_ports.then_some(port);
    let vlans = [headers.outer_vlan, headers.inner_vlan];
    FlowKey {
        source: address(headers.ip_version, headers.source),
        destination: address(headers.ip_version, headers.destination),
        source_port: port(headers.source_port),
        destination_port: port(headers.destination_port),
        protocol: headers.protocol,
        vlans: vlans
            .into_iter()
            .take(usize::from(headers.vlan_tags))
            .collect(),
        dscp: headers.dscp,
    }
}
