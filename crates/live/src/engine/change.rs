//! Changes of both directions as a whole: prepared on any thread, and put in force between two frames.

use super::division::Division;
use super::slices::GoneSlice;
use super::{Direction, DirectionParams, Engine};
use crate::frame_memory::Needs;
use slicewise_dataplane::{Basis, BuildError, Change, ClassCounters, Prepared, Replaced, Stale};
use slicewise_model::{ClassParams, PolicyParams};
use slicewise_units::{BitRate, BothWays, Instant};
use std::sync::Arc;

/// Metered slices that are added to the policy of each direction, in order.
pub type AddedClasses = BothWays<Arc<Vec<ClassParams>>>;

/// State of the directions of an [`Engine`].
#[derive(Debug, Clone)]
pub struct EngineBasis {
    pub(super) directions: BothWays<Basis>,
    /// Needs of their queues for memory.
    pub(super) needs: Needs,
    /// Chunks of memory that are divided among queues of policies, and the most that one may have reserved of them.
    pub(super) division: (u32, u32),
    added: AddedClasses,
}

/// A change of both directions that can be committed.
#[derive(Debug)]
pub struct PreparedDirections {
    params: [DirectionParams; 2],
    prepared: BothWays<Prepared>,
    division: Division,
    added: AddedClasses,
}

/// State that a commit replaced. Dropping it takes time: do it elsewhere.
#[derive(Debug)]
#[must_use]
pub struct ReplacedDirections {
    _directions: BothWays<Replaced>,
    _division: Division,
}

impl EngineBasis {
    /// Changes of each direction until this basis was taken.
    #[must_use]
    pub fn versions(&self) -> BothWays<u64> {
        self.directions.as_ref().map(Basis::version)
    }

    /// Build a change of both directions, beside which slices that were added stay.
    ///
    /// # Errors
    /// If the data plane cannot hold a policy, or such a slice cannot stay beside it.
    pub fn prepare(
        &self,
        params: &[DirectionParams; 2],
        now: Instant,
    ) -> Result<PreparedDirections, BuildError> {
        self.prepare_added(params, self.added.clone(), now)
    }

    /// Build a change of both directions, with these metered slices instead of those that were added before.
    ///
    /// # Errors
    /// If the data plane cannot hold a policy, or a slice cannot be beside it.
    pub fn prepare_added(
        &self,
        params: &[DirectionParams; 2],
        added: AddedClasses,
        now: Instant,
    ) -> Result<PreparedDirections, BuildError> {
        let policies = BothWays::from(params.each_ref()).zip(added.as_ref());
        let policies = policies.try_map(|(params, added)| with_added(params, added))?;
        let directions = self.directions.as_ref().zip(policies.as_ref());
        let prepared = directions.try_map(|(basis, policy)| {
            basis.prepare(Change::PolicyBesideSlices(policy.clone()), now)
        })?;
        let classes = policies.as_ref().zip(prepared.as_ref());
        let classes = classes.map(|(policy, prepared)| (policy, prepared.classes()));
        Ok(PreparedDirections {
            division: Division::new(classes, self.needs),
            prepared,
            params: params.clone(),
            added,
        })
    }
}

/// The policy with metered slices, whose guaranteed rates fit in the link together.
fn with_added(params: &DirectionParams, added: &[ClassParams]) -> Result<PolicyParams, BuildError> {
    let policy = &params.policy;
    let Some(first) = added.first() else {
        return Ok(PolicyParams::clone(policy));
    };
    let not_kept = |slice: &str, problem: String| BuildError::NotKept {
        slice: slice.to_owned(),
        problem,
    };
    policy.check_metered().map_err(|problem| {
        not_kept(
            &first.name,
            format!("the new policy has no metered slices: {problem}"),
        )
    })?;
    let is_own = |slice: &&ClassParams| policy.classes.iter().any(|class| class.name == slice.name);
    if let Some(slice) = added.iter().find(is_own) {
        let problem = "the new policy has a class of this name".to_owned();
        return Err(not_kept(&slice.name, problem));
    }
    let mut free = policy.free_for_slices(params.link.rate).bits_per_second();
    for slice in added {
        let police = slice.police.as_ref();
        let asked = police.map_or(BitRate::ZERO, |police| {
            police.algorithm.committed_rate().rate
        });
        free = free.checked_sub(asked.bits_per_second()).ok_or_else(|| {
            let free = BitRate::new(free);
            let problem = format!("it is guaranteed {asked}, but only {free} of the link is free");
            not_kept(&slice.name, problem)
        })?;
    }
    Ok(policy.with_metered(added))
}

impl Engine {
    /// Returns the state of the directions: the base for preparing a change, on this thread or another.
    #[must_use]
    pub fn basis(&self) -> EngineBasis {
        EngineBasis {
            directions: self.directions.as_ref().map(Direction::basis),
            needs: self.needs,
            division: (self.memory.shares().total(), self.memory.shares().level()),
            added: self.added.clone(),
        }
    }

    /// Changes of each direction so far; [`EngineBasis::versions`] are those of a basis.
    #[must_use]
    pub fn versions(&self) -> BothWays<u64> {
        self.directions.as_ref().map(Direction::version)
    }

    /// Changes of both directions that were committed as a whole: each may have given the classes other numbers.
    #[must_use]
    pub const fn commits(&self) -> u64 {
        self.commits
    }

    /// Put a change of both directions in force while frames wait: nothing queued is lost or reordered.
    /// Returns what was replaced, to be dropped by a thread that has time.
    ///
    /// # Errors
    /// If another change came after this one was prepared; both are then unchanged.
    pub fn commit(
        &mut self,
        change: PreparedDirections,
        now: Instant,
    ) -> Result<ReplacedDirections, Stale> {
        let PreparedDirections {
            params,
            prepared,
            mut division,
            added,
        } = change;
        // A slice may have changed in one of them.
        if prepared.as_ref().map(Prepared::version) != self.versions() {
            return Err(Stale);
        }
        let mut gone: BothWays<Vec<ClassCounters>> = BothWays::default();
        let changes = prepared.zip(params.into()).zip(gone.as_mut());
        let directions = self.directions.as_mut().zip(changes);
        let replaced = directions.try_map(|(direction, ((prepared, params), gone))| {
            direction.commit(&params, prepared, now, gone)
        })?;
        for (direction, gone) in gone {
            let gone = gone.into_iter();
            self.gone.extend(gone.map(|counters| GoneSlice {
                direction,
                counters,
            }));
        }
        self.divide_memory(&mut division);
        self.added = added;
        self.commits += 1;
        Ok(ReplacedDirections {
            _directions: replaced,
            _division: division,
        })
    }
}
