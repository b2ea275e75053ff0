//! Other policies in both directions, put in force slice by slice.
//!
//! To commit policies takes time for each of their slices, in which no frame is forwarded. Where slices and some of what they have in common
//! change, each can be changed by itself, a few at a time between frames.

use super::division::needs_of;
use super::queues::queues;
use super::slices::NotChanged;
use super::{DirectionParams, Engine, EngineBasis, MOST_QUEUED_CHUNKS};
use crate::frame_memory::{Needs, level};
use slicewise_dataplane::{GradualStep, SliceChange};
use slicewise_units::Instant;
use std::vec::IntoIter;

/// Steps at once.
const MOST_STEPS: usize = 4;
/// Shares of the memory that change at once.
const MOST_SHARES: usize = 64;

/// Steps in both directions that lead to other policies.
#[derive(Debug)]
pub struct GradualChange {
    params: [DirectionParams; 2],
    /// With these policies.
    needs: Needs,
    /// Of frame memory.
    level: u32,
    /// The next share whose level falls, and the next whose level rises.
    shares: [Option<usize>; 2],
    /// What is given up in each direction, and what is then given, in their order.
    steps: [[IntoIter<GradualStep>; 2]; 2],
}

impl GradualChange {
    /// Steps that have not been carried out.
    #[must_use]
    pub fn remaining(&self) -> usize {
        let steps = self.steps.as_flattened().iter();
        steps.map(ExactSizeIterator::len).sum()
    }
}

/// How far a gradual change got.
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
    /// The change of both directions from `before` to `params`, beside which slices that were added one by one stay, slice by
    /// slice; `None` if they differ in what the link counts, or in more than [that can be changed so](slicewise_dataplane::Basis::gradual_steps), or if there is
    /// more frame memory than one pipeline can fill, and who gets it is to be decided anew. O(classes · log classes).
    #[must_use]
    pub fn gradual(
        &self,
        before: &[DirectionParams; 2],
        params: &[DirectionParams; 2],
    ) -> Option<GradualChange> {
        let [forward, backward] = &self.directions;
        let mut directions = before.iter().zip(params);
        let are_same = |(old, new): (&DirectionParams, &DirectionParams)| {
            (old.link.accounting, old.seed) == (new.link.accounting, new.seed)
        };
        directions.all(are_same).then_some(())?;
        let (total, old_level) = self.division;
        (total <= MOST_QUEUED_CHUNKS).then_some(())?;
        let queues = params
            .iter()
            .flat_map(|it| queues(&it.policy, self.needs.frame_chunks));
        let chunks: Vec<u64> = queues.map(|queue| queue.chunks).collect();
        let needs = needs_of(chunks.iter().copied(), self.needs);
        let level = level(total, chunks.into_iter());
        let forward = forward.gradual_steps(&params[0].policy)?;
        let backward = backward.gradual_steps(&params[1].policy)?;
        Some(GradualChange {
            needs,
            level,
            shares: [
                (level < old_level).then_some(0),
                (level > old_level).then_some(0),
            ],
            steps: [
                [forward.given_up, backward.given_up].map(Vec::into_iter),
                [forward.given, backward.given].map(Vec::into_iter),
            ],
            params: params.clone(),
        })
    }
}

impl Engine {
    /// Carry out the next few steps while frames wait: nothing queued is lost or reordered. Work: bounded, but for the frames
    /// that wait of a slice whose flow queue changes. Nothing else may have changed since `change` was prepared ([`Engine::versions`]).
    ///
    /// # Errors
    /// Why a slice cannot be changed; those before it have been.
    pub fn advance(
        &mut self,
        change: &mut GradualChange,
        now: Instant,
    ) -> Result<Progress, NotChanged> {
        let [falls, rises] = &mut change.shares;
        if let Some(from) = *falls {
            *falls = self
                .memory
                .shares_mut()
                .set_level(change.level, from, MOST_SHARES);
            return Ok(Progress::More);
        }
        let mut left = MOST_STEPS;
        for steps in &mut change.steps {
            let mut refused = None;
            let directions = steps.iter_mut().zip(&change.params);
            for (direction, (steps, params)) in directions.enumerate() {
                match self.carry_out(direction, steps, params, &mut left, now) {
                    Ok(()) => {}
                    Err(error) if error.error.is_temporary() => refused = Some(error),
                    Err(error) => return Err(error),
                }
            }
            if left == 0 {
                return Ok(Progress::More);
            }
            if let Some(refused) = refused {
                return Ok(Progress::Waits(refused));
            }
        }
        if let Some(from) = *rises {
            *rises = self
                .memory
                .shares_mut()
                .set_level(change.level, from, MOST_SHARES);
            return Ok(Progress::More);
        }
        for (direction, params) in self.directions.iter_mut().zip(&change.params) {
            direction.follow(params, now);
        }
        self.needs = change.needs;
        Ok(Progress::Done)
    }

    /// Carry out steps in a direction, until one is refused or none of `left` is left.
    fn carry_out(
        &mut self,
        direction: usize,
        steps: &mut IntoIter<GradualStep>,
        params: &DirectionParams,
        left: &mut usize,
        now: Instant,
    ) -> Result<(), NotChanged> {
        let Some(at) = self.directions.get_mut(direction) else {
            return Ok(());
        };
        while let Some(next) = steps.as_slice().first().filter(|_| *left > 0) {
            // The one changes several class maps, the other looks at each frame that waits.
            let is_long = matches!(
                next,
                GradualStep::ClassMaps(_) | GradualStep::Slice(SliceChange::Flows { .. })
            );
            let (memory, chunks) = (&mut self.memory, self.needs.frame_chunks);
            let done = at.carry_out(next.clone(), params, memory, chunks, now);
            done.map_err(|error| NotChanged { direction, error })?;
            *left = if is_long { 0 } else { *left - 1 };
            steps.next();
        }
        Ok(())
    }
}
