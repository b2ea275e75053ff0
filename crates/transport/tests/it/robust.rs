//! Whatever a path does to segments, every byte arrives once and in order, or the connection says why.

use crate::path::{Bottleneck, CLIENT, Fate, Path, SERVER};
use proptest::prelude::*;
use slicewise_traffic::transport::{CongestionControl, TcpProfile, TransportParams};
use slicewise_transport::{Behaviour, State};
use slicewise_units::{Duration, Instant};

/// How often a path does what, in 1000.
#[derive(Debug, Clone, Copy)]
struct Mischief {
    loses: u64,
    delays: u64,
    doubles: u64,
    marks: u64,
}

/// A transfer both ways over a path that does mischief: what arrived of `up` and `down` bytes, and how both ends ended.
fn transfer(
    behaviour: Behaviour,
    mischief: Mischief,
    seed: u64,
    up: u64,
    down: u64,
) -> ([u64; 2], [State; 2]) {
    let mut state = seed | 1;
    let mut draw = move || {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let fate = move |_: usize, _: &slicewise_transport::Segment| {
        let roll = draw() % 1_000;
        let late = Duration::from_micros(draw() % 30_000);
        let Mischief {
            loses,
            delays,
            doubles,
            marks,
        } = mischief;
        match roll {
            roll if roll < loses => Fate::IsLost,
            roll if roll < loses + delays => Fate::ArrivesLate(late),
            roll if roll < loses + delays + doubles => Fate::ArrivesTwice,
            roll if roll < loses + delays + doubles + marks => Fate::IsMarked,
            _ => Fate::Arrives,
        }
    };
    let bottleneck = Bottleneck {
        bits_per_second: 20_000_000,
        frames: Some(25),
        marks_at: None,
        delay: Duration::from_millis(3),
    };
    let mut path = Path::new(bottleneck, fate);
    let flow = path.add(behaviour);
    path.write(flow, CLIENT, up);
    path.write(flow, SERVER, down);
    path.close(flow, CLIENT);
    path.close(flow, SERVER);
    let end = Instant::from_nanos(20_000 * 1_000_000_000);
    let mut steps = 0;
    while !path.is_over(flow) && steps < 3_000_000 && path.step(end) {
        steps += 1;
    }
    let states = [CLIENT, SERVER].map(|end| path.end(flow, end).state());
    (
        [path.arrived(flow, SERVER), path.arrived(flow, CLIENT)],
        states,
    )
}

fn behaviours() -> impl Strategy<Value = Behaviour> {
    let profile = prop_oneof![
        Just(TcpProfile::Linux),
        Just(TcpProfile::Linux415),
        Just(TcpProfile::Rfc)
    ];
    let congestion = prop_oneof![
        Just(CongestionControl::NewReno),
        Just(CongestionControl::Cubic),
        Just(CongestionControl::Dctcp),
        Just(CongestionControl::Bbr),
        Just(CongestionControl::Prague)
    ];
    let buffers = (1_448u64..100_000, 1_448u64..100_000);
    (profile, congestion, any::<[bool; 3]>(), buffers).prop_map(
        |(profile, congestion, [ecn, pacing, sack], (receive, send))| {
            let params = TransportParams {
                congestion,
                ecn,
                pacing,
                receive_buffer_bytes: receive,
                send_buffer_bytes: send,
                ..TransportParams::of(profile)
            };
            Behaviour {
                sack,
                ..Behaviour::new(&params, 20)
            }
        },
    )
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_in_order_or_the_connection_says_why(
        behaviour in behaviours(),
        (loses, delays, doubles, marks) in (0u64..300, 0u64..300, 0u64..200, 0u64..200),
        seed in any::<u64>(),
        (up, down) in (0u64..300_000, 0u64..50_000),
    ) {
        let mischief = Mischief { loses, delays, doubles, marks };
        let (arrived, states) = transfer(behaviour, mischief, seed, up, down);
        if states == [State::Closed; 2] {
            prop_assert_eq!(arrived, [up, down]);
        } else {
            prop_assert!(states.contains(&State::TimedOut), "silent: {:?} {:?}", states, arrived);
            prop_assert!(arrived[0] <= up && arrived[1] <= down);
            prop_assert!(loses >= 100, "gave up although little was lost");
        }
    }
}

/// A path that loses everything: the run ends, and both ends know it or never began.
#[test]
fn a_path_that_loses_everything_ends_the_connection() {
    let params = TransportParams::of(TcpProfile::Linux);
    let mischief = Mischief {
        loses: 1_000,
        delays: 0,
        doubles: 0,
        marks: 0,
    };
    let (arrived, states) = transfer(Behaviour::new(&params, 20), mischief, 1, 1_000, 0);
    assert_eq!(
        (arrived, states),
        ([0, 0], [State::TimedOut, State::Listen])
    );
}
