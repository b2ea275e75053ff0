//! Runs of one study that lie in several folders, put into one.

use crate::{Force, ResultsError, ResultsFolder};
use slicewise_stats::backend::BackendKind;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::RunRecord;
use std::path::{Path, PathBuf};

/// Folders with runs of one study, and the folder that they are to be put into.
#[derive(Debug)]
pub struct Shards {
    into: PathBuf,
    /// As the folder describes it; if that is new, as the first shard does.
    study: StudyDescription,
    shards: Vec<ResultsFolder>,
}

/// Counts of the runs of shards that were taken, known or missing, and faults of records.
#[derive(Debug, Default)]
pub struct Collected {
    /// Of each shard: runs that the folder got from it.
    pub taken: Vec<u64>,
    /// Of each shard: runs that the folder had already, or got from an earlier shard.
    pub known: Vec<u64>,
    /// Number of runs whose transactions the folder got.
    pub transactions: u64,
    /// Records that cannot be trusted, and why; the runs are missing unless another folder has them.
    pub damaged: Vec<String>,
    /// Number of runs that the folder lacks.
    pub missing: u64,
    /// Policy, scenario and repetition of the first of these.
    pub first_missing: Option<(String, String, u32)>,
}

impl Shards {
    /// Opens results folders, to put their runs into the folder `into`: a new one, or one of the same study. Writes
    /// nothing.
    ///
    /// # Errors
    /// Where one of them cannot be read, holds runs of real packets, or is of another study, version, seed, number of
    /// repetitions, captures or other inputs than the others.
    pub fn open(into: &Path, shards: &[PathBuf]) -> Result<Self, ResultsError> {
        let shards = shards.iter().map(ResultsFolder::open);
        let shards = shards.collect::<Result<Vec<_>, _>>()?;
        let there = match ResultsFolder::open(into) {
            Ok(folder) => Some(folder),
            Err(ResultsError::Missing { .. } | ResultsError::NoResults { .. }) => None,
            Err(error) => return Err(error),
        };
        let Some(first) = there.as_ref().or(shards.first()) else {
            return Err(ResultsError::Missing {
                path: into.to_owned(),
            });
        };
        for shard in there.iter().chain(&shards) {
            if shard.study().is_of(BackendKind::Testbed) {
                return Err(ResultsError::RealPackets {
                    path: shard.path().to_owned(),
                });
            }
            refuse_other_runs(first, shard)?;
        }
        Ok(Self {
            into: into.to_owned(),
            study: first.study().clone(),
            shards,
        })
    }

    /// Writes every sound run that the folder lacks, and its transactions. What it has stays.
    ///
    /// # Errors
    /// Where the folder cannot be written, or holds anything else; [`ResultsError::TwoRecords`] where two records of a
    /// run differ.
    pub fn collect(&self) -> Result<(ResultsFolder, Collected), ResultsError> {
        let folder = ResultsFolder::create(&self.into, &self.study, Force::Refuse)?;
        let mut collected = Collected {
            taken: vec![0; self.shards.len()],
            known: vec![0; self.shards.len()],
            ..Collected::default()
        };
        for (policy, scenario, repetition) in folder.slots() {
            let of_run = (policy, scenario, repetition);
            let mut found = sound_record(&folder, of_run, &mut collected.damaged)?;
            let counts = collected.taken.iter_mut().zip(&mut collected.known);
            for (shard, (taken, known)) in self.shards.iter().zip(counts) {
                let Some(other) = sound_record(shard, of_run, &mut collected.damaged)? else {
                    continue;
                };
                let key = other.record.key.clone();
                match &found {
                    None => {
                        folder.write_run(&other.record)?;
                        *taken += 1;
                        found = Some(other);
                    }
                    Some(found) if found.record == other.record => *known += 1,
                    Some(found) => {
                        return Err(ResultsError::TwoRecords {
                            one: found.path.clone(),
                            other: other.path,
                            repetition,
                        });
                    }
                }
                let is_taken = folder.take_transactions(shard, &key)?;
                collected.transactions += u64::from(is_taken);
            }
            if found.is_none() {
                collected.missing += 1;
                collected
                    .first_missing
                    .get_or_insert_with(|| (policy.to_owned(), scenario.to_owned(), repetition));
            }
        }
        Ok((folder, collected))
    }
}

/// A record that can be trusted, and its file.
struct Found {
    record: RunRecord,
    path: PathBuf,
}

fn sound_record(
    folder: &ResultsFolder,
    (policy, scenario, repetition): (&str, &str, u32),
    damaged: &mut Vec<String>,
) -> Result<Option<Found>, ResultsError> {
    match folder.read_run_at((policy, scenario, repetition), |_| Ok(())) {
        Ok(record) => Ok(record.map(|record| Found {
            record,
            path: folder.records_path(policy, scenario),
        })),
        Err(error) if error.is_damaged_run() => {
            damaged.push(error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Refuses a folder with runs that are not of the study in the first one. Texts and margins may differ.
fn refuse_other_runs(first: &ResultsFolder, shard: &ResultsFolder) -> Result<(), ResultsError> {
    let facts = facts(first.study()).into_iter();
    for ((what, wanted), (_, found)) in facts.zip(self::facts(shard.study())) {
        if found != wanted {
            return Err(ResultsError::OtherShard {
                path: shard.path().to_owned(),
                first: first.path().to_owned(),
                what,
                found,
                wanted,
            });
        }
    }
    Ok(())
}

/// Returns what identifies the runs of a study, each with its name. Where those before are equal, so are the names that
/// follow.
fn facts(study: &StudyDescription) -> Vec<(String, String)> {
    let policies = study.policies.iter().map(|policy| policy.name.as_str());
    let scenarios = study.scenarios.iter().map(|one| one.name.as_str());
    let names = |names: Vec<&str>| names.join(", ");
    let mut facts: Vec<(String, String)> = [
        ("study", study.name.clone()),
        ("program version", study.program_version.clone()),
        ("seed", study.seed.to_string()),
        ("number of repetitions", study.repetitions.to_string()),
        ("list of policies", names(policies.clone().collect())),
        ("list of scenarios", names(scenarios.clone().collect())),
    ]
    .map(|(what, fact)| (what.to_owned(), fact))
    .into();
    for policy in policies {
        for scenario in scenarios.clone() {
            facts.push((
                format!("digest of inputs of policy {policy}, scenario {scenario}"),
                study.inputs_of(policy, scenario).to_owned(),
            ));
        }
    }
    facts
}
