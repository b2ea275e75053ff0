//! Metrics of each slice, as gateways counted it last (OpenMetrics).

use super::metrics::Out;
use crate::slices::Stored;
use slicewise_api::{DirectionCounters, HopCounters, SliceCountersRecord, Terms};
use slicewise_units::Way;
use std::time::Duration;

/// One direction of a slice, with the names that its lines have.
struct Side<'a> {
    labels: String,
    terms: &'a Terms,
    bound_ns: Option<u64>,
    hops: Vec<(&'a HopCounters, &'a DirectionCounters)>,
}

/// Text of the format OpenMetrics 1.0.
pub(super) fn text(slices: &[(Stored, SliceCountersRecord)]) -> String {
    let sides: Vec<Side<'_>> = slices.iter().flat_map(sides).collect();
    let mut out = Out::default();
    terms(&mut out, &sides);
    counted(&mut out, &sides);
    out.end()
}

fn sides((stored, counted): &(Stored, SliceCountersRecord)) -> impl Iterator<Item = Side<'_>> {
    let slice = &stored.slice;
    Way::ALL.into_iter().filter_map(move |way| {
        let hops = counted.hops.iter();
        Some(Side {
            labels: format!(
                "slice=\"{}\",tenant=\"{}\",direction=\"{way}\"",
                slice.name, slice.tenant
            ),
            terms: slice.terms(way)?,
            bound_ns: *stored.bounds.ways()[way],
            hops: hops
                .filter_map(|hop| Some((hop, hop.ways()[way].as_ref()?)))
                .collect(),
        })
    })
}

/// Guarantees and bounds.
fn terms(out: &mut Out, sides: &[Side<'_>]) {
    let name = "slicewise_slice_guaranteed_bps";
    out.head(name, "gauge", "Guaranteed rate.");
    for side in sides {
        if let Some(guarantee) = side.terms.guarantee {
            out.line(&format!("{name}{{{}}} {}", side.labels, guarantee.rate_bps));
        }
    }
    let name = "slicewise_slice_bound_seconds";
    out.head(name, "gauge", "Bound on the delay, over all gateways.");
    for side in sides {
        if let Some(bound) = side.bound_ns {
            out.line(&format!("{name}{{{}}} {}", side.labels, seconds(bound)));
        }
    }
}

/// Counters of the last interval of each gateway.
fn counted(out: &mut Out, sides: &[Side<'_>]) {
    let mut gauge =
        |name: &str, help: &str, of: &dyn Fn(&HopCounters, &DirectionCounters) -> f64| {
            let name = format!("slicewise_slice_{name}");
            out.head(&name, "gauge", help);
            for side in sides {
                for (hop, counters) in &side.hops {
                    let (gateway, value) = (&hop.gateway, of(hop, counters));
                    out.line(&format!(
                        "{name}{{{},gateway=\"{gateway}\"}} {value}",
                        side.labels
                    ));
                }
            }
        };
    let per_second = |count: u64, hop: &HopCounters| {
        count as f64 / seconds(hop.interval_ns).max(f64::MIN_POSITIVE)
    };
    gauge(
        "sent_bps",
        "Rate sent, L2 without FCS.",
        &|hop, counters| per_second(counters.sent_bytes.saturating_mul(8), hop),
    );
    gauge(
        "sent_frames_per_second",
        "Frames sent.",
        &|hop, counters| per_second(counters.sent_frames, hop),
    );
    gauge(
        "dropped_frames_per_second",
        "Frames dropped.",
        &|hop, counters| per_second(counters.dropped.values().sum(), hop),
    );
    gauge("waiting_frames", "Frames that wait.", &|_, counters| {
        counters.waiting_frames as f64
    });
    let name = "slicewise_slice_delay_seconds";
    out.head(
        name,
        "gauge",
        "Delay in the gateway, in its last interval with frames.",
    );
    for side in sides {
        for (hop, counters) in &side.hops {
            let Some(delay) = &counters.delay_ns else {
                continue;
            };
            for (quantile, nanos) in [
                ("0.5", delay.p50),
                ("0.99", delay.p99),
                ("1", delay.largest),
            ] {
                out.line(&format!(
                    "{name}{{{},gateway=\"{}\",quantile=\"{quantile}\"}} {}",
                    side.labels,
                    hop.gateway,
                    seconds(nanos)
                ));
            }
        }
    }
}

fn seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}
