use super::*;
use slicewise_live::sys::time;
use slicewise_traffic::application::{
    BulkParams, FlowArrivals, RequestsParams, ShortFlowsParams, TransferSizes, VideoParams,
};
use slicewise_units::{BitRate, Duration as Span};
use std::time::Duration;

/// Returns the result of an application over the loopback interface, whose server is ours, once it has `enough`.
fn over_loopback(
    params: ApplicationParams,
    ports: (u16, u16),
    enough: impl Fn(Instant) -> bool,
) -> (Instant, Ended) {
    let start = time::now();
    let address = |port| SocketAddr::from(([127, 0, 0, 9], port));
    let server = (!params.sender_opens()).then_some(ServerParams::default());
    let exchange = Exchange {
        params,
        start: start.into(),
        stop: start + Span::from_secs(60),
        seed: 1,
        local: address(ports.0),
        remote: address(ports.1),
        options: TcpOptions {
            congestion: "reno",
            dscp: 0,
            is_paced: false,
        },
        server,
    };
    let here = Places {
        opening: None,
        listening: Some(None),
    };
    let exchanging = Exchanging::start(exchange, here).unwrap();
    while !enough(start) {
        assert!(!exchanging.is_finished());
        thread::sleep(Duration::from_millis(1));
    }
    (start, exchanging.finish().unwrap().unwrap())
}

fn after(span: Span) -> impl Fn(Instant) -> bool {
    move |start| time::now().saturating_since(start) >= span
}

#[test]
fn requests_are_answered_over_connections_that_stay_open() {
    let params = ApplicationParams::Requests(RequestsParams {
        per_kilosecond: 400_000,
        connections: 8,
        request_bytes: 150,
        response: TransferSizes::Mix(vec![(1, 1), (200_000, 1)]),
        server: ServerParams::default(),
    });
    let (start, ended) = over_loopback(params, (21_000, 21_100), after(Span::from_millis(600)));
    assert_eq!(ended.failures, []);
    // Those due in the first half second had a tenth of a second at least.
    let span = (start, start + Span::from_millis(300));
    let figures = ended.application.figures(span.0, span.1).requests.unwrap();
    assert_eq!(figures.latency.samples + figures.unanswered, 120);
    assert!(figures.unanswered < 60, "{figures:?}");
}

#[test]
fn a_client_opens_its_connection_again_for_each_short_flow() {
    let params = ApplicationParams::ShortFlows(ShortFlowsParams {
        clients: 1,
        request_bytes: 100,
        response: TransferSizes::Equal(10_000),
        pause: Span::ZERO,
        server: ServerParams::default(),
    });
    let (start, ended) = over_loopback(params, (21_200, 21_300), after(Span::from_millis(300)));
    let end = start + Span::from_secs(60);
    let flows = ended.application.figures(start, end).flows.unwrap();
    assert!(flows.completed >= 1, "{flows:?} {:?}", ended.failures);
}

#[test]
fn bulk_transfers_of_a_size_are_completed() {
    let params = ApplicationParams::Bulk(BulkParams {
        flows: 3,
        bytes: Some(TransferSizes::Equal(3_000_000)),
        bitrate: None,
        arrivals: FlowArrivals::Staggered(Span::from_millis(10)),
    });
    let (start, ended) = over_loopback(params, (21_400, 21_500), after(Span::from_millis(800)));
    assert_eq!(ended.failures, []);
    let end = start + Span::from_secs(60);
    let flows = ended.application.figures(start, end).flows.unwrap();
    assert_eq!(flows.completed, 3);
}

#[test]
fn a_video_is_played_and_a_server_that_is_absent_is_a_failure() {
    let video = ApplicationParams::Video(VideoParams {
        clients: 2,
        ladder: vec![BitRate::new(1_000_000), BitRate::new(4_000_000)],
        segment: Span::from_millis(100),
        buffer: Span::from_secs(1),
        rule: slicewise_traffic::application::AdaptationRule::Dynamic,
        stagger: Span::ZERO,
        server: ServerParams::default(),
    });
    let (start, ended) = over_loopback(video, (21_600, 21_700), after(Span::from_millis(500)));
    let end = start + Span::from_millis(500);
    let figures = ended.application.figures(start, end).video.unwrap();
    assert!(
        figures.segments >= 8 && figures.quality_mean > Some(0.0),
        "{figures:?}"
    );

    let params = ApplicationParams::ShortFlows(ShortFlowsParams {
        clients: 1,
        request_bytes: 100,
        response: TransferSizes::Equal(1),
        pause: Span::ZERO,
        server: ServerParams::default(),
    });
    let address = |port| SocketAddr::from(([127, 0, 0, 9], port));
    let start = time::now();
    let exchange = Exchange {
        params,
        start: start.into(),
        stop: start + Span::from_secs(60),
        seed: 1,
        local: address(21_800),
        remote: address(21_900),
        options: TcpOptions {
            congestion: "reno",
            dscp: 0,
            is_paced: false,
        },
        server: None,
    };
    let nobody = Places {
        opening: None,
        listening: None,
    };
    let exchanging = Exchanging::start(exchange, nobody).unwrap();
    thread::sleep(Duration::from_millis(50));
    let failures = exchanging.finish().unwrap().unwrap().failures;
    assert!(failures[0].reason.contains("refused"), "{failures:?}");
}
