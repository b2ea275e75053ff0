//! The excess tier: capacity not needed by guarantees, shared by weight, first among tenants and then
//! among the slices of each.
//!
//! Two levels of deficit round robin (Shreedhar & Varghese, SIGCOMM 1995). A turn of weight 1 is
//! one largest frame, so every turn sends at least one and a decision takes O(1).

use super::ring::Ring;
use super::slice::{Excess, SliceState};
use crate::slots::Slots;
use slicewise_model::{SliceParams, TenantParams};

/// Slices that share one portion of the excess.
#[derive(Debug, Clone)]
struct Tenant {
    /// That of a turn.
    weight: u32,
    /// Bytes it may still send in this turn.
    deficit: i64,
    /// Its position in the ring of tenants.
    position: u32,
    /// Slices that are not removed: the ring has room for them.
    slices: u32,
    ring: Ring,
}

impl Tenant {
    /// Bytes of one turn, where a turn of weight 1 is `largest_frame`.
    fn quantum(&self, largest_frame: u64) -> i64 {
        let quantum = u64::from(self.weight.max(1)).saturating_mul(largest_frame);
        i64::try_from(quantum).unwrap_or(i64::MAX / 2)
    }
}

/// Tenants, and their backlogged slices below their maximum.
#[derive(Debug, Clone)]
pub(super) struct ExcessTier {
    tenants: Vec<Tenant>,
    ring: Ring,
    largest_frame: u64,
}

impl ExcessTier {
    pub(super) fn new(tenants: &[TenantParams], largest_frame: u64) -> Self {
        let mut tier = Self {
            tenants: Vec::with_capacity(tenants.len()),
            ring: Ring::default(),
            largest_frame,
        };
        tenants.iter().for_each(|tenant| {
            tier.add_tenant(tenant.weight);
        });
        tier
    }

    /// A turn of weight 1 is another largest frame, from the next turn on. Until each tenant has had one, a tenant may be short of
    /// what a larger frame needs, once.
    pub(super) const fn set_largest_frame(&mut self, largest_frame: u64) {
        self.largest_frame = largest_frame;
    }

    /// One more tenant; its number is how many there were.
    pub(super) fn add_tenant(&mut self, weight: u32) {
        self.tenants.push(Tenant {
            weight,
            deficit: 0,
            position: 0,
            slices: 0,
            ring: Ring::default(),
        });
        let tenants = u32::try_from(self.tenants.len()).unwrap_or(u32::MAX);
        self.ring.reserve(tenants);
    }

    /// A tenant has another weight, from its next turn on.
    pub(super) fn set_weight(&mut self, tenant: u32, weight: u32) {
        if let Some(tenant) = self.tenants.get_mut(tenant as usize) {
            tenant.weight = weight;
        }
    }

    /// Whether no slice takes turns.
    pub(super) const fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Number of tenants.
    pub(super) fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// Make room for one more slice of `tenant`.
    pub(super) fn add_slice(&mut self, tenant: u16) {
        let tenant = &mut self.tenants[usize::from(tenant)];
        tenant.slices += 1;
        tenant.ring.reserve(tenant.slices);
    }

    /// An empty slice is removed.
    pub(super) fn remove_slice(&mut self, slice: &SliceState, id: u32) {
        let tenant = &mut self.tenants[usize::from(slice.tenant)];
        tenant.slices -= 1;
        tenant.ring.forget(id, slice.turn);
    }

    /// A slice goes to the tenant that `params` names; if it takes turns, it begins one there.
    pub(super) fn change_tenant(&mut self, slice: &mut SliceState, id: u32, params: &SliceParams) {
        let tenant = u16::try_from(params.tenant).unwrap_or(u16::MAX);
        if slice.tenant == tenant {
            return;
        }
        let takes_turns = slice.excess == Excess::InRing;
        if takes_turns {
            self.leave(slice, id);
        }
        self.remove_slice(slice, id);
        slice.tenant = tenant;
        self.add_slice(tenant);
        if takes_turns {
            self.join(slice, id);
        }
    }

    /// A slice has frames and may send: it joins the turns with a full quantum, so that the one at the
    /// front can always send.
    pub(super) fn join(&mut self, slice: &mut SliceState, id: u32) {
        let number = u32::from(slice.tenant);
        let tenant = &mut self.tenants[number as usize];
        if tenant.ring.is_empty() {
            tenant.deficit = tenant.quantum(self.largest_frame);
            tenant.position = self.ring.join(number, tenant.position);
        }
        slice.deficit = slice.quantum(self.largest_frame);
        slice.turn = tenant.ring.join(id, slice.turn);
    }

    /// A slice is empty, or reached its maximum.
    pub(super) fn leave(&mut self, slice: &SliceState, id: u32) {
        let number = u32::from(slice.tenant);
        let tenant = &mut self.tenants[number as usize];
        tenant.ring.leave(id, slice.turn);
        if tenant.ring.is_empty() {
            self.ring.leave(number, tenant.position);
        }
    }

    /// Whose turn it is. `bytes_of_head` returns the size of a slice's first frame, at most the largest.
    pub(super) fn select(
        &mut self,
        slices: &mut Slots<SliceState>,
        bytes_of_head: impl Fn(&SliceState) -> u64,
    ) -> Option<u32> {
        // A turn pays for at least one frame when it begins, so only the two at the fronts can be
        // short of what the slice's next frame needs: at most two turns end here.
        loop {
            let number = self.ring.front()?;
            let tenant = &mut self.tenants[number as usize];
            let id = tenant.ring.front()?;
            let slice = &mut slices[id as usize];
            let bytes = signed(bytes_of_head(slice));
            if tenant.deficit < bytes {
                tenant.deficit += tenant.quantum(self.largest_frame);
                tenant.position = self.ring.rotate();
            } else if i64::from(slice.deficit) < bytes {
                slice.deficit += slice.quantum(self.largest_frame);
                slice.turn = tenant.ring.rotate();
            } else {
                return Some(id);
            }
        }
    }

    /// Charge a frame that the slice whose turn it is has sent. `next` is its next frame's size:
    /// a turn that does not pay for it ends here, while the slice is at hand.
    pub(super) fn charge(&mut self, slice: &mut SliceState, bytes: u64, next: Option<u64>) {
        let tenant = &mut self.tenants[usize::from(slice.tenant)];
        tenant.deficit -= signed(bytes);
        slice.deficit -= i32::try_from(bytes).unwrap_or(i32::MAX / 2);
        if next.is_some_and(|next| i64::from(slice.deficit) < signed(next)) {
            slice.deficit += slice.quantum(self.largest_frame);
            slice.turn = tenant.ring.rotate();
        }
    }

    /// The slice that comes `turns` after the one whose turn it is. For reading ahead.
    pub(super) fn ahead(&mut self, turns: u32) -> Option<u32> {
        let number = self.ring.front()?;
        self.tenants[number as usize].ring.ahead(turns)
    }
}

/// Frames are far smaller than this can hold.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
