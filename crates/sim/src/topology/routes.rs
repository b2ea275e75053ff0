//! The ways between nodes. Links that form a loop are refused, so the way between two nodes is unique.

use super::{Node, PortId, TopologyError};
use crate::link::LinkParams;
use std::collections::{BTreeMap, BTreeSet};

/// The links of a topology, seen from its nodes.
pub(super) struct Routes {
    /// The ports of each node, and the node behind each.
    neighbours: BTreeMap<Node, Vec<(PortId, Node)>>,
}

impl Routes {
    /// Between `nodes`, given by port, of which each has a link to its peer.
    pub(super) fn new(
        nodes: &[Node],
        peers: &[(PortId, LinkParams)],
    ) -> Result<Self, TopologyError> {
        let mut neighbours: BTreeMap<Node, Vec<(PortId, Node)>> = BTreeMap::new();
        for ((port, node), (peer, _)) in (0..).map(PortId).zip(nodes).zip(peers) {
            let behind = nodes[peer.0 as usize];
            neighbours.entry(*node).or_default().push((port, behind));
        }
        let routes = Self { neighbours };
        routes.check_loops(peers)?;
        Ok(routes)
    }

    /// Walks from every node over every link but back over the one it came by: a node that is met twice is on a
    /// loop.
    fn check_loops(&self, peers: &[(PortId, LinkParams)]) -> Result<(), TopologyError> {
        let mut seen: BTreeSet<Node> = BTreeSet::new();
        for start in self.neighbours.keys() {
            if !seen.insert(*start) {
                continue;
            }
            let mut open: Vec<(Node, Option<PortId>)> = vec![(*start, None)];
            while let Some((node, came_by)) = open.pop() {
                for (port, behind) in self.neighbours.get(&node).into_iter().flatten() {
                    if Some(*port) == came_by {
                        continue;
                    }
                    if !seen.insert(*behind) {
                        return Err(TopologyError::Loop(*behind));
                    }
                    open.push((*behind, Some(peers[port.0 as usize].0)));
                }
            }
        }
        Ok(())
    }

    /// The nodes that send on the way from one endpoint to another, each with the port it uses; nothing if there is
    /// no way.
    pub(super) fn way(&self, from: Node, to: Node) -> Vec<(Node, PortId)> {
        let mut way = Vec::new();
        let mut reached: BTreeMap<Node, (Node, PortId)> = BTreeMap::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for (port, behind) in self.neighbours.get(&node).into_iter().flatten() {
                let forwards = *behind == to || matches!(behind, Node::Device(_));
                if forwards && *behind != from && !reached.contains_key(behind) {
                    reached.insert(*behind, (node, *port));
                    open.push(*behind);
                }
            }
        }
        let mut at = to;
        while let Some(&(node, port)) = reached.get(&at) {
            way.push((node, port));
            at = node;
        }
        way.reverse();
        way
    }
}
