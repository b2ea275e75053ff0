//! TCP connections at the sending point: which flow answers which.

use crate::pass::Beside;
use slicewise_capture::TcpSegment;
use slicewise_capture::tcp::TcpTracker;
use slicewise_stats::flow::{RoundTripFigures, TcpFigures};
use slicewise_wire::Headers;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Addresses and ports of a flow, in the order source, destination.
type Ends = (u128, u128, u16, u16);

/// Flows by their ends. Whatever a DSCP says, the other direction is the other direction.
type Pairing = Rc<RefCell<Known>>;

#[derive(Debug, Default)]
struct Known {
    ends: Vec<Ends>,
    flows: HashMap<Ends, u32>,
}

impl Known {
    fn learn(&mut self, flows: &[Headers]) {
        for headers in flows.get(self.ends.len()..).unwrap_or_default() {
            let ends = (
                headers.source,
                headers.destination,
                headers.source_port,
                headers.destination_port,
            );
            let flow = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
            self.ends.push(ends);
            self.flows.entry(ends).or_insert(flow);
        }
    }

    fn reverse_of(&self, flow: u32) -> Option<u32> {
        let &(source, destination, source_port, destination_port) = self.ends.get(flow as usize)?;
        let reverse = (destination, source, destination_port, source_port);
        self.flows.get(&reverse).copied()
    }
}

/// Follows every TCP flow of the sending point.
pub(crate) struct Connections {
    known: Pairing,
    tracker: TcpTracker<Box<dyn FnMut(u32) -> Option<u32>>>,
}

impl Connections {
    pub(crate) fn new() -> Self {
        let known = Pairing::default();
        let asked = Rc::clone(&known);
        Self {
            known,
            tracker: TcpTracker::new(Box::new(move |flow| asked.borrow().reverse_of(flow))),
        }
    }

    /// Figures of a flow that was seen for so long at its destination; `None` where it is not TCP.
    pub(crate) fn figures(&self, flow: usize, lasted_ns: u64) -> Option<TcpFigures> {
        let figures = self.tracker.flow(u32::try_from(flow).ok()?)?;
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

impl Beside for Connections {
    fn on_segments(&mut self, segments: &[TcpSegment], flows: &[Headers]) {
        if segments.is_empty() {
            return;
        }
        self.known.borrow_mut().learn(flows);
        for segment in segments {
            self.tracker.on_segment(segment);
        }
    }
}
