//! What the slices of a policy have reserved of their link, over changes of single slices.
//!
//! A frame that was eligible under an old guarantee keeps its deadline. So the old guarantee stays
//! reserved beside the new one, as one that covers both, until that deadline has passed.

use slicewise_model::{
    AdmissionParams, DelayClasses, GuaranteeParams, Problem, Refusal, Reservations,
};
use slicewise_units::{Duration, Instant};
use std::collections::BTreeMap;

/// Reservations that have ended are released with later changes, at most so many at a time: a change
/// takes a bounded time.
const RELEASED_PER_CHANGE: usize = 64;

/// Guarantees reserved, and until when those that were replaced are.
#[derive(Debug)]
pub(crate) struct Reserved {
    reservations: Reservations,
    delays: DelayClasses,
    /// Width of a bucket of deadlines.
    granularity: Duration,
    /// Classes for which more is reserved than they have.
    transitions: BTreeMap<u32, Transition>,
    /// What ends when, numbered, because several may end at the same time.
    due: BTreeMap<(Instant, u64), Due>,
    next_due: u64,
    /// Guarantees of slices that were removed for which [`end`](Self::end) has to follow.
    unended: u32,
}

#[derive(Debug, Clone, Copy)]
struct Transition {
    /// Covers the old guarantee and the new one.
    reserved: GuaranteeParams,
    to: Option<GuaranteeParams>,
    until: Instant,
}

#[derive(Debug, Clone, Copy)]
enum Due {
    /// The transition of this class, unless it was changed again.
    Transition(u32),
    /// The guarantee of a slice that was removed.
    Removed(GuaranteeParams),
}

/// Why a guarantee is not reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotReserved {
    /// It does not fit beside the others.
    Refused(Refusal),
    /// It would fit, but not while the guarantee that it replaces still holds.
    InTransition(Refusal),
}

impl Reserved {
    /// What `guarantees`, which were admitted on `links`, reserve.
    pub(crate) fn new<'a>(
        links: &[AdmissionParams],
        delays: DelayClasses,
        guarantees: impl Iterator<Item = &'a GuaranteeParams>,
    ) -> Self {
        let mut reservations = Reservations::new(links);
        guarantees.for_each(|guarantee| reservations.restore(guarantee));
        Self {
            reservations,
            granularity: delays.bucket_width(),
            delays,
            transitions: BTreeMap::new(),
            due: BTreeMap::new(),
            next_due: 0,
            unended: 0,
        }
    }

    /// Let other links admit what is reserved, also what was replaced; see [`Reservations::change_links`].
    pub(crate) fn change_links(&mut self, links: &[AdmissionParams]) -> Result<(), Problem> {
        self.reservations.change_links(links)
    }

    /// Whether what slices had that were removed is reserved until frames of theirs have left.
    pub(crate) const fn waits_for_frames(&self) -> bool {
        self.unended > 0
    }

    /// Until when what was replaced or removed is reserved.
    pub(crate) fn last_due(&self) -> Option<Instant> {
        self.due.last_key_value().map(|(&(at, _), _)| at)
    }

    /// Release what has ended by `now`.
    pub(crate) fn settle(&mut self, now: Instant) {
        for _ in 0..RELEASED_PER_CHANGE {
            let Some(first) = self.due.first_entry().filter(|first| first.key().0 <= now) else {
                return;
            };
            let ((at, _), due) = first.remove_entry();
            match due {
                Due::Removed(guarantee) => self.reservations.release(&guarantee),
                Due::Transition(class) => {
                    let transition = self.transitions.get(&class).copied();
                    let Some(ended) = transition.filter(|transition| transition.until == at) else {
                        continue;
                    };
                    self.transitions.remove(&class);
                    self.reservations.release(&ended.reserved);
                    ended.to.iter().for_each(|to| self.reservations.restore(to));
                }
            }
        }
    }

    /// Reserve the guarantee of a new slice.
    pub(crate) fn try_add(&mut self, guarantee: &GuaranteeParams) -> Result<(), NotReserved> {
        let reserved = self.reservations.try_reserve(guarantee);
        reserved.map_err(NotReserved::Refused)
    }

    /// Whether [`try_add`](Self::try_add) would succeed now; nothing is changed.
    pub(crate) fn check_add(&mut self, guarantee: &GuaranteeParams) -> Result<(), NotReserved> {
        self.try_add(guarantee)?;
        self.undo_add(guarantee);
        Ok(())
    }

    /// Take back [`try_add`](Self::try_add): there was no frame under this guarantee.
    pub(crate) fn undo_add(&mut self, guarantee: &GuaranteeParams) {
        self.reservations.release(guarantee);
    }

    /// Replace the guarantee `old` of a class; what it reserves is unchanged if that is refused.
    pub(crate) fn try_change(
        &mut self,
        class: u32,
        old: Option<GuaranteeParams>,
        new: Option<GuaranteeParams>,
        now: Instant,
    ) -> Result<(), NotReserved> {
        let before = self.transitions.get(&class).copied();
        let Some(current) = before.map(|before| before.reserved).or(old) else {
            return new.map_or(Ok(()), |new| self.try_add(&new));
        };
        let covering = self.try_cover(current, new)?;
        if new == Some(covering) {
            self.transitions.remove(&class);
            return Ok(());
        }
        // What the new guarantee covers needs nothing beside it.
        let beside = old.filter(|old| new.is_none_or(|new| covering_both(*old, new) != new));
        let until = self.until(beside, before, now);
        let transition = Transition {
            reserved: covering,
            to: new,
            until,
        };
        self.transitions.insert(class, transition);
        self.end_at(until, Due::Transition(class));
        Ok(())
    }

    /// Whether [`try_change`](Self::try_change) would succeed now; nothing is changed.
    pub(crate) fn check_change(
        &mut self,
        class: u32,
        old: Option<GuaranteeParams>,
        new: Option<GuaranteeParams>,
    ) -> Result<(), NotReserved> {
        let before = self.transitions.get(&class);
        let Some(current) = before.map(|before| before.reserved).or(old) else {
            return new.map_or(Ok(()), |new| self.check_add(&new));
        };
        let covering = self.try_cover(current, new)?;
        self.reservations.release(&covering);
        self.reservations.restore(&current);
        Ok(())
    }

    /// Reserve, in place of `current`, what covers it and `new`; that is returned. Nothing is changed if it is refused.
    fn try_cover(
        &mut self,
        current: GuaranteeParams,
        new: Option<GuaranteeParams>,
    ) -> Result<GuaranteeParams, NotReserved> {
        let Some(new) = new else {
            return Ok(current);
        };
        let covering = covering_both(current, new);
        self.reservations.release(&current);
        let mut fits = self.reservations.try_reserve(&new);
        let mut why: fn(Refusal) -> NotReserved = NotReserved::Refused;
        if fits.is_ok() && covering != new {
            self.reservations.release(&new);
            fits = self.reservations.try_reserve(&covering);
            why = NotReserved::InTransition;
        }
        if let Err(refusal) = fits {
            self.reservations.restore(&current);
            return Err(why(refusal));
        }
        Ok(covering)
    }

    /// A slice that has the guarantee `old` was removed: what it reserves is released when the deadlines
    /// of its frames have passed, the last of which is eligible by `last_eligible`. If that is not
    /// known yet, what it reserves is returned, and [`end`](Self::end) has to follow.
    pub(crate) fn remove(
        &mut self,
        class: u32,
        old: Option<GuaranteeParams>,
        last_eligible: Option<Instant>,
    ) -> Option<GuaranteeParams> {
        let before = self.transitions.remove(&class);
        let reserved = before.map(|before| before.reserved).or(old)?;
        let Some(last_eligible) = last_eligible else {
            self.unended += 1;
            return Some(reserved);
        };
        let until = self.until(old, before, last_eligible);
        self.end_at(until, Due::Removed(reserved));
        None
    }

    /// The last frame under a guarantee of a removed slice has left by `now`.
    pub(crate) fn end(&mut self, reserved: GuaranteeParams, now: Instant) {
        self.unended -= 1;
        let until = self.until(Some(reserved), None, now);
        self.end_at(until, Due::Removed(reserved));
    }

    /// When the deadlines of frames that are eligible by `last_eligible` have passed.
    fn until(
        &self,
        old: Option<GuaranteeParams>,
        before: Option<Transition>,
        last_eligible: Instant,
    ) -> Instant {
        let own = old.map_or(Instant::ZERO, |old| {
            last_eligible + self.delays.delay(old.class) + self.granularity
        });
        before.map_or(own, |before| own.max(before.until))
    }

    fn end_at(&mut self, at: Instant, due: Due) {
        self.due.insert((at, self.next_due), due);
        self.next_due += 1;
    }
}

/// A guarantee that promises what either does.
fn covering_both(one: GuaranteeParams, other: GuaranteeParams) -> GuaranteeParams {
    GuaranteeParams {
        rate: one.rate.max(other.rate),
        burst: one.burst.max(other.burst),
        class: one.class.min(other.class),
    }
}
