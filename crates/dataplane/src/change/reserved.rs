//! Reservations of a policy's slices on their link, over changes of single slices.
//!
//! A frame that was eligible under an old guarantee keeps its deadline, and frames of other slices wait for it. So the old
//! guarantee stays reserved beside the new one, as one that covers both, until the busy period has ended: no frame waits that is
//! eligible. When frames leave after that depends on what becomes eligible after it, and on nothing else.
//!
//! It is not enough that the deadlines under the old guarantee have passed. A frame of a slice with a longer delay may have
//! waited for the frames under the old guarantee, and would then wait for those under the new one, too.

use slicewise_model::{AdmissionParams, GuaranteeParams, Refusal, Reservation, Reservations};
use std::collections::{BTreeMap, LinkedList};

/// Reservations that have ended are released with later changes, at most so many at a time: a change
/// takes a bounded time.
const RELEASED_PER_CHANGE: usize = 64;

/// Guarantees reserved, also those that were replaced.
#[derive(Debug)]
#[expect(clippy::linkedlist, reason = "a change takes a bounded time")]
pub(crate) struct Reserved {
    reservations: Reservations,
    /// Classes for which more is reserved than they have.
    transitions: BTreeMap<u32, Transition>,
    /// Reservations that have ended, and the busy period after which each is released.
    ended: LinkedList<(u64, Ended)>,
    /// Guarantees of removed slices of which frames wait.
    draining: u32,
    /// Frames wait from before the policy was committed: what was reserved for those is not known here.
    is_incomplete: bool,
}

#[derive(Debug, Clone, Copy)]
struct Transition {
    /// Covers the old guarantee and the new one.
    reserved: Reservation,
    to: GuaranteeParams,
    /// The last busy period with frames under the old guarantee.
    ended_in: u64,
}

#[derive(Debug, Clone, Copy)]
enum Ended {
    /// Reservation that this class had before, unless it was changed again.
    Replaced(u32),
    /// The guarantee of a slice that was removed.
    Removed(Reservation),
}

/// Why a guarantee is not reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotReserved {
    /// It does not fit beside the others.
    Refused(Refusal),
    /// It would fit, but not while the guarantee that it replaces still holds.
    InTransition(Refusal),
    /// Frames wait from before the policy was committed.
    Incomplete,
}

impl Reserved {
    /// Reserves `guarantees`, which were admitted on `links`.
    pub(crate) fn new<'a>(
        links: &[AdmissionParams],
        guarantees: impl Iterator<Item = &'a GuaranteeParams>,
    ) -> Self {
        let mut reservations = Reservations::new(links);
        guarantees.for_each(|guarantee| reservations.restore(*guarantee));
        Self {
            reservations,
            transitions: BTreeMap::new(),
            ended: LinkedList::new(),
            draining: 0,
            is_incomplete: false,
        }
    }

    /// The policy was committed while frames waited, before any busy period of its own.
    pub(crate) const fn on_committed(&mut self) {
        self.is_incomplete = true;
    }

    /// Returns whether anything counts that was replaced or removed.
    pub(crate) fn has_ended(&self) -> bool {
        self.draining > 0 || !self.ended.is_empty() || self.is_incomplete
    }

    /// Release what ended before this busy period, or all if there is none.
    pub(crate) fn settle(&mut self, busy_period: Option<u64>) {
        let is_over = |ended_in: u64| busy_period.is_none_or(|now| ended_in < now);
        self.is_incomplete &= !is_over(0);
        for _ in 0..RELEASED_PER_CHANGE {
            let first = self.ended.front().filter(|first| is_over(first.0));
            let Some(&(ended_in, ended)) = first else {
                return;
            };
            self.ended.pop_front();
            match ended {
                Ended::Removed(reserved) => self.reservations.release(reserved),
                Ended::Replaced(class) => {
                    let transition = self.transitions.get(&class).copied();
                    let Some(ended) = transition.filter(|before| before.ended_in == ended_in)
                    else {
                        continue;
                    };
                    self.transitions.remove(&class);
                    self.reservations.release(ended.reserved);
                    self.reservations.restore(ended.to);
                }
            }
        }
    }

    /// Reserve the guarantee of a new slice.
    pub(crate) fn try_add(&mut self, guarantee: &GuaranteeParams) -> Result<(), NotReserved> {
        if self.is_incomplete {
            return Err(NotReserved::Incomplete);
        }
        let reserved = self.reservations.try_reserve(*guarantee);
        reserved.map_err(NotReserved::Refused)
    }

    /// Returns whether [`try_add`](Self::try_add) would succeed now; nothing is changed.
    pub(crate) fn check_add(&mut self, guarantee: &GuaranteeParams) -> Result<(), NotReserved> {
        self.try_add(guarantee)?;
        self.undo_add(guarantee);
        Ok(())
    }

    /// Take back [`try_add`](Self::try_add): there was no frame under this guarantee.
    pub(crate) fn undo_add(&mut self, guarantee: &GuaranteeParams) {
        self.reservations.release(*guarantee);
    }

    /// Replace the guarantee `old` of a class; what it reserves is unchanged if that is refused.
    pub(crate) fn try_change(
        &mut self,
        class: u32,
        old: Option<GuaranteeParams>,
        new: Option<GuaranteeParams>,
        busy_period: Option<u64>,
    ) -> Result<(), NotReserved> {
        let before = self.transitions.get(&class).copied();
        let Some(new) = new else {
            // A guarantee that comes later begins with its whole burst, beside this one.
            if let Some(reserved) = self.remove(class, old) {
                self.end(reserved, busy_period);
            }
            return Ok(());
        };
        let reserved = before.map(|before| before.reserved);
        let Some(current) = reserved.or(old.map(Reservation::from)) else {
            return self.try_add(&new);
        };
        let reserved = self.try_replace(current, new, busy_period)?;
        self.transitions.remove(&class);
        let Some(busy_period) = busy_period.filter(|_| reserved != new.into()) else {
            return Ok(());
        };
        let transition = Transition {
            reserved,
            to: new,
            ended_in: busy_period,
        };
        self.ended.push_back((busy_period, Ended::Replaced(class)));
        self.transitions.insert(class, transition);
        Ok(())
    }

    /// Returns whether [`try_change`](Self::try_change) would succeed now; nothing is changed.
    pub(crate) fn check_change(
        &mut self,
        class: u32,
        old: Option<GuaranteeParams>,
        new: Option<GuaranteeParams>,
        busy_period: Option<u64>,
    ) -> Result<(), NotReserved> {
        let reserved = self.transitions.get(&class).map(|before| before.reserved);
        let Some(new) = new else {
            return Ok(());
        };
        let Some(current) = reserved.or(old.map(Reservation::from)) else {
            return self.check_add(&new);
        };
        let reserved = self.try_replace(current, new, busy_period)?;
        self.reservations.release(reserved);
        self.reservations.restore(current);
        Ok(())
    }

    /// Reserve, in place of `current`, what covers it and `new`, or `new` alone if no frame is eligible; that is returned.
    /// Nothing is changed if it is refused.
    fn try_replace(
        &mut self,
        current: Reservation,
        new: GuaranteeParams,
        busy_period: Option<u64>,
    ) -> Result<Reservation, NotReserved> {
        let covering = busy_period.map_or(new.into(), |_| current.covering(new));
        if self.is_incomplete && current.covering(new) != current {
            return Err(NotReserved::Incomplete);
        }
        self.reservations.release(current);
        let mut fits = self.reservations.try_reserve(new);
        let mut why: fn(Refusal) -> NotReserved = NotReserved::Refused;
        if fits.is_ok() && covering != new.into() {
            self.reservations.release(new);
            fits = self.reservations.try_reserve(covering);
            why = NotReserved::InTransition;
        }
        if let Err(refusal) = fits {
            self.reservations.restore(current);
            return Err(why(refusal));
        }
        Ok(covering)
    }

    /// A slice that has the guarantee `old` was removed. What it reserves is returned:
    /// [`end`](Self::end) has to follow when its last frame has left.
    pub(crate) fn remove(
        &mut self,
        class: u32,
        old: Option<GuaranteeParams>,
    ) -> Option<Reservation> {
        let before = self.transitions.remove(&class);
        let reserved = before.map(|before| before.reserved);
        let reserved = reserved.or(old.map(Reservation::from))?;
        self.draining += 1;
        Some(reserved)
    }

    /// The last frame under a guarantee of a removed slice left in this busy period, or before; if there is none, before now.
    pub(crate) fn end(&mut self, reserved: Reservation, busy_period: Option<u64>) {
        self.draining -= 1;
        match busy_period {
            Some(ended_in) => self.ended.push_back((ended_in, Ended::Removed(reserved))),
            None => self.reservations.release(reserved),
        }
    }
}
