//! A bounded map from flows to what is known of them. Its memory is reserved when it is made.

/// Entries lie together, in an order that their user may change. An index of at least twice as many places, with linear
/// probing, finds them: expected O(1), as keys are hashes with a seed that nobody outside knows.
///
/// A place of the index counts only if the entry that it names has that place, too. So to forget all entries takes O(1):
/// the index need not be cleared (Briggs and Torczon, *An Efficient Representation for Sparse Sets*, 1993).
#[derive(Debug)]
pub(super) struct FlowTable<T> {
    entries: Vec<Entry<T>>,
    index: Box<[u32]>,
    capacity: usize,
}

#[derive(Debug)]
struct Entry<T> {
    key: u64,
    /// In the index.
    place: u32,
    value: T,
}

impl<T> FlowTable<T> {
    /// Room for `capacity` flows.
    pub(super) fn with_capacity(capacity: u32) -> Self {
        let capacity = capacity.max(1) as usize;
        Self {
            entries: Vec::with_capacity(capacity),
            index: vec![0; (2 * capacity).next_power_of_two()].into_boxed_slice(),
            capacity,
        }
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() == self.capacity
    }

    /// The position of a flow, as long as none is removed and no two are swapped.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<usize> {
        self.probe(key).ok()
    }

    /// The position of a flow, or else the free place of the index where it would be found.
    #[inline]
    fn probe(&self, key: u64) -> Result<usize, usize> {
        let mut place = self.home(key);
        while let Some(position) = self.at(place) {
            if self.entries[position].key == key {
                return Ok(position);
            }
            place = self.after(place);
        }
        Err(place)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low bits of a hash")]
    const fn home(&self, key: u64) -> usize {
        key as usize & (self.index.len() - 1)
    }

    const fn after(&self, place: usize) -> usize {
        (place + 1) & (self.index.len() - 1)
    }

    /// The position of the flow that is found at a place.
    #[inline]
    fn at(&self, place: usize) -> Option<usize> {
        let position = self.index[place] as usize;
        let entry = self.entries.get(position)?;
        (entry.place as usize == place).then_some(position)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "capacity has 32 bits")]
    fn name(&mut self, position: usize, place: usize) {
        self.index[place] = position as u32;
        self.entries[position].place = place as u32;
    }

    /// A flow more, at the last position; `None` if there is no room, or it is there already.
    pub(super) fn insert(&mut self, key: u64, value: T) -> Option<usize> {
        if self.is_full() {
            return None;
        }
        let place = self.probe(key).err()?;
        let (position, entry) = (
            self.entries.len(),
            Entry {
                key,
                place: 0,
                value,
            },
        );
        self.entries.push(entry);
        self.name(position, place);
        Some(position)
    }

    /// Remove a flow; the last one takes its position.
    pub(super) fn remove(&mut self, position: usize) {
        let hole = self.entries[position].place as usize;
        self.close(hole);
        self.entries.swap_remove(position);
        if let Some(moved) = self.entries.get(position) {
            let place = moved.place as usize;
            self.name(position, place);
        }
    }

    /// Another flow at a position, instead of the one there.
    pub(super) fn replace(&mut self, position: usize, key: u64, value: T) {
        let hole = self.entries[position].place as usize;
        self.close(hole);
        // Nothing is found there until it has a place again.
        self.entries[position] = Entry {
            key,
            place: u32::MAX,
            value,
        };
        if let Err(place) = self.probe(key) {
            self.name(position, place);
        }
    }

    /// Flows behind a place of the index that becomes free are found nearer to their home.
    fn close(&mut self, mut hole: usize) {
        let mask = self.index.len() - 1;
        let mut place = self.after(hole);
        while let Some(position) = self.at(place) {
            let home = self.home(self.entries[position].key);
            let (from_home, from_hole) = (place.wrapping_sub(home), place.wrapping_sub(hole));
            if from_home & mask >= from_hole & mask {
                self.name(position, hole);
                hole = place;
            }
            place = self.after(place);
        }
    }

    /// Exchange the positions of two flows.
    #[inline]
    pub(super) fn swap(&mut self, a: usize, b: usize) {
        self.entries.swap(a, b);
        for position in [a, b] {
            let place = self.entries[position].place as usize;
            self.name(position, place);
        }
    }

    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<&T> {
        self.entries.get(position).map(|entry| &entry.value)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        self.entries.get_mut(position).map(|entry| &mut entry.value)
    }

    /// Forget all flows. O(1) where values need no drop.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::FlowTable;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Insert(u64),
        Remove(usize),
        Replace(usize, u64),
        Swap(usize, usize),
        Clear,
    }

    /// Few homes, so that flows collide and runs of places wrap around.
    fn key() -> impl Strategy<Value = u64> {
        (prop_oneof![Just(0u64), Just(1), 13u64..16], 0u64..6)
            .prop_map(|(low, high)| high << 32 | low)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => key().prop_map(Step::Insert),
            4 => (0usize..8).prop_map(Step::Remove),
            4 => (0usize..8, key()).prop_map(|(at, key)| Step::Replace(at, key)),
            2 => (0usize..8, 0usize..8).prop_map(|(a, b)| Step::Swap(a, b)),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(steps in prop::collection::vec(step(), 0..200)) {
            let mut table = FlowTable::with_capacity(8);
            let mut model: BTreeMap<u64, usize> = BTreeMap::new();
            for (number, step) in steps.into_iter().enumerate() {
                let len = table.len();
                match step {
                    Step::Insert(key) => {
                        let is_new = model.len() < 8 && !model.contains_key(&key);
                        prop_assert_eq!(table.insert(key, (key, number)).is_some(), is_new);
                        if is_new {
                            model.insert(key, number);
                        }
                    }
                    Step::Remove(at) if at < len => {
                        model.remove(&table.get(at).unwrap().0);
                        table.remove(at);
                    }
                    Step::Replace(at, key) if at < len && !model.contains_key(&key) => {
                        model.remove(&table.get(at).unwrap().0);
                        table.replace(at, key, (key, number));
                        model.insert(key, number);
                    }
                    Step::Swap(a, b) if a < len && b < len => table.swap(a, b),
                    Step::Clear => {
                        table.clear();
                        model.clear();
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len(), model.len());
                for low in [0u64, 1, 13, 14, 15] {
                    for high in 0..6 {
                        let key = high << 32 | low;
                        let found = table.find(key).and_then(|at| table.get(at));
                        let expected = model.get(&key).map(|&number| (key, number));
                        prop_assert_eq!(found.copied(), expected);
                    }
                }
            }
        }
    }
}
