//! Points between the two ends: each hop is measured in a separate pass.

use crate::connections::FlowObserver;
use crate::connections::FlowPairs;
use crate::describe;
use crate::params::{AnalysisError, AnalysisParams};
use crate::pass::{Pair, Watch};
use crate::ways;
use slicewise_capture::Sighting;
use slicewise_capture::matching::{MatchObserver, SendOrder};
use slicewise_stats::flow::{HopRecord, PointRecord};
use slicewise_stats::flow_delays::FlowDelays;
use slicewise_stats::record::DelayFigures;
use slicewise_wire::Headers;
use std::cell::RefCell;
use std::path::PathBuf;

/// The hops of the path, and the captures at the points between; empty if there are none.
pub(crate) fn measure(
    params: &AnalysisParams,
    watch: &dyn Watch,
) -> Result<(Vec<HopRecord>, Vec<PointRecord>), AnalysisError> {
    if params.via.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut points: Vec<(String, &[PathBuf])> = vec![("sent".to_owned(), &params.sent)];
    for (number, files) in (1..).zip(&params.via) {
        points.push((format!("via {number}"), files));
    }
    points.push(("received".to_owned(), &params.received));
    let (mut hops, mut via) = (Vec::new(), Vec::new());
    for pair in points.windows(2) {
        let [(from, sent), (to, received)] = pair else {
            continue;
        };
        let headers = RefCell::default();
        let pairs = FlowPairs::default();
        let sorted = ways::run(
            Pair::open(sent, received, params.innermost)?,
            params.loss_timeout.nanos(),
            &headers,
            &pairs,
            &mut Learning(&pairs),
            watch,
            |_| Stretch::default(),
        )?;
        let (stretch, facts) = (sorted.forward, sorted.facts);
        let clocks_disagree = sorted.clocks.disagree();
        hops.push(HopRecord {
            name: format!("{from} → {to}"),
            in_frames: stretch.sent,
            out_frames: stretch.received,
            lost_frames: stretch.lost,
            delay: if clocks_disagree {
                DelayFigures::default()
            } else {
                stretch.delays.figures()
            },
            clocks_disagree,
        });
        if to != "received" {
            via.push(describe::point(to, &facts.received, &facts.received_times));
        }
    }
    Ok((hops, via))
}

/// Learns which flows are opposite to each other.
struct Learning<'a>(&'a FlowPairs);

impl FlowObserver for Learning<'_> {
    fn on_flows(&mut self, flows: &[Headers]) {
        self.0.learn(flows);
    }
}

/// Counts packets crossing one hop in the direction of the path.
#[derive(Default)]
struct Stretch {
    delays: FlowDelays,
    sent: u64,
    received: u64,
    lost: u64,
}

impl MatchObserver for Stretch {
    fn on_sent(&mut self, _: &Sighting) {
        self.sent += 1;
    }

    fn on_received(&mut self, sent: &Sighting, received: &Sighting, _: SendOrder) {
        self.received += 1;
        if sent.time_is_restored || received.time_is_restored {
            return;
        }
        // If the clocks disagree, none of these is reported.
        self.delays
            .record(received.time_ns.saturating_sub(sent.time_ns));
    }

    fn on_lost(&mut self, _: &Sighting, _: u64) {
        self.lost += 1;
    }
}
