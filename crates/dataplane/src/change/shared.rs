//! A vector whose copies share what is equal: a copy is made in O(1), and a change afterwards copies
//! the few nodes above the element.

use std::sync::Arc;

/// Children per node.
const WIDTH: usize = 64;

type Leaf<T> = Arc<Vec<T>>;
type Node<T> = Arc<Vec<Leaf<T>>>;

/// Elements in leaves of [`WIDTH`], under nodes of as many leaves.
#[derive(Debug, Clone)]
pub(crate) struct Shared<T> {
    nodes: Arc<Vec<Node<T>>>,
    len: usize,
}

impl<T: Clone> Shared<T> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Arc::new(Vec::new()),
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let node = self.nodes.get(index / (WIDTH * WIDTH))?;
        node.get(index / WIDTH % WIDTH)?.get(index % WIDTH)
    }

    /// To change an element. Nodes above it that a copy shares are copied first.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let node = Arc::make_mut(&mut self.nodes).get_mut(index / (WIDTH * WIDTH))?;
        let leaf = Arc::make_mut(node).get_mut(index / WIDTH % WIDTH)?;
        Arc::make_mut(leaf).get_mut(index % WIDTH)
    }

    pub(crate) fn push(&mut self, element: T) {
        let nodes = Arc::make_mut(&mut self.nodes);
        if self.len.is_multiple_of(WIDTH * WIDTH) {
            nodes.push(Arc::new(Vec::with_capacity(WIDTH)));
        }
        let Some(node) = nodes.last_mut().map(Arc::make_mut) else {
            return;
        };
        if self.len.is_multiple_of(WIDTH) {
            node.push(Arc::new(Vec::with_capacity(WIDTH)));
        }
        if let Some(leaf) = node.last_mut() {
            Arc::make_mut(leaf).push(element);
            self.len += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let leaves = self.nodes.iter().flat_map(|node| node.iter());
        leaves.flat_map(|leaf| leaf.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::{Shared, WIDTH};

    #[test]
    fn a_copy_stays_as_it_was() {
        let mut shared = Shared::new();
        let all = WIDTH * WIDTH + WIDTH + 1;
        (0..all).for_each(|number| shared.push(number));
        let copy = shared.clone();
        for index in [0, WIDTH, all - 1] {
            *shared.get_mut(index).unwrap() = 7;
        }
        shared.push(7);
        assert!(copy.iter().copied().eq(0..all));
        assert_eq!((copy.len(), copy.get(all)), (all, None));
        let changed = |n: usize| [0, WIDTH, all - 1, all].contains(&n);
        let expected = (0..=all).map(|n| if changed(n) { 7 } else { n });
        assert!(shared.iter().copied().eq(expected));
        assert_eq!(shared.get(all), Some(&7));
    }
}
