//! `slicewise run --seeds N`: how much the verdicts of a study depend on its seed.

use crate::Failure;
use crate::arguments::{BackendName, RunOptions};
use crate::execution::{on_interrupt, processors};
use crate::executor::{in_parallel, record_of};
use crate::exit::Exit;
use crate::output::columns;
use crate::progress::Progress;
use crate::{errln, outln};
use slicewise_report::seeds::{CSV, PARQUET, is_seed_table, seed_table_text, write_seed_table};
use slicewise_sim::Simulator;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::seeds::SeedTable;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, PolicyVerdict};
use slicewise_study::{RunFilter, RunSpec, Study};
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `study` under its own seed and those that follow it, `count` in all, and prints how often each verdict
/// came out. Of each run its scalars are kept until its seed is judged.
pub fn run(options: &RunOptions, study: &Study, count: u32) -> Result<Exit, Failure> {
    check_options(options)?;
    let last = study.seed.checked_add(u64::from(count.saturating_sub(1)));
    let seeds = study.seed..=last.ok_or_else(|| {
        Failure::mistake(format!(
            "fewer than {count} seeds start at {}: choose a smaller one (`--seed N`)",
            study.seed
        ))
    })?;
    let filter = RunFilter {
        policies: options.selection.policies.clone(),
        ..RunFilter::default()
    };
    let runs_a_seed = study.runs(&filter).map_err(Failure::mistake)?.len() as u64;
    if let Some(folder) = &options.out {
        prepare(folder, options.replace)?;
    }
    let mut several = SeveralSeeds {
        simulator: Simulator::default(),
        jobs: options.jobs.map_or_else(processors, NonZeroU32::get) as usize,
        progress: Progress::new(runs_a_seed.saturating_mul(u64::from(count))),
    };
    let interrupt = on_interrupt("finishing the runs in progress")?;
    let mut table = SeedTable::default();
    let mut failure = None;
    for seed in seeds {
        let mut of_seed = study.clone();
        of_seed.seed = seed;
        let runs = of_seed.runs(&filter).map_err(Failure::mistake)?;
        match several.judge(&of_seed, &runs, &interrupt) {
            Ok(Some(verdicts)) => table.add(seed, &verdicts),
            Ok(None) => break,
            Err(why) => {
                failure = Some(why);
                break;
            }
        }
    }
    several.progress.finish();
    let judged = table.seeds().len();
    if judged > 0 {
        outln!("{}", seed_table_text(&table, columns()));
    }
    if let Some(why) = failure {
        return Err(Failure::system(why));
    }
    if judged < count as usize {
        errln!("stopped: {judged} of {count} seeds were judged, and nothing was written");
        return Ok(Exit::Interrupted);
    }
    if let Some(folder) = &options.out {
        write_seed_table(folder, &description(study), &table).map_err(Failure::system)?;
        outln!("Table: {}", folder.join(CSV).display());
    }
    Ok(Exit::Success)
}

/// Executor of the runs of one seed after those of another.
struct SeveralSeeds {
    simulator: Simulator,
    jobs: usize,
    progress: Progress,
}

impl SeveralSeeds {
    /// The verdicts of the policies that have `runs`; `None` where the user stopped them. Fails with the first run that
    /// does.
    fn judge(
        &mut self,
        study: &Study,
        runs: &[RunSpec],
        interrupt: &AtomicBool,
    ) -> Result<Option<Vec<PolicyVerdict>>, String> {
        let description = &description(study);
        let Self {
            simulator,
            jobs,
            progress,
        } = self;
        let mut builder = SummaryBuilder::new(description);
        let (mut done, mut failure) = (0, None);
        let stop = AtomicBool::new(false);
        in_parallel(
            runs,
            *jobs,
            &[interrupt, &stop],
            |run, send| send((*run, record_of(study, simulator, run))),
            |(run, record)| {
                let Some(record) = record else { return };
                let added = record.and_then(|record| {
                    builder.add(&record).map_err(|error| error.to_string())?;
                    Ok(record.key)
                });
                match added {
                    Ok(key) => {
                        done += 1;
                        let seed_and_policy = format!("seed {}, {}", run.study_seed, key.policy);
                        progress.on_run(&seed_and_policy, &key.scenario);
                    }
                    Err(reason) => {
                        stop.store(true, Ordering::Relaxed);
                        failure.get_or_insert((run, reason));
                    }
                }
            },
        );
        if let Some((run, reason)) = failure {
            let name = run.key(study).map_or_else(String::new, |key| {
                let (policy, scenario) = (key.policy, key.scenario);
                format!(
                    "policy {policy}, scenario {scenario}, repetition {}",
                    run.repetition
                )
            });
            return Err(format!("seed {}, {name}: {reason}", run.study_seed));
        }
        if done < runs.len() {
            return Ok(None);
        }
        let verdicts = verdict::judge(description, builder.observations()).policies;
        let has_runs = |(index, verdict): (usize, PolicyVerdict)| {
            builder.has_runs_of_policy(index).then_some(verdict)
        };
        Ok(Some(
            verdicts
                .into_iter()
                .enumerate()
                .filter_map(has_runs)
                .collect(),
        ))
    }
}

/// The study as it is judged.
fn description(study: &Study) -> StudyDescription {
    study.description(env!("CARGO_PKG_VERSION")).by_phase()
}

/// Options that make no sense with several seeds.
fn check_options(options: &RunOptions) -> Result<(), Failure> {
    let why = if options.on != BackendName::Sim || options.tolerate_noise {
        "`--seeds` is for the simulator: on real packets verdicts depend on the machine, too; leave out \
         `--on` and `--tolerate-noise`"
    } else if !options.selection.scenarios.is_empty() {
        "`--seeds` judges each policy by all scenarios: leave out `--scenario`"
    } else if options.captures.is_some() {
        "`--seeds` keeps no runs: to capture those of one seed, use `--seed N --captures DIR`"
    } else if options.transactions {
        "`--seeds` keeps no runs: for the transactions of those of one seed, use `--seed N --transactions`"
    } else if options.replace && options.out.is_none() {
        "`--seeds` writes nothing without `--out DIR`: leave out `--replace`"
    } else {
        return Ok(());
    };
    Err(Failure::mistake(why))
}

/// Make the folder for the table, which is no results folder and has no other table in it.
fn prepare(folder: &Path, replaces: bool) -> Result<(), Failure> {
    if folder.join("study.json").exists() {
        return Err(Failure::mistake(format!(
            "`{}` holds the results of a study: choose another folder for the table (`--out DIR`)",
            folder.display()
        )));
    }
    for name in [CSV, PARQUET] {
        let path = folder.join(name);
        let refused = match path.symlink_metadata() {
            Err(_) => None,
            Ok(_) if replaces && is_seed_table(&path) => None,
            Ok(_) if replaces => Some(
                "is not a table of verdicts over seeds and is not replaced: choose another folder (`--out DIR`)",
            ),
            Ok(_) => {
                Some("exists: choose another folder (`--out DIR`), or replace it (`--replace`)")
            }
        };
        if let Some(why) = refused {
            return Err(Failure::mistake(format!("`{}` {why}", path.display())));
        }
    }
    fs::create_dir_all(folder).map_err(|error| {
        Failure::system(format!(
            "cannot create the folder `{}`: {error}",
            folder.display()
        ))
    })
}
