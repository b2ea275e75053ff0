//! When connections begin.

use crate::at;
use slicewise_applications::{Action, Application, Start};
use slicewise_traffic::application::{
    AdaptationRule, ApplicationParams, BulkParams, FlowArrivals, RequestsParams, ServerParams,
    ShortFlowsParams, TransferSizes, VideoParams,
};
use slicewise_units::{BitRate, Duration, Instant};

const CONNECTIONS: u32 = 20;

/// Every kind with twenty connections, which begin 10 ms apart where they can.
fn kinds() -> [ApplicationParams; 4] {
    let (stagger, server) = (Duration::from_millis(10), ServerParams::default());
    let response = TransferSizes::Equal(1_000);
    [
        ApplicationParams::Bulk(BulkParams {
            flows: CONNECTIONS,
            bytes: None,
            bitrate: None,
            arrivals: FlowArrivals::Staggered(stagger),
        }),
        ApplicationParams::Video(VideoParams {
            clients: CONNECTIONS,
            ladder: vec![BitRate::new(1_000_000)],
            segment: Duration::from_secs(1),
            buffer: Duration::from_secs(10),
            rule: AdaptationRule::Dynamic,
            stagger,
            server,
        }),
        ApplicationParams::ShortFlows(ShortFlowsParams {
            clients: CONNECTIONS,
            request_bytes: 100,
            response: response.clone(),
            pause: Duration::ZERO,
            server,
        }),
        ApplicationParams::Requests(RequestsParams {
            per_kilosecond: 100_000,
            connections: CONNECTIONS,
            request_bytes: 100,
            response,
            server,
        }),
    ]
}

/// When each connection is opened, in ns, if nobody is late.
fn opened(params: &ApplicationParams, spread: Duration, seed: u64) -> Vec<u64> {
    let start = Start {
        at: at(1_000),
        spread,
    };
    let mut application = Application::new(params, start, Instant::MAX, seed);
    let mut times = vec![0; CONNECTIONS as usize];
    while let Some(now) = application.poll_at().filter(|now| *now < at(10_000)) {
        while let Some(action) = application.poll_action(now) {
            if let Action::Open { connection } = action {
                times[connection as usize] = now.nanos();
            }
        }
    }
    times
}

#[test]
fn connections_begin_at_moments_of_their_own_that_the_seed_decides() {
    let spread = Duration::from_millis(100);
    for params in kinds() {
        let in_step = opened(&params, Duration::ZERO, 1);
        assert_eq!(in_step, opened(&params, Duration::ZERO, 2), "{params:?}");
        let late = |seed| -> Vec<u64> {
            let drawn = opened(&params, spread, seed);
            drawn.iter().zip(&in_step).map(|(a, b)| a - b).collect()
        };
        let (first, second) = (late(1), late(2));
        assert_eq!(first, late(1));
        assert_ne!(first, second);
        assert!(first.iter().all(|late| *late <= spread.nanos()));
        let differ = first.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // The schedule of requests moves as a whole: they stay evenly spaced.
        let expected = match params {
            ApplicationParams::Requests(_) => 0,
            _ => CONNECTIONS as usize - 1,
        };
        assert_eq!(differ, expected, "{params:?}");
    }
}
