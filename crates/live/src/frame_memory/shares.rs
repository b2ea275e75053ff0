//! How much frame memory the queues of each slice may use.
//!
//! If memory does not suffice for all queues full of frames of maximum size, half of it is divided into reserved
//! parts (max-min fair: a small queue gets all that it asks for), and the other half is shared: first come,
//! first served. A flood into one long queue therefore uses up only its own part and the shared one.

use super::levels::Levels;

/// Names a share of [`Shares`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareId(u32);

/// Wanted size of a share of a division.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Chunks that suffice for it.
    pub chunks: u64,
    /// Several classes have it.
    pub is_common: bool,
    /// Of the division before, the share that it is to go on with; once divided, its share.
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
    /// Chunks that the shares of the division want, and chunks that are reserved for them.
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
    /// Several classes have it.
    is_common: bool,
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
    /// still uses is not available until it is released. What several classes have or had goes on under its name alone: it may be
    /// another of them that uses it. Shares that were [added](Self::add) stay. What is left of `wanted` beside shares has no meaning.
    /// Work: O(shares · log shares).
    pub fn divide(&mut self, total: u32, wanted: &mut [Wanted]) {
        for share in &mut self.shares {
            if matches!(share.origin, Origin::Divided(_)) {
                (share.own, share.origin) = (0, Origin::Ending);
            }
        }
        let level = level(total, wanted.iter().map(|wanted| wanted.chunks));
        (self.total, self.level, self.divided) = (total, level, (0, 0));
        for wanted in &mut *wanted {
            let goes_on = |id: &ShareId| {
                let share = self.shares.get(id.0 as usize);
                share.is_some_and(|share| {
                    let is_common = share.is_common || wanted.is_common;
                    share.origin == Origin::Ending && (!is_common || share.name == wanted.name)
                })
            };
            wanted.share = wanted.share.filter(goes_on);
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
                share.is_common = wanted.is_common;
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

    /// Returns the size of the memory that is divided, chunks.
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// Chunks that no other share can use.
    #[cfg(test)]
    pub fn reserved(&self) -> u64 {
        let own = self.shares.iter().map(|share| u64::from(share.own));
        own.sum()
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

    /// Limits the reservations of shares beside the division, which depend on those of the division.
    fn on_division_changed(&mut self) {
        if self.limit_added() {
            self.reserve_added();
        } else {
            self.update_common();
        }
    }

    /// Gives the memory that no share has reserved to all.
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
                (share.refused, share.is_common) = (0, false);
            }
            return ShareId(place);
        }
        self.shares.push(Share {
            name: String::new(),
            is_common: false,
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

/// Returns the reserved chunks of a share that wants so many.
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
mod tests;
