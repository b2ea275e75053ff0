//! A vector that grows without moving its elements.

use std::ops::{Index, IndexMut};

/// Elements per segment.
const SEGMENT: usize = 1024;

/// The elements that room was made for at construction lie together, later ones in segments of equal
/// size. So to grow by one copies nothing but the list of segments.
#[derive(Debug, Clone)]
pub(crate) struct Slots<T> {
    base: Vec<T>,
    /// All full but the last.
    segments: Vec<Vec<T>>,
    len: usize,
}

impl<T> Slots<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            base: Vec::with_capacity(capacity),
            segments: Vec::new(),
            len: 0,
        }
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match self.base.get(index) {
            Some(element) => Some(element),
            None => self.later(index),
        }
    }

    /// Not inlined, so that the usual case stays short.
    #[inline(never)]
    fn later(&self, index: usize) -> Option<&T> {
        let index = index.checked_sub(self.base.len())?;
        self.segments.get(index / SEGMENT)?.get(index % SEGMENT)
    }

    #[inline(never)]
    fn later_mut(&mut self, index: usize) -> Option<&mut T> {
        let index = index.checked_sub(self.base.len())?;
        let segment = self.segments.get_mut(index / SEGMENT)?;
        segment.get_mut(index % SEGMENT)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index < self.base.len() {
            return self.base.get_mut(index);
        }
        self.later_mut(index)
    }

    pub(crate) fn push(&mut self, element: T) {
        self.len += 1;
        // A clone has no spare room, and its base is complete, too.
        if self.segments.is_empty() && self.base.len() < self.base.capacity() {
            return self.base.push(element);
        }
        match self.segments.last_mut() {
            Some(last) if last.len() < SEGMENT => last.push(element),
            _ => {
                let mut segment = Vec::with_capacity(SEGMENT);
                segment.push(element);
                self.segments.push(segment);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.base.iter().chain(self.segments.iter().flatten())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let later = self.segments.iter_mut().flatten();
        self.base.iter_mut().chain(later)
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        match self.base.get(index) {
            Some(element) => element,
            None => {
                let index = index - self.base.len();
                &self.segments[index / SEGMENT][index % SEGMENT]
            }
        }
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        if index < self.base.len() {
            return &mut self.base[index];
        }
        let index = index - self.base.len();
        &mut self.segments[index / SEGMENT][index % SEGMENT]
    }
}

#[cfg(test)]
mod tests {
    use super::{SEGMENT, Slots};

    #[test]
    fn elements_stay_where_they_are_put() {
        let mut slots = Slots::with_capacity(3);
        let room = slots.base.capacity();
        let all = room + 2 * SEGMENT + 1;
        for number in 0..all {
            assert_eq!(slots.len(), number);
            slots.push(number);
        }
        assert_eq!(slots.base.capacity(), room, "it has not grown");
        slots[room] += 1;
        *slots.get_mut(room).unwrap() -= 1;
        let missing = (slots.get(all).copied(), slots.get_mut(all).copied());
        assert_eq!(missing, (None, None));
        assert!((0..all).all(|number| slots[number] == number));
        assert!((0..all).all(|number| slots.get(number) == Some(&number)));
        assert!(slots.iter().copied().eq(0..all));
        assert!(slots.iter_mut().map(|number| *number).eq(0..all));
    }
}
