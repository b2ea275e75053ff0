//! Marks and policers of slices that change while frames flow.

use super::diff::{slots, steps};
use super::*;
use proptest::prelude::*;
use slicewise_dataplane::meter::policer::{PolicerState, PolicerVerdict};
use std::collections::BTreeMap;

fn marked(dscp: u8) -> Kind {
    Kind {
        set_dscp: Some(dscp),
        ..BEST_EFFORT
    }
}

fn policed(kbit: u32) -> Kind {
    Kind {
        police: Some(kbit),
        ..BEST_EFFORT
    }
}

fn condition(vlan: u16, kind: Kind) -> SliceChange {
    SliceChange::Conditioning {
        name: name(&(vlan..=vlan)),
        conditioning: Box::new(conditioning(kind)),
    }
}

fn offer(port: &mut Port, vlan: u16) -> Verdict {
    port.offer(arrival(port.now(), vlan, 1_000))
}

#[test]
fn another_mark_is_for_frames_that_arrive_from_then_on() {
    let mut port = Port::new(&spec(&[(1..=1, BEST_EFFORT)]), None);
    for kind in [marked(46), policed(1_000), BEST_EFFORT] {
        assert_eq!(offer(&mut port, 1), Verdict::Queued);
        apply(&mut port, condition(1, kind)).unwrap();
        assert_eq!(offer(&mut port, 1), Verdict::Queued);
    }
    let left = std::iter::from_fn(|| port.pipeline.poll_egress(Instant::ZERO));
    let marks: Vec<u8> = left.map(|frame| frame.traffic_class.dscp()).collect();
    assert_eq!(marks, [0, 46, 46, 0, 0, 0]);
    assert_eq!(port.pipeline.version(), 3);
    let unknown = apply(&mut port, condition(2, marked(46))).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no slice `vlan2-2`");
}

#[test]
fn another_policer_gives_no_fresh_burst() {
    let mut port = Port::new(&spec(&[(1..=1, policed(1_000))]), None);
    let passed = |port: &mut Port| {
        let verdicts = std::iter::repeat_with(|| offer(port, 1)).take(100);
        let passed = verdicts
            .filter(|verdict| *verdict == Verdict::Queued)
            .count();
        port.run_until(port.now() + 1);
        passed
    };
    let burst = passed(&mut port);
    assert!((1..40).contains(&burst), "{burst}");
    apply(&mut port, condition(1, policed(2_000))).unwrap();
    assert_eq!(passed(&mut port), 0);
    // One that comes anew has its burst.
    apply(&mut port, condition(1, BEST_EFFORT)).unwrap();
    apply(&mut port, condition(1, policed(1_000))).unwrap();
    assert_eq!(passed(&mut port), burst);
}

#[test]
fn a_policy_with_other_marks_and_policers_is_changed_slice_by_slice() {
    let of = |vlan, kind| Some((vlan..=vlan, kind));
    let before = slots(&[of(1, BEST_EFFORT), of(2, marked(10))], false);
    let after = slots(
        &[
            of(1, policed(1_000)),
            of(2, policed(500)),
            of(3, policed(2_000)),
        ],
        false,
    );
    let port = Port::new(&before, Some(LINK));
    let steps = steps(&port, &after).unwrap();
    let [
        Step::Slice(SliceChange::Conditioning {
            name: first,
            conditioning: to,
        }),
        Step::Slice(SliceChange::Conditioning { name: second, .. }),
        Step::Slice(SliceChange::Add(third)),
    ] = steps.as_slice()
    else {
        panic!("{steps:?}")
    };
    assert_eq!([first.as_str(), second, &third.name], ["s0", "s1", "s2"]);
    assert_eq!(**to, conditioning(policed(1_000)));
    assert_eq!(third.conditioning, conditioning(policed(2_000)));
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Add(u16, Option<u32>),
    Condition(u16, Option<u32>),
    Remove(u16),
    Commit,
    Offer(u16, u8, u64),
}

fn event() -> impl Strategy<Value = Event> {
    let police = || prop::option::weighted(0.7, 100u32..4_000);
    prop_oneof![
        2 => (1u16..5, police()).prop_map(|(vlan, police)| Event::Add(vlan, police)),
        2 => (1u16..5, police()).prop_map(|(vlan, police)| Event::Condition(vlan, police)),
        1 => (1u16..5).prop_map(Event::Remove),
        1 => Just(Event::Commit),
        4 => (1u16..5, 1u8..60, 0u64..20_000_000).prop_map(|(v, n, gap)| Event::Offer(v, n, gap)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever other slices come, change and go, a slice is policed as if its policer were the only one.
    #[test]
    fn each_slice_has_a_policer_of_its_own(events in prop::collection::vec(event(), 1..60)) {
        let mut port = Port::new(&spec(&[]), None);
        let mut model: BTreeMap<u16, Option<PolicerState>> = BTreeMap::new();
        let policer = |kind: Kind, now| {
            let police = conditioning(kind).police;
            police.map(|police| PolicerState::new(&police, now))
        };
        for event in events {
            let now = Instant::from_nanos(port.now());
            let of = |police: Option<u32>| Kind { police, ..BEST_EFFORT };
            match event {
                Event::Add(vlan, police) => {
                    let added = apply(&mut port, add(&(vlan..=vlan), of(police)));
                    prop_assert_eq!(added.is_ok(), !model.contains_key(&vlan));
                    model.entry(vlan).or_insert_with(|| policer(of(police), now));
                }
                Event::Condition(vlan, police) => {
                    let changed = apply(&mut port, condition(vlan, of(police)));
                    prop_assert_eq!(changed.is_ok(), model.contains_key(&vlan));
                    if let Some(known) = model.get_mut(&vlan) {
                        let mut new = policer(of(police), now);
                        if let (Some(new), Some(old)) = (&mut new, known.as_ref()) {
                            new.resume_from(old, now);
                        }
                        *known = new;
                    }
                }
                Event::Remove(vlan) => {
                    let removed = apply(&mut port, remove(&(vlan..=vlan)));
                    prop_assert_eq!(removed.is_ok(), model.remove(&vlan).is_some());
                }
                Event::Commit => {
                    let none = Change::PolicyBesideSlices(spec(&[]).resolve(LINK).unwrap());
                    drop(port.pipeline.apply(none, now).unwrap());
                }
                Event::Offer(vlan, frames, gap) => {
                    port.run_until(port.now() + gap);
                    let now = Instant::from_nanos(port.now());
                    for sequence in 0..frames {
                        let state = model.get_mut(&vlan).and_then(Option::as_mut);
                        let mut frame = frame(sequence.into(), vlan, 1_000);
                        let is_dropped = state.is_some_and(|state| {
                            state.on_frame(&mut frame, now) == PolicerVerdict::Drop
                        });
                        let verdict = offer(&mut port, vlan);
                        let policed = verdict == Verdict::Dropped(DropReason::Policed);
                        prop_assert_eq!(policed, is_dropped, "{:?}", verdict);
                    }
                    // Every frame has left.
                    port.run_until(port.now() + 1);
                }
            }
        }
    }
}
