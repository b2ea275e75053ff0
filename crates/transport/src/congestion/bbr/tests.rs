use super::*;
use std::collections::VecDeque;

/// 100 segments were under way with the last of the 10 lost: the third made it more than 2 %, whether one detection told
/// of all or of each.
#[test]
fn the_bound_after_loss_is_where_loss_became_too_much() {
    let sample = PathSample {
        in_flight: 100_000,
        lost: 10_000,
        ..PathSample::default()
    };
    assert!(is_too_much(&sample));
    assert_eq!(in_flight_at_loss(&sample, 10_000, 1_000), 99_000);
    let third = PathSample {
        lost: 3_000,
        ..sample
    };
    assert_eq!(in_flight_at_loss(&third, 1_000, 1_000), 99_000);
    let small = PathSample {
        in_flight: 20_000,
        lost: 1_000,
        ..sample
    };
    // A segment of 1000 B after 19,000 B: 2 % are reached with 387 B of it.
    assert_eq!(in_flight_at_loss(&small, 1_000, 1_000), 19_387);
    let fewer = PathSample {
        lost: 2_000,
        ..sample
    };
    assert!(!is_too_much(&fewer));
}

#[test]
fn flows_wait_for_different_times_between_probes() {
    let waits = (0..4).map(|n| {
        let mut bbr = Bbr::new(1_000, 10_000);
        bbr.start_down(Instant::from_nanos(n));
        bbr.probe_wait
    });
    let waits: Vec<Duration> = waits.collect();
    let least = Duration::from_secs(2);
    assert!(
        waits
            .iter()
            .all(|wait| *wait >= least && *wait < Duration::from_secs(3))
    );
    assert!(waits.windows(2).all(|pair| pair[0] != pair[1]), "{waits:?}");
}

/// States of a sender without an end on a path of `per_ms` segments each millisecond whose round trip is always 40 ms, one
/// each millisecond.
fn states(per_ms: u64, millis: u64) -> Vec<State> {
    const MSS: u64 = 1_000;
    const RTT: Duration = Duration::from_millis(40);
    let mut bbr = Bbr::new(MSS, 10 * MSS);
    let mut window = Window {
        bytes: 10 * MSS,
        ssthresh: u64::MAX,
        mss: MSS,
    };
    let mut under_way: VecDeque<(Instant, u64)> = VecDeque::new();
    let (mut next, mut states) = (1, Vec::new());
    for n in 0..millis {
        let now = Instant::from_nanos(n * 1_000_000);
        while let Some(&(sent_at, end)) = under_way.front()
            && sent_at + RTT <= now
        {
            under_way.pop_front();
            let sample = (bbr.delivery).on_delivered(MSS, Some(sent_at), end, RTT, now);
            let arrived = Arrived {
                sample,
                bytes: MSS,
                in_flight: under_way.len() as u64 * MSS,
                rtt: Some(RTT),
                is_limited: true,
                is_recovering: false,
                now,
            };
            bbr.on_arrived(&arrived, &mut window);
        }
        for _ in 0..per_ms {
            let before = under_way.len() as u64 * MSS;
            if before + MSS <= window.bytes {
                next += MSS;
                under_way.push_back((now, next));
                bbr.on_sent(next, (before, before + MSS), &mut window, now);
            }
        }
        states.push(bbr.state);
    }
    states
}

/// Where no round trip is smaller than one before, one is looked for each 5 s, for 200 ms and a round trip.
#[test]
fn little_is_under_way_for_a_moment_each_five_seconds() {
    for per_ms in [1, 6, 30] {
        let states = states(per_ms, 30_000);
        let entered =
            |n: &usize| states[*n] == State::ProbeRtt && states[*n - 1] != State::ProbeRtt;
        let begins: Vec<usize> = (1..states.len()).filter(entered).collect();
        assert!(begins.len() >= 5, "{begins:?}");
        for pair in begins.windows(2) {
            let lasts = states[pair[0]..]
                .iter()
                .take_while(|state| **state == State::ProbeRtt);
            let lasts = lasts.count();
            assert!((200..320).contains(&lasts), "{lasts} ms");
            let between = pair[1] - pair[0];
            assert!(
                (5_000 + lasts..5_010 + lasts).contains(&between),
                "{between} ms"
            );
        }
    }
}

/// Without a queue to drain, Drain and Down are over at once.
#[test]
fn startup_and_the_cycle_of_probes_follow_each_other() {
    let mut states = states(6, 4_900);
    states.dedup();
    let first = [State::Startup, State::Cruise, State::Refill, State::Up];
    assert_eq!(states[..4], first, "{states:?}");
    assert_eq!(states[4], State::Cruise, "{states:?}");
}
