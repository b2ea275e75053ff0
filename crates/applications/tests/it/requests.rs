use crate::at;
use crate::network::Network;
use proptest::prelude::*;
use slicewise_applications::{Action, Application};
use slicewise_stats::application::RequestFigures;
use slicewise_stats::record::{CdfPoint, DelayFigures};
use slicewise_traffic::application::{
    ApplicationParams, RequestsParams, ServerParams, TransferSizes,
};
use slicewise_units::{Duration, Instant};
use std::collections::BTreeMap;

fn params(per_second: u64, connections: u32) -> RequestsParams {
    RequestsParams {
        per_kilosecond: per_second * 1_000,
        connections,
        request_bytes: 100,
        response: TransferSizes::Equal(1_000),
        server: ServerParams::default(),
    }
}

fn application(params: RequestsParams, stop: Instant) -> Application {
    Application::new(&ApplicationParams::Requests(params), at(0), stop, 7)
}

fn figures(application: &Application, from: Instant, to: Instant) -> RequestFigures {
    application.figures(from, to).requests.unwrap()
}

/// Runs it with a server that answers each request at the time that `answered` gives; `None`: the connection fails after
/// 50 ms. Returns requests by connection and time.
fn run(
    application: &mut Application,
    until: Instant,
    mut answered: impl FnMut(u32, Instant) -> Option<Instant>,
) -> Vec<(Instant, u32)> {
    // By time and connection: the response or failure on its way.
    let mut events: BTreeMap<(Instant, u32), Option<u64>> = BTreeMap::new();
    let mut asked = Vec::new();
    loop {
        let event = events.keys().next().map(|(time, _)| *time);
        let next = [event, application.poll_at()].into_iter().flatten().min();
        let Some(now) = next.filter(|now| *now < until) else {
            return asked;
        };
        if event == Some(now) {
            let ((_, connection), bytes) = events.pop_first().unwrap();
            match bytes {
                Some(bytes) => application.on_received(connection, bytes, now),
                None => application.on_failed(connection, now),
            }
        }
        while let Some(action) = application.poll_action(now) {
            match action {
                Action::Open { connection } => application.on_connected(connection, now),
                Action::Request {
                    connection,
                    response,
                    ..
                } => {
                    asked.push((now, connection));
                    let event = match answered(connection, now) {
                        Some(time) => ((time, connection), Some(response)),
                        None => ((now + Duration::from_millis(50), connection), None),
                    };
                    assert!(events.insert(event.0, event.1).is_none(), "one at a time");
                }
                Action::Close { connection } => application.on_closed(connection, now),
                Action::Send { .. } => panic!("{action:?}"),
            }
        }
    }
}

const MS: u64 = 1_000_000;

#[test]
fn requests_are_due_in_turn_on_the_connections_at_the_rate() {
    let mut application = application(params(3, 2), at(2_000));
    let asked = run(&mut application, at(9_000), |_, now| Some(now));
    let asked: Vec<(u64, u32)> = asked.iter().map(|(t, c)| (t.nanos(), *c)).collect();
    let expected = [
        (0, 0),
        (333_333_334, 1),
        (666_666_667, 0),
        (1_000_000_000, 1),
        (1_333_333_334, 0),
        (1_666_666_667, 1),
    ];
    assert_eq!(asked, expected);
}

#[test]
fn a_connection_is_opened_with_its_first_request_and_closed_after_its_last_response() {
    let mut application = application(params(2, 2), at(1_200));
    let mut network = Network::new(
        8_000_000,
        Duration::from_millis(20),
        ServerParams::default(),
    );
    network.run(&mut application, at(5_000));
    let actions: Vec<String> = network
        .actions
        .iter()
        .map(|(time, action)| format!("{time} {action:?}"))
        .collect();
    insta::assert_snapshot!(actions.join("\n"), @r"
    0 ns Open { connection: 0 }
    20 ms Request { connection: 0, bytes: 100, response: 1000 }
    500 ms Open { connection: 1 }
    520 ms Request { connection: 1, bytes: 100, response: 1000 }
    1 s Request { connection: 0, bytes: 100, response: 1000 }
    1.2 s Close { connection: 0 }
    1.2 s Close { connection: 1 }
    ");
}

/// Known from wrk2: a server that stops for 1 s in 10 s. 100 requests a second on one connection, each answered in 1 ms,
/// but none from 1 s to 2 s. Request 100 + k is sent when the one before it is answered, 2.000 s + k · 1 ms, as long as
/// that is after it was due, 1 s + k · 10 ms: for k up to 111. Its latency is 1001 ms − k · 9 ms.
#[test]
fn a_server_that_stops_for_a_second_is_seen_by_all_requests_due_in_it() {
    let mut application = application(params(100, 1), at(10_000));
    run(&mut application, at(20_000), |_, now| {
        let is_stopped = (at(1_000)..at(2_000)).contains(&now);
        Some((if is_stopped { at(2_000) } else { now }) + Duration::from_millis(1))
    });
    let figures = figures(&application, at(0), at(10_000));
    let latency = figures.latency;
    assert_eq!((latency.samples, figures.unanswered), (1_000, 0));
    // 888 of 1 ms, then 2 ms, 11 ms, … 1001 ms: number n from the smallest has 2 ms + (n − 889) · 9 ms.
    assert_eq!(latency.min_ns, MS);
    assert_eq!(latency.p50_ns, MS);
    assert_eq!(latency.p90_ns, 101 * MS);
    assert_eq!(latency.p95_ns, 551 * MS);
    assert_eq!(latency.p99_ns, 911 * MS);
    assert_eq!(latency.p999_ns, 992 * MS);
    assert_eq!(latency.max_ns, 1_001 * MS);
    // 888 · 1 + 112 · (2 + 1001) / 2.
    assert!((latency.mean_ns - 57.056e6).abs() < 1.0, "{latency:?}");
    // Not corrected, one request of a thousand was slow.
    assert_eq!(figures.response_time.p999_ns, MS);
    assert_eq!(figures.response_time.max_ns, 1_001 * MS);
    assert_eq!(figures.offered_per_second, 100.0);
    assert_eq!(figures.achieved_per_second, 100.0);
}

#[test]
fn a_server_slower_than_the_rate_achieves_its_own_and_latency_grows_to_the_end() {
    let mut application = application(params(100, 1), at(10_000));
    // 50 a second.
    run(&mut application, at(10_000), |_, now| {
        Some(now + Duration::from_millis(20))
    });
    let figures = figures(&application, at(0), at(10_000));
    assert_eq!(figures.offered_per_second, 100.0);
    // Of 1000 due, the response to number 499 would come at 10 s.
    assert_eq!((figures.latency.samples, figures.unanswered), (499, 501));
    assert!((figures.achieved_per_second - 49.9).abs() < 1e-9);
    // Number 498, due at 4.98 s, was answered at 9.98 s.
    assert_eq!(figures.latency.max_ns, 5_000 * MS);
    assert_eq!(figures.response_time.max_ns, 20 * MS);
    // Of all that were due, number 499 has waited longest: since 4.99 s. Half waited more than 2.5 s.
    let of_due = figures.latency_of_due;
    assert_eq!((of_due.samples, of_due.max_ns), (1_000, 5_010 * MS));
    assert_eq!(figures.latency.p50_ns, 2_510 * MS);
    // Answered ones have 20, 30, ... 5000 ms, the others 5010, 5000, ... 10 ms.
    assert_eq!(of_due.p50_ns, 2_510 * MS);
    let waiting = application.figures(at(0), at(10_000)).unfinished_times;
    let is_half_of_them = |point: &&CdfPoint| point.1 >= 0.5;
    let median = waiting.iter().find(is_half_of_them).unwrap().0;
    assert!((2_510 * MS..2_530 * MS).contains(&median), "{median}");
    assert_eq!(waiting.last(), Some(&CdfPoint(5_010 * MS, 1.0)));
}

#[test]
fn a_span_has_the_requests_due_in_it_and_the_responses_that_came_in_it() {
    let mut application = application(params(10, 1), at(3_000));
    run(&mut application, at(9_000), |_, now| {
        Some(now + Duration::from_millis(90))
    });
    let span = figures(&application, at(950), at(2_050));
    // Due at 1.0 s to 2.0 s; answered at 0.99 s to 1.99 s.
    assert_eq!(span.latency.samples, 11);
    assert!((span.offered_per_second - 10.0).abs() < 1e-9);
    assert!((span.achieved_per_second - 10.0).abs() < 1e-9);
    let after = figures(&application, at(3_000), at(4_000));
    assert_eq!((after.offered_per_second, after.unanswered), (0.0, 0));
    let last = figures(&application, at(2_990), at(2_991));
    assert_eq!(
        (last.offered_per_second, last.achieved_per_second),
        (0.0, 1_000.0)
    );
}

#[test]
fn a_failed_connection_loses_its_request_and_is_opened_again_after_a_second() {
    let mut application = application(params(10, 1), at(2_000));
    let mut fails = true;
    let asked = run(&mut application, at(9_000), |_, now| {
        (!std::mem::take(&mut fails)).then_some(now)
    });
    // Asked at 0, failed at 50 ms; requests 1 to 10 were due until 1.05 s.
    let times: Vec<u64> = asked.iter().map(|(time, _)| time.nanos() / MS).collect();
    assert_eq!(times[..2], [0, 1_050]);
    assert_eq!(times.iter().filter(|&&time| time == 1_050).count(), 10);
    let figures = figures(&application, at(0), at(2_000));
    assert_eq!((figures.latency.samples, figures.unanswered), (19, 1));
    assert_eq!(figures.latency.max_ns, 950 * MS, "number 1");
    assert_eq!(
        figures.latency_of_due.max_ns,
        2_000 * MS,
        "number 0 has no answer"
    );
}

#[test]
fn sizes_of_responses_do_not_depend_on_what_happened_before() {
    let sizes = |delay: u64| {
        let response = TransferSizes::Exponential(10_000);
        let mut application = application(
            RequestsParams {
                response,
                ..params(100, 3)
            },
            at(1_000),
        );
        let server = ServerParams {
            service_time: Duration::from_millis(delay),
            workers: None,
        };
        let mut network = Network::new(1_000_000_000, Duration::from_millis(1), server);
        network.run(&mut application, at(20_000));
        let mut sizes = [const { Vec::new() }; 3];
        for (_, action) in network.actions {
            if let Action::Request {
                connection,
                response,
                ..
            } = action
            {
                sizes[connection as usize].push(response);
            }
        }
        sizes
    };
    let (fast, slow) = (sizes(0), sizes(60));
    for (fast, slow) in fast.iter().zip(&slow) {
        assert!(slow.len() < fast.len() && slow.len() > 10);
        assert_eq!(fast[..slow.len()], slow[..]);
    }
    assert_ne!(fast[0][..10], fast[1][..10]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_request_that_is_due_is_answered_or_counted_as_unanswered(
        per_second in 1u64..200,
        connections in 1u32..8,
        delays in prop::collection::vec(prop::option::weighted(0.95, 0u64..200), 1..50),
        stop in 1u64..4_000,
        end in 1u64..6_000,
    ) {
        let mut application = application(params(per_second, connections), at(stop));
        let mut delays = delays.into_iter().cycle();
        let mut answers = Vec::new();
        let asked = run(&mut application, at(end), |_, now| {
            let answer = now + Duration::from_millis(delays.next().unwrap()?);
            if answer < at(end) {
                answers.push(answer);
            }
            Some(answer)
        });
        let figures = figures(&application, at(0), at(end));
        // Due at n / rate, before the source stops and the run ends.
        let due = (stop.min(end) * per_second).div_ceil(1_000);
        prop_assert_eq!(figures.latency.samples + figures.unanswered, due);
        prop_assert_eq!(figures.latency.samples, answers.len() as u64);
        prop_assert_eq!(figures.latency_of_due.samples, due);
        let achieved = answers.len() as f64 / (end as f64 / 1_000.0);
        prop_assert!((figures.achieved_per_second - achieved).abs() < 1e-6);
        let (latency, response_time) = (figures.latency, figures.response_time);
        prop_assert_eq!(latency.samples, response_time.samples);
        prop_assert!(latency.mean_ns >= response_time.mean_ns);
        let of = |d: &DelayFigures| [d.min_ns, d.p50_ns, d.p99_ns, d.max_ns];
        let mut pairs = of(&latency).into_iter().zip(of(&response_time));
        prop_assert!(pairs.all(|(latency, response_time)| latency >= response_time));
        prop_assert!(asked.iter().all(|(time, _)| *time < at(stop)));
        for connection in 0..connections {
            let of_connection = asked.iter().filter(|(_, c)| *c == connection);
            for ((time, _), turn) in of_connection.zip(0u64..) {
                let number = u64::from(connection) + turn * u64::from(connections);
                let due = (number * 1_000_000_000).div_ceil(per_second);
                prop_assert!(time.nanos() >= due, "{number} at {time}");
            }
        }
    }
}
