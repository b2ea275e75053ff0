//! Whole policies as changes of single slices.

use super::random::kind;
use super::*;
use proptest::prelude::*;
use slicewise_model::PolicyParams;

fn resolved(kinds: &[Kind]) -> Option<PolicyParams> {
    let classes: Vec<_> = (1..)
        .zip(kinds)
        .map(|(vlan, kind)| (vlan..=vlan, *kind))
        .collect();
    spec(&classes).resolve(LINK).ok()
}

/// The changes that lead to `policy` are carried out, each as soon as it is accepted, while a frame arrives every millisecond;
/// returns how long that takes, in ms.
fn change_to(port: &mut Port, policy: &PolicyParams) -> u64 {
    let begun = port.now();
    let changes = port.pipeline.basis().slice_changes(policy).unwrap();
    for change in changes {
        while let Err(error) = apply(port, change.clone()) {
            let waited = port.now() - begun;
            assert!(error.is_temporary() && waited < 200_000_000, "{error}");
            let at = port.now() + 1_000_000;
            port.run_until(at);
            let vlan = u16::try_from(at / 1_000_000 % 5).unwrap();
            let _ = port.offer(Arrival {
                at,
                vlan,
                bytes: 1_000,
            });
        }
    }
    (port.now() - begun) / 1_000_000
}

#[test]
fn two_slices_exchange_what_neither_could_have_beside_the_other() {
    let of = |cir, ms| guaranteed(cir, 3_000, Duration::from_millis(ms));
    let before = [of(6_000, 20), of(3_000, 30)];
    let after = [of(3_000, 20), of(6_000, 30)];
    let policy = resolved(&after).unwrap();
    let mut port = Port::new(&spec(&[(1..=1, before[0]), (2..=2, before[1])]), Some(LINK));
    let basis = port.pipeline.basis();
    let changes = basis.slice_changes(&policy).unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    // The first must have sent what was promised 20 ms.
    let waited = change_to(&mut port, &policy);
    assert!((17..=20).contains(&waited), "{waited}");
    assert_eq!(port.pipeline.version(), basis.version() + 2);
    assert_eq!(port.pipeline.basis().version(), basis.version() + 2);
    // A longer delay for a higher rate: it has the lower rate with the longer delay before.
    let mixed = resolved(&[of(4_000, 80), of(6_000, 30)]).unwrap();
    let changes = port.pipeline.basis().slice_changes(&mixed).unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    change_to(&mut port, &mixed);
}

#[test]
fn what_is_no_parameter_of_a_slice_is_no_change_of_single_slices() {
    let kind = guaranteed(1_000, 3_000, Duration::from_millis(20));
    let port = Port::new(&spec(&[(1..=1, kind), (2..=2, kind)]), Some(LINK));
    let basis = port.pipeline.basis();
    let classes = |spec: PolicySpec| basis.slice_changes(&spec.resolve(LINK).unwrap());
    assert_eq!(classes(spec(&[(1..=1, kind), (2..=2, kind)])), Some(vec![]));
    assert_eq!(classes(spec(&[(1..=1, kind)])), None, "a slice less");
    assert_eq!(
        classes(spec(&[(2..=2, kind), (1..=1, kind)])),
        None,
        "order"
    );
    let by_flow = Kind {
        by_flow: true,
        ..kind
    };
    let other = [
        spec(&[(1..=1, kind), (2..=2, by_flow)]),
        PolicySpec {
            name: "other".to_owned(),
            ..spec(&[(1..=1, kind), (2..=2, kind)])
        },
        policy(vec![vlan_class(1), vlan_class(2)]),
    ];
    assert_eq!(other.map(classes), [None, None, None]);
    let faster = spec(&[(1..=1, kind), (2..=2, kind)]).resolve(rate("20 Mbit/s"));
    assert_eq!(basis.slice_changes(&faster.unwrap()), None, "another link");
}

#[test]
fn a_policy_without_slices_is_as_it_is_or_needs_a_commit() {
    let own = policy(vec![vlan_class(1)]);
    let basis = Port::new(&own, Some(LINK)).pipeline.basis();
    let changes = |spec: &PolicySpec| basis.slice_changes(&spec.resolve(LINK).unwrap());
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
    let changes = port.pipeline.basis().slice_changes(&policy).unwrap();
    assert_eq!(changes, [change(&(1..=1), more)]);
    // Beside the added slice it does not fit.
    let too_much = guaranteed(9_500, 3_000, Duration::from_millis(20));
    let policy = resolved(&[too_much]).unwrap();
    assert_eq!(port.pipeline.basis().slice_changes(&policy), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// One by one, in order, each change is accepted once the deadlines before it have passed, and the policy is in force.
    #[test]
    fn any_two_policies_with_the_same_slices_are_exchanged_while_frames_wait(
        kinds in prop::collection::vec((kind(), kind()), 1..5),
        frames in prop::collection::vec((1u16..5, 60u32..1522), 0..60),
    ) {
        let old: Vec<Kind> = kinds.iter().map(|(old, _)| *old).collect();
        let new = kinds.iter().map(|(old, new)| Kind { by_flow: old.by_flow, ..*new });
        let new: Vec<Kind> = new.collect();
        let (Some(before), Some(after)) = (resolved(&old), resolved(&new)) else {
            return Ok(());
        };
        let classes: Vec<_> = (1..).zip(&old).map(|(vlan, kind)| (vlan..=vlan, *kind)).collect();
        let mut port = Port::new(&spec(&classes), Some(LINK));
        for (vlan, bytes) in frames {
            let _ = port.offer(Arrival { at: 0, vlan, bytes });
        }
        let waited = change_to(&mut port, &after);
        prop_assert!(waited <= 100, "{waited}");
        prop_assert_eq!(port.pipeline.basis().slice_changes(&after), Some(vec![]));
        let back = port.pipeline.basis().slice_changes(&before);
        prop_assert_eq!(back.map(|changes| changes.is_empty()), Some(before == after));
        port.run_until(u64::MAX / 2);
        for class in port.pipeline.counters() {
            let gone = class.sent_frames + class.dropped_total();
            prop_assert_eq!(class.offered_frames, gone, "{}", &class.class);
        }
    }
}
