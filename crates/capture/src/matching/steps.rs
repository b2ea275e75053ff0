//! A jump in one point's timestamps: a pause in the traffic, or a clock step.
//!
//! Packets seen at both points decide. In a pause, both clocks advance alike: time differences are the
//! same before and after. If one clock was stepped, they change by the step.

use crate::Sighting;
use std::collections::{BTreeMap, HashMap};

/// The surroundings of a jump in a point's timestamps.
#[derive(Debug, Clone, Copy)]
pub struct JumpView<'a> {
    /// Sightings of this point before the jump, in order.
    pub before: &'a [Sighting],
    /// Those after it, up to the next jump.
    pub after: &'a [Sighting],
    /// Sightings of the other point at about the same time.
    pub other: &'a [Sighting],
    /// First time after − last time before, ns.
    pub jump_ns: i64,
    /// Clock of this point − clock of the other point if no packet before the jump was seen at both, ns.
    pub offset_ns: i64,
    /// Time differences change by less than this if both clocks advance alike, ns: no delay is longer.
    pub largest_delay_ns: u64,
}

/// Explanation of a jump by packets seen at both points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// No packet after the jump was seen at both points.
    Unknown,
    /// Both clocks advanced alike.
    Alike,
    /// The clock of this point was stepped by this much, ns.
    Set(i64),
}

/// A packet that was seen at both points.
#[derive(Debug, Clone, Copy)]
struct Shared {
    /// At the point with the jump.
    flow: u32,
    /// Time there − time at the other point, ns.
    difference_ns: i64,
}

impl JumpView<'_> {
    /// Classify the jump. `answer` says whether two flows of this point answer each other.
    ///
    /// - A shift of the differences by more than [`largest_delay_ns`](Self::largest_delay_ns), in the
    ///   direction of the jump, is a clock step. It must persist to the end: a queue that filled in an
    ///   outage drains.
    /// - Only a clock step makes times go backwards: there, a shift by three quarters of the jump is
    ///   enough.
    /// - A smaller jump forward may be a path change. If the differences of two flows that answer each
    ///   other grow alike, it is a clock step: a longer delay makes them grow in one direction only.
    pub fn shift(&self, answer: impl Fn(u32, u32) -> bool) -> Shift {
        let (before, after) = self.shared();
        if after.is_empty() {
            return Shift::Unknown;
        }
        let base_ns = median(before.iter().rev().take(NEAREST)).unwrap_or(self.offset_ns);
        if let Some(by_ns) = self.by_more_than_any_delay(base_ns, &after) {
            return Shift::Set(by_ns);
        }
        let shifts = shifts_of_flows(&before, &after);
        let by_ns = if self.jump_ns < 0 {
            let mut all: Vec<i64> = shifts.values().copied().collect();
            all.sort_unstable();
            let middle = all.get(all.len() / 2).copied();
            middle.filter(|by| *by <= self.jump_ns - self.jump_ns / 4)
        } else {
            self.of_both_ways(&shifts, answer)
        };
        by_ns.map_or(Shift::Alike, Shift::Set)
    }

    /// Returns true if some packet before the jump was seen at both points.
    #[must_use]
    pub fn has_base(&self) -> bool {
        !self.shared().0.is_empty()
    }

    fn by_more_than_any_delay(&self, base_ns: i64, after: &[Shared]) -> Option<i64> {
        let until = self.first_change(after);
        let mut shifts: Vec<i64> = after
            .iter()
            .take(until)
            .map(|one| one.difference_ns.saturating_sub(base_ns))
            .collect();
        shifts.sort_unstable_by_key(|shift| shift.unsigned_abs());
        // One in twenty may be a mismatch.
        let least = *shifts.get(shifts.len() / 20)?;
        let is_shifted = |by_ns: i64, least_ns: u64| {
            by_ns.unsigned_abs() > least_ns && by_ns.signum() == self.jump_ns.signum()
        };
        let by_ns = median(after.iter().take(until.min(NEAREST)))?.saturating_sub(base_ns);
        // Where it is not the packets right behind the jump that are shifted, the clock was set later.
        let of_nearest_ns = (self.jump_ns.unsigned_abs() / 2).min(self.largest_delay_ns);
        (is_shifted(least, self.largest_delay_ns) && is_shifted(by_ns, of_nearest_ns))
            .then_some(by_ns)
    }

    /// Packets up to where the differences of a flow change abruptly: the other clock was stepped there.
    fn first_change(&self, after: &[Shared]) -> usize {
        let mut last: HashMap<u32, i64> = HashMap::new();
        let changes = |one: &Shared| {
            let before = last.insert(one.flow, one.difference_ns);
            before.is_some_and(|ns| one.difference_ns.abs_diff(ns) > self.largest_delay_ns)
        };
        let at = after.iter().position({
            let mut changes = changes;
            move |one| changes(one)
        });
        at.unwrap_or(after.len())
    }

    fn of_both_ways(
        &self,
        shifts: &BTreeMap<u32, i64>,
        answer: impl Fn(u32, u32) -> bool,
    ) -> Option<i64> {
        let least = (self.jump_ns / 2).max(LEAST_SHIFT_NS);
        let large = || shifts.iter().filter(|(_, by_ns)| **by_ns >= least);
        large().find_map(|(flow, by_ns)| {
            let alike = |other: &i64| by_ns.abs_diff(*other) <= (by_ns / 4).unsigned_abs();
            let (_, other) =
                large().find(|(other, shift)| alike(shift) && answer(*flow, **other))?;
            Some(i64::midpoint(*by_ns, *other))
        })
    }

    /// Packets seen at both points: those before the jump and those after it, in order.
    fn shared(&self) -> (Vec<Shared>, Vec<Shared>) {
        let mut others: HashMap<u64, Option<u64>> = HashMap::new();
        for sighting in self.other.iter().filter(|one| !one.time_is_restored) {
            let time_ns = Some(sighting.time_ns);
            // Identical packets are no evidence.
            let known = others.entry(sighting.key);
            known.and_modify(|time| *time = None).or_insert(time_ns);
        }
        let of = |sightings: &[Sighting]| {
            let timed = sightings.iter().filter(|one| !one.time_is_restored);
            let shared = timed.filter_map(|one| {
                let other_ns = (*others.get(&one.key)?)?;
                Some(Shared {
                    flow: one.flow,
                    difference_ns: difference(one.time_ns, other_ns),
                })
            });
            shared.collect()
        };
        (of(self.before), of(self.after))
    }
}

/// Change of the differences of each flow that is on both sides of the jump.
fn shifts_of_flows(before: &[Shared], after: &[Shared]) -> BTreeMap<u32, i64> {
    let nearest = |flow: u32, nearest: &mut dyn Iterator<Item = &Shared>| {
        let of_flow: Vec<&Shared> = nearest
            .filter(|one| one.flow == flow)
            .take(NEAREST)
            .collect();
        median(of_flow.into_iter())
    };
    let mut flows: Vec<u32> = after.iter().take(NEAREST).map(|one| one.flow).collect();
    flows.sort_unstable();
    flows.dedup();
    let shift = |flow: u32| {
        let base = nearest(flow, &mut before.iter().rev())?;
        let behind = nearest(flow, &mut after.iter())?;
        Some((flow, behind.saturating_sub(base)))
    };
    flows.into_iter().filter_map(shift).collect()
}

fn median<'a>(shared: impl Iterator<Item = &'a Shared>) -> Option<i64> {
    let mut differences: Vec<i64> = shared.map(|one| one.difference_ns).collect();
    differences.sort_unstable();
    differences.get(differences.len() / 2).copied()
}

fn difference(one_ns: u64, other_ns: u64) -> i64 {
    let signed = |ns| i64::try_from(ns).unwrap_or(i64::MAX);
    signed(one_ns) - signed(other_ns)
}

/// Packets compared on each side of a jump.
const NEAREST: usize = 64;

/// Normal variation of delays, ns.
const LEAST_SHIFT_NS: i64 = 50_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::tests::sighting;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;
    const START: u64 = 1_000_000 * SECOND;
    const LARGEST_DELAY_NS: u64 = 2_500 * MS;

    /// A packet every millisecond with a pause after half of them: at the sending point, and up to 40 ms
    /// later at the other, whose clock is stepped in the pause.
    fn view_of(pause_ns: u64, set_by_ns: i64, jitter: &[u64], judge: impl Fn(&JumpView<'_>)) {
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for (number, jitter_ns) in (0..).zip(jitter) {
            let is_behind = number >= jitter.len() as u64 / 2;
            let left = START + number * MS + if is_behind { pause_ns } else { 0 };
            let arrived = left + MS + jitter_ns;
            let stamped = if is_behind {
                arrived.wrapping_add_signed(set_by_ns)
            } else {
                arrived
            };
            sent.push(sighting(left, number, 0));
            received.push(sighting(stamped, number, 7));
        }
        let (before, after) = received.split_at(received.len() / 2);
        let last_ns = before.iter().map(|one| one.time_ns).max().unwrap();
        judge(&JumpView {
            before,
            after,
            other: &sent,
            jump_ns: difference(after[0].time_ns, last_ns),
            offset_ns: 0,
            largest_delay_ns: LARGEST_DELAY_NS,
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn finds_clock_steps_and_does_not_mistake_a_pause_for_one(
            jitter in prop::collection::vec(0..40 * MS, 8..400),
            pause_ns in prop_oneof![Just(0), 100 * MS..10_000 * SECOND],
            by_ns in 3 * SECOND..100_000 * SECOND,
            goes_back in any::<bool>(),
        ) {
            view_of(pause_ns.max(200 * MS), 0, &jitter, |view| {
                assert_eq!(view.shift(|_, _| false), Shift::Alike);
            });
            let by_ns = if goes_back { -by_ns.cast_signed() } else { by_ns.cast_signed() };
            // Times jump in the direction of the clock step.
            let pause_ns = if goes_back { pause_ns % SECOND } else { pause_ns };
            view_of(pause_ns, by_ns, &jitter, |view| {
                let Shift::Set(found) = view.shift(|_, _| false) else {
                    panic!("not found: {}", view.jump_ns);
                };
                assert!(found.abs_diff(by_ns) <= 40 * MS, "{found} instead of {by_ns}");
            });
        }
    }

    #[test]
    fn a_clock_that_is_set_some_packets_after_a_pause_was_not_set_in_the_pause() {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for number in 0..5_000_u64 {
            let pause_ns = if number < 100 { 0 } else { 200 * MS };
            let left = START + number * MS + pause_ns;
            let set_ns = number.saturating_sub(200).min(3) * SECOND;
            there.push(sighting(left, number, 0));
            here.push(sighting(left + set_ns, number, 7));
        }
        let view = JumpView {
            before: &here[..100],
            after: &here[100..],
            other: &there,
            jump_ns: 201 * MS.cast_signed(),
            offset_ns: 0,
            largest_delay_ns: LARGEST_DELAY_NS,
        };
        assert_eq!(view.shift(|_, _| false), Shift::Alike);
    }

    #[test]
    fn reports_unknown_if_no_packet_after_the_jump_was_seen_at_both_points() {
        view_of(SECOND, 0, &[0; 20], |view| {
            let unknown = JumpView {
                other: &view.other[..10],
                ..*view
            };
            assert_eq!(unknown.shift(|_, _| false), Shift::Unknown);
        });
    }

    #[test]
    fn two_flows_that_answer_each_other_reveal_a_clock_step_smaller_than_a_delay() {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for number in 0..200_u64 {
            let at = START + number * MS;
            let set_ns = if number < 100 { 0 } else { 300 * MS };
            // Flow 1 arrives here; flow 2 leaves here and arrives there.
            there.push(sighting(at, number * 2, 1));
            here.push(sighting(at + 2 * MS + set_ns, number * 2, 1));
            here.push(sighting(at + 2 * MS + set_ns, number * 2 + 1, 2));
            there.push(sighting(at + 4 * MS, number * 2 + 1, 2));
        }
        let view = JumpView {
            before: &here[..200],
            after: &here[200..],
            other: &there,
            jump_ns: 301 * MS.cast_signed(),
            offset_ns: 0,
            largest_delay_ns: LARGEST_DELAY_NS,
        };
        assert_eq!(view.shift(|_, _| true), Shift::Set(300 * MS.cast_signed()));
        assert_eq!(view.shift(|_, _| false), Shift::Alike);
    }
}
