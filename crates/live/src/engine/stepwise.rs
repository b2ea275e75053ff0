//! Other policies in both directions, put in force slice by slice.
//!
//! To commit policies takes time for each of their slices, in which no frame is forwarded. Where single slices differ alone, each is
//! changed by itself, a few at a time between frames.

use super::division::needs_of;
use super::queues::queues;
use super::slices::NotChanged;
use super::{DirectionParams, Engine, EngineBasis, MOST_QUEUED_CHUNKS};
use crate::frame_memory::{Needs, level};
use slicewise_dataplane::Step;
use slicewise_units::{BothWays, Instant};
use std::vec::IntoIter;

/// Steps at once.
const STEPS_MAX: usize = 4;

/// Steps in both directions that lead to other policies.
#[derive(Debug)]
pub struct StepwiseChange {
    params: [DirectionParams; 2],
    /// With these policies.
    needs: Needs,
    /// Steps of each direction, in their order.
    steps: BothWays<IntoIter<Step>>,
}

impl StepwiseChange {
    /// Steps that have not been carried out.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.steps.iter().map(|(_, steps)| steps.len()).sum()
    }
}

/// Progress of a stepwise change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// There is more to change.
    More,
    /// The next step is refused for now: frames have to leave.
    Waits(NotChanged),
    /// The policies are in force.
    Done,
}

impl EngineBasis {
    /// Returns the change of both directions from `before` to `params` slice by slice, beside which slices that were added one by one
    /// stay. `None` if the policies have to be committed: the link differs, [more than slices](slicewise_dataplane::Basis::diff)
    /// does, or the frame memory is to be divided otherwise. O(classes · log classes).
    #[must_use]
    pub fn stepwise(
        &self,
        before: &[DirectionParams; 2],
        params: &[DirectionParams; 2],
    ) -> Option<StepwiseChange> {
        let mut directions = before.iter().zip(params);
        let are_same = directions.all(|(old, new)| (old.link, old.seed) == (new.link, new.seed));
        let policies = params.iter();
        let queues = policies.flat_map(|it| queues(&it.policy, self.needs.frame_chunks));
        let chunks: Vec<u64> = queues.map(|queue| queue.chunks).collect();
        let (total, old_level) = self.division;
        let is_divided_alike = level(total, chunks.iter().copied()) == old_level;
        if !are_same || total > MOST_QUEUED_CHUNKS || !is_divided_alike {
            return None;
        }
        let BothWays { forward, backward } = &self.directions;
        let steps = BothWays {
            forward: forward.diff(&params[0].policy)?,
            backward: backward.diff(&params[1].policy)?,
        };
        Some(StepwiseChange {
            needs: needs_of(chunks.into_iter(), self.needs),
            steps: steps.map(Vec::into_iter),
            params: params.clone(),
        })
    }
}

impl Engine {
    /// Carry out the next few steps while frames wait: nothing queued is lost or reordered. Work: bounded. Nothing else may have
    /// changed since `change` was prepared ([`Engine::versions`]).
    ///
    /// # Errors
    /// Why a slice cannot be changed; those before it have been.
    pub fn advance(
        &mut self,
        change: &mut StepwiseChange,
        now: Instant,
    ) -> Result<Progress, NotChanged> {
        let (mut left, mut refused) = (STEPS_MAX, None);
        let directions = self.directions.as_mut().zip(change.steps.as_mut());
        for (direction, (at, steps)) in directions {
            while let Some(next) = steps.as_slice().first().cloned() {
                if left == 0 {
                    return Ok(Progress::More);
                }
                match at.carry_out(next, &mut self.memory, self.needs.frame_chunks, now) {
                    Ok(()) => drop(steps.next()),
                    Err(error) => {
                        let is_temporary = error.is_temporary();
                        let why = NotChanged { direction, error };
                        if !is_temporary {
                            return Err(why);
                        }
                        refused = Some(why);
                        break;
                    }
                }
                left -= 1;
            }
        }
        if let Some(refused) = refused {
            return Ok(Progress::Waits(refused));
        }
        for ((_, direction), params) in self.directions.iter_mut().zip(&change.params) {
            direction.follow(params, now);
        }
        self.needs = change.needs;
        Ok(Progress::Done)
    }
}
