//! Requests, flows and segments, one by one.

use crate::at;
use crate::network::Network;
use slicewise_applications::{Action, Application};
use slicewise_stats::application::Transaction;
use slicewise_traffic::application::{
    AdaptationRule, ApplicationParams, BulkParams, FlowArrivals, RequestsParams, ServerParams,
    ShortFlowsParams, TransferSizes, VideoParams,
};
use slicewise_units::{BitRate, Duration};

/// A line for each: kind, connection and number; begin, sending and end in ms; bytes and quality.
fn lines(application: &Application) -> Vec<String> {
    let ms = |at: Option<u64>| at.map_or("-".to_owned(), |ns| (ns / 1_000_000).to_string());
    let text = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    let line = |one: &Transaction| {
        format!(
            "{} {}.{}: {} {} {}, {} {}",
            one.kind,
            one.connection,
            one.number,
            ms(Some(one.begins_ns)),
            ms(one.sent_ns),
            ms(one.ends_ns),
            text(one.bytes),
            text(one.quality)
        )
    };
    application.transactions().iter().map(line).collect()
}

fn requests(response: TransferSizes) -> Application {
    let params = RequestsParams {
        per_kilosecond: 10_000,
        connections: 2,
        request_bytes: 100,
        response,
        server: ServerParams::default(),
    };
    Application::new(&ApplicationParams::Requests(params), at(0), at(700), 7)
}

#[test]
fn requests_are_there_from_when_they_were_due_whether_sent_lost_or_neither() {
    let mut application = requests(TransferSizes::Equal(1_000));
    for connection in [0, 1] {
        let now = at(u64::from(connection) * 100);
        let opened = application.poll_action(now);
        assert_eq!(opened, Some(Action::Open { connection }));
        application.on_connected(connection, now);
        assert!(application.poll_action(now).is_some());
    }
    // The first connection answers late and then never; the second fails.
    application.on_received(0, 1_000, at(250));
    assert!(application.poll_action(at(250)).is_some());
    application.on_failed(1, at(350));
    insta::assert_snapshot!(lines(&application).join("\n"), @r"
    request 0.0: 0 0 250, 1000 -
    request 1.0: 100 100 -, 1000 -
    request 0.1: 200 250 -, 1000 -
    request 1.1: 300 - -, 1000 -
    request 0.2: 400 - -, 1000 -
    request 1.2: 500 - -, 1000 -
    request 0.3: 600 - -, 1000 -
    ");
}

#[test]
fn bytes_of_a_request_are_those_of_the_response_that_is_asked_for_sent_or_not() {
    let sizes = TransferSizes::Exponential(10_000);
    let mut application = requests(sizes.clone());
    let planned = application.transactions();
    let link = Duration::from_millis(10);
    let mut network = Network::new(8_000_000, link, ServerParams::default());
    network.run(&mut application, at(5_000));
    let asked = network.actions.iter().filter_map(|(_, action)| {
        let Action::Request { response, .. } = action else {
            return None;
        };
        Some(*response)
    });
    let bytes = |all: &[Transaction]| all.iter().filter_map(|one| one.bytes).collect::<Vec<_>>();
    assert_eq!(
        bytes(&application.transactions()),
        asked.collect::<Vec<_>>()
    );
    assert_eq!(bytes(&planned), bytes(&application.transactions()));
}

#[test]
fn times_of_requests_are_those_of_the_figures() {
    let mut application = requests(TransferSizes::Exponential(50_000));
    let link = Duration::from_millis(10);
    let mut network = Network::new(2_000_000, link, ServerParams::default());
    network.run(&mut application, at(900));
    let figures = application.figures(at(0), at(700)).requests.unwrap();
    let all = application.transactions();
    let answered = all.iter().filter_map(|one| Some((one, one.ends_ns?)));
    let latency = answered.clone().map(|(one, ends)| ends - one.begins_ns);
    let response = answered.map(|(one, ends)| ends - one.sent_ns.unwrap());
    assert_eq!(latency.clone().count() as u64, figures.latency.samples);
    assert_eq!(latency.max(), Some(figures.latency.max_ns));
    assert_eq!(response.min(), Some(figures.response_time.min_ns));
    let unanswered = all.iter().filter(|one| one.ends_ns.is_none()).count();
    assert!(unanswered as u64 == figures.unanswered && unanswered > 0);
}

#[test]
fn flows_are_there_once_they_have_begun_and_have_bytes_once_these_are_drawn() {
    let params = ShortFlowsParams {
        clients: 2,
        request_bytes: 200,
        response: TransferSizes::Equal(15_000),
        pause: Duration::from_millis(5),
        server: ServerParams::default(),
    };
    let params = ApplicationParams::ShortFlows(params);
    let mut application = Application::new(&params, at(0), at(2_000), 1);
    for connection in [0, 1] {
        let opened = application.poll_action(at(0));
        assert_eq!(opened, Some(Action::Open { connection }));
    }
    // Before the request is sent, a failed flow has no size.
    application.on_failed(1, at(300));
    application.on_connected(0, at(10));
    assert!(application.poll_action(at(10)).is_some());
    application.on_received(0, 15_000, at(21));
    assert!(application.poll_action(at(21)).is_some());
    application.on_closed(0, at(30));
    assert!(application.poll_action(at(30)).is_some());
    application.on_connected(0, at(40));
    assert!(application.poll_action(at(40)).is_some());
    insta::assert_snapshot!(lines(&application).join("\n"), @r"
    flow 0.0: 0 10 21, 15000 -
    flow 1.0: 0 - -, - -
    flow 0.1: 30 40 -, 15000 -
    ");
}

#[test]
fn bulk_transfers_are_there_where_they_have_a_size() {
    let params = |bytes| BulkParams {
        flows: 3,
        bytes,
        bitrate: None,
        arrivals: FlowArrivals::Staggered(Duration::from_millis(100)),
    };
    let run = |bytes| {
        let params = ApplicationParams::Bulk(params(bytes));
        let mut application = Application::new(&params, at(50), at(200), 1);
        let link = Duration::from_millis(10);
        let mut network = Network::new(8_000_000, link, ServerParams::default());
        network.run(&mut application, at(170));
        lines(&application)
    };
    // The second is under way, and the third never begins.
    insta::assert_snapshot!(run(Some(TransferSizes::Equal(30_000))).join("\n"), @r"
    flow 0.0: 50 60 95, 30000 -
    flow 1.0: 150 160 -, 30000 -
    ");
    assert!(run(None).is_empty());
}

#[test]
fn segments_are_there_once_they_are_asked_for_and_lost_ones_change_no_figure() {
    let params = VideoParams {
        clients: 1,
        ladder: [400_000, 1_000_000].map(BitRate::new).into(),
        segment: Duration::from_secs(4),
        buffer: Duration::from_secs(30),
        rule: AdaptationRule::Throughput,
        stagger: Duration::ZERO,
        server: ServerParams::default(),
    };
    let mut application = Application::new(&ApplicationParams::Video(params), at(0), at(9_000), 1);
    let ask = |application: &mut Application, now| {
        while let Some(action) = application.poll_action(now) {
            match action {
                Action::Open { connection } => application.on_connected(connection, now),
                Action::Request { response, .. } => return response,
                other => panic!("{other:?}"),
            }
        }
        panic!("nothing is asked for at {now}")
    };
    let bytes = ask(&mut application, at(0));
    application.on_received(0, bytes, at(500));
    ask(&mut application, at(500));
    application.on_failed(0, at(700));
    ask(&mut application, at(1_700));
    insta::assert_snapshot!(lines(&application).join("\n"), @r"
    segment 0.0: 0 0 500, 500000 1
    segment 0.1: 500 500 -, 500000 1
    segment 0.2: 1700 1700 -, 500000 1
    ");
    let figures = application.figures(at(0), at(9_000)).video.unwrap();
    assert_eq!((figures.segments, figures.quality_mean), (1, Some(1.0)));
}
