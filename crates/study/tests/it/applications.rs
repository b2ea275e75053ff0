//! Sources with an application: what is read of them, and what is said of mistakes.

use crate::support::{changed, parse, with_application};
use insta::assert_snapshot;
use slicewise_study::{
    AdaptationRule, ApplicationParams, ApplicationSourceParams, BulkParams, CongestionControl,
    FlowArrivals, Pacing, RequestsParams, RunFilter, ServerParams, ShortFlowsParams, TcpProfile,
    TransferSizes, TransportParams, VideoParams,
};
use slicewise_units::{BitRate, Duration};

fn read(source: &str) -> ApplicationSourceParams {
    let mut study = parse(&with_application(source)).unwrap();
    assert_eq!(
        study.scenarios[0].sources.len(),
        2,
        "the others are still there"
    );
    study.scenarios[0].applications.remove(0)
}

#[test]
fn a_word_is_an_application_with_the_defaults_of_its_kind() {
    let source = read("application: bulk");
    let bulk = BulkParams {
        flows: 1,
        bytes: None,
        bitrate: None,
        arrivals: FlowArrivals::Staggered(Duration::ZERO),
    };
    assert_eq!(source.application, ApplicationParams::Bulk(bulk));
    assert_eq!(source.transport, TransportParams::of(TcpProfile::Linux));
    assert_eq!((source.name.as_str(), source.slice), ("app", 1));
    assert_eq!(
        (source.start, source.stop),
        (Duration::ZERO, Duration::from_secs(5))
    );
    let headers = source.headers;
    assert_eq!((headers.protocol, headers.vlan), (6, Some(20)));
    assert_eq!(
        (headers.source_port, headers.destination_port),
        (49_152, 5_201)
    );
}

#[test]
fn applications_start_at_drawn_moments_unless_a_study_says_otherwise() {
    let millis = |source: &str| read(source).start_spread.nanos() / 1_000_000;
    assert_eq!(millis("application: bulk"), 100);
    assert_eq!(millis("application: {kind: bulk, stagger: 8 ms}"), 100);
    assert_eq!(millis("application: {kind: bulk, stagger: 300 ms}"), 300);
    assert_eq!(
        millis("application: {kind: short_flows, response: 1 kB}"),
        100
    );
    // A source that lasts 500 ms; requests 50 ms apart.
    assert_eq!(millis("stop: 500 ms, application: bulk"), 50);
    assert_eq!(
        millis("application: {kind: requests, rate: 20 /s, response: 1 kB}"),
        50
    );
    assert_eq!(millis("start_spread: 0 s, application: bulk"), 0);
    assert_eq!(millis("start_spread: 2 s, application: bulk"), 2_000);
    let late = with_application("stop: 1 s, start_spread: 2 s, application: bulk");
    assert_snapshot!(parse(&late).unwrap_err(), @"study.yaml:18:47 `2 s`: the source may start 2 s after its earliest start at 0 ns, when it has stopped already, at 1 s; help: set `start_spread` to at most 1 s");
}

#[test]
fn requests_are_read_with_their_sizes_and_their_server() {
    let source = read(
        "start: 1 s, stop: 4 s, application: {kind: requests, rate: 12.5 /s, connections: 20, request: 1 kB, \
         response: {1 kB: 9, 20 kB: 1}, service_time: 2 ms, workers: 4}",
    );
    let requests = RequestsParams {
        per_kilosecond: 12_500,
        connections: 20,
        request_bytes: 1_000,
        response: TransferSizes::Mix(vec![(1_000, 9), (20_000, 1)]),
        server: ServerParams {
            service_time: Duration::from_millis(2),
            workers: Some(4),
        },
    };
    assert_eq!(requests.response.mean_bytes(), 2_900);
    assert_eq!(source.application, ApplicationParams::Requests(requests));
    assert_eq!(
        (source.start, source.stop),
        (Duration::from_secs(1), Duration::from_secs(4))
    );
    let ports = (source.headers.source_port, source.headers.destination_port);
    assert_eq!(ports, (80, 49_152), "the sender answers");
}

#[test]
fn short_flows_and_video_are_read() {
    let flows =
        read("application: {kind: short_flows, response: {exponential: 10 kB}, pause: 5 ms}");
    let expected = ShortFlowsParams {
        clients: 1,
        request_bytes: 100,
        response: TransferSizes::Exponential(10_000),
        pause: Duration::from_millis(5),
        server: ServerParams::default(),
    };
    assert_eq!(flows.application, ApplicationParams::ShortFlows(expected));
    let video = read(
        "application: {kind: video, clients: 3, ladder: [300 kbit/s, 1 Mbit/s], rule: bola, stagger: 1 s}",
    );
    let expected = VideoParams {
        clients: 3,
        ladder: [300_000, 1_000_000].map(BitRate::new).to_vec(),
        segment: Duration::from_secs(4),
        buffer: Duration::from_secs(30),
        rule: AdaptationRule::Bola,
        stagger: Duration::from_secs(1),
        server: ServerParams::default(),
    };
    assert_eq!(video.application, ApplicationParams::Video(expected));
}

#[test]
fn a_transport_is_a_hosts_unless_it_is_said_otherwise() {
    let of =
        |transport: &str| read(&format!("application: bulk, transport: {transport}")).transport;
    assert_eq!(of("tcp"), TransportParams::of(TcpProfile::Linux));
    assert_eq!(
        of("{profile: linux-4.15}"),
        TransportParams::of(TcpProfile::Linux415)
    );
    let rfc = of("{profile: rfc}");
    assert_eq!(rfc.congestion, CongestionControl::NewReno);
    assert_eq!(rfc.min_rto, Duration::from_secs(1));
    let written = of(
        "{protocol: tcp, profile: rfc, congestion: cubic, ecn: yes, pacing: yes, mss: 536 B, receive_buffer: 1 MiB, send_buffer: 64 KiB, \
         min_rto: 10 ms}",
    );
    let expected = TransportParams {
        profile: TcpProfile::Rfc,
        congestion: CongestionControl::Cubic,
        ecn: true,
        pacing: true,
        mtu_bytes: 576,
        receive_buffer_bytes: 1 << 20,
        send_buffer_bytes: 64 << 10,
        min_rto: Duration::from_millis(10),
    };
    assert_eq!(written, expected);
    assert_eq!(
        of("{congestion: reno}").congestion,
        CongestionControl::NewReno
    );
    assert!(of("{congestion: dctcp}").ecn, "DCTCP always uses ECN");
    let prague = of("{congestion: prague}");
    assert!(prague.ecn && prague.pacing, "so does Prague, paced");
}

#[test]
fn the_mtu_of_the_link_is_that_of_segments() {
    let jumbo = with_application("application: bulk").replace(
        "link: {rate: 1 Gbit/s}",
        "link: {rate: 1 Gbit/s, mtu: 9000 B}",
    );
    let study = parse(&jumbo).unwrap();
    assert_eq!(
        study.scenarios[0].applications[0].transport.mtu_bytes,
        9_000
    );
}

#[test]
fn a_scenario_gives_only_what_differs_also_from_a_word() {
    for common in [
        "application: bulk, transport: tcp",
        "application: {kind: bulk, flows: 3}",
    ] {
        let text = with_application(common).replace(
            "  storm:\n    sources: {",
            "  storm:\n    sources: {app: {application: {flows: 7}, transport: {congestion: reno}}, ",
        );
        let study = parse(&text).unwrap();
        let of = |scenario: usize| &study.scenarios[scenario].applications[0];
        assert_eq!(of(1).application.connections(), 7);
        assert!(of(0).application.connections() < 7);
        assert_eq!(of(0).transport.congestion, CongestionControl::Cubic);
        assert_eq!(of(1).transport.congestion, CongestionControl::NewReno);
    }
    let requests = with_application("application: {kind: requests, rate: 10 /s, response: 1 kB}")
        .replace(
            "  storm:\n    sources: {",
            "  storm:\n    sources: {app: {application: {rate: 20 /s}}, ",
        );
    let study = parse(&requests).unwrap();
    let ApplicationParams::Requests(requests) = &study.scenarios[1].applications[0].application
    else {
        panic!("these are requests");
    };
    assert_eq!(requests.per_kilosecond, 20_000);
}

#[test]
fn a_scenario_may_have_applications_alone() {
    let text = changed(
        "  steady: {slice: gold, pattern: cbr, rate: 50 %, payload: 1000 B}",
        "  steady: {slice: gold, application: bulk}",
    )
    .replace(
        "other: {slice: rest, pattern: poisson, rate: 2 Mbit/s, payload: 500 B}",
        "",
    );
    let study = parse(&text).unwrap();
    assert!(study.scenarios[0].sources.is_empty());
    assert_eq!(study.scenarios[0].slices().collect::<Vec<_>>(), [0]);
    assert!(!study.runs(&RunFilter::default()).unwrap().is_empty());
}

#[test]
fn sources_with_an_application_are_not_warned_of_as_packets_at_a_pace() {
    let study = with_application("application: bulk, headers: {protocol: tcp}");
    assert_eq!(parse(&study).unwrap().warnings().count(), 0);
}

#[test]
fn a_quick_profile_ends_applications_with_the_run() {
    let text = with_application("application: bulk") + "quick: {duration: 2 s}\n";
    let quick = parse(&text).unwrap().into_quick();
    assert_eq!(
        quick.scenarios[0].applications[0].stop,
        Duration::from_secs(2)
    );
}

#[test]
fn applications_are_the_same_on_real_packets() {
    let study = parse(&with_application("application: bulk")).unwrap();
    let live = study.clone().into_testbed(Pacing::Departures).unwrap();
    assert_eq!(
        live.scenarios[0].applications,
        study.scenarios[0].applications
    );
}

#[test]
fn applications_go_on_through_changes_and_cannot_change() {
    let text = with_application("application: bulk")
        + "timeline:\n  settle: 500 ms\n  changes:\n    later: {at: 2 s, sources: {steady: {rate: 20 %}}}\n";
    let study = parse(&text).unwrap();
    assert_eq!(study.phases.len(), 2);
    let changed = text.replace("steady: {rate: 20 %}", "app: {application: {flows: 2}}");
    assert_snapshot!(parse(&changed).unwrap_err(), @"study.yaml:38:17 `2 s`: source `app` is an application: applications go on through every change, and cannot change; help: give it another `start` or `stop`, or put what differs into a scenario of its own");
}

#[test]
fn populations_are_not_mixed_with_applications() {
    let text = with_application("application: bulk")
        + "populations:\n  gold: {sends: backlog, frame: 500 B}\n";
    assert!(
        parse(&text)
            .unwrap_err()
            .contains("a study has sources or populations, not both")
    );
}

#[test]
fn a_queue_shorter_than_a_burst_of_unpaced_tcp_is_noted() {
    let notes = |limit: &str, source: &str| {
        let text = with_application(&format!("application: bulk{source}"));
        let notes = parse(&text.replace("64 packets", limit)).unwrap().notes();
        let of_bursts = notes.into_iter().filter(|note| note.contains("in a row"));
        of_bursts.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(notes("16 packets", ""), @"policy `weighted`: the queue of class `rest` holds 16 packets, and the TCP of source `app` sends up to 45 in a row: some may be lost at any load; choose a longer queue, or pace the source (`transport: {pacing: true}`)");
    let rfc = ", transport: {profile: rfc}";
    let paced = ", transport: {pacing: true}";
    for (limit, source, is_noted) in [
        // 45 and 44 frames of 1518 B.
        ("68310 B", "", false),
        ("68309 B", "", true),
        ("2 ms", rfc, true),
        ("44 packets", "", true),
        ("45 packets", "", false),
        ("9 packets", rfc, true),
        ("10 packets", rfc, false),
        ("2 packets", paced, false),
        ("2 packets", ", transport: {congestion: bbr}", false),
    ] {
        let notes = notes(limit, source);
        assert_eq!(!notes.is_empty(), is_noted, "{limit}{source}: {notes}");
    }
    let text = with_application("application: bulk").replace("64 packets", "16 packets");
    let fast = text.replace("port_rate: 10 Mbit/s", "port_rate: 1 Gbit/s");
    assert!(!parse(&fast).unwrap().notes().concat().contains("in a row"));
}

#[test]
fn flows_that_arrive_at_random_are_read() {
    let source = read("application: {kind: bulk, arrivals: 20 /s, bytes: {1 kB: 3, 100 kB: 1}}");
    let bulk = BulkParams {
        // 100 in 5 s, and more than six standard deviations.
        flows: 176,
        bytes: Some(TransferSizes::Mix(vec![(1_000, 3), (100_000, 1)])),
        bitrate: None,
        arrivals: FlowArrivals::Poisson(20_000),
    };
    assert_eq!(source.application, ApplicationParams::Bulk(bulk));
    assert_eq!(source.start_spread, Duration::ZERO);
}
