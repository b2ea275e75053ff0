//! How much many shares want together if none gets more than some power of two.

/// Numbers of chunks, counted by their power of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Levels {
    /// How many of each power, and their sum.
    levels: [(u64, u64); 33],
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            levels: [(0, 0); 33],
        }
    }
}

/// The numbers of a level are below 2 to the power of its position.
fn level(chunks: u32) -> usize {
    (u32::BITS - chunks.leading_zeros()) as usize
}

impl Levels {
    pub(super) fn insert(&mut self, chunks: u32) {
        if let Some((count, sum)) = self.levels.get_mut(level(chunks)) {
            *count += 1;
            *sum += u64::from(chunks);
        }
    }

    /// One that was inserted.
    pub(super) fn remove(&mut self, chunks: u32) {
        if let Some((count, sum)) = self.levels.get_mut(level(chunks)) {
            *count -= 1;
            *sum -= u64::from(chunks);
        }
    }

    /// The sum, where each counts at most `most`, which is a power of two or [`u32::MAX`].
    pub(super) fn capped(&self, most: u32) -> u64 {
        let whole = if most == u32::MAX {
            u32::BITS as usize
        } else {
            most.trailing_zeros() as usize
        };
        let levels = self.levels.iter().enumerate();
        levels
            .map(|(level, &(count, sum))| {
                if level <= whole {
                    sum
                } else {
                    count * u64::from(most)
                }
            })
            .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::Levels;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sum_is_that_of_the_numbers_each_at_most_a_power_of_two(
            numbers in proptest::collection::vec(any::<u32>().prop_map(|n| n >> (n % 32)), 0..40),
            gone in 0usize..20,
            power in 0u32..33,
        ) {
            let mut levels = Levels::default();
            numbers.iter().for_each(|&number| levels.insert(number));
            let gone = gone.min(numbers.len());
            numbers[..gone].iter().for_each(|&number| levels.remove(number));
            let most = 1u32.checked_shl(power).unwrap_or(u32::MAX);
            let expected: u64 = numbers[gone..].iter().map(|&number| u64::from(number.min(most))).sum();
            prop_assert_eq!(levels.capped(most), expected);
        }
    }
}
