//! Applications, and runs in which the critical slice has one.

use super::{Service, run};
use slicewise_stats::application::{
    ApplicationRecord, FlowFigures, RequestFigures, TransportFigures,
};
use slicewise_stats::record::{DelayFigures, RunRecord};

/// The share of each slice, bit/s.
pub const SHARE: f64 = 17.5e6;

pub fn bulk(source: &str, slice: &str, goodput: f64) -> ApplicationRecord {
    ApplicationRecord {
        source: source.to_owned(),
        slice: slice.to_owned(),
        transport: TransportFigures {
            span_ns: 40_000_000_000,
            connections: 1,
            goodput_bits_per_second: goodput,
            segments: 1_000,
            retransmitted_segments: 10,
            rtt_samples: 100,
            rtt_mean_ns: 5e6,
            window_samples: 400,
            ..TransportFigures::default()
        },
        ..ApplicationRecord::default()
    }
}

pub fn times(mean_ms: f64) -> DelayFigures {
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a time of some milliseconds"
    )]
    let p99_ns = (mean_ms * 2e6) as u64;
    DelayFigures {
        samples: 100,
        mean_ns: mean_ms * 1e6,
        p99_ns,
        ..DelayFigures::default()
    }
}

/// Requests that are answered after that time.
pub fn requests(goodput: f64, latency_ms: f64) -> ApplicationRecord {
    let figures = RequestFigures {
        offered_per_second: 100.0,
        achieved_per_second: 100.0,
        latency: times(latency_ms),
        latency_of_due: times(latency_ms),
        ..RequestFigures::default()
    };
    ApplicationRecord {
        requests: Some(figures),
        ..bulk("web", "critical", goodput)
    }
}

/// Flows that are complete after that time.
pub fn flows(goodput: f64, completion_ms: f64) -> ApplicationRecord {
    let figures = FlowFigures {
        completed: 100,
        completion_time: times(completion_ms),
        time_of_begun: times(completion_ms),
        ..FlowFigures::default()
    };
    ApplicationRecord {
        flows: Some(figures),
        ..bulk("files", "critical", goodput)
    }
}

/// What the critical slice is served, and what its application got.
pub type Got = (f64, ApplicationRecord);

/// A run in which best effort sends a little, and the critical slice is served so much, loses that share, and
/// has an application.
pub fn run_of(
    scenario: &str,
    repetition: u32,
    (served, application): Got,
    loss_ratio: f64,
) -> RunRecord {
    let critical = Service {
        loss_ratio,
        ..Service::untroubled(served)
    };
    let services = [critical, Service::untroubled(1e6)];
    let mut record = run("p", scenario, repetition, services, 0.0);
    record.applications.push(application);
    record
}
