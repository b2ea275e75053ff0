//! What slices have in common: the name of their policy, its link, the largest frame and the delay classes.

use super::churn::Conforming;
use super::gradual::{self, carry_out, kind, resolved_on, steps_to};
use super::reserved::{FRAME, burst, ms};
use super::*;
use proptest::prelude::*;
use slicewise_model::PolicyParams;
use std::collections::BTreeSet;

/// What the slices of a policy have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Common {
    name: &'static str,
    largest_frame: u64,
    /// µs.
    shortest: u64,
    /// ms.
    longest: u64,
}

const COMMON: Common = Common {
    name: "test",
    largest_frame: 1_522,
    shortest: 10,
    longest: 100,
};

fn with(classes: &[(RangeInclusive<u16>, Kind)], common: &Common) -> PolicySpec {
    let policy = spec(classes);
    PolicySpec {
        name: common.name.to_owned(),
        guaranteed: Some(GuaranteedSpec {
            largest_frame: Some(ByteCount::new(common.largest_frame)),
            shortest_delay: Duration::from_micros(common.shortest),
            longest_delay: ms(common.longest),
            ..policy.guaranteed.unwrap_or_default()
        }),
        ..policy
    }
}

fn resolved(classes: &[(RangeInclusive<u16>, Kind)], common: &Common) -> PolicyParams {
    with(classes, common).resolve(LINK).unwrap()
}

fn offer(port: &mut Port, vlan: u16, bytes: u32) -> Verdict {
    let at = port.now();
    port.offer(Arrival { at, vlan, bytes })
}

/// The steps to a policy, each as soon as it is accepted; returns the moments at which they are, in frames from the first.
fn change_to(port: &mut Port, policy: &PolicyParams) -> Vec<u64> {
    let begun = port.now();
    let steps = steps_to(port, policy).unwrap();
    let taken = steps.into_iter().map(|step| {
        while let Err(error) = carry_out(port, step.clone()) {
            assert!(error.is_temporary(), "{error}");
            let later = port.now() + FRAME / 4;
            assert!(later - begun < 1_000_000_000, "{error}");
            port.run_until(later);
        }
        (port.now() - begun).div_ceil(FRAME)
    });
    let taken = taken.collect();
    assert_eq!(steps_to(port, policy), Some(vec![]));
    taken
}

const LARGE: Common = Common {
    largest_frame: 9_000,
    ..COMMON
};

#[test]
fn a_policy_gets_another_name_while_frames_wait_under_guarantees() {
    let slices = [(1..=1, guaranteed(1_000, 15_000, ms(50)))];
    let mut port = Port::new(&with(&slices, &COMMON), Some(LINK));
    burst(&mut port, 1, 5);
    let other = Common {
        name: "other",
        ..COMMON
    };
    assert_eq!(change_to(&mut port, &resolved(&slices, &other)), [0]);
    // Nothing waits to be reserved since.
    let rest = guaranteed(8_900, 3_000, ms(50));
    apply(&mut port, add(&(2..=2), rest)).unwrap();
}

/// The burst of a slice holds the largest frame that is accepted.
#[test]
fn larger_frames_are_accepted_once_all_slices_have_room_for_them() {
    let of = |bytes| [(1..=1, guaranteed(1_000, bytes, ms(50)))];
    let mut port = Port::new(&with(&of(3_000), &COMMON), Some(LINK));
    burst(&mut port, 1, 2);
    let after = resolved(&of(12_000), &LARGE);
    let steps = steps_to(&port, &after).unwrap();
    assert!(
        matches!(
            &steps[..],
            [
                GradualStep::Common(_),
                GradualStep::Slice(_),
                GradualStep::Common(_)
            ]
        ),
        "{steps:?}"
    );
    // One frame waits under the guarantee.
    for step in &steps {
        while let Err(error) = carry_out(&mut port, step.clone()) {
            assert_eq!(error, SliceChangeError::LinkLowered);
            let later = port.now() + FRAME / 4;
            port.run_until(later);
        }
        let is_accepted = step == &steps[2];
        let verdict = offer(&mut port, 3, 9_000);
        assert_eq!(verdict == Verdict::Queued, is_accepted, "{step:?}");
    }
    assert_eq!(port.now(), FRAME + FRAME / 4);
}

/// The link is full: 47.5 kB of bursts and a frame of 1,522 bytes fit in 40 ms, and no larger frame.
#[test]
fn larger_frames_wait_for_what_is_still_reserved() {
    let of = |bytes| {
        [
            (1..=1, guaranteed(1_000, 9_000, ms(20))),
            (2..=2, guaranteed(1_000, bytes, ms(40))),
        ]
    };
    let mut port = Port::new(&with(&of(30_000), &COMMON), Some(LINK));
    burst(&mut port, 2, 10);
    let taken = change_to(&mut port, &resolved(&of(18_000), &LARGE));
    assert_eq!(taken, [0, 10, 10]);
}

/// Larger ones may wait in any queue. The last is on the wire when none waits any more: 7.2 ms are six frames of the usual size.
#[test]
fn smaller_frames_are_admitted_when_the_last_larger_one_has_left() {
    let of = |bytes| [(1..=1, guaranteed(1_000, bytes, ms(50)))];
    let mut port = Port::new(&with(&of(9_000), &LARGE), Some(LINK));
    for _ in 0..2 {
        assert_eq!(offer(&mut port, 3, 9_000), Verdict::Queued);
    }
    let after = resolved(&of(3_000), &COMMON);
    let steps = steps_to(&port, &after).unwrap();
    let refused = carry_out(&mut port, steps[0].clone()).unwrap_err();
    assert_eq!(refused, SliceChangeError::FramesWait { frames: 2 });
    assert_eq!(change_to(&mut port, &after), [7, 13, 13]);
    let refused = offer(&mut port, 3, 9_000);
    assert_eq!(refused, Verdict::Dropped(DropReason::FrameTooLong));
}

/// Deadlines keep their resolution, so each slice gets its delay by itself.
#[test]
fn longer_delays_come_and_go_with_the_slices_that_have_them() {
    let of = |delay| [(1..=1, guaranteed(1_000, 15_000, ms(delay)))];
    let longer = Common {
        longest: 120,
        ..COMMON
    };
    let mut port = Port::new(&with(&of(50), &COMMON), Some(LINK));
    burst(&mut port, 1, 5);
    let after = resolved(&of(118), &longer);
    assert_eq!(change_to(&mut port, &after), [0, 0]);
    burst(&mut port, 1, 5);
    let before = resolved(&of(50), &COMMON);
    assert_eq!(change_to(&mut port, &before), [0, 0]);
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 10);
}

/// With another resolution the bound of every slice is another.
#[test]
fn delays_of_another_resolution_are_committed_with_the_whole_policy() {
    let slices = [(1..=1, guaranteed(1_000, 15_000, ms(50)))];
    let longer = Common {
        longest: 200,
        ..COMMON
    };
    let mut port = Port::new(&with(&slices, &COMMON), Some(LINK));
    let after = resolved(&slices, &longer);
    assert_eq!(steps_to(&port, &after), None);
    let step = GradualStep::Common(Box::new(after));
    let refused = carry_out(&mut port, step);
    assert_eq!(refused, Err(SliceChangeError::OtherResolution));
    assert!(!SliceChangeError::OtherResolution.is_temporary());
}

#[test]
fn another_shortest_delay_changes_no_slice() {
    let slices = [
        (1..=1, guaranteed(1_000, 15_000, ms(50))),
        (2..=2, guaranteed(1_000, 3_000, ms(20))),
    ];
    let finer = Common {
        shortest: 9,
        ..COMMON
    };
    let mut port = Port::new(&with(&slices, &COMMON), Some(LINK));
    burst(&mut port, 1, 5);
    assert_eq!(change_to(&mut port, &resolved(&slices, &finer)), [0]);
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

/// Its deadline was promised on the faster link.
#[test]
fn a_link_becomes_slower_when_no_frame_waits_under_a_guarantee() {
    let kind = guaranteed(1_000, 6_000, Duration::from_millis(20));
    let mut port = Port::new(&spec(&[(1..=1, kind)]), Some(LINK));
    let slower = resolved_on(&[kind], rate("5 Mbit/s")).unwrap();
    let offer = |port: &mut Port, vlan| {
        let (at, bytes) = (port.now(), 1_500);
        let _ = port.offer(Arrival { at, vlan, bytes });
    };
    for vlan in [1, 1, 1, 3, 3, 3] {
        offer(&mut port, vlan);
    }
    let faster = resolved_on(&[kind], rate("20 Mbit/s")).unwrap();
    assert_eq!(gradual::change_to(&mut port, &faster), 0);
    // Three frames of 0.6 ms.
    assert_eq!(gradual::change_to(&mut port, &slower), 2);
    assert!(port.pipeline.backlog() > 0, "others still wait");
}

#[test]
fn a_slower_link_waits_for_frames_of_a_slice_that_was_removed() {
    let half = guaranteed(6_000, 3_000, Duration::from_millis(20));
    let mut port = Port::new(&spec(&[(1..=1, half)]), Some(LINK));
    for _ in 0..8 {
        let arrival = Arrival {
            at: 0,
            vlan: 1,
            bytes: 1_000,
        };
        assert_eq!(port.offer(arrival), Verdict::Queued);
    }
    apply(&mut port, remove(&(1..=1))).unwrap();
    let slower = resolved_on(&[], rate("5 Mbit/s")).unwrap();
    let mut refused = BTreeSet::new();
    while let Err(error) = carry_out(&mut port, GradualStep::Common(Box::new(slower.clone()))) {
        assert!(error.is_temporary(), "{error}");
        refused.insert(error.to_string());
        let later = port.now() + 100_000;
        port.run_until(later);
    }
    let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
    let expected = [
        "another link with a lower rate or a smaller buffer, or that differs otherwise: frames wait that have to leave in time on this one, or a larger one may still be on it: repeat it later",
        "another link: guarantees 6 Mbit/s (L2), but only 5 Mbit/s (L2) of the link is free; what was in force before counts until no frame waits that is to leave under a guarantee: repeat it later",
    ];
    assert_eq!(refused, expected);
    assert_eq!(port.departures.len(), 8);
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
    let name = prop_oneof![Just("test"), Just("other")];
    let largest_frame = prop_oneof![2 => Just(1_522), 1 => 1_522u64..6_000];
    let shortest = prop_oneof![2 => Just(10), 1 => 5u64..5_000];
    // Deadlines have one resolution with all of them.
    let longest = prop_oneof![2 => Just(100), 1 => 90u64..130];
    let common = (name, largest_frame, shortest, longest);
    common.prop_map(|(name, largest_frame, shortest, longest)| Common {
        name,
        largest_frame,
        shortest,
        longest,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    /// A slice that both policies have keeps its bound, whatever others have and send, and frames up to the largest leave.
    #[test]
    fn a_guarantee_holds_while_what_slices_have_in_common_changes(
        own in (500u32..3_000, 4u32..20, 5u64..90),
        kinds in prop::collection::vec((kind(), kind()), 1..4),
        commons in [common(), common()],
        sent in prop::collection::vec((1u16..8, 60u32..6_000, 0u64..3), 1..200),
    ) {
        let (cir, frames, delay) = own;
        let own = guaranteed(cir, frames * 1_500 + 22, ms(delay));
        let (old, new): (Vec<_>, Vec<_>) = kinds.into_iter().unzip();
        let spec = |kinds: &[Kind], common| {
            let others = (2..).zip(kinds).map(|(vlan, kind)| (vlan..=vlan, Kind { by_flow: false, ..*kind }));
            let slices: Vec<_> = [(1..=1, own)].into_iter().chain(others).collect();
            with(&slices, common)
        };
        let specs = [spec(&old, &commons[0]), spec(&new, &commons[1])];
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
        let largest = u32::try_from(commons[1].largest_frame).unwrap();
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
