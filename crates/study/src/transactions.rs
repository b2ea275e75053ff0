//! Number of transactions that a run can have, before it is carried out.

use crate::params::{ApplicationParams, ApplicationSourceParams};
use crate::study::Study;
use slicewise_traffic::application::KILOSECOND_NS;
use slicewise_units::{BitRate, Duration};

/// Bytes that a short flow sends at least beside its response: three frames with headers alone, preambles and gaps.
const FLOW_BYTES: u64 = 3 * 84;

impl Study {
    /// Most requests, flows and segments that a policy can have in a run of a scenario, all sources together; of drawn
    /// sizes on average. Zero only if there are none.
    #[must_use]
    pub fn most_transactions(&self, policy: usize, scenario: usize) -> u64 {
        let devices = self.hops(policy).map(|(device, _)| device.capacity().rate);
        let rate = devices.min().unwrap_or(self.link.rate.rate);
        let scenario = self.scenarios.get(scenario);
        let sources = scenario.into_iter().flat_map(|it| &it.applications);
        let of_source = |source: &ApplicationSourceParams| {
            // A connection is opened, and a request is answered.
            let first = self.propagation_from(source.host.as_deref()).nanos();
            let way = Duration::from_nanos(first.saturating_add(self.link.propagation.nanos()));
            most_of_source(source, rate, way * 4)
        };
        sources.map(of_source).fold(0, u64::saturating_add)
    }
}

fn most_of_source(source: &ApplicationSourceParams, rate: BitRate, round_trips: Duration) -> u64 {
    let nanos = source.stop.nanos().saturating_sub(source.start.nanos());
    let span = Duration::from_nanos(nanos);
    match &source.application {
        ApplicationParams::Bulk(bulk) if bulk.bytes.is_none() => 0,
        ApplicationParams::Bulk(bulk) => bulk.flows.into(),
        ApplicationParams::Requests(requests) => {
            let due = u128::from(span.nanos()) * u128::from(requests.per_kilosecond);
            as_u64(due.div_ceil(KILOSECOND_NS.into()))
        }
        ApplicationParams::ShortFlows(flows) => {
            let bytes = flows.response.mean_bytes().saturating_add(FLOW_BYTES);
            let carried = rate.bytes_in(span).bytes() / bytes;
            let turn = flows.pause + flows.server.service_time + round_trips;
            let each = span.nanos().checked_div(turn.nanos());
            let clients = u64::from(flows.clients);
            let turns = each.map_or(u64::MAX, |each| each.saturating_mul(clients));
            turns.min(carried).saturating_add(clients)
        }
        ApplicationParams::Video(video) => {
            let ahead = video.buffer.nanos().saturating_add(span.nanos());
            // One more begins the buffer, and one is on its way.
            let each = ahead / video.segment.nanos().max(1) + 2;
            each.saturating_mul(video.clients.into())
        }
    }
}

fn as_u64(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
