//! TCP connections at the sending point, and pairs of opposite flows.

use slicewise_capture::TcpSegment;
use slicewise_capture::tcp::TcpTracker;
use slicewise_stats::flow::{RoundTripFigures, TcpFigures};
use slicewise_wire::Headers;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Opposite flows (addresses and ports swapped) at the sending point. Clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlowPairs(Rc<RefCell<Known>>);

/// Addresses, ports and protocol of a flow. Tags and code points may differ between directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Ends {
    source: (u128, u16),
    destination: (u128, u16),
    protocol: u8,
}

impl Ends {
    const fn of(headers: &Headers) -> Self {
        Self {
            source: (headers.source, headers.source_port),
            destination: (headers.destination, headers.destination_port),
            protocol: headers.protocol,
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    ends: Vec<Ends>,
    flows: HashMap<Ends, u32>,
}

impl FlowPairs {
    /// All flows so far, in numeric order.
    pub(crate) fn learn(&self, flows: &[Headers]) {
        let mut known = self.0.borrow_mut();
        for headers in flows.get(known.ends.len()..).unwrap_or_default() {
            let ends = Ends::of(headers);
            let flow = u32::try_from(known.ends.len()).unwrap_or(u32::MAX);
            known.ends.push(ends);
            known.flows.entry(ends).or_insert(flow);
        }
    }

    /// The first flow with the endpoints of these headers.
    pub(crate) fn flow_of(&self, headers: &Headers) -> Option<u32> {
        self.0.borrow().flows.get(&Ends::of(headers)).copied()
    }

    /// The first flow opposite to these headers.
    pub(crate) fn answered_by(&self, headers: &Headers) -> Option<u32> {
        let ends = Ends::of(headers);
        let answered = Ends {
            source: ends.destination,
            destination: ends.source,
            ..ends
        };
        self.0.borrow().flows.get(&answered).copied()
    }

    /// The first flow with the endpoints of `flow`: they differ only in tags or code points.
    fn connection_of(&self, flow: u32) -> u32 {
        let known = self.0.borrow();
        let ends = known.ends.get(flow as usize);
        let first = ends.and_then(|ends| known.flows.get(ends));
        first.copied().unwrap_or(flow)
    }

    /// The flow opposite to `flow`, if any.
    pub(crate) fn reverse_of(&self, flow: u32) -> Option<u32> {
        let known = self.0.borrow();
        let &Ends {
            source,
            destination,
            protocol,
        } = known.ends.get(flow as usize)?;
        let reverse = Ends {
            source: destination,
            destination: source,
            protocol,
        };
        known.flows.get(&reverse).copied()
    }
}

/// Follows every TCP flow of the sending point.
pub(crate) struct Connections {
    pairs: FlowPairs,
    tracker: TcpTracker<Box<dyn FnMut(u32) -> Option<u32>>>,
}

impl Connections {
    pub(crate) fn new(pairs: &FlowPairs) -> Self {
        let asked = pairs.clone();
        Self {
            pairs: pairs.clone(),
            tracker: TcpTracker::new(Box::new(move |flow| asked.reverse_of(flow))),
        }
    }

    /// Figures of the connection of a flow, whose packets arrived over this duration; `None` if it is
    /// not TCP.
    pub(crate) fn figures(&self, flow: usize, lasted_ns: u64) -> Option<TcpFigures> {
        let connection = self.pairs.connection_of(u32::try_from(flow).ok()?);
        let figures = self.tracker.flow(connection)?;
        let throughput = match lasted_ns {
            0 => 0.0,
            ns => figures.data_bytes as f64 * 8e9 / ns as f64,
        };
        let rtt = figures.rtt;
        Some(TcpFigures {
            data_bytes: figures.data_bytes,
            throughput_bits_per_second: throughput,
            retransmitted_segments: figures.retransmitted_segments,
            retransmitted_bytes: figures.retransmitted_bytes,
            round_trip: RoundTripFigures {
                samples: rtt.samples,
                min_ns: rtt.min_ns,
                mean_ns: rtt.mean_ns,
                p50_ns: rtt.p50_ns,
                p99_ns: rtt.p99_ns,
            },
        })
    }
}

impl FlowObserver for Connections {
    fn on_flows(&mut self, flows: &[Headers]) {
        self.pairs.learn(flows);
    }

    fn on_segments(&mut self, segments: &[TcpSegment]) {
        for segment in segments {
            self.tracker.on_segment(&TcpSegment {
                flow: self.pairs.connection_of(segment.flow),
                ..*segment
            });
        }
    }
}

/// Receives what the sending point saw besides sightings.
pub(crate) trait FlowObserver {
    /// All flows of the sending point so far, in numeric order.
    fn on_flows(&mut self, _flows: &[Headers]) {}

    /// TCP segments of the sending point, in the order of its sightings.
    fn on_segments(&mut self, _segments: &[TcpSegment]) {}
}
