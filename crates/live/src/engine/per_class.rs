//! Something for each class of a pipeline, which grows without moving what is there.

/// Elements per segment.
const SEGMENT: usize = 256;

/// Elements by the number of their class.
#[derive(Debug)]
pub(super) struct PerClass<T> {
    /// All full but the last.
    segments: Vec<Vec<T>>,
}

impl<T: Default> PerClass<T> {
    #[inline]
    pub(super) fn get(&self, class: u32) -> Option<&T> {
        let index = class as usize;
        self.segments.get(index / SEGMENT)?.get(index % SEGMENT)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, class: u32) -> Option<&mut T> {
        let index = class as usize;
        let segment = self.segments.get_mut(index / SEGMENT)?;
        segment.get_mut(index % SEGMENT)
    }

    pub(super) fn push(&mut self, element: T) {
        match self.segments.last_mut() {
            Some(last) if last.len() < SEGMENT => last.push(element),
            _ => {
                let mut segment = Vec::with_capacity(SEGMENT);
                segment.push(element);
                self.segments.push(segment);
            }
        }
    }

    /// Replace the element of a class, or add it.
    pub(super) fn set(&mut self, class: u32, element: T) {
        while self.len() < class as usize {
            self.push(T::default());
        }
        match self.get_mut(class) {
            Some(place) => *place = element,
            None => self.push(element),
        }
    }

    pub(super) fn len(&self) -> usize {
        let last = self.segments.last().map_or(0, Vec::len);
        self.segments.len().saturating_sub(1) * SEGMENT + last
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.segments.iter().flatten()
    }

    pub(super) fn into_elements(self) -> impl Iterator<Item = T> {
        self.segments.into_iter().flatten()
    }
}

impl<T: Default> Default for PerClass<T> {
    fn default() -> Self {
        Self {
            segments: Vec::new(),
        }
    }
}

impl<T: Default> FromIterator<T> for PerClass<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut all = Self::default();
        elements.into_iter().for_each(|element| all.push(element));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{PerClass, SEGMENT};

    #[test]
    fn elements_are_found_by_the_number_of_their_class() {
        let last = u32::try_from(2 * SEGMENT).unwrap();
        let mut all: PerClass<u32> = [7, 8].into_iter().collect();
        all.set(last, 9);
        all.set(1, 5);
        assert_eq!(all.len(), 2 * SEGMENT + 1);
        let found = [0, 1, 2, last, last + 1].map(|class| all.get(class).copied());
        assert_eq!(found, [Some(7), Some(5), Some(0), Some(9), None]);
        assert_eq!(all.iter().count(), all.len());
    }
}
