//! Where the nodes of a tree hang.

use super::offer::Offer;

/// A node of a tree: its position among the leaves or among the inner nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeId {
    /// A leaf.
    Leaf(u32),
    /// An inner node.
    Inner(u32),
}

/// No inner node.
pub(super) const NONE: u32 = u32::MAX;

/// Where a node hangs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Position of the parent among the inner nodes; [`NONE`] for the root.
    pub(super) parent: u32,
    /// Position among the children of the parent.
    pub(super) position: u32,
}

impl Place {
    pub(super) const ROOT: Self = Self {
        parent: NONE,
        position: 0,
    };
}

/// A child and what it last offered. While that is unknown, no offer further up depends on the child.
#[derive(Debug, Clone, Copy)]
pub(super) struct Child {
    pub(super) offer: Offer,
    pub(super) node: NodeId,
}

impl Child {
    /// A node that has not been asked.
    pub(super) const fn new(node: NodeId) -> Self {
        Self {
            offer: Offer::UNKNOWN,
            node,
        }
    }
}
