//! Delays of slices, by numbers of eight bits.

use slicewise_model::MAX_DELAYS;

const _: () = assert!(MAX_DELAYS == 1 + u8::MAX as usize);

/// The delays until a deadline that slices have, ns, by numbers that stay the same while others come and go.
#[derive(Debug, Clone, Default)]
pub(super) struct Delays {
    nanos: Vec<u64>,
    /// Slices with each.
    slices: Vec<u32>,
}

impl Delays {
    /// The number that a delay has or would be given; `None` where all are in use.
    pub(super) fn find(&self, nanos: u64) -> Option<u8> {
        let in_use = |number: &usize| self.slices[*number] > 0;
        let mut numbers = 0..self.nanos.len();
        let same = numbers
            .clone()
            .find(|&number| self.nanos[number] == nanos && in_use(&number));
        let number = same.or_else(|| numbers.find(|number| !in_use(number)));
        u8::try_from(number.unwrap_or(self.nanos.len())).ok()
    }

    /// One slice more has this delay. Returns its number.
    pub(super) fn acquire(&mut self, nanos: u64) -> u8 {
        let number = self.find(nanos);
        debug_assert!(number.is_some(), "looked for before");
        let number = number.unwrap_or(0);
        let index = usize::from(number);
        if index == self.nanos.len() {
            self.nanos.push(nanos);
            self.slices.push(0);
        }
        self.nanos[index] = nanos;
        self.slices[index] += 1;
        number
    }

    /// One slice less has this delay.
    pub(super) fn release(&mut self, number: u8) {
        self.slices[usize::from(number)] -= 1;
    }

    /// A delay, ns.
    #[inline]
    pub(super) fn nanos(&self, number: u8) -> u64 {
        self.nanos[usize::from(number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn delays_in_use_keep_their_numbers(changes in prop::collection::vec((any::<bool>(), 0u64..400), 1..2_000)) {
            let mut delays = Delays::default();
            let mut slices: Vec<(u64, u8)> = Vec::new();
            for (comes, which) in changes {
                if comes && delays.find(which).is_some() {
                    slices.push((which, delays.acquire(which)));
                } else if !slices.is_empty() {
                    let (_, number) = slices.swap_remove(usize::try_from(which).unwrap() % slices.len());
                    delays.release(number);
                }
                for &(nanos, number) in &slices {
                    prop_assert_eq!(delays.nanos(number), nanos);
                }
                let mut distinct: Vec<u64> = slices.iter().map(|slice| slice.0).collect();
                distinct.sort_unstable();
                distinct.dedup();
                prop_assert!(distinct.len() <= 256);
                let is_full = delays.find(u64::MAX).is_none();
                prop_assert_eq!(is_full, distinct.len() == 256);
            }
        }
    }
}
