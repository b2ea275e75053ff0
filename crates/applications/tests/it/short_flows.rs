use crate::at;
use crate::network::Network;
use slicewise_applications::{Action, Application};
use slicewise_traffic::application::{
    ApplicationParams, ServerParams, ShortFlowsParams, TransferSizes,
};
use slicewise_units::Duration;

fn application(clients: u32, pause: u64, stop: u64) -> Application {
    let params = ShortFlowsParams {
        clients,
        request_bytes: 200,
        response: TransferSizes::Equal(15_000),
        pause: Duration::from_millis(pause),
        server: ServerParams::default(),
    };
    Application::new(&ApplicationParams::ShortFlows(params), at(0), at(stop), 1)
}

const MS: u64 = 1_000_000;

/// Each takes a round trip to open, one for request and response, and 1 ms for 15,000 B at 120 Mbit/s.
#[test]
fn a_flow_takes_from_the_opening_of_its_connection_to_its_last_byte() {
    let mut application = application(1, 5, 100);
    let mut network = Network::new(
        120_000_000,
        Duration::from_millis(10),
        ServerParams::default(),
    );
    network.run(&mut application, at(1_000));
    let opened: Vec<u64> = network
        .actions
        .iter()
        .filter(|(_, action)| matches!(action, Action::Open { .. }))
        .map(|(time, _)| time.nanos() / MS)
        .collect();
    // 21 ms, then 10 ms until both ends have closed, which is later than the pause.
    assert_eq!(opened, [0, 31, 62, 93]);
    let flows = application.figures(at(0), at(1_000)).flows.unwrap();
    assert_eq!(flows.completed, 4);
    assert_eq!(flows.completion_time.min_ns, 21 * MS);
    assert_eq!(flows.completion_time.max_ns, 21 * MS);
    assert!((flows.rate_mean_bits_per_second.unwrap() - 120_000.0 / 0.021).abs() < 1.0);
    assert_eq!(flows.time_of_begun, flows.completion_time);
    // The third began at 62 ms, and the second at 31 ms.
    let of_begun = |from, to| {
        application
            .figures(at(from), at(to))
            .flows
            .unwrap()
            .time_of_begun
    };
    let began = of_begun(0, 70);
    assert_eq!(
        (began.samples, began.min_ns, began.max_ns),
        (3, 8 * MS, 21 * MS)
    );
    let began = of_begun(25, 45);
    assert_eq!((began.samples, began.max_ns), (1, 14 * MS));
    // The last byte of the second came at 52 ms.
    assert_eq!(
        application.figures(at(52), at(53)).flows.unwrap().completed,
        1
    );
    assert_eq!(
        application.figures(at(53), at(83)).flows.unwrap().completed,
        0
    );
}

#[test]
fn a_pause_counts_from_the_last_byte() {
    let mut application = application(1, 79, 150);
    let mut network = Network::new(
        120_000_000,
        Duration::from_millis(10),
        ServerParams::default(),
    );
    network.run(&mut application, at(1_000));
    let last = network.actions[3];
    assert_eq!(last, (at(100), Action::Open { connection: 0 }));
}

#[test]
fn flows_of_all_clients_together_fill_the_link() {
    let mut application = application(50, 0, 10_000);
    // 100 flows a second at most.
    let mut network = Network::new(
        12_000_000,
        Duration::from_millis(10),
        ServerParams::default(),
    );
    network.run(&mut application, at(20_000));
    let flows = application.figures(at(2_000), at(10_000)).flows.unwrap();
    assert_eq!(flows.completed, 800);
    // Little's law: 50 clients, 100 flows a second, of which 10 ms are the closing.
    let mean_ms = flows.completion_time.mean_ns / 1e6;
    assert!((mean_ms - 490.0).abs() < 5.0, "{mean_ms}");
}

#[test]
fn a_flow_that_fails_is_not_completed_and_the_next_waits_longer_each_time() {
    let mut application = application(1, 0, 60_000);
    let mut opened = Vec::new();
    while let Some(now) = application.poll_at() {
        while let Some(action) = application.poll_action(now) {
            assert_eq!(action, Action::Open { connection: 0 });
            opened.push(now.nanos() / 1_000_000_000);
            application.on_failed(0, now);
        }
    }
    assert_eq!(opened, [0, 1, 3, 7, 15, 31]);
    let flows = application.figures(at(0), at(60_000)).flows.unwrap();
    assert_eq!(
        (flows.completed, flows.rate_mean_bits_per_second),
        (0, None)
    );
    // Each that failed has waited until now.
    let began = flows.time_of_begun;
    assert_eq!(
        (began.samples, began.max_ns, began.min_ns),
        (6, 60_000 * MS, 29_000 * MS)
    );
    let later = application.figures(at(10_000), at(60_000)).flows.unwrap();
    assert_eq!(
        later.time_of_begun.samples, 2,
        "those that failed in the span"
    );
}
