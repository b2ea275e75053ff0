//! Delays of slices, by numbers of eight bits.

use slicewise_model::DelayClasses;
use slicewise_units::Duration;
use std::collections::BTreeSet;

/// The delays that slices may have, ns, by numbers that stay the same while others come and go.
#[derive(Debug, Clone)]
pub(super) struct Delays(Vec<u64>);

impl Delays {
    pub(super) fn new(classes: &DelayClasses) -> Self {
        Self(nanos_of(classes).collect())
    }

    /// Have those of `classes`, in place of those that are not among them, which no slice has.
    pub(super) fn set(&mut self, classes: &DelayClasses) {
        let wanted: Vec<u64> = nanos_of(classes).collect();
        if wanted == self.0 {
            return;
        }
        let known: BTreeSet<u64> = self.0.iter().copied().collect();
        let mut missing = wanted.iter().filter(|nanos| !known.contains(nanos));
        for nanos in &mut self.0 {
            if wanted.binary_search(nanos).is_err()
                && let Some(missing) = missing.next()
            {
                *nanos = *missing;
            }
        }
        self.0.extend(missing);
    }

    /// The number of a delay, which is one of those.
    pub(super) fn number(&self, delay: Duration) -> u8 {
        let nanos = delay.nanos();
        let mut numbers = (0..=u8::MAX).zip(&self.0);
        let found = numbers.find(|(_, known)| **known == nanos);
        debug_assert!(found.is_some(), "{delay} is the delay of a class");
        found.map_or(0, |(number, _)| number)
    }

    /// A delay, ns.
    #[inline]
    pub(super) fn nanos(&self, number: u8) -> u64 {
        self.0[usize::from(number)]
    }
}

fn nanos_of(classes: &DelayClasses) -> impl Iterator<Item = u64> {
    classes.delays().iter().map(|delay| delay.nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn geometric(shortest: u64, longest: u64) -> DelayClasses {
        let [shortest, longest] = [shortest, longest].map(Duration::from_micros);
        DelayClasses::geometric(shortest, longest)
    }

    proptest! {
        #[test]
        fn delays_that_stay_keep_their_numbers(
            grids in prop::collection::vec((1u64..50, 1u64..100_000), 1..8),
        ) {
            let mut before = geometric(10, 1_000);
            let mut delays = Delays::new(&before);
            for (shortest, longest) in grids {
                let after = geometric(shortest, longest);
                let both = before.union(&after).unwrap();
                for classes in [&both, &after] {
                    let numbered: Vec<(Duration, u8)> =
                        before.delays().iter().map(|&delay| (delay, delays.number(delay))).collect();
                    delays.set(classes);
                    for &delay in classes.delays() {
                        prop_assert_eq!(delays.nanos(delays.number(delay)), delay.nanos());
                    }
                    let stay = numbered.iter().filter(|(delay, _)| classes.position(*delay).is_some());
                    for &(delay, number) in stay {
                        prop_assert_eq!(delays.number(delay), number);
                    }
                    prop_assert!(delays.0.len() <= 128);
                }
                before = after;
            }
        }
    }
}
