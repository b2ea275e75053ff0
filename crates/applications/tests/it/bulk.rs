use crate::at;
use crate::network::Network;
use slicewise_applications::{Action, Application};
use slicewise_stats::record::CdfPoint;
use slicewise_traffic::application::{
    ApplicationParams, BulkParams, FlowArrivals, ServerParams, TransferSizes,
};
use slicewise_units::{BitRate, Duration, Instant};

fn run(bytes: Option<u64>, stop: u64) -> (Application, Vec<String>) {
    let params = BulkParams {
        flows: 3,
        bytes: bytes.map(TransferSizes::Equal),
        bitrate: None,
        arrivals: FlowArrivals::Staggered(Duration::from_millis(100)),
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
        arrivals: FlowArrivals::Staggered(Duration::ZERO),
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
        arrivals: FlowArrivals::Staggered(Duration::ZERO),
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
        bytes: Some(TransferSizes::Equal(30_000)),
        bitrate: None,
        arrivals: FlowArrivals::Staggered(Duration::ZERO),
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

/// When the flows of a source open their connections, and how much each sends.
fn begun(per_kilosecond: u64, bytes: &TransferSizes, seed: u64) -> Vec<(Instant, u64)> {
    let params = BulkParams {
        flows: 4_000,
        bytes: Some(bytes.clone()),
        bitrate: None,
        arrivals: FlowArrivals::Poisson(per_kilosecond),
    };
    let stop = at(100_000);
    let mut application = Application::new(&ApplicationParams::Bulk(params), at(50), stop, seed);
    let mut begun = Vec::new();
    while let Some(now) = application.poll_at().filter(|now| *now < stop) {
        while let Some(action) = application.poll_action(now) {
            match action {
                Action::Open { connection } => application.on_connected(connection, now),
                Action::Send { bytes, .. } => begun.push((now, bytes)),
                _ => {}
            }
        }
    }
    begun
}

/// Of 20 seeds, none is beyond 4.4 standard deviations (two-sided, 1e-5).
#[test]
fn flows_arrive_as_a_poisson_process() {
    let sizes = TransferSizes::Equal(1_000);
    for seed in 0..20 {
        let begun = begun(30_000, &sizes, seed);
        // 30 a second for 99.95 s: a mean of 2998.5, and a variance as large.
        let count = begun.len() as f64;
        assert!((count - 2_998.5).abs() < 4.4 * 54.8, "seed {seed}: {count}");
        // Of independent gaps e^-1 are longer than the mean, and as many of those after such a one.
        let gap = |pair: &[(Instant, u64)]| (pair[1].0 - pair[0].0).as_secs_f64() > 1.0 / 30.0;
        let gaps: Vec<bool> = begun.windows(2).map(gap).collect();
        let is_near = |share: f64, of: f64| {
            let p = (-1.0_f64).exp();
            (share - p).abs() < 4.4 * (p * (1.0 - p) / of).sqrt()
        };
        let long = gaps.iter().filter(|is_long| **is_long).count() as f64;
        let twice = gaps.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        assert!(
            is_near(long / count, count),
            "seed {seed}: {long} of {count}"
        );
        assert!(
            is_near(twice / long, long),
            "seed {seed}: {twice} of {long}"
        );
    }
}

#[test]
fn a_flow_transfers_the_same_however_many_arrive() {
    let sizes = TransferSizes::Mix(vec![(1_000, 7), (1_000_000, 3)]);
    let of = |rate, seed| {
        begun(rate, &sizes, seed)
            .into_iter()
            .map(|(_, bytes)| bytes)
    };
    let (few, many): (Vec<u64>, Vec<u64>) = (of(5_000, 1).collect(), of(20_000, 1).collect());
    assert_eq!(few[..], many[..few.len()]);
    assert_ne!(few, of(5_000, 2).collect::<Vec<_>>());
    // 2000 flows, of which 30 % are long: a standard deviation of 20.5.
    let long = many.iter().filter(|bytes| **bytes == 1_000_000).count() as f64;
    let share = long / many.len() as f64;
    assert!((share - 0.3).abs() < 0.045, "{share}");
}
