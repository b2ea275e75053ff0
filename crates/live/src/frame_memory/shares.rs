//! How much frame memory the queues of each slice may use.
//!
//! If memory does not suffice for all queues full of frames of maximum size, half of it is divided into reserved
//! parts (max-min fair: a small queue gets all that it asks for), and the other half is shared: first come,
//! first served. A flood into one long queue therefore uses up only its own part and the shared one.

use super::levels::Levels;

/// Names a share of [`Shares`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareId(u32);

/// What a share of a division wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What it is called.
    pub name: String,
    /// Chunks that suffice for it.
    pub chunks: u64,
    /// Of the division before, the share that it goes on with; once divided, its share.
    pub share: Option<ShareId>,
}

/// Frame memory of queues, in chunks.
#[derive(Debug, Default)]
pub struct Shares {
    shares: Vec<Share>,
    /// Shares that are gone and use nothing.
    free: Vec<u32>,
    total: u32,
    common: u32,
    used: u32,
    /// Memory that shares use beyond their reserved parts.
    common_used: u32,
    refused: u64,
    /// What the shares of the division want, and what is reserved for them.
    divided: (u64, u32),
    /// No share of the division has more reserved.
    level: u32,
    added: Added,
}

/// Shares beside the division: the reserved part of each is what it wants, but at most `most`.
#[derive(Debug, Default)]
struct Added {
    wanted: Levels,
    most: u32,
    reserved: u32,
}

#[derive(Debug)]
struct Share {
    name: String,
    own: u32,
    used: u32,
    refused: u64,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It is one of the division, and wants so many chunks.
    Divided(u64),
    /// It was one of the division before, and nobody has gone on with it so far.
    Ending,
    /// It was added beside it, and wants so many chunks.
    Added(u32),
    /// There is no such share any more, but it may still use memory.
    Gone,
}

impl Share {
    const fn beyond(&self) -> u32 {
        self.used.saturating_sub(self.own)
    }
}

impl Shares {
    /// Divide `total` chunks anew. A share that goes on keeps the memory that it uses; memory that another of the division before
    /// still uses is not available until it is released. Shares that were [added](Self::add) stay. What is left of `wanted` beside
    /// shares has no meaning. Work: O(shares).
    pub fn divide(&mut self, total: u32, wanted: &mut [Wanted]) {
        for share in &mut self.shares {
            if matches!(share.origin, Origin::Divided(_)) {
                (share.own, share.origin) = (0, Origin::Ending);
            }
        }
        let level = level(total, wanted.iter().map(|wanted| wanted.chunks));
        (self.total, self.level, self.divided) = (total, level, (0, 0));
        for wanted in &mut *wanted {
            let is_ending = |id: &ShareId| {
                let share = self.shares.get(id.0 as usize);
                share.is_some_and(|share| share.origin == Origin::Ending)
            };
            wanted.share = wanted.share.filter(is_ending);
            if let Some(id) = wanted.share {
                self.place_in_division(id, wanted.chunks);
            }
        }
        for (index, share) in (0..).zip(&mut self.shares) {
            if share.origin == Origin::Ending {
                share.origin = Origin::Gone;
                self.free.extend((share.used == 0).then_some(index));
            }
        }
        for wanted in wanted {
            let id = wanted.share.unwrap_or_else(|| {
                let id = self.take_place();
                self.place_in_division(id, wanted.chunks);
                id
            });
            wanted.share = Some(id);
            if let Some(share) = self.shares.get_mut(id.0 as usize) {
                // Whoever has `wanted` frees the old name.
                std::mem::swap(&mut share.name, &mut wanted.name);
            }
        }
        self.added.most = u32::MAX;
        self.limit_added();
        self.reserve_added();
    }

    /// Add a share to the division: it gets what it wants, but no more than [the level](Self::level). Work: as [`add`](Self::add).
    pub fn join(&mut self, name: &str, chunks: u64) -> ShareId {
        let id = self.take_place();
        if let Some(share) = self.shares.get_mut(id.0 as usize) {
            name.clone_into(&mut share.name);
        }
        self.place_in_division(id, chunks);
        self.on_division_changed();
        id
    }

    fn place_in_division(&mut self, id: ShareId, wanted: u64) {
        let own = at_most(wanted, self.level);
        if let Some(share) = self.shares.get_mut(id.0 as usize) {
            share.own = own;
            share.origin = Origin::Divided(wanted);
        }
        self.divided.0 = self.divided.0.saturating_add(wanted);
        self.divided.1 = self.divided.1.saturating_add(own);
    }

    /// No share of a division has more reserved; [`u32::MAX`] if each has what it wants.
    pub const fn level(&self) -> u32 {
        self.level
    }

    /// What is divided, chunks.
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// Chunks that no other share can use.
    #[cfg(test)]
    pub fn reserved(&self) -> u64 {
        let own = self.shares.iter().map(|share| u64::from(share.own));
        own.sum()
    }

    /// Another level for the division, for `most` shares from number `from` on; returns the number to go on with, `None` after
    /// the last. Where it falls, this comes before shares that join; where it rises, after those that leave.
    pub fn set_level(&mut self, level: u32, from: usize, most: usize) -> Option<usize> {
        self.level = level;
        let end = from.saturating_add(most).min(self.shares.len());
        for index in from..end {
            if let Some(Origin::Divided(wanted)) = self.shares.get(index).map(|share| share.origin)
            {
                self.want_divided(index, wanted, wanted);
            }
        }
        if end < self.shares.len() {
            self.update_common();
            return Some(end);
        }
        self.on_division_changed();
        None
    }

    /// Add a share that wants so many chunks. Where all get what they want, it does, too; otherwise those that were
    /// added get, of half the memory, what the division has left: equal parts, rounded down to powers of two, the small
    /// ones all that they ask for. Work: O(1), and O(shares) where the parts change, which is when the number of shares
    /// has doubled.
    pub fn add(&mut self, name: &str, chunks: u64) -> ShareId {
        let wanted = u32::try_from(chunks).unwrap_or(u32::MAX);
        let id = self.take_place();
        self.added.wanted.insert(wanted);
        let has_changed = self.limit_added();
        let own = wanted.min(self.added.most);
        if let Some(share) = self.shares.get_mut(id.0 as usize) {
            share.name.clear();
            share.name.push_str(name);
            share.own = own;
            share.origin = Origin::Added(wanted);
        }
        if has_changed {
            self.reserve_added();
        } else {
            self.added.reserved += own;
            self.update_common();
        }
        id
    }

    /// A share wants so many chunks from here on. One of the division gets them, but no more than [the level](Self::level): after
    /// several changes it has to be one at which the memory suffices. Work: as [`add`](Self::add).
    pub fn want(&mut self, id: ShareId, chunks: u64) {
        let wanted = u32::try_from(chunks).unwrap_or(u32::MAX);
        let Some(share) = self.shares.get_mut(id.0 as usize) else {
            return;
        };
        let before = match share.origin {
            Origin::Added(before) => before,
            Origin::Divided(before) => {
                self.want_divided(id.0 as usize, before, chunks);
                return self.on_division_changed();
            }
            Origin::Gone | Origin::Ending => return,
        };
        if before == wanted {
            return;
        }
        share.origin = Origin::Added(wanted);
        self.added.wanted.remove(before);
        self.added.wanted.insert(wanted);
        if self.limit_added() {
            return self.reserve_added();
        }
        let own = wanted.min(self.added.most);
        if let Some(share) = self.shares.get_mut(id.0 as usize) {
            let (old, beyond) = (share.own, share.beyond());
            share.own = own;
            self.common_used = self.common_used - beyond + share.beyond();
            self.added.reserved = self.added.reserved - old + own;
            self.update_common();
        }
    }

    fn want_divided(&mut self, index: usize, before: u64, wanted: u64) {
        let own = at_most(wanted, self.level);
        if let Some(share) = self.shares.get_mut(index) {
            let (old, beyond) = (share.own, share.beyond());
            share.own = own;
            share.origin = Origin::Divided(wanted);
            self.common_used = self.common_used - beyond + share.beyond();
            self.divided.0 = self.divided.0.saturating_sub(before).saturating_add(wanted);
            self.divided.1 = self.divided.1.saturating_sub(old).saturating_add(own);
        }
    }

    /// What shares beside the division may reserve depends on what it has.
    fn on_division_changed(&mut self) {
        if self.limit_added() {
            self.reserve_added();
        } else {
            self.update_common();
        }
    }

    /// What no share has reserved is for all.
    const fn update_common(&mut self) {
        let reserved = self.divided.1.saturating_add(self.added.reserved);
        self.common = self.total.saturating_sub(reserved);
    }

    /// A share is no longer needed; what it uses comes back as it is released. Work: as [`add`](Self::add).
    pub fn remove(&mut self, id: ShareId) {
        let Some(share) = self.shares.get_mut(id.0 as usize) else {
            return;
        };
        let beyond = share.beyond();
        let own = std::mem::take(&mut share.own);
        self.common_used = self.common_used - beyond + share.beyond();
        let is_unused = share.used == 0;
        match std::mem::replace(&mut share.origin, Origin::Gone) {
            Origin::Gone | Origin::Ending => return,
            Origin::Divided(wanted) => {
                self.divided.0 = self.divided.0.saturating_sub(wanted);
                self.divided.1 = self.divided.1.saturating_sub(own);
            }
            Origin::Added(wanted) => {
                self.added.wanted.remove(wanted);
                self.added.reserved -= own;
            }
        }
        if is_unused {
            self.free.push(id.0);
        }
        self.on_division_changed();
    }

    /// A place for a new share.
    fn take_place(&mut self) -> ShareId {
        if let Some(place) = self.free.pop() {
            if let Some(share) = self.shares.get_mut(place as usize) {
                share.refused = 0;
            }
            return ShareId(place);
        }
        self.shares.push(Share {
            name: String::new(),
            own: 0,
            used: 0,
            refused: 0,
            origin: Origin::Gone,
        });
        ShareId(u32::try_from(self.shares.len() - 1).unwrap_or(u32::MAX))
    }

    /// Find the largest part that each share that was added may reserve; returns whether it has changed. It rises only
    /// where a quarter of the room is left over, so that it does not change with every share.
    fn limit_added(&mut self) -> bool {
        let (wanted, reserved) = self.divided;
        let most = self.added.most;
        let half = u64::from((self.total / 2).saturating_sub(reserved));
        let total = u64::from(self.total);
        let sum = &self.added.wanted;
        let is_enough = |room: u64| wanted.saturating_add(sum.capped(u32::MAX)) <= room;
        self.added.most = if is_enough(if most == u32::MAX {
            total
        } else {
            total - total / 4
        }) {
            u32::MAX
        } else {
            let fits = |most: u32, room: u64| sum.capped(most) <= room;
            let powers = (0..u32::BITS).rev().map(|power| 1 << power);
            let best = powers.clone().find(|&part| fits(part, half)).unwrap_or(0);
            let calm = powers
                .clone()
                .find(|&part| fits(part, half - half / 4))
                .unwrap_or(0);
            if most == u32::MAX || most > best {
                best
            } else {
                most.max(calm)
            }
        };
        self.added.most != most
    }

    /// Give each share that was added its part.
    fn reserve_added(&mut self) {
        let most = self.added.most;
        let mut reserved = 0;
        for share in &mut self.shares {
            if let Origin::Added(wanted) = share.origin {
                share.own = wanted.min(most);
                reserved += share.own;
            }
        }
        self.added.reserved = reserved;
        self.update_common();
        self.common_used = self.shares.iter().map(Share::beyond).sum();
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
        if share.used == 0 && share.origin == Origin::Gone && chunks > 0 {
            self.free.push(id.0);
        }
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

/// What a share that wants so many chunks has reserved.
fn at_most(wanted: u64, level: u32) -> u32 {
    u32::try_from(wanted).unwrap_or(u32::MAX).min(level)
}

/// The level for shares that want so many chunks: [`u32::MAX`] if `total` suffices for all of them; otherwise the largest for which half
/// of it does. Work: O(n log n).
pub fn level(total: u32, wanted: impl Iterator<Item = u64>) -> u32 {
    let mut wanted: Vec<u64> = wanted.collect();
    let sum = wanted
        .iter()
        .fold(0, |sum: u64, &chunks| sum.saturating_add(chunks));
    if sum <= u64::from(total) {
        return u32::MAX;
    }
    wanted.sort_unstable();
    let (mut left, mut sharing) = (u64::from(total / 2), wanted.len() as u64);
    for chunks in wanted {
        let level = left / sharing;
        if chunks >= level {
            return u32::try_from(level).unwrap_or(u32::MAX);
        }
        left -= chunks;
        sharing -= 1;
    }
    u32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Divide among shares that want so many chunks, and go on with these.
    fn divide(
        shares: &mut Shares,
        total: u32,
        chunks: &[u64],
        before: &[Option<ShareId>],
    ) -> Vec<ShareId> {
        let named = chunks.iter().enumerate();
        let wanted = named.map(|(i, &chunks)| Wanted {
            name: i.to_string(),
            chunks,
            share: before.get(i).copied().flatten(),
        });
        let mut wanted: Vec<Wanted> = wanted.collect();
        shares.divide(total, &mut wanted);
        wanted.iter().filter_map(|wanted| wanted.share).collect()
    }

    #[test]
    fn a_flood_leaves_the_part_of_every_other_share_alone() {
        let mut shares = Shares::default();
        let ids = divide(&mut shares, 1_000, &[200_000, 65, 400], &[]);
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
        let ids = divide(&mut shares, 1_000, &[600, 400], &[]);
        for (id, own) in ids.into_iter().zip([600, 400]) {
            assert!((0..own).all(|_| shares.try_use(id, 1)));
            assert!(!shares.try_use(id, 1));
        }
    }

    #[test]
    fn shares_that_are_added_get_what_they_want_until_memory_is_short_and_then_equal_parts() {
        let mut shares = Shares::default();
        let default = divide(&mut shares, 1_000, &[100], &[]);
        let fill = |shares: &mut Shares, id| (0..2_000).filter(|_| shares.try_use(id, 1)).count();
        let first = shares.add("first", 500);
        let second = shares.add("second", 400);
        assert_eq!(fill(&mut shares, first), 500);
        shares.release(first, 500);
        // Of half the memory 400 are left: 128 for each of these three.
        let third = shares.add("third", 10_000);
        let reserved: Vec<u32> = shares.shares.iter().map(|share| share.own).collect();
        assert_eq!(reserved, [100, 128, 128, 128]);
        assert_eq!(fill(&mut shares, third), 128 + (1_000 - 100 - 3 * 128));
        assert_eq!(fill(&mut shares, first), 128);
        assert_eq!(fill(&mut shares, second), 128);
        assert_eq!(fill(&mut shares, default[0]), 100);
        shares.remove(third);
        assert_eq!(shares.shares[1].own, 128, "what it used is not there yet");
        shares.release(third, 644);
        let fourth = shares.add("fourth", 5);
        assert_eq!(fourth, third, "the place is used again");
        assert_eq!(fill(&mut shares, fourth), 5 + 1_000 - 100 - 2 * 128 - 5);
    }

    #[derive(Debug, Clone)]
    enum Event {
        Use(usize, u32),
        Release(usize, u32),
        /// In all, what each wants, and with which share it is to go on.
        Divide(u32, Vec<(u64, usize)>),
        Add(u64),
        Join(u64),
        Want(usize, u64),
        Level(u32),
        Remove(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        let share = (1u64..200, 0usize..12);
        let divide = (20u32..200, proptest::collection::vec(share, 1..6));
        prop_oneof![
            5 => (0usize..6, 1u32..6).prop_map(|(share, chunks)| Event::Use(share, chunks)),
            3 => (0usize..6, 1u32..6).prop_map(|(share, chunks)| Event::Release(share, chunks)),
            1 => divide.prop_map(|(total, wanted)| Event::Divide(total, wanted)),
            2 => (1u64..200).prop_map(Event::Add),
            2 => (1u64..200).prop_map(Event::Join),
            1 => (0u32..200).prop_map(Event::Level),
            1 => (0usize..6, 1u64..200).prop_map(|(share, chunks)| Event::Want(share, chunks)),
            1 => (0usize..6).prop_map(Event::Remove),
        ]
    }

    proptest! {
        #[test]
        fn shares_together_never_use_more_than_there_is_and_each_gets_its_own_part(
            events in proptest::collection::vec(event(), 1..200),
        ) {
            let mut shares = Shares::default();
            let mut divided = divide(&mut shares, 100, &[50, 500, 30], &[]);
            let mut added: Vec<ShareId> = Vec::new();
            let mut gone: Vec<ShareId> = Vec::new();
            let mut is_divided_anew = false;
            for event in events {
                let ids = [divided.clone(), added.clone()].concat();
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
                    Event::Divide(total, wanted) => {
                        // The same more than once, ones that were added, and ones that are gone.
                        let before = wanted.iter().map(|(_, at)| ids.get(*at).or(gone.last()).copied());
                        let before: Vec<Option<ShareId>> = before.collect();
                        let chunks: Vec<u64> = wanted.iter().map(|(chunks, _)| *chunks).collect();
                        let after = divide(&mut shares, total, &chunks, &before);
                        for (place, id) in after.iter().enumerate() {
                            prop_assert!(!after[..place].contains(id) && !added.contains(id));
                            let first = before.iter().position(|before| *before == Some(*id));
                            prop_assert!(first.is_none_or(|first| first == place || !divided.contains(id)));
                        }
                        let goes_on = |id: &ShareId| before.contains(&Some(*id));
                        prop_assert!(divided.iter().filter(|id| goes_on(id)).all(|id| after.contains(id)));
                        gone.extend(divided.iter().filter(|id| !goes_on(id)));
                        divided = after;
                        is_divided_anew = true;
                    }
                    Event::Add(chunks) => {
                        let id = shares.add("added", chunks);
                        prop_assert!(!ids.contains(&id));
                        added.push(id);
                        // What others use beyond their parts may be what it is given.
                        is_divided_anew = true;
                    }
                    Event::Want(at, chunks) if at < ids.len() => {
                        shares.want(ids[at], chunks);
                        is_divided_anew = true;
                    }
                    Event::Join(chunks) => {
                        let id = shares.join("joined", chunks);
                        prop_assert!(!ids.contains(&id));
                        divided.push(id);
                        is_divided_anew = true;
                    }
                    Event::Level(level) => {
                        let mut next = Some(0);
                        while let Some(from) = next {
                            next = shares.set_level(level, from, 2);
                        }
                        is_divided_anew = true;
                    }
                    Event::Remove(at) if at < ids.len() => {
                        let id = ids[at];
                        divided.retain(|other| *other != id);
                        added.retain(|other| *other != id);
                        let used = shares.shares[id.0 as usize].used;
                        shares.remove(id);
                        shares.release(id, used);
                    }
                    _ => {}
                }
                let used: u32 = shares.shares.iter().map(|share| share.used).sum();
                let beyond: u32 = shares.shares.iter().map(Share::beyond).sum();
                let own: u32 = shares.shares.iter().map(|share| share.own).sum();
                // From here on each gets its own part again.
                is_divided_anew &= own > shares.total || beyond > 0;
                let of_added: u32 = added.iter().map(|id| shares.shares[id.0 as usize].own).sum();
                prop_assert_eq!(used, shares.used);
                prop_assert_eq!(beyond, shares.common_used);
                prop_assert_eq!(of_added, shares.added.reserved);
                let of_division = shares.shares.iter().filter_map(|share| match share.origin {
                    Origin::Divided(wanted) => Some((wanted, share.own)),
                    _ => None,
                });
                let sum = of_division.fold((0, 0), |(a, b), (wanted, own)| (a + wanted, b + own));
                prop_assert_eq!(sum, shares.divided);
                let level = shares.level;
                let is_at_level = |id: &ShareId| match shares.shares[id.0 as usize] {
                    Share { origin: Origin::Divided(wanted), own, .. } => own == at_most(wanted, level),
                    _ => false,
                };
                let is_divided = divided.iter().all(is_at_level);
                prop_assert!(is_divided);
                // Divided shares that want more may have reserved more than there is, for a while.
                prop_assert_eq!(shares.common, shares.total.saturating_sub(own));
            }
        }
    }
}
