//! Guarantees beside slices that come, change and go, on an almost full link.

use super::reserved::{FRAME, burst, ms};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A slice whose sender keeps to its guarantee.
pub(super) struct Conforming {
    kind: Kind,
    /// What it was promised: longer than its delay until that is in force.
    promised: Duration,
    /// Bytes × 8 × 10^6 that it may send, at a time in ns.
    tokens: (u64, u64),
    /// Its frames count from when none of those waits that came before a change.
    is_settling: bool,
}

impl Conforming {
    pub(super) const fn new(kind: Kind, tokens: u64, now: u64) -> Self {
        Self {
            kind,
            promised: kind.delay,
            tokens: (tokens, now),
            is_settling: false,
        }
    }

    pub(super) const fn most(kind: Kind) -> u64 {
        kind.cbs as u64 * 8_000_000
    }

    /// How many frames of 1,500 bytes it may send now; a few without a guarantee.
    pub(super) fn take(&mut self, now: u64) -> u64 {
        const COST: u64 = 1_500 * 8_000_000;
        self.earn(now);
        if self.kind.cir.is_none() {
            return 3;
        }
        let (tokens, _) = self.tokens;
        self.tokens = (tokens % COST, now);
        tokens / COST
    }

    fn earn(&mut self, now: u64) {
        let (tokens, since) = self.tokens;
        let earned = (now - since) * u64::from(self.kind.cir.unwrap_or(0));
        self.tokens = ((tokens + earned).min(Self::most(self.kind)), now);
    }

    /// It has another guarantee: a new one begins with the whole burst.
    fn change(&mut self, kind: Kind, now: u64) {
        self.earn(now);
        let most = Self::most(kind);
        let tokens = match self.kind.cir {
            // They may have been taken by frames that waited.
            _ if self.is_settling => 0,
            Some(_) => self.tokens.0.min(most),
            None => most,
        };
        *self = Self::new(kind, tokens, now);
    }
}

#[derive(Debug, Clone)]
enum Churn {
    Add(u16, Kind),
    Change(u16, Kind),
    /// Nothing but the delay, ms.
    Delay(u16, u64),
    Remove(u16),
    /// Slices that send what they may.
    Send(Vec<u16>),
}

const SLICES: RangeInclusive<u16> = 1..=6;

fn churn() -> impl Strategy<Value = Churn> {
    let kind = (50u32..1_000, 1u32..30, 4u64..95)
        .prop_map(|(cir, frames, delay)| guaranteed(cir, frames * 1_500 + 22, ms(delay)));
    prop_oneof![
        3 => (SLICES, kind.clone()).prop_map(|(vlan, kind)| Churn::Add(vlan, kind)),
        2 => (SLICES, prop_oneof![1 => Just(BEST_EFFORT), 3 => kind]).prop_map(|(vlan, kind)| Churn::Change(vlan, kind)),
        1 => (SLICES, 4u64..95).prop_map(|(vlan, delay)| Churn::Delay(vlan, delay)),
        2 => SLICES.prop_map(Churn::Remove),
        4 => prop::collection::vec(SLICES, 1..5).prop_map(Churn::Send),
    ]
}

/// Slices that come, change and go beside best effort that always has frames to send.
struct Churning {
    port: Port,
    slices: BTreeMap<u16, Conforming>,
    /// Of each frame by when it has to have left, in order of arrival, by VLAN.
    due: BTreeMap<u16, Vec<Option<u64>>>,
}

impl Churning {
    fn new() -> Self {
        let policy = spec(&[(30..=30, BEST_EFFORT)]);
        Self {
            port: Port::new(&policy, Some(LINK)),
            slices: BTreeMap::new(),
            due: BTreeMap::new(),
        }
    }

    fn waiting(&self, vlan: u16) -> u64 {
        let name = name(&(vlan..=vlan));
        let of_name = |class: &&ClassCounters| class.class == name;
        let counters = self.port.pipeline.counters().find(of_name);
        counters.map_or(0, |class| class.queued_frames)
    }

    fn send(&mut self, vlan: u16) {
        let (now, waiting) = (self.port.now(), self.waiting(vlan));
        let Some(slice) = self.slices.get_mut(&vlan) else {
            return;
        };
        if slice.is_settling {
            if waiting > 0 {
                return;
            }
            *slice = Conforming::new(slice.kind, 0, now);
        }
        if waiting == 0 {
            slice.promised = slice.kind.delay;
        }
        let bound = slice.kind.cir.map(|_| slice.promised);
        for _ in 0..slice.take(now) {
            let (at, bytes) = (now, 1_500);
            if self.port.offer(arrival(at, vlan, bytes)) == Verdict::Queued {
                let due = self.due.entry(vlan).or_default();
                due.push(bound.map(|bound| now + bound.nanos()));
            } else {
                assert_eq!(bound, None, "the queue has room for its burst");
            }
        }
    }

    fn step(&mut self, churn: Churn) {
        let now = self.port.now();
        match churn {
            Churn::Add(vlan, mut kind) => {
                let mut added = apply(&mut self.port, add(&(vlan..=vlan), kind));
                // As much as there is, so that nothing is left over.
                if let Err(SliceChangeError::Refused { refusal, .. }) = &added
                    && let Some(burst) = refusal.offer.burst
                    && burst.bytes() >= 1_522
                {
                    kind.cbs = u32::try_from(burst.bytes()).unwrap();
                    added = apply(&mut self.port, add(&(vlan..=vlan), kind));
                }
                if added.is_ok() {
                    let slice = Conforming::new(kind, Conforming::most(kind), now);
                    self.slices.insert(vlan, slice);
                    self.send(vlan);
                }
            }
            Churn::Change(vlan, kind) => {
                let waiting = usize::try_from(self.waiting(vlan)).unwrap();
                if apply(&mut self.port, change(&(vlan..=vlan), kind)).is_ok() {
                    // Tokens that were cut are missing behind the first frame that waits.
                    let due = self.due.entry(vlan).or_default();
                    let first = due.len() - waiting;
                    due[first..].fill(None);
                    let slice = self.slices.get_mut(&vlan).unwrap();
                    slice.change(kind, now);
                    slice.is_settling = waiting > 0;
                    self.send(vlan);
                }
            }
            Churn::Delay(vlan, delay) => {
                let Some(before) = self.slices.get(&vlan).map(|slice| slice.kind) else {
                    return;
                };
                let kind = Kind {
                    delay: ms(delay),
                    ..before
                };
                let waiting = usize::try_from(self.waiting(vlan)).unwrap();
                if before.cir.is_none()
                    || apply(&mut self.port, change(&(vlan..=vlan), kind)).is_err()
                {
                    return;
                }
                let slice = self.slices.get_mut(&vlan).unwrap();
                slice.kind = kind;
                if kind.delay > slice.promised {
                    slice.promised = kind.delay;
                    let due = self.due.entry(vlan).or_default();
                    let first = due.len() - waiting;
                    due[first..].fill(None);
                }
                self.send(vlan);
            }
            Churn::Remove(vlan) => {
                if apply(&mut self.port, remove(&(vlan..=vlan))).is_ok() {
                    self.slices.remove(&vlan);
                }
            }
            Churn::Send(vlans) => vlans.into_iter().for_each(|vlan| self.send(vlan)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn every_guarantee_holds_beside_slices_that_come_change_and_go(
        steps in prop::collection::vec((churn(), prop_oneof![1 => Just(0), 3 => 0u64..12_000_000]), 1..200)
    ) {
        let mut churning = Churning::new();
        for (churn, gap) in steps {
            churning.step(churn);
            let until = churning.port.now() + gap;
            while churning.port.now() < until {
                while churning.waiting(30) < 20 {
                    burst(&mut churning.port, 30, 1);
                }
                let next = (churning.port.now() + 10 * FRAME).min(until);
                churning.port.run_until(next);
            }
        }
        churning.port.run_until(u64::MAX / 2);
        for (vlan, due) in churning.due {
            let left = churning.port.departures.iter().filter(|left| left.vlan == vlan);
            let left: Vec<u64> = left.map(|left| left.at + FRAME).collect();
            prop_assert_eq!(left.len(), due.len());
            for (left, due) in left.into_iter().zip(due) {
                prop_assert!(due.is_none_or(|due| left <= due), "VLAN {} at {}, due {:?}", vlan, left, due);
            }
        }
    }
}
