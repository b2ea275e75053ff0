use crate::at;
use proptest::prelude::*;
use slicewise_applications::{Action, Application};
use slicewise_traffic::application::{
    AdaptationRule, ApplicationParams, BulkParams, FlowArrivals, RequestsParams, ServerParams,
    ShortFlowsParams, TransferSizes, VideoParams,
};
use slicewise_units::{BitRate, Duration, Instant};

/// An event, with the connection and the time before it.
#[derive(Debug, Clone, Copy)]
enum Event {
    Connected,
    Received(u64),
    Closed,
    Failed,
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..3, 1_000u64..10_000_000, Just(u64::MAX)]
}

fn events() -> impl Strategy<Value = Vec<(Event, u32, u64)>> {
    let event = prop_oneof![
        3 => Just(Event::Connected),
        6 => sizes().prop_map(Event::Received),
        1 => Just(Event::Closed),
        1 => Just(Event::Failed),
    ];
    let gap = prop_oneof![20 => 0u64..2_000, 1 => 0u64..100_000, 1 => Just(u64::MAX / 1_000_000)];
    prop::collection::vec((event, 0u32..4, gap), 0..100)
}

fn responses() -> impl Strategy<Value = TransferSizes> {
    prop_oneof![
        sizes().prop_map(TransferSizes::Equal),
        sizes().prop_map(TransferSizes::Exponential),
        prop::collection::vec((sizes(), 0u32..3), 0..4).prop_map(TransferSizes::Mix),
    ]
}

fn applications() -> impl Strategy<Value = ApplicationParams> {
    let server = ServerParams::default();
    let millis = |range| Strategy::prop_map(range, Duration::from_millis);
    let rate = prop::option::of(any::<u64>().prop_map(BitRate::new));
    let arrivals = prop_oneof![
        millis(0u64..3_000).prop_map(FlowArrivals::Staggered),
        prop_oneof![0u64..20_000, Just(u64::MAX)].prop_map(FlowArrivals::Poisson),
    ];
    let bulk = (0u32..4, prop::option::of(responses()), rate, arrivals).prop_map(
        |(flows, bytes, bitrate, arrivals)| {
            ApplicationParams::Bulk(BulkParams {
                flows,
                bytes,
                bitrate,
                arrivals,
            })
        },
    );
    let requests = (0u64..20_000, 0u32..4, responses()).prop_map(
        move |(per_kilosecond, connections, response)| {
            ApplicationParams::Requests(RequestsParams {
                per_kilosecond,
                connections,
                request_bytes: 0,
                response,
                server,
            })
        },
    );
    let flows =
        (0u32..4, responses(), millis(0u64..3_000)).prop_map(move |(clients, response, pause)| {
            ApplicationParams::ShortFlows(ShortFlowsParams {
                clients,
                request_bytes: 0,
                response,
                pause,
                server,
            })
        });
    let rates = prop::collection::vec(prop_oneof![Just(0), 1u64..10_000_000], 0..4);
    let rule = prop_oneof![
        Just(AdaptationRule::Throughput),
        Just(AdaptationRule::Bola),
        Just(AdaptationRule::Dynamic),
    ];
    let times = (
        millis(0u64..5_000),
        millis(0u64..20_000),
        millis(0u64..3_000),
    );
    let video = (0u32..4, rates, times, rule).prop_map(
        move |(clients, rates, (segment, buffer, stagger), rule)| {
            ApplicationParams::Video(VideoParams {
                clients,
                ladder: rates.into_iter().map(BitRate::new).collect(),
                segment,
                buffer,
                rule,
                stagger,
                server,
            })
        },
    );
    prop_oneof![bulk, requests, flows, video]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn what_would_begin_when_it_has_to_stop_does_not_begin(
        params in applications(),
        late in prop_oneof![Just(0u64), 0u64..5_000],
    ) {
        let mut application = Application::new(&params, at(7), at(7), 1);
        prop_assert_eq!(application.poll_action(at(7 + late)), None);
        prop_assert_eq!(application.poll_action(at(90_000)), None);
    }

    #[test]
    fn whatever_happens_actions_are_in_order_and_come_to_an_end(
        params in applications(),
        events in events(),
        stop in 0u64..50_000,
    ) {
        let mut application = Application::new(&params, at(0), at(stop), 1);
        let mut now = at(0);
        // Opened; both, opened and connected; neither.
        let mut states = [(false, false); 4];
        for (event, connection, gap) in events {
            let state = &mut states[connection as usize];
            match event {
                Event::Connected => {
                    state.1 = state.0;
                    application.on_connected(connection, now);
                }
                Event::Received(bytes) => application.on_received(connection, bytes, now),
                Event::Closed => {
                    *state = (false, false);
                    application.on_closed(connection, now);
                }
                Event::Failed => {
                    *state = (false, false);
                    application.on_failed(connection, now);
                }
            }
            let mut actions = 0;
            while let Some(action) = application.poll_action(now) {
                actions += 1;
                prop_assert!(actions < 100, "without end: {action:?}");
                match action {
                    Action::Open { connection } => {
                        prop_assert!(connection < params.connections() && now < at(stop));
                        let before = std::mem::replace(&mut states[connection as usize], (true, false));
                        prop_assert_eq!(before, (false, false), "opened twice");
                    }
                    Action::Send { connection, bytes } | Action::Request { connection, bytes, .. } => {
                        prop_assert_eq!(states[connection as usize], (true, true));
                        prop_assert!(bytes > 0);
                    }
                    Action::Close { connection } => {
                        prop_assert_eq!(states[connection as usize], (true, true));
                    }
                }
            }
            prop_assert!(application.poll_at().is_none_or(|next| next > now || now == Instant::MAX));
            let figures = application.figures(at(0), now);
            if let Some(video) = figures.video {
                let means = [video.quality_mean, video.switches_per_minute];
                prop_assert!(means.into_iter().flatten().all(f64::is_finite));
                prop_assert!(video.stalled_ratio.is_none_or(|ratio| (0.0..=1.0).contains(&ratio)));
            }
            now = now.saturating_add(Duration::from_millis(gap));
        }
    }
}
