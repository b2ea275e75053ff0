//! Whatever is wanted, in any order.

use super::*;
use proptest::prelude::*;

/// Which packets a slice has, how much, and in which directions.
type Kind = (u8, u8, u8);

#[derive(Debug, Clone)]
enum Step {
    Change(Vec<(u8, Option<Kind>)>),
    Snapshot(Vec<(u8, Kind)>),
    Arrive(usize, u16, usize),
    Pass(u64),
    Restart,
    Acknowledge,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = (0u8..4, 0u8..4, 0u8..3);
    let change = (0u8..5, prop::option::weighted(0.7, kind.clone()));
    prop_oneof![
        6 => prop::collection::vec(change, 0..4).prop_map(Step::Change),
        1 => prop::collection::vec((0u8..5, kind), 0..5).prop_map(Step::Snapshot),
        6 => (0usize..2, 0u16..5, 1usize..6).prop_map(|(side, vlan, n)| Step::Arrive(side, vlan, n)),
        5 => (0u64..20_000).prop_map(Step::Pass),
        1 => Just(Step::Restart),
        2 => Just(Step::Acknowledge),
    ]
}

fn wanted(name: u8, (vlan, kbit, ways): Kind, version: u64) -> GatewaySlice {
    let kbit = [0, 100, 900, 1_900][usize::from(kbit)];
    let mut terms = terms(vlan.into(), kbit, 50);
    terms.flows = FlowTerms {
        weight_per_flow: version % 2 == 1,
        flow_queueing: version / 2 % 2 == 1,
        elephants: (version % 3 == 1).then_some(ELEPHANTS),
    };
    let both = [
        (ways != 1).then(|| terms.clone()),
        (ways != 2).then_some(terms),
    ];
    slice(&format!("s{name}"), both, version)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// All that is wanted fits: whatever changes, drains and restarts in between, it is in force in the end.
    #[test]
    fn what_is_in_force_becomes_what_is_wanted(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new(Kept::default());
        let mut store: BTreeMap<String, GatewaySlice> = BTreeMap::new();
        let mut removed: BTreeSet<String> = BTreeSet::new();
        let mut kept = Kept::default();
        let mut generation = 0;
        for step in steps {
            let mut desired = None;
            match step {
                Step::Change(list) => {
                    generation += 1;
                    let list = list.into_iter().map(|(name, kind)| {
                        let Some(kind) = kind else {
                            let name = format!("s{name}");
                            if store.remove(&name).is_some() {
                                removed.insert(name.clone());
                            }
                            return GatewayChange::Remove(name);
                        };
                        let slice = wanted(name, kind, generation);
                        removed.remove(&slice.name);
                        store.insert(slice.name.clone(), slice.clone());
                        GatewayChange::Put(Box::new(slice))
                    });
                    desired = Some(changes(generation, list.collect()));
                }
                Step::Snapshot(list) => {
                    generation += 1;
                    let old = std::mem::take(&mut store);
                    for (name, kind) in list {
                        let slice = wanted(name, kind, generation);
                        store.insert(slice.name.clone(), slice);
                    }
                    removed.extend(old.into_keys());
                    removed.retain(|name| !store.contains_key(name));
                    desired = Some(Desired {
                        generation,
                        snapshot: Some(store.values().cloned().collect()),
                        ..Desired::default()
                    });
                }
                Step::Arrive(side, vlan, frames) => {
                    world.offer(side, vlan, frames);
                }
                Step::Pass(micros) => world.pass(Duration::from_micros(micros)),
                Step::Restart => world = World::new(kept.clone()),
                Step::Acknowledge => {
                    let acknowledgement = world.reconciler.acknowledgement();
                    acknowledgement.gone.iter().for_each(|name| { removed.remove(name); });
                    for record in world.reconciler.on_acknowledged(&acknowledgement) {
                        kept.apply(record);
                    }
                }
            }
            if let Some(desired) = desired {
                for record in world.take(desired) {
                    kept.apply(record);
                }
            }
            prop_assert_eq!(&kept, &world.reconciler.kept());
            prop_assert_eq!(&kept.slices, &store);
        }
        world.pass(Duration::from_secs(30));
        prop_assert!(world.reconciler.is_settled());
        for direction in 0..2 {
            let of = |slice: &GatewaySlice| [&slice.forward, &slice.backward][direction].is_some();
            let expected = store.values().filter(|slice| of(slice)).map(|slice| slice.name.clone());
            prop_assert_eq!(world.names(direction), expected.collect::<Vec<_>>());
        }
        let acknowledgement = world.reconciler.acknowledgement();
        prop_assert_eq!(acknowledgement.generation, generation);
        prop_assert_eq!(&acknowledgement.refused, &[]);
        prop_assert!(kept.refused.is_empty());
        for name in &removed {
            prop_assert!(acknowledgement.gone.contains(name), "{name}");
        }
        prop_assert!(acknowledgement.gone.iter().all(|name| !store.contains_key(name)));
        for (port, _) in world.ports.iter_mut().zip(0..) {
            prop_assert_eq!(port.room(world.engine.memory()), 1_000);
        }
    }
}
