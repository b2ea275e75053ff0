//! A gateway that is late: what it makes up for, link time that it loses, and the delay bounds that hold meanwhile.

use super::slices::{LINK, directions, slice};
use super::*;
use crate::engine::MAX_CATCH_UP;
use slicewise_model::{BurstSpec, GuaranteeSpec, GuaranteedSpec, PolicyParams, RateSpec};
use slicewise_units::{ByteCount, Way};
use std::collections::VecDeque;

/// A frame of 125 bytes lasts 10 µs.
const RATE: u64 = 100_000_000;
const FRAME_BYTES: usize = 125;
const FRAME_NANOS: u64 = 10_000;
const MILLISECOND: u64 = 1_000_000;

/// Link time that the first direction has lost, ns, and how often.
fn lost(bench: &Bench) -> (u64, u64) {
    let counters = bench.engine.counters(Way::Forward);
    (counters.lost_link_time.nanos(), counters.link_stalls)
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn flooded(frames: u32) -> Bench {
    let mut bench = Bench::new(RATE, vec![limited(vlan(10), 2_000)]);
    (0..frames).for_each(|i| bench.arrive(tagged(10, FRAME_BYTES, i)));
    bench
}

#[test]
fn link_time_is_lost_from_the_first_nanosecond_beyond_a_millisecond() {
    for late in [0, 1, MILLISECOND, MILLISECOND + 1, 5 * MILLISECOND] {
        let mut bench = flooded(2);
        bench.poll();
        bench.now = at(FRAME_NANOS + late);
        bench.poll();
        let expected = late.saturating_sub(MAX_CATCH_UP.nanos());
        assert_eq!(lost(&bench), (expected, u64::from(expected > 0)), "{late}");
    }
}

#[test]
fn under_load_every_nanosecond_is_either_sent_or_lost() {
    for (stall, expected) in [(MILLISECOND, 0), (2 * MILLISECOND, 990_000)] {
        let mut bench = flooded(800);
        // It runs for 2 ms, then it does not.
        for round in 1..=10 {
            bench.run_until(at(bench.now.nanos() + 2 * MILLISECOND));
            (0..300).for_each(|i| bench.arrive(tagged(10, FRAME_BYTES, i)));
            bench.now = at(bench.now.nanos() + stall);
            bench.poll();
            // The next frame was due 10 µs after the last.
            let stalls = if expected > 0 { round } else { 0 };
            assert_eq!(lost(&bench), (round * expected, stalls));
            let sent = bench.engine.counters(Way::Forward).sent_frames;
            let next = bench.engine.poll_at().unwrap().nanos();
            assert_eq!(next, sent * FRAME_NANOS + round * expected);
        }
        bench.assert_conserved();
    }
}

#[test]
fn link_time_is_not_lost_while_nothing_waits() {
    let mut bench = flooded(1);
    bench.poll();
    bench.now = at(500 * MILLISECOND);
    bench.poll();
    // It arrived long before it was fetched, which the gateway cannot know.
    bench.arrive(tagged(10, FRAME_BYTES, 1));
    bench.now = at(900 * MILLISECOND);
    bench.poll();
    assert_eq!(lost(&bench), (0, 0));
}

#[test]
fn a_frame_that_arrives_when_the_link_has_caught_up_waits_from_then_on() {
    let mut bench = flooded(2);
    bench.poll();
    bench.now = at(MILLISECOND);
    bench.poll();
    assert_eq!(bench.engine.backlog(), 0);
    // It is fetched in the nanosecond of the last poll, and not sent before 5 ms.
    bench.arrive(tagged(10, FRAME_BYTES, 2));
    let mut times = [1, 5].map(|millis| at(millis * MILLISECOND)).into_iter();
    bench
        .engine
        .poll(&mut bench.ports, &mut || times.next().unwrap());
    assert_eq!(lost(&bench), (3 * MILLISECOND, 1));
}

#[test]
fn link_time_is_lost_while_the_interface_accepts_nothing() {
    let mut bench = flooded(4);
    bench.ports[1] = MemoryPort::new(1_500, 1);
    for now in [0, MILLISECOND, 3 * MILLISECOND] {
        bench.engine.poll(&mut bench.ports, &mut || at(now));
    }
    assert_eq!(lost(&bench), (0, 0), "it is not known yet");
    bench.now = at(3 * MILLISECOND);
    bench.ports[1].complete(&mut bench.engine.memory);
    bench.poll();
    assert_eq!(lost(&bench), (2 * MILLISECOND - FRAME_NANOS, 1));
}

#[test]
fn a_reload_neither_loses_link_time_nor_hides_it() {
    for (late, expected) in [(900_000, 0), (3_000_000, 2_000_000)] {
        let mut bench = flooded(200);
        bench.poll();
        bench.now = at(FRAME_NANOS + late);
        let other = direction(RATE, vec![limited(vlan(10), 1_000), vlan(20)]);
        bench.apply(&[other.clone(), other]);
        bench.poll();
        assert_eq!(lost(&bench).0, expected);
        let sent = bench.engine.counters(Way::Forward).sent_frames;
        let next = bench.engine.poll_at().unwrap().nanos();
        assert_eq!(next, sent * FRAME_NANOS + expected, "made up for the rest");
    }
}

#[test]
fn a_change_of_a_slice_neither_loses_link_time_nor_hides_it() {
    let mut bench = Bench::of(&EngineParams {
        directions: directions(vec![slice(10, 4_000)], [LINK; 2]),
        largest_frame: 1_522,
        receive_queues: [0; 2],
        memory_bytes: 8 << 20,
        adds_slices: true,
    });
    // 100 µs each.
    (0..60).for_each(|i| bench.arrive(tagged(20, FRAME_BYTES, i)));
    bench.poll();
    bench.now = at(3_100_000);
    let change = slices::both(&slices::change(10, 2_000));
    bench.engine.change_slice(change, bench.now).unwrap();
    bench.poll();
    assert_eq!(lost(&bench), (2_000_000, 1));
}

/// A policy in which each slice has a rate, bit/s, a burst, bytes, and a delay, ns; `None` if they are not admitted.
fn admitted(slices: &[(u64, u64, u64)], link: u64) -> Option<PolicyParams> {
    let classes = (1..).zip(slices).map(|(id, &(rate, burst, delay))| {
        let mut class = limited(vlan(id), 4_000);
        class.guarantee = Some(GuaranteeSpec {
            rate: RateSpec::Absolute(BitRate::new(rate)),
            burst: Some(BurstSpec::Size(ByteCount::new(burst))),
            delay: Some(Duration::from_nanos(delay)),
            smallest_frame: None,
        });
        class
    });
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes: classes.collect(),
        discipline: Discipline::Guaranteed,
        guaranteed: Some(GuaranteedSpec::default()),
        queues: Vec::new(),
    };
    spec.resolve(BitRate::new(link)).ok()
}

/// The slices with the largest burst of the last with which they are admitted, and their policy.
fn at_the_edge(slices: &[(u64, u64, u64)], link: u64) -> Option<PolicyParams> {
    let with = |burst: u64| {
        let mut slices = slices.to_vec();
        slices.last_mut()?.1 = burst;
        admitted(&slices, link)
    };
    let (mut fits, mut fails) = (slices.last()?.1, 1 << 24);
    let mut edge = with(fits)?;
    while fails - fits > 1 {
        let middle = fits.midpoint(fails);
        match with(middle) {
            Some(policy) => (fits, edge) = (middle, policy),
            None => fails = middle,
        }
    }
    Some(edge)
}

/// A frame on the wire in front of the gateway.
#[derive(Debug, Clone, Copy)]
struct Sending {
    /// When its last bit arrives, ns.
    at: u64,
    vlan: u16,
    bytes: usize,
}

/// When a source that sends as early as its token bucket allows, from `start` on, sends frames of these sizes.
fn greedy(id: u16, (rate, burst): (u64, u64), start: u64, sizes: &[usize]) -> Vec<Sending> {
    // In nanobits; the bucket is full at the start.
    let full = u128::from(burst) * 8_000_000_000;
    let (mut credit, mut now) = (full, start);
    let sizes = sizes.iter().map(|&bytes| {
        let cost = bytes as u128 * 8_000_000_000;
        let wait = cost.saturating_sub(credit).div_ceil(u128::from(rate));
        credit = credit + wait * u128::from(rate) - cost;
        now += u64::try_from(wait).unwrap();
        Sending {
            at: now,
            vlan: id,
            bytes,
        }
    });
    sizes.collect()
}

/// Delays of a frame.
#[derive(Debug, Clone, Copy)]
struct Delayed {
    sending: Sending,
    /// From its last bit in front of the gateway to its last bit on the link behind it, ns.
    delay: u64,
    /// Link time lost by then, ns.
    lost: u64,
}

/// Forwards what is sent, in order of time. The gateway is polled up to `late` nanoseconds after something happens: a frame has
/// arrived or is due.
fn forward(
    policy: PolicyParams,
    link: u64,
    mut sendings: Vec<Sending>,
    mut late: impl FnMut(&Engine, u64) -> u64,
) -> (Bench, Vec<Delayed>) {
    let mut bench = Bench::of(&EngineParams {
        directions: [
            DirectionParams {
                link: Rate::l2(BitRate::new(link)),
                policy: policy.into(),
                seed: 1,
            },
            direction(link, vec![]),
        ],
        largest_frame: 1_522,
        receive_queues: [0; 2],
        memory_bytes: 16 << 20,
        adds_slices: false,
    });
    sendings.sort_by_key(|sending| sending.at);
    let numbered = (0..).zip(&sendings);
    let mut coming: VecDeque<(u32, &Sending)> = numbered.collect();
    let mut delayed = Vec::new();
    loop {
        let arrives = coming.front().map(|(_, sending)| sending.at);
        let due = bench.engine.poll_at().map(Instant::nanos);
        let Some(next) = arrives.into_iter().chain(due).min() else {
            break;
        };
        let next = next.max(bench.now.nanos());
        bench.now = at(next + late(&bench.engine, next));
        while let Some((number, sending)) = coming.pop_front_if(|(_, s)| s.at <= bench.now.nanos())
        {
            bench.arrive(tagged(sending.vlan, sending.bytes, number));
        }
        bench.poll();
        let (lost, _) = lost(&bench);
        for frame in bench.ports[1].take_sent() {
            let sending = sendings[number(&frame) as usize];
            let transmission = (sending.bytes as u64 * 8_000_000_000).div_ceil(link);
            delayed.push(Delayed {
                sending,
                delay: bench.now.nanos() + transmission - sending.at,
                lost,
            });
        }
    }
    bench.assert_conserved();
    (bench, delayed)
}

/// For the slice with this VLAN: its guaranteed rate, burst and delay (D + δ, ns).
fn promised(policy: &PolicyParams, vlan: u16) -> Option<(u64, u64, u64)> {
    let class = policy.classes.get(usize::from(vlan).checked_sub(1)?)?;
    let guarantee = class.slice?.guarantee?;
    let delay = guarantee.delay.nanos();
    let rate = guarantee.rate.bits_per_second();
    Some((rate, guarantee.burst.bytes(), delay))
}

/// As many frames of 1000 bytes as a burst has, and then `more`.
fn burst_and(burst: u64, more: usize) -> Vec<usize> {
    vec![1_000; usize::try_from(burst / 1_000).unwrap() + more]
}

/// Rate at which a frame is short beside a millisecond.
const LINK_RATE: u64 = 200_000_000;

/// Three slices at the edge of admission that begin with their bursts at `start`, and their policy.
fn worst_start(start: u64) -> (PolicyParams, Vec<Sending>) {
    let slices = [
        (LINK_RATE / 8, 4_000, 4 * MILLISECOND),
        (LINK_RATE / 4, 20_000, 10 * MILLISECOND),
        (LINK_RATE / 2, 2_000, 10 * MILLISECOND),
    ];
    let policy = at_the_edge(&slices, LINK_RATE).unwrap();
    let sendings = (1..=3).flat_map(|id| {
        let (rate, burst, _) = promised(&policy, id).unwrap();
        greedy(id, (rate, burst), start, &burst_and(burst, 40))
    });
    let sendings = sendings.collect();
    (policy, sendings)
}

/// The largest delay of frames with a guarantee, in relation to `bound` of D + δ, ns, and of the time lost, ns; the bound holds.
fn largest_ratio(
    policy: &PolicyParams,
    delayed: &[Delayed],
    bound: impl Fn(u64, u64) -> u64,
) -> f64 {
    let ratios = delayed.iter().filter_map(|frame| {
        let (.., promised) = promised(policy, frame.sending.vlan)?;
        let bound = bound(promised, frame.lost);
        assert!(frame.delay <= bound, "{frame:?} exceeds {bound}");
        Some(frame.delay as f64 / bound as f64)
    });
    ratios.fold(0.0, f64::max)
}

/// The gateway is late for what happens at time 0, and again, by a millisecond, when the frame should leave that then waited longest.
/// The largest delay in relation to D + δ + `lateness`, ns, which no frame exceeds.
fn attack(policy: &PolicyParams, sendings: &[Sending], late_first: u64, lateness: u64) -> f64 {
    let run = |late_at: Option<u64>| {
        let late = |_: &Engine, due| match due {
            0 => late_first,
            due if Some(due) == late_at => MAX_CATCH_UP.nanos(),
            _ => 0,
        };
        let (bench, delayed) = forward(policy.clone(), LINK_RATE, sendings.to_vec(), late);
        assert_eq!(lost(&bench), (0, 0));
        delayed
    };
    let delayed = run(None);
    let guaranteed = delayed.iter().filter(|frame| frame.sending.vlan == 3);
    let longest = guaranteed.max_by_key(|frame| frame.delay).unwrap();
    let transmission = 8_000_000_000_000 / LINK_RATE;
    let due = longest.sending.at + longest.delay - transmission;
    largest_ratio(policy, &run(Some(due)), |promised, _| promised + lateness)
}

#[test]
fn the_bound_with_one_lateness_is_attained_where_frames_are_fetched_on_time() {
    // A largest frame without a guarantee has just begun.
    let (policy, mut sendings) = worst_start(1);
    sendings.push(Sending {
        at: 0,
        vlan: 9,
        bytes: 1_518,
    });
    let ratio = attack(&policy, &sendings, 0, MAX_CATCH_UP.nanos());
    assert!((0.98..=1.0).contains(&ratio), "{ratio}");
}

#[test]
fn the_bound_with_two_latenesses_is_attained_from_the_wire() {
    let late = MAX_CATCH_UP.nanos();
    let (policy, sendings) = worst_start(0);
    let ratio = attack(&policy, &sendings, late, 2 * late);
    assert!((0.98..=1.0).contains(&ratio), "{ratio}");
}

#[test]
fn under_long_stalls_delays_exceed_the_bound_by_no_more_than_the_link_time_lost() {
    let link = 20_000_000;
    let delay = 50 * MILLISECOND;
    let slices = [(link / 2, 20_000, delay), (link / 3, 20_000, delay)];
    let policy = at_the_edge(&slices, link).unwrap();
    let sendings = (1..=2).flat_map(|id| {
        let (rate, burst, _) = promised(&policy, id).unwrap();
        greedy(id, (rate, burst), 0, &burst_and(burst, 200))
    });
    // For 2 ms of every 4 ms the gateway does not run.
    let stall = 2 * MILLISECOND;
    let (bench, delayed) = forward(policy.clone(), link, sendings.collect(), |_, due| {
        (due % (2 * stall))
            .checked_sub(stall)
            .map_or(0, |since| stall - since)
    });
    let stated = |promised, _| promised + 2 * MAX_CATCH_UP.nanos();
    let exceeds = delayed.iter().any(|frame| {
        let (.., promised) = promised(&policy, frame.sending.vlan).unwrap();
        frame.delay > stated(promised, 0)
    });
    assert!(exceeds, "without what was lost, the bound does not hold");
    let ratio = largest_ratio(&policy, &delayed, |promised, lost| {
        promised + stall + MAX_CATCH_UP.nanos() + lost
    });
    assert!(ratio > 0.9, "{ratio}");
    assert!(lost(&bench).0 > 0);
}

#[derive(Debug, Clone)]
struct Case {
    link: u64,
    /// Rate in thousandths of the link, burst in bytes, delay in µs, and start in µs.
    slices: Vec<(u64, u64, u64, u64)>,
    /// Of frames, repeated.
    sizes: Vec<usize>,
    /// How late the gateway is, in thousandths of the most, repeated.
    late: Vec<u64>,
}

fn case() -> impl Strategy<Value = Case> {
    let slices = (20u64..300, 1_522u64..20_000, 3_000u64..12_000, 0u64..3_000);
    let late = prop_oneof![3 => Just(0u64), 1 => Just(1_000), 1 => 0u64..1_000];
    (
        (20_000_000u64..100_000_000),
        proptest::collection::vec(slices, 2..5),
        proptest::collection::vec(400usize..1_518, 1..20),
        proptest::collection::vec(late, 1..60),
    )
        .prop_map(|(link, slices, sizes, late)| Case {
            link,
            slices,
            sizes,
            late,
        })
}

/// No frame with a guarantee exceeds `bound` of D + δ, ns, and of the time lost, ns, while the gateway is up to `most` late.
fn holds(case: &Case, most: u64, bound: impl Fn(u64, u64) -> u64) -> u64 {
    let slices: Vec<(u64, u64, u64)> = (case.slices.iter())
        .map(|&(rate, burst, delay, _)| (case.link / 1_000 * rate, burst, delay * 1_000))
        .collect();
    let Some(policy) = at_the_edge(&slices, case.link) else {
        return 0;
    };
    let mut sendings = Vec::new();
    for (id, &(.., start)) in (1..).zip(&case.slices) {
        let (rate, burst, _) = promised(&policy, id).unwrap();
        let frames = usize::try_from(burst / 600).unwrap() + 30;
        let sizes: Vec<usize> = case.sizes.iter().copied().cycle().take(frames).collect();
        sendings.extend(greedy(id, (rate, burst), start * 1_000, &sizes));
    }
    // Without a guarantee.
    sendings.extend((0..20).map(|i| Sending {
        at: i * 700_000,
        vlan: 9,
        bytes: 1_518,
    }));
    let mut late = case.late.iter().cycle();
    let (bench, delayed) = forward(policy.clone(), case.link, sendings, |_, _| {
        late.next().map_or(0, |share| share * most / 1_000)
    });
    largest_ratio(&policy, &delayed, bound);
    lost(&bench).0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bounds_hold_whenever_the_gateway_is_up_to_a_millisecond_late(case in case()) {
        let late = MAX_CATCH_UP.nanos();
        let lost = holds(&case, late, |promised, _| promised + 2 * late);
        prop_assert_eq!(lost, 0);
    }

    #[test]
    fn bounds_grow_by_the_link_time_lost_whenever_it_is_later(case in case()) {
        let late = 3 * MILLISECOND;
        let catch_up = MAX_CATCH_UP.nanos();
        holds(&case, late, |promised, lost| promised + late + catch_up + lost);
    }
}
