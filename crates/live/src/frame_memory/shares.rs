//! How much frame memory the queues of each slice may use.
//!
//! If memory does not suffice for all queues full of frames of maximum size, half of it is divided into reserved
//! parts (max-min fair: a small queue gets all that it asks for), and the other half is shared: first come,
//! first served. A flood into one long queue therefore uses up only its own part and the shared one.

use std::collections::BTreeMap;

/// Names a share of [`Shares`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareId(u32);

/// Frame memory of queues, in chunks.
#[derive(Debug, Default)]
pub struct Shares {
    shares: Vec<Share>,
    total: u32,
    common: u32,
    used: u32,
    /// Memory that shares use beyond their reserved parts.
    common_used: u32,
    refused: u64,
}

#[derive(Debug)]
struct Share {
    name: String,
    own: u32,
    used: u32,
    refused: u64,
}

impl Share {
    const fn beyond(&self) -> u32 {
        self.used.saturating_sub(self.own)
    }
}

impl Shares {
    /// Divide `total` chunks among shares by name, each with the chunks that it wants. Existing shares keep
    /// their identity and the memory they use; memory that a removed share still uses is not available until it
    /// is released. Work: O(shares · log shares).
    pub fn divide(&mut self, total: u32, wanted: &[(String, u64)]) -> Vec<ShareId> {
        let mut before: BTreeMap<String, usize> = BTreeMap::new();
        for (index, share) in self.shares.iter_mut().enumerate() {
            share.own = 0;
            before.insert(std::mem::take(&mut share.name), index);
        }
        let kept: Vec<Option<usize>> = wanted.iter().map(|(name, _)| before.remove(name)).collect();
        let unused = |share: &Share| share.used == 0;
        let mut free = before.into_values();
        let mut ids = Vec::with_capacity(wanted.len());
        let own = parts(total, wanted);
        for (((name, _), kept), &own) in wanted.iter().zip(kept).zip(&own) {
            let place = kept.or_else(|| free.find(|&at| self.shares.get(at).is_some_and(unused)));
            let place = place.unwrap_or_else(|| {
                self.shares.push(Share {
                    name: String::new(),
                    own: 0,
                    used: 0,
                    refused: 0,
                });
                self.shares.len() - 1
            });
            if let Some(share) = self.shares.get_mut(place) {
                if kept.is_none() {
                    share.refused = 0;
                }
                share.name.clone_from(name);
                share.own = own;
            }
            ids.push(ShareId(u32::try_from(place).unwrap_or(u32::MAX)));
        }
        self.total = total;
        self.common = total - own.iter().sum::<u32>();
        self.common_used = self.shares.iter().map(Share::beyond).sum();
        ids
    }

    /// Use chunks of a share; returns whether there was room for them.
    #[inline]
    pub fn try_use(&mut self, id: ShareId, chunks: u32) -> bool {
        let Some(share) = self.shares.get_mut(id.0 as usize) else {
            return false;
        };
        let beyond = (share.used + chunks).saturating_sub(share.own) - share.beyond();
        let has_room = beyond == 0 || self.common_used + beyond <= self.common;
        // After a new division, shares that are gone may still use what others were given.
        if !has_room || self.used + chunks > self.total {
            share.refused += 1;
            self.refused += 1;
            return false;
        }
        share.used += chunks;
        self.used += chunks;
        self.common_used += beyond;
        true
    }

    /// Chunks of a share are not used any more.
    #[inline]
    pub fn release(&mut self, id: ShareId, chunks: u32) {
        let Some(share) = self.shares.get_mut(id.0 as usize) else {
            return;
        };
        debug_assert!(share.used >= chunks, "released twice");
        let before = share.beyond();
        share.used = share.used.saturating_sub(chunks);
        self.common_used -= before - share.beyond();
        self.used = self.used.saturating_sub(chunks);
    }

    /// Frames for which a share had no memory left.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The share that was refused memory most often.
    #[must_use]
    pub fn most_refused(&self) -> &str {
        let most = self.shares.iter().max_by_key(|share| share.refused);
        most.map_or("", |share| share.name.as_str())
    }
}

/// The reserved part of each share; their sum is at most `total`.
fn parts(total: u32, wanted: &[(String, u64)]) -> Vec<u32> {
    let mut parts = vec![0; wanted.len()];
    let sum = wanted
        .iter()
        .fold(0, |sum: u64, (_, chunks)| sum.saturating_add(*chunks));
    let mut left = if sum <= u64::from(total) {
        u64::from(total)
    } else {
        u64::from(total) / 2
    };
    let mut smallest_first: Vec<usize> = (0..wanted.len()).collect();
    smallest_first.sort_by_key(|&index| wanted.get(index).map(|(_, chunks)| *chunks));
    let mut sharing = wanted.len() as u64;
    for index in smallest_first {
        let (Some((_, wanted)), Some(part)) = (wanted.get(index), parts.get_mut(index)) else {
            continue;
        };
        let own = if sum <= u64::from(total) {
            *wanted
        } else {
            (*wanted).min(left / sharing)
        };
        *part = u32::try_from(own).unwrap_or(u32::MAX);
        left -= own;
        sharing -= 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wanted(chunks: &[u64]) -> Vec<(String, u64)> {
        let named = chunks.iter().enumerate();
        named.map(|(i, &chunks)| (i.to_string(), chunks)).collect()
    }

    #[test]
    fn a_flood_leaves_the_part_of_every_other_share_alone() {
        let mut shares = Shares::default();
        let ids = shares.divide(1_000, &wanted(&[200_000, 65, 400]));
        let fill = |shares: &mut Shares, id| (0..2_000).filter(|_| shares.try_use(id, 1)).count();
        // Its own part, what is left of half the memory, and the common half.
        assert_eq!(fill(&mut shares, ids[0]), 218 + 500);
        assert_eq!(fill(&mut shares, ids[1]), 65);
        assert_eq!(fill(&mut shares, ids[2]), 217);
        assert_eq!(shares.most_refused(), "1");
        shares.release(ids[0], 100);
        assert_eq!(fill(&mut shares, ids[2]), 100);
    }

    #[test]
    fn where_memory_suffices_every_share_has_all_that_it_wants() {
        let mut shares = Shares::default();
        let ids = shares.divide(1_000, &wanted(&[600, 400]));
        for (id, own) in ids.into_iter().zip([600, 400]) {
            assert!((0..own).all(|_| shares.try_use(id, 1)));
            assert!(!shares.try_use(id, 1));
        }
    }

    #[derive(Debug, Clone)]
    enum Event {
        Use(usize, u32),
        Release(usize, u32),
        Divide(u32, Vec<u64>),
    }

    fn event() -> impl Strategy<Value = Event> {
        let divide = (20u32..200, proptest::collection::vec(1u64..200, 1..6));
        prop_oneof![
            5 => (0usize..6, 1u32..6).prop_map(|(share, chunks)| Event::Use(share, chunks)),
            3 => (0usize..6, 1u32..6).prop_map(|(share, chunks)| Event::Release(share, chunks)),
            1 => divide.prop_map(|(total, wanted)| Event::Divide(total, wanted)),
        ]
    }

    proptest! {
        #[test]
        fn shares_together_never_use_more_than_there_is_and_each_gets_its_own_part(
            events in proptest::collection::vec(event(), 1..200),
        ) {
            let mut shares = Shares::default();
            let mut ids = shares.divide(100, &wanted(&[50, 500, 30]));
            let mut is_divided_anew = false;
            for event in events {
                match event {
                    Event::Use(at, chunks) if at < ids.len() => {
                        let share = &shares.shares[ids[at].0 as usize];
                        let has_own = share.used + chunks <= share.own;
                        let used = shares.used;
                        let is_taken = shares.try_use(ids[at], chunks);
                        prop_assert!(is_taken || !has_own || is_divided_anew);
                        prop_assert_eq!(shares.used, used + if is_taken { chunks } else { 0 });
                        prop_assert!(shares.used <= shares.total || !is_taken);
                    }
                    Event::Release(at, chunks) if at < ids.len() => {
                        let used = shares.shares[ids[at].0 as usize].used;
                        shares.release(ids[at], chunks.min(used));
                    }
                    Event::Divide(total, chunks) => {
                        ids = shares.divide(total, &wanted(&chunks));
                        is_divided_anew = true;
                    }
                    _ => {}
                }
                let used: u32 = shares.shares.iter().map(|share| share.used).sum();
                let beyond: u32 = shares.shares.iter().map(Share::beyond).sum();
                let own: u32 = shares.shares.iter().map(|share| share.own).sum();
                prop_assert_eq!(used, shares.used);
                prop_assert_eq!(beyond, shares.common_used);
                prop_assert!(own + shares.common == shares.total);
            }
        }
    }
}
