//! The excess tier: capacity not needed by guarantees, shared by weight, first among tenants and then
//! among the slices of each.
//!
//! Two levels of [`Turns`]. Every turn pays for at least one largest frame, so a decision takes O(1).

use super::slice::{Excess, SliceState, weight};
use super::turns::Turns;
use crate::slots::Slots;
use slicewise_model::{SliceParams, TenantParams};

/// Slices that share one portion of the excess.
#[derive(Debug, Clone)]
struct Tenant {
    weight: u16,
    /// Bytes it may still send in this turn.
    deficit: i64,
    /// Its position in the turns of tenants.
    position: u32,
    /// Slices that are not removed: there is room for them in `turns`.
    slices: u32,
    /// Turns of its slices.
    turns: Turns,
}

impl Tenant {
    /// The turn of `slice` is over: that of the next begins.
    #[inline]
    fn end_turn_of(&mut self, slice: &mut SliceState, largest_frame: i64) {
        let deficit = i64::from(slice.deficit);
        let (turn, deficit) = self.turns.end_turn(slice.weight, deficit, largest_frame);
        (slice.turn, slice.deficit) = (turn, narrow(deficit));
    }
}

/// Tenants, and their backlogged slices below their maximum.
#[derive(Debug, Clone)]
pub(super) struct ExcessTier {
    tenants: Vec<Tenant>,
    /// Turns of tenants.
    turns: Turns,
    largest_frame: i64,
}

impl ExcessTier {
    pub(super) fn new(tenants: &[TenantParams], largest_frame: u64) -> Self {
        let mut tier = Self {
            tenants: Vec::with_capacity(tenants.len()),
            turns: Turns::default(),
            largest_frame: signed(largest_frame),
        };
        tenants.iter().for_each(|tenant| {
            tier.add_tenant(tenant.weight);
        });
        tier
    }

    /// One more tenant; its number is how many there were.
    pub(super) fn add_tenant(&mut self, new: u32) {
        self.tenants.push(Tenant {
            weight: weight(new),
            deficit: 0,
            position: 0,
            slices: 0,
            turns: Turns::default(),
        });
        let tenants = u32::try_from(self.tenants.len()).unwrap_or(u32::MAX);
        self.turns.reserve(tenants);
    }

    /// A tenant has another weight, from its next turn on.
    pub(super) fn set_tenant_weight(&mut self, tenant: u32, new: u32) {
        if let Some(tenant) = self.tenants.get_mut(tenant as usize) {
            tenant.weight = weight(new);
            if !tenant.turns.is_empty() {
                let turns = &mut self.turns;
                tenant.deficit =
                    turns.change_weight(tenant.weight, tenant.deficit, self.largest_frame);
            }
        }
    }

    /// A slice has another weight, from its next turn on.
    pub(super) fn set_slice_weight(&mut self, slice: &mut SliceState, new: u32) {
        let new = weight(new);
        if slice.weight == new {
            return;
        }
        slice.weight = new;
        if slice.excess == Excess::InRing {
            let turns = &mut self.tenants[usize::from(slice.tenant)].turns;
            let deficit = i64::from(slice.deficit);
            slice.deficit = narrow(turns.change_weight(new, deficit, self.largest_frame));
        }
    }

    /// Returns true if no slice takes turns.
    pub(super) const fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Number of tenants.
    pub(super) fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// Make room for one more slice of `tenant`.
    pub(super) fn add_slice(&mut self, tenant: u16) {
        let tenant = &mut self.tenants[usize::from(tenant)];
        tenant.slices += 1;
        tenant.turns.reserve(tenant.slices);
    }

    /// An empty slice is removed.
    pub(super) fn remove_slice(&mut self, slice: &SliceState, id: u32) {
        let tenant = &mut self.tenants[usize::from(slice.tenant)];
        tenant.slices -= 1;
        tenant.turns.forget(id, slice.turn);
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

    /// A slice has frames and may send: it joins the turns with what a turn earns, so that the one at the front can always
    /// send.
    pub(super) fn join(&mut self, slice: &mut SliceState, id: u32) {
        let number = u32::from(slice.tenant);
        let largest_frame = self.largest_frame;
        let tenant = &mut self.tenants[number as usize];
        if tenant.turns.is_empty() {
            (tenant.position, tenant.deficit) =
                self.turns
                    .join(number, tenant.position, tenant.weight, largest_frame);
        }
        let (turn, deficit) = tenant
            .turns
            .join(id, slice.turn, slice.weight, largest_frame);
        (slice.turn, slice.deficit) = (turn, narrow(deficit));
    }

    /// A slice is empty, or reached its maximum.
    pub(super) fn leave(&mut self, slice: &SliceState, id: u32) {
        let number = u32::from(slice.tenant);
        let tenant = &mut self.tenants[number as usize];
        tenant.turns.leave(id, slice.turn);
        if tenant.turns.is_empty() {
            self.turns.leave(number, tenant.position);
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
            let number = self.turns.front()?;
            let tenant = &mut self.tenants[number as usize];
            let id = tenant.turns.front()?;
            let slice = &mut slices[id as usize];
            let bytes = signed(bytes_of_head(slice));
            if tenant.deficit < bytes {
                (tenant.position, tenant.deficit) =
                    self.turns
                        .end_turn(tenant.weight, tenant.deficit, self.largest_frame);
            } else if i64::from(slice.deficit) < bytes {
                tenant.end_turn_of(slice, self.largest_frame);
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
            tenant.end_turn_of(slice, self.largest_frame);
        }
    }

    /// The slice that comes `turns` after the one whose turn it is. For reading ahead.
    pub(super) fn ahead(&mut self, turns: u32) -> Option<u32> {
        let number = self.turns.front()?;
        self.tenants[number as usize].turns.ahead(turns)
    }
}

/// A turn is at most 1 GiB and what remained of the one before.
fn narrow(deficit: i64) -> i32 {
    i32::try_from(deficit).unwrap_or(i32::MAX)
}

/// Frames are far smaller than this can hold.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
