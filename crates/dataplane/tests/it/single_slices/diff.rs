//! Whole policies as changes of single slices.

use super::random;
use super::*;
use proptest::prelude::*;
use slicewise_dataplane::{Pipeline, PipelineParams};
use slicewise_model::{PolicyParams, Rate, ShaperParams};

pub(super) fn resolved(kinds: &[Kind]) -> Option<PolicyParams> {
    let classes: Vec<_> = (1..)
        .zip(kinds)
        .map(|(vlan, kind)| (vlan..=vlan, *kind))
        .collect();
    spec(&classes).resolve(LINK).ok()
}

pub(super) fn carry_out(port: &mut Port, step: Step) -> Result<(), SliceChangeError> {
    let now = Instant::from_nanos(port.now());
    match step {
        Step::Tenant(tenant) => port.pipeline.tenant(&tenant, now).map(drop),
        Step::Slice(change) => apply(port, change).map(drop),
    }
}

pub(super) fn steps_to(port: &Port, policy: &PolicyParams) -> Option<Vec<Step>> {
    port.pipeline.basis().diff(policy)
}

/// The changes that lead to `policy` are carried out, each as soon as it is accepted, while a frame arrives every millisecond; where
/// there are none, it is committed. Returns how long that takes, in ms.
pub(super) fn change_to(port: &mut Port, policy: &PolicyParams) -> u64 {
    let Some(steps) = steps_to(port, policy) else {
        commit(port, policy);
        return 0;
    };
    let begun = port.now();
    for step in steps {
        while let Err(error) = carry_out(port, step.clone()) {
            let waited = port.now() - begun;
            assert!(error.is_temporary() && waited < 1_000_000_000, "{error}");
            let at = port.now() + 1_000_000;
            port.run_until(at);
            let vlan = u16::try_from(at / 1_000_000 % 5).unwrap();
            let _ = port.offer(arrival(at, vlan, 1_000));
        }
    }
    (port.now() - begun) / 1_000_000
}

fn commit(port: &mut Port, policy: &PolicyParams) {
    let now = Instant::from_nanos(port.now());
    let change = Change::PolicyBesideSlices(policy.clone());
    drop(port.pipeline.apply(change, now).unwrap());
}

/// Frames wait that are to leave under a guarantee of VLAN 2 for 2.4 ms.
fn promise(port: &mut Port) {
    for _ in 0..3 {
        let arrival = arrival(port.now(), 2, 1_000);
        assert_eq!(port.offer(arrival), Verdict::Queued);
    }
}

/// Within which time, ms, they leave, and frames that come meanwhile.
const PROMISED: RangeInclusive<u64> = 2..=5;

#[test]
fn two_slices_exchange_what_neither_could_have_beside_the_other() {
    let of = |cir, ms| guaranteed(cir, 3_000, Duration::from_millis(ms));
    let before = [of(6_000, 20), of(3_000, 30)];
    let after = [of(3_000, 20), of(6_000, 30)];
    let policy = resolved(&after).unwrap();
    let mut port = Port::new(&spec(&[(1..=1, before[0]), (2..=2, before[1])]), Some(LINK));
    promise(&mut port);
    let basis = port.pipeline.basis();
    let changes = steps_to(&port, &policy).unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let waited = change_to(&mut port, &policy);
    assert!(PROMISED.contains(&waited), "{waited}");
    assert_eq!(port.pipeline.version(), basis.version() + 2);
    assert_eq!(port.pipeline.basis().version(), basis.version() + 2);
    // A longer delay for a higher rate: it has the lower rate with the longer delay before.
    let mixed = resolved(&[of(4_000, 80), of(6_000, 30)]).unwrap();
    let changes = steps_to(&port, &mixed).unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    change_to(&mut port, &mixed);
}

#[test]
fn what_slices_have_in_common_or_what_looks_at_frames_needs_a_commit() {
    let kind = guaranteed(1_000, 3_000, Duration::from_millis(20));
    let own = || spec(&[(1..=1, kind), (2..=2, kind)]).resolve(LINK).unwrap();
    let port = Port::new(&spec(&[(1..=1, kind), (2..=2, kind)]), Some(LINK));
    assert_eq!(steps_to(&port, &own()), Some(vec![]));
    let other = policy(vec![vlan_class(1), vlan_class(2)]);
    assert_eq!(steps_to(&port, &other.resolve(LINK).unwrap()), None);
    let other_link = spec(&[(1..=1, kind), (2..=2, kind)]);
    let other_link = other_link.resolve(rate("20 Mbit/s")).unwrap();
    assert_eq!(steps_to(&port, &other_link), None);
    type Named = (&'static str, fn(&mut PolicyParams));
    let changes: [Named; 6] = [
        ("name", |policy| policy.name = "other".to_owned()),
        ("counting", |policy| {
            policy.links[0].link.accounting = Accounting::L1;
        }),
        ("buffer", |policy| {
            policy.links[0].buffer = Some(ByteCount::new(1_000_000));
        }),
        ("largest frame", |policy| {
            policy.guaranteed.as_mut().unwrap().largest_frame = ByteCount::new(1_000);
        }),
        ("links", |policy| policy.links.clear()),
        ("shaper", |policy| {
            policy.classes[1].shape = Some(ShaperParams {
                rate: Rate::l2(LINK),
                burst: ByteCount::new(3_000),
                priority_borrows: false,
            });
        }),
    ];
    for (what, change) in changes {
        let mut policy = own();
        change(&mut policy);
        assert_eq!(steps_to(&port, &policy), None, "{what}");
    }
    let by_flow = Kind {
        by_flow: true,
        ..kind
    };
    let by_flow = resolved(&[by_flow, kind]).unwrap();
    assert_eq!(steps_to(&port, &by_flow), None, "flow queue");
}

#[test]
fn a_policy_without_slices_is_as_it_is_or_needs_a_commit() {
    let own = policy(vec![vlan_class(1)]);
    let port = Port::new(&own, Some(LINK));
    let changes = |spec: &PolicySpec| steps_to(&port, &spec.resolve(LINK).unwrap());
    assert_eq!(changes(&own), Some(vec![]));
    assert_eq!(changes(&policy(vec![vlan_class(2)])), None);
}

#[test]
fn slices_that_were_added_one_by_one_stay_as_they_are() {
    let kind = guaranteed(1_000, 3_000, Duration::from_millis(20));
    let mut port = Port::new(&spec(&[(1..=1, kind)]), Some(LINK));
    apply(&mut port, add(&(7..=7), kind)).unwrap();
    let more = guaranteed(3_000, 3_000, Duration::from_millis(20));
    let policy = resolved(&[more]).unwrap();
    let changes = steps_to(&port, &policy).unwrap();
    assert_eq!(changes, [Step::Slice(change(&(1..=1), more))]);
    // Beside the added slice it does not fit.
    let too_much = guaranteed(9_500, 3_000, Duration::from_millis(20));
    let policy = resolved(&[too_much]).unwrap();
    assert_eq!(steps_to(&port, &policy), None);
}

/// A policy of slices `s0`, `s1` and so on, of the VLANs that are given.
pub(super) fn slots(
    slots: &[Option<(RangeInclusive<u16>, Kind)>],
    is_reversed: bool,
) -> PolicySpec {
    let named = (0..).zip(slots).filter_map(|(number, slot)| {
        let (vlans, kind) = slot.as_ref()?;
        let mut class = class(vlans, *kind);
        class.name = format!("s{number}");
        class.matches.as_mut().unwrap().name.clone_from(&class.name);
        Some(class)
    });
    let mut classes: Vec<_> = named.collect();
    if is_reversed {
        classes.reverse();
    }
    guaranteed_policy(classes)
}

pub(super) fn steps(port: &Port, spec: &PolicySpec) -> Option<Vec<Step>> {
    let policy = spec.resolve(LINK).unwrap();
    steps_to(port, &policy)
}

/// How many of the frames of a VLAN that arrive at once get through, and the marks that they leave with.
fn conditioned(pipeline: &mut Pipeline, vlan: u16, now: Instant) -> (usize, Vec<u8>) {
    let frames = (0..30).map(|sequence| frame(sequence, vlan, 1_000));
    let queued = frames.filter(|frame| {
        let verdict = pipeline.on_frame(*frame, &headers(vlan), now);
        verdict == Verdict::Queued
    });
    let queued = queued.count();
    let mut marks: Vec<u8> = Vec::new();
    let mut at = now;
    while pipeline.backlog() > 0 {
        at = pipeline.poll_at().map_or(at, |next| next.max(at));
        marks.extend(
            pipeline
                .poll_egress(at)
                .map(|frame| frame.traffic_class.dscp()),
        );
    }
    marks.dedup();
    (queued, marks)
}

/// The name of the class that frames of a VLAN are of.
fn class_name(pipeline: &Pipeline, vlan: u16) -> String {
    let class = pipeline.classifier().classify(&headers(vlan));
    let class = pipeline.counters().nth(class as usize);
    class.unwrap().class.clone()
}

#[test]
fn slices_come_and_go_unless_class_maps_that_meet_others_change() {
    let kind = guaranteed(1_000, 3_000, Duration::from_millis(20));
    let of = |vlans: &RangeInclusive<u16>| Some((vlans.clone(), kind));
    let before = [of(&(1..=2)), of(&(3..=3))];
    let port = Port::new(&slots(&before, false), Some(LINK));
    let counts = |slices: &[Option<(RangeInclusive<u16>, Kind)>], is_reversed| {
        let steps = steps(&port, &slots(slices, is_reversed))?;
        let count = |wanted: fn(&SliceChange) -> bool| {
            let is_wanted = |step: &&Step| matches!(step, Step::Slice(change) if wanted(change));
            steps.iter().filter(is_wanted).count()
        };
        Some([
            count(|change| matches!(change, SliceChange::Add(_))),
            count(|change| matches!(change, SliceChange::Matches { .. })),
            count(|change| matches!(change, SliceChange::Remove { .. })),
            steps.len(),
        ])
    };
    let [first, second] = before.clone();
    let (first, second) = (|| first.clone(), || second.clone());
    assert_eq!(counts(&[first(), second()], true), Some([0; 4]), "order");
    assert_eq!(counts(&[first()], false), Some([0, 0, 1, 1]));
    let third = |vlans| vec![first(), second(), of(&vlans)];
    for is_reversed in [false, true] {
        assert_eq!(counts(&third(4..=5), is_reversed), Some([1, 0, 0, 1]));
    }
    let ahead = counts(&third(3..=4), true);
    assert_eq!(ahead, None, "it takes a frame of `s1`");
    let behind = counts(&third(3..=4), false);
    assert_eq!(behind, Some([1, 0, 0, 1]), "`s1` keeps it");
    let other = counts(&[None, second(), of(&(4..=4))], true);
    assert_eq!(other, Some([1, 0, 1, 2]));
    let half = counts(&[None, second(), of(&(2..=2))], false);
    assert_eq!(half, None, "half of `s0` is taken over by another");
    let less = counts(&[of(&(2..=2)), second()], false);
    assert_eq!(less, Some([0, 1, 0, 1]));
    assert_eq!(counts(&[second(), first()], false), None);
    assert_eq!(counts(&[first(), second(), of(&(1..=900))], false), None);
    // Of class maps that meet, the order counts.
    let port = Port::new(&slots(&third(2..=4), false), Some(LINK));
    assert_eq!(steps(&port, &slots(&third(2..=4), true)), None);
    let fourth = [third(2..=4), vec![of(&(7..=7))]].concat();
    let added = steps(&port, &slots(&fourth, false)).unwrap();
    assert!(matches!(&added[..], [Step::Slice(SliceChange::Add(_))]));
}

#[test]
fn a_shaper_of_the_port_leaves_it_as_it_is_which_slices_were_added() {
    let kind = guaranteed(1_000, 3_000, Duration::from_millis(20));
    let mut port = Port::new(&spec(&[(1..=1, kind)]), Some(LINK));
    apply(&mut port, add(&(7..=7), kind)).unwrap();
    let two = resolved(&[kind, kind]).unwrap();
    change_to(&mut port, &two);
    assert_eq!(steps_to(&port, &two), Some(vec![]));
    let now = Instant::from_nanos(port.now());
    drop(port.pipeline.apply(Change::PortShaper(None), now).unwrap());
    assert_eq!(steps_to(&port, &two), Some(vec![]));
}

#[test]
fn what_a_removed_slice_reserves_until_its_frames_leave_is_waited_for() {
    let most = guaranteed(9_000, 6_000, Duration::from_millis(20));
    let mut port = Port::new(&spec(&[]), Some(LINK));
    let offer = |port: &mut Port, vlan| {
        let _ = port.offer(arrival(port.now(), vlan, 1_000));
    };
    let one = slots(&[Some((1..=1, most))], false).resolve(LINK);
    change_to(&mut port, &one.unwrap());
    (0..3).for_each(|_| offer(&mut port, 1));
    let other = slots(&[None, Some((2..=2, most))], false).resolve(LINK);
    let other = other.unwrap();
    let steps = steps_to(&port, &other).unwrap();
    carry_out(&mut port, steps[0].clone()).unwrap();
    let refused = carry_out(&mut port, steps[1].clone()).unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    change_to(&mut port, &other);
}

#[test]
fn a_commit_of_slices_in_another_order_leaves_class_default_where_it_is() {
    let kind = guaranteed(1_000, 3_000, Duration::from_millis(20));
    let mut port = Port::new(&spec(&[(1..=1, kind)]), Some(LINK));
    apply(&mut port, add(&(7..=7), kind)).unwrap();
    let two = resolved(&[kind, kind]).unwrap();
    change_to(&mut port, &two);
    for vlan in [3, 3, 3, 3, 1, 2, 7] {
        let _ = port.offer(arrival(port.now(), vlan, 1_000));
    }
    commit(&mut port, &two);
    port.run_until(u64::MAX / 2);
    let order: Vec<u16> = port.departures.iter().map(|left| left.vlan).collect();
    assert_eq!(order[3..], [3; 4], "{order:?}");
}

/// Also with a mark or a policer, or of another tenant.
pub(super) fn kind() -> impl Strategy<Value = Kind> {
    let police = prop::option::weighted(0.3, 500u32..8_000);
    let set_dscp = prop::option::weighted(0.3, 0u8..64);
    let more = (police, set_dscp, prop::bool::weighted(0.3));
    (random::kind(), more).prop_map(|(kind, (police, set_dscp, is_of_other))| Kind {
        police,
        set_dscp,
        is_of_other,
        ..kind
    })
}

pub(super) fn slot() -> impl Strategy<Value = Option<(RangeInclusive<u16>, Kind)>> {
    let vlans = (1u16..9, 0u16..2).prop_map(|(first, more)| first..=first + more);
    prop::option::weighted(0.8, (vlans, kind()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    /// In order, each step is accepted once what it waits for has passed; then every frame is of the class that the policy says, and
    /// none was lost or reordered.
    #[test]
    fn policies_whose_slices_come_and_go_are_exchanged_while_frames_wait(
        slices in prop::collection::vec((slot(), slot(), 0u8..4), 1..5),
        is_reversed in any::<[bool; 2]>(),
        frames in prop::collection::vec((0u16..11, 60u32..1522), 0..60),
        later in prop::collection::vec((0u16..11, 60u32..1522, 0u64..2_000_000), 0..60),
    ) {
        let old: Vec<_> = slices.iter().map(|(old, _, _)| old.clone()).collect();
        // Some slices stay as they are, some have other parameters, and some another class map or nothing in common.
        let new = slices.iter().map(|(old, new, alike)| match (old, new, alike) {
            (Some((vlans, _)), Some((_, other)), 0) => {
                Some((vlans.clone(), *other))
            }
            (Some(_), _, 1) => old.clone(),
            (_, _, 3) => None,
            _ => new.clone(),
        });
        let new: Vec<_> = new.collect();
        let specs = [slots(&old, is_reversed[0]), slots(&new, is_reversed[1])];
        let [Ok(before), Ok(after)] = specs.each_ref().map(|spec| spec.resolve(LINK)) else {
            return Ok(());
        };
        let mut port = Port::new(&specs[0], Some(LINK));
        for (vlan, bytes) in frames {
            let _ = port.offer(arrival(0, vlan, bytes));
        }
        let waited = change_to(&mut port, &after);
        prop_assert!(waited <= 400, "{waited}");
        prop_assert_eq!(steps_to(&port, &after), Some(vec![]));
        for (vlan, bytes, gap) in later {
            let at = port.now() + gap;
            let _ = port.offer(arrival(at, vlan, bytes));
        }
        port.run_until(u64::MAX / 2);
        prop_assert_eq!(port.offered(), port.departures.len() as u64 + port.dropped);
        assert_in_order(&port.departures);
        // What is on its way notices with the next look that nothing is before it.
        let now = Instant::from_nanos(port.now());
        let removed = std::iter::from_fn(|| port.pipeline.poll_removed(now));
        prop_assert!(removed.take(100).count() <= old.len());
        prop_assert!(!port.pipeline.is_removing());
        let mut fresh = PipelineParams { policy: after.clone(), port_shaper: None, seed: 1 };
        let mut other = Pipeline::new(&fresh, Instant::ZERO).unwrap();
        for vlan in 0..11u16 {
            prop_assert_eq!(class_name(&port.pipeline, vlan), class_name(&other, vlan));
            // Each with full buckets.
            let later = now.saturating_add(Duration::from_secs(u64::from(vlan) * 100 + 100));
            let fates = [&mut port.pipeline, &mut other].map(|one| conditioned(one, vlan, later));
            prop_assert_eq!(&fates[0], &fates[1], "{}", vlan);
        }
        let now = now.saturating_add(Duration::from_secs(10_000));
        // As a whole it is the same policy, and the way back is a whole one, too.
        for policy in [after, before] {
            fresh.policy = policy.clone();
            let replaced = port.pipeline.apply(Change::Policy(policy), now).unwrap();
            drop(replaced);
            let other = Pipeline::new(&fresh, Instant::ZERO).unwrap();
            for vlan in 0..11 {
                prop_assert_eq!(class_name(&port.pipeline, vlan), class_name(&other, vlan));
            }
        }
    }

    /// A reload that is given up, and the whole policy or the old one after it, beside slices that were added; and steps again.
    #[test]
    fn a_policy_is_put_in_force_after_some_of_the_steps_to_another(
        slices in prop::collection::vec((slot(), slot()), 1..5),
        is_reversed in any::<[bool; 2]>(),
        arrivals in prop::collection::vec((0u16..13, 60u32..1522, 0u64..500_000), 0..120),
        steps_taken in 0usize..12,
        added in 0u16..3,
        goes_back in any::<bool>(),
    ) {
        let (old, new): (Vec<_>, Vec<_>) = slices.into_iter().unzip();
        let specs = [slots(&old, is_reversed[0]), slots(&new, is_reversed[1])];
        let [Ok(before), Ok(after)] = specs.each_ref().map(|spec| spec.resolve(LINK)) else {
            return Ok(());
        };
        let mut port = Port::new(&specs[0], Some(LINK));
        let added = || 10..10 + added;
        for vlan in added() {
            apply(&mut port, add(&(vlan..=vlan), BEST_EFFORT)).unwrap();
        }
        let mut arrivals = arrivals.into_iter();
        let mut arrive = |port: &mut Port, most| {
            for (vlan, bytes, gap) in arrivals.by_ref().take(most) {
                let at = port.now() + gap;
                let _ = port.offer(arrival(at, vlan, bytes));
            }
        };
        arrive(&mut port, 40);
        let steps = steps_to(&port, &after).unwrap_or_default();
        for step in steps.into_iter().take(steps_taken) {
            if carry_out(&mut port, step).is_err() {
                break;
            }
            arrive(&mut port, 2);
        }
        let [target, other] = if goes_back { [before, after] } else { [after, before] };
        commit(&mut port, &target);
        prop_assert_eq!(steps_to(&port, &target), Some(vec![]));
        arrive(&mut port, 40);
        change_to(&mut port, &other);
        prop_assert_eq!(steps_to(&port, &other), Some(vec![]));
        arrive(&mut port, usize::MAX);
        port.run_until(u64::MAX / 2);
        prop_assert_eq!(port.offered(), port.departures.len() as u64 + port.dropped);
        assert_in_order(&port.departures);
        let now = Instant::from_nanos(port.now());
        while port.pipeline.poll_removed(now).is_some() {}
        for vlan in added() {
            prop_assert_eq!(class_name(&port.pipeline, vlan), name(&(vlan..=vlan)));
        }
    }

    /// One by one, in order, each change is accepted once what was given up before it is no longer reserved, and the policy is in force.
    #[test]
    fn any_two_policies_with_the_same_slices_are_exchanged_while_frames_wait(
        kinds in prop::collection::vec((kind(), kind()), 1..5),
        frames in prop::collection::vec((1u16..5, 60u32..1522), 0..60),
    ) {
        let old: Vec<Kind> = kinds.iter().map(|(old, _)| *old).collect();
        let new: Vec<Kind> = kinds.iter().map(|(_, new)| *new).collect();
        let (Some(before), Some(after)) = (resolved(&old), resolved(&new)) else {
            return Ok(());
        };
        let classes: Vec<_> = (1..).zip(&old).map(|(vlan, kind)| (vlan..=vlan, *kind)).collect();
        let mut port = Port::new(&spec(&classes), Some(LINK));
        for (vlan, bytes) in frames {
            let _ = port.offer(arrival(0, vlan, bytes));
        }
        let waited = change_to(&mut port, &after);
        prop_assert!(waited <= 100, "{waited}");
        prop_assert_eq!(steps_to(&port, &after), Some(vec![]));
        let back = steps_to(&port, &before);
        prop_assert_eq!(back.is_some_and(|changes| changes.is_empty()), before == after);
        port.run_until(u64::MAX / 2);
        for class in port.pipeline.counters() {
            let gone = class.sent_frames + class.dropped_total();
            prop_assert_eq!(class.offered_frames, gone, "{}", &class.class);
        }
    }
}
