//! Dependence of verdicts on the seed: those of one study under several seeds.

use crate::verdict::{Agreement, Outcome, PolicyVerdict};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The verdicts of a study under several seeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeedTable {
    /// Two per policy, in the order of the study.
    pub rows: Vec<SeedRow>,
}

/// One attribute of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedRow {
    /// Policy name.
    pub policy: String,
    /// Which attribute.
    pub attribute: Attribute,
    /// True if a publication says that the policy has it; `None` if none does.
    pub published: Option<bool>,
    /// The verdict under each seed.
    pub verdicts: BTreeMap<u64, SeedVerdict>,
}

/// An attribute judged from runs, which may depend on the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// Performance isolation.
    Isolation,
    /// Resource reallocation.
    Reallocation,
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Isolation => "isolation",
            Self::Reallocation => "reallocation",
        })
    }
}

/// A verdict under one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedVerdict {
    /// The verdict.
    pub outcome: Outcome,
    /// True if it agrees with the published one; `None` if nothing was published or decided.
    pub agrees: Option<bool>,
}

impl SeedTable {
    /// Keep the verdicts under `seed`, those of the same policies for every seed.
    pub fn add(&mut self, seed: u64, verdicts: &[PolicyVerdict]) {
        for verdict in verdicts {
            let Agreement {
                isolation,
                reallocation,
                ..
            } = verdict.agrees;
            let published = verdict.published.as_ref();
            self.add_to_row(
                (&verdict.policy, Attribute::Isolation),
                published.map(|published| published.isolation),
                (seed, verdict.isolation.outcome, isolation),
            );
            self.add_to_row(
                (&verdict.policy, Attribute::Reallocation),
                published.map(|published| published.reallocation),
                (seed, verdict.reallocation.outcome, reallocation),
            );
        }
    }

    fn add_to_row(
        &mut self,
        (policy, attribute): (&str, Attribute),
        published: Option<bool>,
        (seed, outcome, agrees): (u64, Outcome, Option<bool>),
    ) {
        let verdict = SeedVerdict { outcome, agrees };
        let mut rows = self.rows.iter_mut();
        match rows.find(|row| row.policy == policy && row.attribute == attribute) {
            Some(row) => {
                row.verdicts.insert(seed, verdict);
            }
            None => self.rows.push(SeedRow {
                policy: policy.to_owned(),
                attribute,
                published,
                verdicts: [(seed, verdict)].into(),
            }),
        }
    }

    /// The seeds, in ascending order.
    #[must_use]
    pub fn seeds(&self) -> BTreeSet<u64> {
        self.rows
            .iter()
            .flat_map(|row| row.verdicts.keys().copied())
            .collect()
    }
}

impl SeedRow {
    /// The seeds under which the verdict is `outcome`, in ascending order.
    pub fn seeds_with(&self, outcome: Outcome) -> impl Iterator<Item = u64> {
        let verdicts = self.verdicts.iter();
        verdicts
            .filter(move |(_, verdict)| verdict.outcome == outcome)
            .map(|(seed, _)| *seed)
    }

    /// Seeds under which the verdict agrees with the published one.
    #[must_use]
    pub fn agreeing(&self) -> usize {
        self.verdicts
            .values()
            .filter(|verdict| verdict.agrees == Some(true))
            .count()
    }

    /// Returns true if it holds under one seed and is broken under another.
    #[must_use]
    pub fn is_contradictory(&self) -> bool {
        let has = |outcome| self.seeds_with(outcome).next().is_some();
        has(Outcome::Holds) && has(Outcome::Broken)
    }
}
