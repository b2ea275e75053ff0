use crate::at;
use crate::network::Network;
use slicewise_applications::{Action, Application};
use slicewise_stats::record::CdfPoint;
use slicewise_traffic::application::{ApplicationParams, BulkParams, ServerParams};
use slicewise_units::{BitRate, Duration};

fn run(bytes: Option<u64>, stop: u64) -> (Application, Vec<String>) {
    let params = BulkParams {
        flows: 3,
        bytes,
        bitrate: None,
        stagger: Duration::from_millis(100),
    };
    let mut application = Application::new(&ApplicationParams::Bulk(params), at(50), at(stop), 1);
    let mut network = Network::new(
        8_000_000,
        Duration::from_millis(10),
        ServerParams::default(),
    );
    network.run(&mut application, at(10_000));
    let actions = network.actions.iter();
    let actions = actions.map(|(time, action)| format!("{time} {action:?}"));
    let actions = actions.collect();
    (application, actions)
}

#[test]
fn flows_without_a_size_send_until_the_source_stops() {
    let (application, actions) = run(None, 220);
    insta::assert_snapshot!(actions.join("\n"), @r"
    50 ms Open { connection: 0 }
    60 ms Send { connection: 0, bytes: 18446744073709551615 }
    150 ms Open { connection: 1 }
    160 ms Send { connection: 1, bytes: 18446744073709551615 }
    220 ms Close { connection: 0 }
    220 ms Close { connection: 1 }
    ");
    assert_eq!(application.figures(at(0), at(10_000)).flows, None);
}

#[test]
fn flows_of_a_size_end_with_it_and_are_measured_at_the_receiver() {
    let (application, actions) = run(Some(30_000), 10_000);
    insta::assert_snapshot!(actions.join("\n"), @r"
    50 ms Open { connection: 0 }
    60 ms Send { connection: 0, bytes: 30000 }
    60 ms Close { connection: 0 }
    150 ms Open { connection: 1 }
    160 ms Send { connection: 1, bytes: 30000 }
    160 ms Close { connection: 1 }
    250 ms Open { connection: 2 }
    260 ms Send { connection: 2, bytes: 30000 }
    260 ms Close { connection: 2 }
    ");
    let flows = application.figures(at(0), at(10_000)).flows.unwrap();
    // A round trip to open, 30 ms on the link, half a round trip.
    assert_eq!((flows.completed, flows.completion_time.mean_ns), (3, 45e6));
    assert!((flows.rate_mean_bits_per_second.unwrap() - 240_000.0 / 0.045).abs() < 1.0);
    // At 170 ms the first is complete, the second has been open for 20 ms, and the third has not begun.
    let until_then = application.figures(at(0), at(170));
    assert_eq!(until_then.unfinished_times, [CdfPoint(20_000_000, 1.0)]);
    let began = until_then.flows.unwrap().time_of_begun;
    assert_eq!(
        (began.samples, began.min_ns, began.max_ns),
        (2, 20_000_000, 45_000_000)
    );
}

#[test]
fn a_transfer_of_limited_rate_hands_over_blocks_as_they_are_due() {
    let params = BulkParams {
        flows: 1,
        bytes: None,
        // A block takes 262.144 ms.
        bitrate: Some(BitRate::new(4_000_000)),
        stagger: Duration::ZERO,
    };
    let mut application = Application::new(&ApplicationParams::Bulk(params), at(0), at(900), 1);
    let mut network = Network::new(
        8_000_000,
        Duration::from_millis(10),
        ServerParams::default(),
    );
    network.run(&mut application, at(10_000));
    let actions = network.actions.iter();
    let actions: Vec<String> = actions
        .map(|(t, action)| format!("{t} {action:?}"))
        .collect();
    insta::assert_snapshot!(actions.join("\n"), @r"
    0 ns Open { connection: 0 }
    10 ms Send { connection: 0, bytes: 131072 }
    273 ms Send { connection: 0, bytes: 131072 }
    535 ms Send { connection: 0, bytes: 131072 }
    797 ms Send { connection: 0, bytes: 131072 }
    900 ms Close { connection: 0 }
    ");
}

#[test]
fn a_transfer_that_fails_is_over() {
    let params = BulkParams {
        flows: 1,
        bytes: None,
        bitrate: None,
        stagger: Duration::ZERO,
    };
    let mut application = Application::new(&ApplicationParams::Bulk(params), at(0), at(9_000), 1);
    assert_eq!(
        application.poll_action(at(0)),
        Some(Action::Open { connection: 0 })
    );
    application.on_failed(0, at(500));
    application.on_connected(0, at(501));
    assert_eq!(application.poll_action(at(9_999)), None);
    assert_eq!(application.poll_at(), None);
}

#[test]
fn a_flow_that_failed_is_in_progress_no_longer() {
    let params = BulkParams {
        flows: 1,
        bytes: Some(30_000),
        bitrate: None,
        stagger: Duration::ZERO,
    };
    let params = ApplicationParams::Bulk(params);
    let mut application = Application::new(&params, at(50), at(10_000), 1);
    let opened = application.poll_action(at(50));
    assert_eq!(opened, Some(Action::Open { connection: 0 }));
    application.on_failed(0, at(300));
    let begun = |from, to| {
        let flows = application.figures(at(from), at(to)).flows.unwrap();
        (flows.time_of_begun.samples, flows.time_of_begun.max_ns)
    };
    assert_eq!(begun(0, 200), (1, 150_000_000));
    assert_eq!(begun(200, 1_000), (1, 950_000_000));
    assert_eq!(begun(1_000, 2_000), (0, 0), "it had failed before");
}
