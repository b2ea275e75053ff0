//! Slices that go to other tenants, and tenants that come.

use super::diff::{change_to, slots, steps_to};
use super::*;

#[test]
fn tenants_come_and_get_other_weights_and_slices_are_theirs() {
    let kind = guaranteed(1_000, 3_000, Duration::from_millis(20));
    let with = |tenants: &[(&str, u32)], of: &[(u16, &str)]| {
        let slices = of.iter().map(|(vlan, _)| Some((*vlan..=*vlan, kind)));
        let mut spec = slots(&slices.collect::<Vec<_>>(), false);
        for (class, (_, tenant)) in spec.classes.iter_mut().zip(of) {
            class.tenant = Some((*tenant).to_owned());
        }
        let tenants = tenants
            .iter()
            .map(|&(name, weight)| (name.to_owned(), weight));
        spec.guaranteed = Some(GuaranteedSpec {
            tenants: tenants.collect(),
            ..GuaranteedSpec::default()
        });
        spec
    };
    let mut port = Port::new(
        &with(&[("a", 1), ("b", 1)], &[(1, "a"), (2, "b")]),
        Some(LINK),
    );
    // In another order, one with another weight, one more, and one less.
    let after = with(&[("c", 1), ("b", 3)], &[(3, "c"), (2, "b"), (4, "c")]);
    let renamed = |mut spec: PolicySpec| {
        for (class, name) in spec.classes.iter_mut().zip(["s2", "s1", "s3"]) {
            class.name = name.to_owned();
            class.matches.as_mut().unwrap().name = name.to_owned();
        }
        spec
    };
    let after = renamed(after).resolve(LINK).unwrap();
    change_to(&mut port, &after);
    assert_eq!(steps_to(&port, &after), Some(vec![]));
    let mut moved = after.clone();
    moved.classes[0].slice.as_mut().unwrap().tenant = 1;
    assert_eq!(steps_to(&port, &moved).unwrap().len(), 1);
    // A commit finds what is in force, too.
    let now = Instant::from_nanos(port.now());
    let replaced = port
        .pipeline
        .apply(Change::Policy(after.clone()), now)
        .unwrap();
    assert_eq!(
        replaced.removed().len(),
        0,
        "the first slice has gone before"
    );
    assert_eq!(steps_to(&port, &after), Some(vec![]));
}

/// Two slices of tenant `a`, one of tenant `b`.
fn three() -> PolicySpec {
    let mut with = spec(&[
        (1..=1, BEST_EFFORT),
        (2..=2, BEST_EFFORT),
        (3..=3, BEST_EFFORT),
    ]);
    with.guaranteed = Some(GuaranteedSpec {
        tenants: vec![("a".to_owned(), 1), ("b".to_owned(), 1)],
        ..GuaranteedSpec::default()
    });
    for (class, tenant) in with.classes.iter_mut().zip(["a", "a", "b"]) {
        class.tenant = Some(tenant.to_owned());
    }
    with
}

/// The second of them goes to another tenant.
fn go(port: &mut Port, tenant: u32) {
    let policy = three().resolve(LINK).unwrap();
    let params = policy.classes[1].slice.unwrap();
    let params = SliceParams { tenant, ..params };
    let name = name(&(2..=2));
    apply(port, SliceChange::Change { name, params }).unwrap();
}

#[test]
fn a_slice_that_goes_from_tenant_to_tenant_leaves_no_place_behind() {
    let mut port = Port::new(&three(), Some(LINK));
    for vlan in [1, 1, 1, 3, 3, 3, 2, 2, 2] {
        let _ = port.offer(arrival(0, vlan, 1_000));
    }
    // Far more often than a ring has places.
    (0..1_000).for_each(|time| go(&mut port, time % 2));
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 9);
    assert_in_order(&port.departures);
}

#[test]
fn a_slice_takes_its_turns_among_those_of_its_new_tenant_at_once() {
    let mut port = Port::new(&three(), Some(LINK));
    let sent = |port: &mut Port, frames: u16| {
        let before = port.departures.len();
        for vlan in (1..=3).cycle().take(usize::from(frames) * 3) {
            let at = port.now();
            let _ = port.offer(arrival(at, vlan, 1_000));
        }
        // 800 us each.
        port.run_until(port.now() + 24 * 800_000);
        let left = &port.departures[before..];
        [1, 2, 3].map(|vlan| left.iter().filter(|frame| frame.vlan == vlan).count())
    };
    let share = |[one, two, three]: [usize; 3], expected: [usize; 3]| {
        let near = |(is, expected): (usize, usize)| is.abs_diff(expected) <= 2;
        assert!(
            [one, two, three].into_iter().zip(expected).all(near),
            "{one} {two} {three}"
        );
    };
    share(sent(&mut port, 30), [6, 6, 12]);
    // While frames of all three wait.
    go(&mut port, 1);
    share(sent(&mut port, 8), [12, 6, 6]);
    port.run_until(u64::MAX / 2);
    assert_in_order(&port.departures);
    assert_conserved(&port);
}
