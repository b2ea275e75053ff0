//! A whole policy that takes the place of another one, while slices that were added one by one stay.

use super::*;
use slicewise_dataplane::BuildError;
use slicewise_model::GuaranteedSpec;

const FAST: Duration = Duration::from_millis(40);

fn of_tenants(tenants: &[(&str, u32)], classes: &[(u16, Kind, &str)]) -> PolicySpec {
    let classes = classes.iter().map(|&(vlan, kind, tenant)| ClassSpec {
        tenant: Some(tenant.to_owned()),
        ..class(&(vlan..=vlan), kind)
    });
    let tenants = tenants.iter();
    PolicySpec {
        discipline: Discipline::Guaranteed,
        guaranteed: Some(GuaranteedSpec {
            tenants: tenants
                .map(|(name, weight)| (String::from(*name), *weight))
                .collect(),
            ..GuaranteedSpec::default()
        }),
        ..policy(classes.collect())
    }
}

/// Put another policy in force, beside the slices that were added.
pub(super) fn replace(port: &mut Port, policy: &PolicySpec) -> Result<(), BuildError> {
    let now = Instant::from_nanos(port.now());
    let policy = policy.resolve(LINK).unwrap();
    let change = Change::PolicyBesideSlices(policy);
    let prepared = port.pipeline.basis().prepare(change, now)?;
    let _ = port.pipeline.commit(prepared, now).unwrap();
    Ok(())
}

fn refused(port: &mut Port, policy: &PolicySpec) -> String {
    replace(port, policy).unwrap_err().to_string()
}

fn classes(port: &Port) -> Vec<String> {
    port.pipeline
        .counters()
        .map(|class| class.class.clone())
        .collect()
}

/// Frames of each VLAN among the next 20, where all have more than that waiting.
fn shares(port: &mut Port, vlans: [u16; 2]) -> [usize; 2] {
    for vlan in vlans {
        for _ in 0..40 {
            let at = port.now();
            let verdict = port.offer(arrival(at, vlan, 1_500));
            assert_eq!(verdict, Verdict::Queued);
        }
    }
    let before = port.departures.len();
    while port.departures.len() < before + 20 {
        port.run_until(port.now() + 100_000);
    }
    let left = &port.departures[before..before + 20];
    vlans.map(|vlan| left.iter().filter(|left| left.vlan == vlan).count())
}

#[test]
fn an_added_slice_keeps_its_tenant_by_name_and_brings_it_along_where_it_is_not_there() {
    let first = of_tenants(&[("a", 1), ("b", 4)], &[(1, BEST_EFFORT, "a")]);
    for tenants in [
        &[("a", 1), ("b", 4)][..],
        &[("c", 9), ("b", 4), ("a", 1)],
        &[("a", 1)],
        &[("c", 9), ("a", 1)],
    ] {
        let mut port = Port::new(&first, Some(LINK));
        let SliceChange::Add(mut new) = add(&(2..=2), BEST_EFFORT) else {
            unreachable!()
        };
        new.params.tenant = 1;
        apply(&mut port, SliceChange::Add(new)).unwrap();
        replace(&mut port, &of_tenants(tenants, &[(1, BEST_EFFORT, "a")])).unwrap();
        assert_eq!(classes(&port), ["vlan1-1", "vlan2-2", CLASS_DEFAULT]);
        let [of_a, of_b] = shares(&mut port, [1, 2]);
        assert!(
            (3..=5).contains(&of_a) && of_a + of_b == 20,
            "{tenants:?}: {of_a}"
        );
    }
}

#[test]
fn what_an_added_slice_is_guaranteed_is_tested_and_stays_reserved_beside_the_new_policy() {
    let mut port = Port::new(
        &spec(&[(1..=1, guaranteed(1_000, 3_000, FAST))]),
        Some(LINK),
    );
    apply(&mut port, add(&(2..=2), guaranteed(2_000, 3_000, FAST))).unwrap();
    let with = |rate| spec(&[(1..=1, guaranteed(rate, 3_000, FAST))]);
    assert_eq!(
        refused(&mut port, &with(8_500)),
        "slice `vlan2-2`, which was added while running, cannot be kept: guarantees 2 Mbit/s (L2), but only 1.5 Mbit/s (L2) of \
         the link is free: write a rate of at most 1.5 Mbit/s"
    );
    replace(&mut port, &with(6_000)).unwrap();
    assert_eq!(classes(&port), ["vlan1-1", "vlan2-2", CLASS_DEFAULT]);
    // 8 of 10 Mbit/s are promised.
    apply(&mut port, add(&(3..=3), guaranteed(3_000, 3_000, FAST))).unwrap_err();
    apply(&mut port, add(&(3..=3), guaranteed(1_000, 3_000, FAST))).unwrap();
}

#[test]
fn a_policy_beside_which_an_added_slice_cannot_stay_is_refused_with_its_name() {
    let mut port = Port::new(&spec(&[(1..=1, BEST_EFFORT)]), Some(LINK));
    let quick = guaranteed(2_000, 3_000, Duration::from_millis(5));
    apply(&mut port, add(&(2..=2), quick)).unwrap();
    let slow = PolicySpec {
        guaranteed: Some(GuaranteedSpec {
            shortest_delay: Duration::from_millis(20),
            ..GuaranteedSpec::default()
        }),
        ..spec(&[(1..=1, BEST_EFFORT)])
    };
    let refusals = [
        refused(&mut port, &spec(&[(2..=2, BEST_EFFORT)])),
        refused(&mut port, &policy(vec![vlan_class(1)])),
        refused(&mut port, &slow),
    ];
    let kept = "slice `vlan2-2`, which was added while running, cannot be kept: ";
    assert_eq!(
        refusals,
        [
            format!("{kept}the new policy has a class of this name"),
            format!("{kept}the new policy has no slices: its discipline is not `guaranteed`"),
            format!("{kept}its delay is 5 ms, below 20 ms, the shortest of the new policy"),
        ]
    );
    assert_eq!(classes(&port), ["vlan1-1", CLASS_DEFAULT, "vlan2-2"]);
    // Without added slices any policy will do.
    apply(&mut port, remove(&(2..=2))).unwrap();
    replace(&mut port, &policy(vec![vlan_class(1)])).unwrap();
}
