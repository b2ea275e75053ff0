//! Finds the flow with most bytes, to within a quarter, without a search.
//!
//! Flows are in lists by the size of their queue, four per doubling, and a bit per list says whether it
//! is empty.

use super::state::{FlowState, Size};
use crate::queue::pool::NIL;

/// Lists: four per doubling of 32 bits.
const LISTS: usize = 128;

/// Flows by size.
#[derive(Debug, Clone)]
pub(super) struct Fattest {
    heads: Box<[u32; LISTS]>,
    /// Which lists have flows.
    occupied: u128,
}

impl Fattest {
    pub(super) fn new() -> Self {
        Self {
            heads: Box::new([NIL; LISTS]),
            occupied: 0,
        }
    }

    /// A flow with at least four fifths of the bytes of the fattest.
    pub(super) fn find(&self) -> Option<u32> {
        let list = 127u32.checked_sub(self.occupied.leading_zeros())?;
        let head = self.heads[list as usize];
        (head != NIL).then_some(head)
    }

    /// A flow's bytes have changed.
    #[inline]
    pub(super) fn update(&mut self, flows: &mut [FlowState], id: u32) {
        let flow = &flows[id as usize];
        let (old, new) = (flow.size.list, list_of(flow));
        if old == new {
            return;
        }
        if old != Size::ABSENT {
            self.remove(flows, id);
        }
        if new != Size::ABSENT {
            self.insert(flows, id, new);
        }
    }

    fn insert(&mut self, flows: &mut [FlowState], id: u32, list: u8) {
        let head = &mut self.heads[usize::from(list)];
        let next = std::mem::replace(head, id);
        if next != NIL {
            flows[next as usize].size.previous = id;
        }
        flows[id as usize].size = Size {
            next,
            previous: NIL,
            list,
        };
        self.occupied |= 1 << list;
    }

    fn remove(&mut self, flows: &mut [FlowState], id: u32) {
        let Size {
            next,
            previous,
            list,
        } = std::mem::replace(&mut flows[id as usize].size, Size::NONE);
        if next != NIL {
            flows[next as usize].size.previous = previous;
        }
        if previous == NIL {
            self.heads[usize::from(list)] = next;
            if next == NIL {
                self.occupied &= !(1 << list);
            }
        } else {
            flows[previous as usize].size.next = next;
        }
    }
}

/// The list for a flow: the place of the highest bit of its bytes, and the two bits behind it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 127")]
fn list_of(flow: &FlowState) -> u8 {
    if flow.is_empty() {
        return Size::ABSENT;
    }
    let bytes = flow.bytes.max(1);
    let doubling = bytes.ilog2();
    let quarter = (u64::from(bytes) << 2 >> doubling) & 3;
    (doubling << 2) as u8 | quarter as u8
}
