//! Long transfers over a bottleneck, against theory.

use crate::path::{Bottleneck, CLIENT, Fate, Path, SERVER};
use slicewise_traffic::transport::{CongestionControl, TcpProfile, TransportParams};
use slicewise_transport::{Behaviour, Segment};
use slicewise_units::{Duration, Instant};

const MSS: f64 = 1_448.0;

pub fn host(profile: TcpProfile, congestion: CongestionControl) -> Behaviour {
    let params = TransportParams {
        congestion,
        ..TransportParams::of(profile)
    };
    Behaviour::new(&params, 20)
}

pub const fn link(mbit: u64, frames: usize, delay_ms: u64) -> Bottleneck {
    Bottleneck {
        bits_per_second: mbit * 1_000_000,
        frames: Some(frames),
        marks_at: None,
        delay: Duration::from_millis(delay_ms),
    }
}

/// Numbers below `bound`, the same each time: xorshift64 (Marsaglia 2003).
pub fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    }
}

/// Acknowledgements are up to 20 us late, so that flows do not stay in step with the queue.
pub fn undisturbed(seed: u64) -> impl FnMut(usize, &Segment) -> Fate {
    let mut draw = numbers(seed);
    move |to, _| {
        if to == CLIENT {
            Fate::ArrivesLate(Duration::from_nanos(draw(20_000)))
        } else {
            Fate::Arrives
        }
    }
}

pub const fn second(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000_000)
}

/// Goodput of each flow between two seconds, Mbit/s.
#[expect(clippy::cast_precision_loss, reason = "megabits")]
pub fn goodput<F: FnMut(usize, &Segment) -> Fate>(
    path: &mut Path<F>,
    flows: usize,
    from: u64,
    to: u64,
) -> Vec<f64> {
    path.run_until(second(from));
    let before: Vec<u64> = (0..flows).map(|flow| path.arrived(flow, SERVER)).collect();
    path.run_until(second(to));
    let bytes = before
        .iter()
        .enumerate()
        .map(|(flow, before)| path.arrived(flow, SERVER) - before);
    bytes
        .map(|bytes| bytes as f64 * 8.0 / 1e6 / (to - from) as f64)
        .collect()
}

fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| {
        (sum + share, squares + share * share)
    });
    #[expect(clippy::cast_precision_loss, reason = "a few flows")]
    let count = shares.len() as f64;
    sum * sum / (count * squares)
}

/// M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm" (1997): the
/// window is sqrt(3 / 2p) segments on average if each segment is lost with probability p.
#[test]
fn renos_rate_under_random_loss_follows_the_square_root_law() {
    for lost_in in [500, 2_000, 8_000] {
        let mut draw = numbers(7 + lost_in);
        let fate = move |to: usize, segment: &Segment| {
            if to == SERVER && segment.bytes > 0 && draw(lost_in) == 0 {
                Fate::IsLost
            } else {
                Fate::Arrives
            }
        };
        let mut path = Path::new(link(10_000, 10_000, 25), fate);
        let flow = path.add(host(TcpProfile::Rfc, CongestionControl::NewReno));
        path.write(flow, CLIENT, u64::MAX);
        let measured = goodput(&mut path, 1, 20, 320)[0];
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let window = (1.5 * lost_in as f64).sqrt();
        let law = window * MSS * 8.0 / 0.05 / 1e6;
        let ratio = measured / law;
        assert!(
            (0.8..1.15).contains(&ratio),
            "1 in {lost_in}: {measured:.2} of {law:.2} Mbit/s"
        );
    }
}

/// RFC 9438, section 5.1: where loss is rare and round trips are long, CUBIC's window is 1.054 (RTT³ / p³)^¼ segments, larger
/// than Reno's.
#[test]
fn cubics_rate_under_rare_random_loss_follows_its_law() {
    let lost_in = 20_000;
    let mut draw = numbers(77);
    let fate = move |to: usize, segment: &Segment| {
        if to == SERVER && segment.bytes > 0 && draw(lost_in) == 0 {
            Fate::IsLost
        } else {
            Fate::Arrives
        }
    };
    let mut path = Path::new(link(10_000, 10_000, 50), fate);
    let flow = path.add(host(TcpProfile::Rfc, CongestionControl::Cubic));
    path.write(flow, CLIENT, u64::MAX);
    let measured = goodput(&mut path, 1, 30, 530)[0];
    let window = 1.054 * (0.1f64.powi(3) * 20_000f64.powi(3)).powf(0.25);
    let law = window * MSS * 8.0 / 0.1 / 1e6;
    let ratio = measured / law;
    assert!(
        (0.75..1.25).contains(&ratio),
        "{measured:.2} of {law:.2} Mbit/s"
    );
}

#[test]
fn a_transfer_fills_a_link_whose_queue_holds_a_round_trip() {
    for congestion in [CongestionControl::NewReno, CongestionControl::Cubic] {
        for profile in [TcpProfile::Linux, TcpProfile::Linux415, TcpProfile::Rfc] {
            // 20 ms of 50 Mbit/s are 81 frames.
            let mut path = Path::new(link(50, 90, 10), undisturbed(3));
            let flow = path.add(host(profile, congestion));
            path.write(flow, CLIENT, u64::MAX);
            let measured = goodput(&mut path, 1, 5, 35)[0];
            let most = 50.0 * MSS / 1_538.0;
            assert!(
                measured > 0.96 * most && measured <= most * 1.001,
                "{profile:?} {congestion:?}: {measured:.2} of {most:.2} Mbit/s"
            );
        }
    }
}

/// D.-M. Chiu, R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance" (1989): additive increase
/// and multiplicative decrease converge to equal shares.
#[test]
fn a_flow_that_begins_later_gets_its_share() {
    for congestion in [CongestionControl::NewReno, CongestionControl::Cubic] {
        let mut path = Path::new(link(20, 60, 10), undisturbed(5));
        let behaviour = host(TcpProfile::Linux, congestion);
        let first = path.add(behaviour);
        path.write(first, CLIENT, u64::MAX);
        path.run_until(second(10));
        let second_flow = path.add(behaviour);
        path.write(second_flow, CLIENT, u64::MAX);
        let shares = goodput(&mut path, 2, 40, 160);
        assert!(jain(&shares) > 0.97, "{congestion:?}: {shares:?}");
    }
}

#[test]
fn ten_flows_share_alike() {
    for congestion in [CongestionControl::NewReno, CongestionControl::Cubic] {
        let mut path = Path::new(link(50, 100, 10), undisturbed(9));
        for _ in 0..10 {
            let flow = path.add(host(TcpProfile::Linux, congestion));
            path.write(flow, CLIENT, u64::MAX);
        }
        let shares = goodput(&mut path, 10, 10, 100);
        assert!(jain(&shares) > 0.95, "{congestion:?}: {shares:?}");
    }
}

/// RFC 8257, section 5: marking from K frames keeps the queue near K, and nothing is lost. Prague is paced, and its queue shorter.
#[test]
fn scalable_senders_keep_a_queue_that_marks_short_and_lose_nothing() {
    let cases = [
        (CongestionControl::Dctcp, 15.0..45.0),
        (CongestionControl::Prague, 5.0..31.0),
    ];
    for (congestion, frames) in cases {
        let marking = Bottleneck {
            marks_at: Some(30),
            ..link(100, 1_000, 1)
        };
        let mut path = Path::new(marking, undisturbed(11));
        for _ in 0..2 {
            let flow = path.add(host(TcpProfile::Linux, congestion));
            path.write(flow, CLIENT, u64::MAX);
        }
        path.run_until(second(5));
        let before = path.queued;
        let shares = goodput(&mut path, 2, 5, 25);
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let mean = (path.queued - before) as f64 / 20e9;
        assert!(frames.contains(&mean), "{congestion:?}: {mean:.1} frames");
        assert_eq!(path.dropped, 0, "{congestion:?}");
        assert!(jain(&shares) > 0.95, "{congestion:?}: {shares:?}");
        let most = 100.0 * MSS / 1_538.0;
        let goodput = shares.iter().sum::<f64>();
        assert!(goodput > 0.97 * most, "{congestion:?}: {shares:?}");
    }
}

/// Pacing spreads what a window allows: the queue of a link that is faster than the window needs stays short.
#[test]
fn paced_data_does_not_queue() {
    let [bursts, paced] = [false, true].map(|pacing| {
        let params = TransportParams {
            pacing,
            receive_buffer_bytes: 200_000,
            ..TransportParams::of(TcpProfile::Linux)
        };
        let mut path = Path::new(link(200, 1_000, 20), undisturbed(13));
        let flow = path.add(Behaviour::new(&params, 20));
        path.write(flow, CLIENT, u64::MAX);
        path.run_until(second(2));
        path.longest = 0;
        path.run_until(second(6));
        path.longest
    });
    assert!(paced <= 12 && paced < bursts, "{paced} of {bursts} frames");
}
