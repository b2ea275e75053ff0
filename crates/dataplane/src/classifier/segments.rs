//! A vector that grows without moving its elements.

/// Elements per segment; a power of two.
const SEGMENT: usize = 128;

/// Elements in segments of equal size: to grow by one never copies more than the list of segments.
#[derive(Debug, Clone)]
pub(super) struct Segments<T> {
    /// All full but the last.
    segments: Vec<Box<[T; SEGMENT]>>,
    len: usize,
}

impl<T: Copy> Segments<T> {
    pub(super) const fn new() -> Self {
        Self {
            segments: Vec::new(),
            len: 0,
        }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.segments
            .get(index / SEGMENT)
            .map(|segment| &segment[index % SEGMENT])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.segments
            .get_mut(index / SEGMENT)
            .map(|segment| &mut segment[index % SEGMENT])
    }

    pub(super) fn push(&mut self, element: T) {
        let last = self.len;
        if last == self.segments.len() * SEGMENT {
            self.segments.push(Box::new([element; SEGMENT]));
        } else if let Some(place) = self.get_mut(last) {
            *place = element;
        }
        self.len += 1;
    }

    pub(super) fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
        // One segment is kept in reserve, so that a table at a boundary does not free and allocate in turn.
        if self.segments.len() * SEGMENT >= self.len + 2 * SEGMENT {
            self.segments.pop();
        }
    }
}
