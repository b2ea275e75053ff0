use super::*;
use slicewise_traffic::transport::{TcpProfile, TransportParams};

const MSS: u64 = 1_000;

fn congestion(algorithm: CongestionControl, profile: TcpProfile) -> Congestion {
    let params = TransportParams {
        congestion: algorithm,
        ..TransportParams::of(profile)
    };
    Congestion::new(&Behaviour::new(&params, 20))
}

fn window(segments: u64, ssthresh: u64) -> Window {
    Window {
        bytes: segments * MSS,
        ssthresh: ssthresh.saturating_mul(MSS),
        mss: MSS,
    }
}

fn acknowledged(segments: u64, millis: u64) -> Acknowledged {
    Acknowledged {
        bytes: segments * MSS,
        una: 0,
        next: 0,
        rtt: None,
        smoothed: Duration::from_millis(100),
        is_marked: false,
        is_limited: true,
        now: Instant::ZERO + Duration::from_millis(millis),
    }
}

/// The window, in segments, after each of `rounds` round trips of 100 ms in which all of it was acknowledged.
fn rounds(congestion: &mut Congestion, window: &mut Window, rounds: u64, from_ms: u64) -> Vec<u64> {
    (0..rounds)
        .map(|round| {
            let segments = window.bytes / MSS;
            for n in 0..segments {
                let millis = from_ms + round * 100 + n * 100 / segments;
                congestion.on_ack(window, &acknowledged(1, millis));
            }
            window.bytes / MSS
        })
        .collect()
}

#[test]
fn new_reno_doubles_until_its_threshold_and_then_adds_a_segment_each_round_trip() {
    let mut reno = congestion(CongestionControl::NewReno, TcpProfile::Rfc);
    let mut window = window(4, 20);
    assert_eq!(
        rounds(&mut reno, &mut window, 6, 0),
        [8, 16, 20, 21, 22, 23]
    );
}

#[test]
fn what_a_larger_window_was_acknowledged_does_not_count_for_a_smaller_one() {
    for algorithm in [CongestionControl::NewReno, CongestionControl::Dctcp] {
        let mut congestion = congestion(algorithm, TcpProfile::Rfc);
        let mut large = window(20, 10);
        for _ in 0..19 {
            congestion.on_ack(&mut large, &acknowledged(1, 0));
        }
        assert_eq!(large, window(20, 10));
        let mut after_timeout = congestion.clone();
        after_timeout.on_timeout();
        let mut small = window(1, 10);
        assert_eq!(rounds(&mut after_timeout, &mut small, 4, 0), [2, 4, 8, 10]);
        let mut after_loss = congestion.clone();
        let _ = after_loss.on_congestion(&large, 20 * MSS, Cause::Loss);
        congestion.on_reduced();
        for mut congestion in [after_loss, congestion] {
            let mut halved = window(10, 10);
            assert_eq!(rounds(&mut congestion, &mut halved, 2, 0), [11, 12]);
        }
    }
}

#[test]
fn a_window_that_does_not_limit_does_not_grow() {
    for algorithm in [CongestionControl::NewReno, CongestionControl::Cubic] {
        for ssthresh in [5, 100] {
            let mut congestion = congestion(algorithm, TcpProfile::Rfc);
            let mut window = window(10, ssthresh);
            let ack = Acknowledged {
                is_limited: false,
                ..acknowledged(10, 0)
            };
            congestion.on_ack(&mut window, &ack);
            assert_eq!(window.bytes, 10 * MSS);
        }
    }
}

/// RFC 9438, figure 1 and section 4.2: concave up to the old maximum, which it reaches after K = cbrt(W_max (1 − β) / C), then
/// convex. 1000 segments: K = cbrt(300 / 0.4) = 9.086 s.
#[test]
fn cubic_returns_to_its_maximum_after_k_seconds_and_lingers_there() {
    let mut cubic = congestion(CongestionControl::Cubic, TcpProfile::Rfc);
    let mut window = window(1_000, 1);
    let threshold = cubic.on_congestion(&window, 1_000 * MSS, Cause::Loss);
    assert_eq!(threshold, 700 * MSS);
    (window.bytes, window.ssthresh) = (threshold, threshold);
    let after = rounds(&mut cubic, &mut window, 140, 0);
    // 0.4 (t − K)³ + 1000, a round trip ahead of time.
    let expected = |t: f64| (0.4 * (t - 9.086).powi(3) + 1_000.0).max(700.0);
    for (round, segments) in after.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (t, segments) = ((round as f64 + 1.0) * 0.1, *segments as f64);
        assert!(
            segments >= expected(t) - 2.0 && segments <= expected(t + 0.1) + 2.0,
            "{t} s: {segments}, {}",
            expected(t)
        );
    }
    assert!((995..=1_001).contains(&after[89]), "{}", after[89]);
    assert!(after[139] > 1_040, "{}", after[139]);
}

/// RFC 9438, section 4.3: where Reno would be faster, CUBIC is as Reno: α = 3 (1 − β) / (1 + β) = 9/17 of a segment each round
/// trip until the old window is reached, then one.
#[test]
fn small_windows_grow_as_those_of_reno() {
    let mut cubic = congestion(CongestionControl::Cubic, TcpProfile::Rfc);
    let mut window = window(20, 1);
    let threshold = cubic.on_congestion(&window, 20 * MSS, Cause::Loss);
    (window.bytes, window.ssthresh) = (threshold, threshold);
    // With a round trip of 1 ms K is 2.47 s: far away.
    let mut millis = 0;
    let mut trips = 0;
    while window.bytes < 20 * MSS {
        for _ in 0..window.bytes / MSS {
            let ack = Acknowledged {
                smoothed: Duration::from_millis(1),
                ..acknowledged(1, millis)
            };
            cubic.on_ack(&mut window, &ack);
        }
        millis += 1;
        trips += 1;
    }
    // 6 segments at 9/17 a round trip.
    assert!((11..=13).contains(&trips), "{trips}");
}

/// Beyond the old window RFC 9438 lets the estimate grow a segment each round trip (section 4.3), Linux 6.18 still 9/17 of one: with
/// 40 Mbit/s and a queue that became longer after a loss at 19 segments, its window was 85 segments after 2 s and 134 after 5 s
/// (`TCP_INFO`), where growth by a whole segment would have made 116 and 180 of it.
#[test]
fn beyond_the_old_window_linux_grows_no_faster_than_before() {
    let grown = |profile| {
        let mut cubic = congestion(CongestionControl::Cubic, profile);
        let mut window = window(20, 1);
        let threshold = cubic.on_congestion(&window, 20 * MSS, Cause::Loss);
        (window.bytes, window.ssthresh) = (threshold, threshold);
        // A segment each 0.3028 ms; the round trip is what waits in the queue.
        for segment in 0..16_513u64 {
            let micros = segment * 3028 / 10;
            let ack = Acknowledged {
                smoothed: Duration::from_micros(window.bytes / MSS * 3028 / 10),
                now: Instant::ZERO + Duration::from_micros(micros),
                ..acknowledged(1, 0)
            };
            cubic.on_ack(&mut window, &ack);
        }
        window.bytes / MSS
    };
    let (linux, rfc) = (grown(TcpProfile::Linux), grown(TcpProfile::Rfc));
    assert!((130..=138).contains(&linux), "{linux}");
    assert!((175..=185).contains(&rfc), "{rfc}");
}

/// RFC 9438, section 4.7: a second loss before the old maximum leaves room for a new flow.
#[test]
fn fast_convergence_gives_way_to_new_flows() {
    let Congestion::Cubic(mut cubic) = congestion(CongestionControl::Cubic, TcpProfile::Rfc) else {
        panic!("CUBIC");
    };
    cubic.on_congestion(&window(1_000, 1));
    let mut again = window(800, 1);
    let threshold = cubic.on_congestion(&again);
    (again.bytes, again.ssthresh) = (threshold, threshold);
    let mut congestion = Congestion::Cubic(cubic);
    // K = cbrt((800 · 0.85 − 560) / 0.4) = 6.7 s: level at 680 segments, not at 800.
    let after = rounds(&mut congestion, &mut again, 67, 0);
    assert!((676..=682).contains(&after[66]), "{}", after[66]);
}

/// RFC 9406: a round trip that grows by more than an eighth ends the doubling, and five slow rounds later slow start.
#[test]
fn slow_start_ends_when_round_trips_grow() {
    let mut cubic = congestion(CongestionControl::Cubic, TcpProfile::Linux);
    let mut window = window(16, u64::MAX);
    let mut position = 0;
    let mut grown = Vec::new();
    for round in 0..9u64 {
        let millis = if round < 2 { 80 } else { 92 };
        let segments = window.bytes / MSS;
        let next = position + window.bytes;
        for _ in 0..segments {
            position += MSS;
            let ack = Acknowledged {
                una: position,
                next: next + (position + window.bytes - next).min(window.bytes),
                rtt: Some(Duration::from_millis(millis)),
                ..acknowledged(1, round * 100)
            };
            cubic.on_ack(&mut window, &ack);
        }
        grown.push(window.bytes / MSS);
    }
    assert!(grown[1] >= 4 * 15, "it doubles: {grown:?}");
    let factor = |round: usize| grown[round] * 100 / grown[round - 1];
    assert!((115..=135).contains(&factor(4)), "a quarter: {grown:?}");
    assert!(factor(8) <= 110, "congestion avoidance: {grown:?}");
    assert!(window.ssthresh < u64::MAX);
}

/// RFC 8257, section 3.3: alpha follows the marked share with weight 1/16, and the window loses alpha / 2 of itself.
#[test]
fn dctcp_gives_up_half_of_the_share_that_is_marked() {
    let mut dctcp = Dctcp::default();
    let window = window(100, 1);
    assert_eq!(dctcp.on_congestion(&window, 0, Cause::Mark), 50 * MSS);
    let mut position = 0;
    for _ in 0..400 {
        for n in 0..10 {
            position += MSS;
            let ack = Acknowledged {
                una: position,
                next: position + (9 - n) * MSS + 1,
                is_marked: n < 2,
                ..acknowledged(1, 0)
            };
            dctcp.on_round(&ack);
        }
    }
    let left = dctcp.on_congestion(&window, 0, Cause::Mark);
    assert!((89_000..=91_000).contains(&left), "{left}");
    assert_eq!(
        dctcp.on_congestion(&window, 60 * MSS, Cause::Loss),
        30 * MSS
    );
}

/// The window of Prague, in thousandths of a segment, after each of `rounds` round trips of so many milliseconds.
fn prague_rounds(prague: &mut Prague, window: &mut Window, rounds: u64, millis: u64) -> Vec<u64> {
    let acked = |_| {
        let ack = Acknowledged {
            bytes: window.bytes,
            smoothed: Duration::from_millis(millis),
            ..acknowledged(0, 0)
        };
        prague.on_ack(window, &ack);
        window.bytes
    };
    (0..rounds).map(acked).collect()
}

#[test]
fn prague_grows_in_25_ms_by_as_much_of_its_rate_on_short_paths_as_on_long_ones() {
    let (mut prague, mut window) = (Prague::default(), window(4, 8));
    let long = prague_rounds(&mut prague, &mut window, 3, 100);
    assert_eq!(long, [8_000, 9_000, 10_000]);
    // A fifth of the round trip: a twenty-fifth of a segment each time.
    let short = prague_rounds(&mut prague, &mut window, 50, 5);
    assert!((10_038..=10_041).contains(&short[0]), "{}", short[0]);
    assert!((11_990..=12_001).contains(&short[49]), "{}", short[49]);
}

#[test]
fn prague_grows_neither_by_what_was_marked_nor_where_the_window_does_not_limit() {
    for (is_marked, is_limited) in [(true, true), (false, false)] {
        for ssthresh in [5, 100] {
            let (mut prague, mut window) = (Prague::default(), window(10, ssthresh));
            let ack = Acknowledged {
                is_marked,
                is_limited,
                ..acknowledged(10, 0)
            };
            prague.on_ack(&mut window, &ack);
            assert_eq!(window.bytes, 10 * MSS);
        }
    }
}

/// One of five segments is marked.
#[test]
fn prague_halves_its_window_once_and_then_gives_up_half_of_the_share_that_is_marked() {
    let (mut prague, mut window) = (Prague::default(), window(100, u64::MAX));
    let smoothed = Duration::from_millis(10);
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    assert!(prague.on_mark(&mut window, smoothed, at(1)));
    assert_eq!((window.bytes, window.ssthresh), (50 * MSS, 50 * MSS));
    let mut position = 0;
    for round in 0..2_000 {
        for n in 0..10 {
            position += MSS;
            let ack = Acknowledged {
                una: position,
                next: position + (9 - n) * MSS + 1,
                is_marked: n < 2,
                ..acknowledged(1, 1 + 10 * round)
            };
            prague.on_round(&ack);
        }
    }
    window.bytes = 100 * MSS;
    assert!(prague.on_mark(&mut window, smoothed, at(30_000)));
    let left = window.bytes;
    assert!((89_900..=90_100).contains(&left), "{left}");
    // Once in 25 ms, as if the round trip were as long.
    assert!(!prague.on_mark(&mut window, smoothed, at(30_024)));
    assert_eq!(window.bytes, left);
    assert!(prague.on_mark(&mut window, smoothed, at(30_025)));
    assert!(
        (80_800..=81_200).contains(&window.bytes),
        "{}",
        window.bytes
    );
}

#[test]
fn prague_answers_to_loss_as_new_reno() {
    let mut prague = congestion(CongestionControl::Prague, TcpProfile::Linux);
    let window = window(100, 1);
    let threshold = prague.on_congestion(&window, 60 * MSS, Cause::Loss);
    assert_eq!(threshold, 30 * MSS);
}
