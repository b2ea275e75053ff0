//! Other policies in both directions, put in force slice by slice.
//!
//! To commit policies takes time for each of their slices, in which no frame is forwarded. Where slices alone change, each can be
//! changed by itself, a few at a time between frames.

use super::slices::NotChanged;
use super::{DirectionParams, Engine, EngineBasis, needs_of, queues::queues};
use crate::frame_memory::Needs;
use slicewise_dataplane::SliceChange;
use slicewise_units::Instant;
use std::vec::IntoIter;

/// Slices that are changed at once.
const MOST_AT_ONCE: usize = 8;

/// Changes of single slices in both directions that lead to other policies.
#[derive(Debug)]
pub struct GradualChange {
    params: [DirectionParams; 2],
    /// With these policies.
    needs: Needs,
    /// In their order.
    changes: [IntoIter<SliceChange>; 2],
}

impl GradualChange {
    /// Changes of slices that have not been carried out.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.changes.iter().map(ExactSizeIterator::len).sum()
    }
}

/// How far a gradual change got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There is more to change.
    More,
    /// The next change fits once deadlines under guarantees that were given up have passed.
    Waits,
    /// The policies are in force.
    Done,
}

impl EngineBasis {
    /// The change of both directions from `before` to `params`, beside which slices that were added one by one stay, slice by
    /// slice; `None` if they differ in more than [parameters of slices](slicewise_dataplane::Basis::slice_changes), or in queue limits where
    /// memory does not suffice for all queues, and has to be divided anew. O(classes).
    #[must_use]
    pub fn gradual(
        &self,
        before: &[DirectionParams; 2],
        params: &[DirectionParams; 2],
    ) -> Option<GradualChange> {
        let [forward, backward] = &self.directions;
        let mut directions = before.iter().zip(params);
        let are_same = |(old, new): (&DirectionParams, &DirectionParams)| {
            (old.link, old.seed) == (new.link, new.seed)
        };
        directions.all(are_same).then_some(())?;
        let needs = needs_of(params.iter().map(|it| &*it.policy), self.needs);
        let suffices = self.needs.queue_chunks.max(needs.queue_chunks) <= self.room;
        (suffices || have_same_queues(before, params, needs.frame_chunks)).then_some(())?;
        Some(GradualChange {
            needs,
            changes: [
                forward.slice_changes(&params[0].policy)?.into_iter(),
                backward.slice_changes(&params[1].policy)?.into_iter(),
            ],
            params: params.clone(),
        })
    }
}

impl Engine {
    /// Change the next few slices while frames wait: nothing queued is lost or reordered. Work: bounded. Nothing else may have
    /// changed since `change` was prepared ([`Engine::versions`]).
    ///
    /// # Errors
    /// Why a slice cannot be changed; those before it have been.
    pub fn advance(
        &mut self,
        change: &mut GradualChange,
        now: Instant,
    ) -> Result<Progress, NotChanged> {
        let (mut left, mut waits) = (MOST_AT_ONCE, false);
        let frame_chunks = self.needs.frame_chunks;
        let directions = self.directions.iter_mut().zip(&mut change.changes);
        for (number, (direction, changes)) in directions.enumerate() {
            while let Some(next) = changes.as_slice().first() {
                if left == 0 {
                    return Ok(Progress::More);
                }
                left -= 1;
                let memory = &mut self.memory;
                match direction.change_slice(next.clone(), memory, frame_chunks, now) {
                    Ok(_) => drop(changes.next()),
                    Err(error) if error.is_temporary() => {
                        waits = true;
                        break;
                    }
                    Err(error) => {
                        return Err(NotChanged {
                            direction: number,
                            error,
                        });
                    }
                }
            }
        }
        if waits {
            return Ok(Progress::Waits);
        }
        for (direction, params) in self.directions.iter_mut().zip(&change.params) {
            direction.follow(params);
        }
        self.needs = change.needs;
        Ok(Progress::Done)
    }
}

/// Whether no queue needs more memory than before, or less.
fn have_same_queues(
    before: &[DirectionParams; 2],
    params: &[DirectionParams; 2],
    frame_chunks: u32,
) -> bool {
    let of = |direction: &DirectionParams| queues(&direction.policy, frame_chunks);
    before.iter().map(of).eq(params.iter().map(of))
}
