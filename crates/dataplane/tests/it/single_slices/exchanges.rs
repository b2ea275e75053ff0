//! Reloads one after another whose class maps meet in many ways, while frames arrive in between.

use super::gradual::{carry_out, slots, steps_to};
use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const VLANS: u16 = 14;

/// Of each slice that there may be, its class map and kind, and its place in the order.
type Slots = Vec<(Option<(RangeInclusive<u16>, Kind)>, u8)>;

#[derive(Debug, Clone)]
struct Reload {
    slots: Slots,
    /// Which slices stay as they are.
    kept: Vec<bool>,
    /// Frames before, and between steps.
    frames: Vec<(u16, u32, u64)>,
    /// A whole policy follows after so many refusals.
    patience: usize,
    /// The slices stay as they are, but in the reverse order.
    is_reversed: bool,
}

fn kind() -> impl Strategy<Value = Kind> {
    let guarantee = prop::option::of((100u32..800, 1_522u32..4_000, 20u64..90));
    (guarantee, 1u32..5, 0u32..8, any::<bool>()).prop_map(
        |(guarantee, weight, by_flow, limited)| {
            let kind = guarantee.map_or(BEST_EFFORT, |(cir, cbs, delay)| {
                guaranteed(cir, cbs, Duration::from_millis(delay))
            });
            Kind {
                weight,
                limited,
                by_flow: by_flow == 0,
                ..kind
            }
        },
    )
}

fn slot() -> impl Strategy<Value = (Option<(RangeInclusive<u16>, Kind)>, u8)> {
    let vlans = (1u16..12, 0u16..4, prop::bool::weighted(0.03));
    let vlans =
        vlans.prop_map(|(first, more, is_wide)| first..=first + if is_wide { 20 } else { more });
    (prop::option::weighted(0.8, (vlans, kind())), any::<u8>())
}

fn reload() -> impl Strategy<Value = Reload> {
    (
        prop::collection::vec(slot(), 12),
        prop::collection::vec(any::<bool>(), 12),
        prop::collection::vec((0..VLANS, 60u32..1522, 0u64..2_000_000), 0..120),
        1usize..60,
        prop::bool::weighted(0.3),
    )
        .prop_map(|(slots, kept, frames, patience, is_reversed)| Reload {
            slots,
            kept,
            frames,
            patience,
            is_reversed,
        })
}

fn spec_of(now: &Slots) -> PolicySpec {
    let plain: Vec<_> = now.iter().map(|(slot, _)| slot.clone()).collect();
    let mut spec = slots(&plain, false);
    let order = |name: &str| {
        let index: usize = name[1..].parse().unwrap();
        (now[index].1, index)
    };
    let (mut named, rest): (Vec<_>, Vec<_>) = spec
        .classes
        .into_iter()
        .partition(|class| class.name.starts_with('s'));
    named.sort_by_key(|class| order(&class.name));
    spec.classes = named.into_iter().chain(rest).collect();
    spec
}

fn first_match(policy: &PolicySpec, vlan: u16) -> &str {
    let mut classes = policy.classes.iter();
    let found = classes.find(|class| {
        let map = class.matches.as_ref();
        map.is_some_and(|map| map.matches(&headers(vlan)))
    });
    found.map_or(CLASS_DEFAULT, |class| &class.name)
}

/// A frame arrives; the name of the class that counts it.
fn offer_watched(port: &mut Port, vlan: u16, bytes: u32) -> (String, Verdict) {
    let counted = |port: &Port| -> Vec<u64> {
        let classes = port.pipeline.counters();
        classes.map(|class| class.offered_frames).collect()
    };
    let before = counted(port);
    let at = port.now();
    let verdict = port.offer(Arrival { at, vlan, bytes });
    let classes = port.pipeline.counters();
    let grown: Vec<_> = classes
        .enumerate()
        .filter(|(n, class)| class.offered_frames > before.get(*n).copied().unwrap_or(0))
        .map(|(_, class)| class.class.clone())
        .collect();
    assert_eq!(grown.len(), 1, "{grown:?}");
    (grown[0].clone(), verdict)
}

/// Which class each VLAN had before a reload, has after it, and has reached.
struct Watched {
    before: PolicySpec,
    after: PolicySpec,
    renamed: HashMap<String, String>,
    is_new: Vec<bool>,
}

impl Watched {
    fn offer(&mut self, port: &mut Port, vlan: u16, bytes: u32, what: &dyn Fn() -> String) {
        let (found, verdict) = offer_watched(port, vlan, bytes);
        assert_ne!(
            verdict,
            Verdict::Dropped(DropReason::SliceRemoved),
            "{}",
            what()
        );
        let [old, new] = [&self.before, &self.after].map(|policy| first_match(policy, vlan));
        let as_before = found == old || self.renamed.get(old).is_some_and(|to| *to == found);
        let is_new = &mut self.is_new[usize::from(vlan)];
        assert!(
            found == new || as_before && !*is_new,
            "{vlan}: {found} after {}, {old} to {new}, {is_new}",
            what()
        );
        *is_new |= found == new && !as_before;
    }
}

/// Reloads one after another; those that need a commit get one.
fn run(first: Slots, reloads: Vec<Reload>) {
    let mut now = first;
    let mut spec = spec_of(&now);
    if spec.resolve(LINK).is_err() {
        return;
    }
    let mut port = Port::new(&spec, Some(LINK));
    for reload in reloads {
        let mut next: Slots = if reload.is_reversed {
            now.iter()
                .map(|(slot, order)| (slot.clone(), 255 - order))
                .collect()
        } else {
            reload.slots.clone()
        };
        if !reload.is_reversed {
            for ((next, now), kept) in next.iter_mut().zip(&now).zip(&reload.kept) {
                if *kept {
                    *next = now.clone();
                }
            }
        }
        let after = spec_of(&next);
        let Ok(policy) = after.resolve(LINK) else {
            continue;
        };
        let Some(steps) = steps_to(&port, &policy) else {
            commit(&mut port, &after);
            (now, spec) = (next, after);
            continue;
        };
        let renamed = steps.iter().filter_map(|step| match step {
            GradualStep::Slice(SliceChange::Rename { name, to }) => {
                Some((name.clone(), to.clone()))
            }
            _ => None,
        });
        let mut watched = Watched {
            before: spec,
            after: after.clone(),
            renamed: renamed.collect(),
            is_new: vec![false; usize::from(VLANS)],
        };
        let mut frames = reload.frames.iter();
        for (vlan, bytes, _) in frames.by_ref().take(40) {
            watched.offer(&mut port, *vlan, *bytes, &|| "start".into());
        }
        let mut left = reload.patience;
        let mut is_given_up = false;
        'steps: for step in &steps {
            while let Err(error) = carry_out(&mut port, step.clone()) {
                assert!(error.is_temporary(), "{step:?} {error}");
                left -= 1;
                if left == 0 {
                    is_given_up = true;
                    break 'steps;
                }
                let at = port.now() + 5_000_000;
                port.run_until(at);
                for (vlan, bytes, gap) in frames.by_ref().take(3) {
                    let at = port.now() + gap;
                    port.run_until(at);
                    watched.offer(&mut port, *vlan, *bytes, &|| format!("{step:?}"));
                }
            }
            for (vlan, bytes, gap) in frames.by_ref().take(5) {
                let at = port.now() + gap / 4;
                port.run_until(at);
                watched.offer(&mut port, *vlan, *bytes, &|| format!("{step:?} done"));
            }
        }
        if is_given_up {
            commit(&mut port, &after);
        }
        watched.before = after.clone();
        watched.is_new.fill(true);
        for (vlan, bytes, gap) in frames {
            let at = port.now() + gap;
            port.run_until(at);
            watched.offer(&mut port, *vlan, *bytes, &|| "end".into());
        }
        let at = Instant::from_nanos(port.now());
        while port.pipeline.poll_removed(at).is_some() {}
        (now, spec) = (next, after);
    }
    for vlan in 0..VLANS {
        let (found, _) = offer_watched(&mut port, vlan, 100);
        assert_eq!(found, first_match(&spec, vlan));
    }
    port.run_until(u64::MAX / 2);
    let at = Instant::from_nanos(port.now());
    while port.pipeline.poll_removed(at).is_some() {}
    assert!(!port.pipeline.is_removing());
    for vlan in 0..VLANS {
        let class = port.pipeline.classifier().classify(&headers(vlan));
        let class = port.pipeline.counters().nth(class as usize).unwrap();
        assert_eq!(class.class, first_match(&spec, vlan));
    }
    assert_eq!(port.pipeline.backlog(), 0);
    assert_eq!(port.offered(), port.departures.len() as u64 + port.dropped);
    assert_in_order(&port.departures);
    for class in port.pipeline.counters() {
        assert_eq!(class.queued_frames, 0);
        assert_eq!(
            class.offered_frames,
            class.sent_frames + class.dropped_total(),
            "{}",
            class.class
        );
    }
}

fn commit(port: &mut Port, after: &PolicySpec) {
    let policy = after.resolve(LINK).unwrap();
    let now = Instant::from_nanos(port.now());
    drop(port.pipeline.apply(Change::Policy(policy), now).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn reloads_one_after_another_keep_every_frame_in_its_class_and_in_order(
        first in prop::collection::vec(slot(), 12),
        reloads in prop::collection::vec(reload(), 1..7),
    ) {
        run(first, reloads);
    }
}
