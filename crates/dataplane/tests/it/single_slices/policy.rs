//! Bounds while slices change to those of another policy, whatever they have in common.

use super::churn::Conforming;
use super::diff::{carry_out, kind, steps_to};
use super::reserved::{FRAME, burst, ms};
use super::*;
use proptest::prelude::*;

/// What the slices of a policy have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Common {
    largest_frame: u64,
    /// µs.
    shortest: u64,
    /// ms.
    longest: u64,
}

const COMMON: Common = Common {
    largest_frame: 1_522,
    shortest: 10,
    longest: 100,
};

fn with(classes: &[(RangeInclusive<u16>, Kind)], common: &Common) -> PolicySpec {
    let policy = spec(classes);
    PolicySpec {
        guaranteed: Some(GuaranteedSpec {
            largest_frame: Some(ByteCount::new(common.largest_frame)),
            shortest_delay: Duration::from_micros(common.shortest),
            longest_delay: ms(common.longest),
            ..policy.guaranteed.unwrap_or_default()
        }),
        ..policy
    }
}

fn offer(port: &mut Port, vlan: u16, bytes: u32) -> Verdict {
    let at = port.now();
    port.offer(arrival(at, vlan, bytes))
}

/// More than a policy can have: numbers of delays have eight bits.
#[test]
fn slices_have_at_most_256_distinct_delays() {
    let of = |index: u64| guaranteed(1, 3_000, Duration::from_micros(60_000 + 100 * index));
    let mut port = Port::new(&spec(&[]), Some(BitRate::new(100_000_000_000)));
    for vlan in 0..256u16 {
        apply(&mut port, add(&(vlan..=vlan), of(vlan.into()))).unwrap();
    }
    let refused = apply(&mut port, add(&(256..=256), of(256))).unwrap_err();
    assert!(
        refused.to_string().contains("256 distinct delays"),
        "{refused}"
    );
    apply(&mut port, add(&(256..=256), of(7))).unwrap();
    for vlan in [7, 256] {
        apply(&mut port, remove(&(vlan..=vlan))).unwrap();
    }
    apply(&mut port, add(&(7..=7), of(256))).unwrap();
}

/// With the buckets that there were, both deadlines would be beyond the last.
#[test]
fn deadlines_have_the_resolution_of_the_longest_delay() {
    let of = |delays: [u64; 2]| {
        let slices = (1..).zip(delays);
        let slice = |(vlan, delay)| (vlan..=vlan, guaranteed(1_000, 15_000, ms(delay)));
        slices.map(slice).collect::<Vec<_>>()
    };
    let longer = Common {
        longest: 600,
        ..COMMON
    };
    let mut port = Port::new(&with(&of([590, 300]), &longer), Some(LINK));
    burst(&mut port, 1, 10);
    burst(&mut port, 2, 10);
    port.run_until(u64::MAX / 2);
    let order: Vec<u16> = port.departures.iter().map(|left| left.vlan).collect();
    assert_eq!(order, [[2; 10], [1; 10]].concat());
}

fn common() -> impl Strategy<Value = Common> {
    let largest_frame = prop_oneof![2 => Just(1_522), 1 => 1_522u64..6_000];
    let shortest = prop_oneof![2 => Just(10), 1 => 5u64..5_000];
    let common = (largest_frame, shortest, 90u64..600);
    common.prop_map(|(largest_frame, shortest, longest)| Common {
        largest_frame,
        shortest,
        longest,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    /// A slice that both policies have keeps its bound, whatever others have and send, and frames up to the largest leave.
    #[test]
    fn a_guarantee_holds_while_slices_change_to_those_of_another_policy(
        own in (500u32..3_000, 4u32..20, 5u64..90),
        kinds in prop::collection::vec((kind(), kind()), 1..4),
        common in common(),
        sent in prop::collection::vec((1u16..8, 60u32..6_000, 0u64..3), 1..200),
    ) {
        let (cir, frames, delay) = own;
        let own = guaranteed(cir, frames * 1_500 + 22, ms(delay));
        let (old, new): (Vec<_>, Vec<_>) = kinds.into_iter().unzip();
        let spec = |kinds: &[Kind]| {
            let others = (2..).zip(kinds).map(|(vlan, kind)| (vlan..=vlan, Kind { by_flow: false, ..*kind }));
            let slices: Vec<_> = [(1..=1, own)].into_iter().chain(others).collect();
            with(&slices, &common)
        };
        let specs = [spec(&old), spec(&new)];
        let [Ok(before), Ok(after)] = specs.each_ref().map(|spec| spec.resolve(LINK)) else {
            return Ok(());
        };
        let bounds = [&before, &after].map(|policy| {
            policy.classes[0].slice.unwrap().guarantee.unwrap().delay
        });
        let bound = bounds.into_iter().max().unwrap().nanos();
        let mut port = Port::new(&specs[0], Some(LINK));
        let mut conforming = Conforming::new(own, Conforming::most(own), 0);
        let mut due = Vec::new();
        let mut steps = None;
        let mut sent = sent.into_iter().enumerate();
        loop {
            for _ in 0..conforming.take(port.now()) {
                due.push(port.now() + bound);
                prop_assert_eq!(offer(&mut port, 1, 1_500), Verdict::Queued);
            }
            let next = sent.next();
            if let Some((_, (vlan, bytes, _))) = next {
                let _ = offer(&mut port, vlan.max(2), bytes);
            }
            if next.is_none_or(|(number, _)| number > 20) {
                let Some(found) = &mut steps else {
                    steps = steps_to(&port, &after).map(Vec::into_iter);
                    prop_assert!(steps.is_some());
                    continue;
                };
                while let Some(step) = found.as_slice().first() {
                    match carry_out(&mut port, step.clone()) {
                        Ok(()) => found.next(),
                        Err(error) => {
                            prop_assert!(error.is_temporary(), "{}", error);
                            break;
                        }
                    };
                }
                if found.len() == 0 && next.is_none() {
                    break;
                }
            }
            let gap = next.map_or(1, |(_, (_, _, gap))| gap);
            let later = port.now() + gap * 1_000_000;
            prop_assert!(later < 10_000_000_000);
            port.run_until(later);
        }
        prop_assert_eq!(steps_to(&port, &after), Some(vec![]));
        port.run_until(u64::MAX / 2);
        let largest = u32::try_from(common.largest_frame).unwrap();
        let verdicts = [largest, largest + 1].map(|bytes| offer(&mut port, 9, bytes));
        prop_assert_eq!(verdicts, [Verdict::Queued, Verdict::Dropped(DropReason::FrameTooLong)]);
        let left = port.departures.iter().filter(|left| left.vlan == 1);
        for (left, due) in left.zip(due) {
            // On the wire.
            let left = left.at + FRAME;
            prop_assert!(left <= due, "at {}, due {}", left, due);
        }
    }
}
