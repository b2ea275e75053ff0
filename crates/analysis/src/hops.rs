//! Points between the two ends: each stretch is measured in a pass of its own.

use crate::analyse::refuse_stdin;
use crate::describe;
use crate::params::{AnalysisError, AnalysisParams};
use crate::pass::{self, Beside, Pair, PassParams, Watch};
use slicewise_capture::Sighting;
use slicewise_capture::matching::MatchObserver;
use slicewise_stats::flow::{HopRecord, PointRecord};
use slicewise_stats::flow_delays::FlowDelays;
use std::cell::RefCell;
use std::path::PathBuf;

/// The stretches of the path, and what was captured at the points between; nothing where there are no
/// such points.
pub(crate) fn measure(
    params: &AnalysisParams,
    timeout_ns: u64,
    watch: &dyn Watch,
) -> Result<(Vec<HopRecord>, Vec<PointRecord>), AnalysisError> {
    if params.via.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    refuse_stdin(
        params,
        "every stretch of the path is measured in a pass of its own",
    )?;
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
        let (stretch, facts) = pass::run(
            Pair::open(sent, received)?,
            PassParams { timeout_ns },
            &headers,
            &mut Nothing,
            watch,
            |prefix| Stretch {
                alignment_ns: prefix.alignment_ns,
                delays: FlowDelays::default(),
                forward: 0,
                lost: 0,
            },
        )?;
        hops.push(HopRecord {
            name: format!("{from} → {to}"),
            in_frames: stretch.forward + stretch.lost,
            out_frames: stretch.forward,
            lost_frames: stretch.lost,
            delay: stretch.delays.figures(),
        });
        if to != "received" {
            via.push(describe::point(to, &facts.received));
        }
    }
    Ok((hops, via))
}

struct Nothing;

impl Beside for Nothing {}

/// Counts what passes one stretch in the direction of the path.
struct Stretch {
    alignment_ns: i64,
    delays: FlowDelays,
    forward: u64,
    lost: u64,
}

impl MatchObserver for Stretch {
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, _: u64) {
        let aligned = received
            .time_ns
            .saturating_add_signed(self.alignment_ns.saturating_neg());
        if let Some(delay) = aligned.checked_sub(sent.time_ns) {
            self.forward += 1;
            self.delays.record(delay);
        }
    }

    fn on_lost(&mut self, _: &Sighting, _: u64) {
        self.lost += 1;
    }
}
