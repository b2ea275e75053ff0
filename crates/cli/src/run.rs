//! `slicewise run`: every policy under every load, then verdicts and a report.

use crate::Failure;
use crate::arguments::RunOptions;
use crate::captures;
use crate::execution::{Execution, on_interrupt, processors, report_of, runs_of_shard};
use crate::executor::Work;
use crate::exit::Exit;
use crate::load::note_before_runs;
use crate::progress::Progress;
use crate::results::{open_results, results_path};
use crate::seeds;
use crate::transactions;
use slicewise_sim::{Simulator, capture};
use slicewise_study::Study;
use std::num::NonZeroU32;

/// Runs a study, or one case of a series.
pub fn run(options: &RunOptions, study: Study) -> Result<Exit, Failure> {
    if let Some(count) = options.seeds {
        return seeds::run(options, &study, count);
    }
    #[cfg(feature = "linux")]
    if options.on != crate::arguments::BackendName::Sim {
        return crate::testbed_run::run(options, study);
    }
    simulate(options, &study)
}

fn simulate(options: &RunOptions, study: &Study) -> Result<Exit, Failure> {
    if options.tolerate_noise {
        return Err(Failure::mistake(
            "`--tolerate-noise` is for real packets: a simulation has none",
        ));
    }
    let runs = runs_of_shard(options, std::slice::from_ref(study))?.concat();
    let simulator = simulator(options, study)?;
    let description = study.description(env!("CARGO_PKG_VERSION"));
    let path = results_path(options.out.as_deref(), study, &options.suffix());
    let folder = open_results(&path, &description, options.force())?;
    if let Some(root) = &options.captures {
        let names = &capture::FILE_NAMES;
        captures::check(
            root,
            names,
            capture::is_replaceable,
            (study, &runs),
            &folder,
        )?;
    }
    note_before_runs(study);
    let jobs = options.jobs.map_or_else(processors, NonZeroU32::get);
    let interrupt = on_interrupt("finishing the runs in progress")?;
    let work = Work {
        study,
        folder: &folder,
        backend: &simulator,
        runs: &runs,
        transactions: options.transactions,
    };
    transactions::announce(std::slice::from_ref(&work))?;
    let execution = Execution {
        works: &[work],
        jobs,
        interrupt: &interrupt,
        what: "runs",
    };
    let progress = Progress::new(runs.len() as u64);
    let (outcomes, exit) = execution.carry_out(progress, |_, _, _| {})?;
    if let Some(shard) = options.shard {
        return Ok(shard.conclude(&path, exit));
    }
    if let Some(captures) = &options.captures {
        captures::report(&outcomes, captures);
    }
    report_of(options, &folder, &outcomes, exit)
}

/// The simulator, with captures where they are asked for.
fn simulator(options: &RunOptions, study: &Study) -> Result<Simulator, Failure> {
    let simulator = Simulator::default();
    let Some(root) = &options.captures else {
        return Ok(simulator);
    };
    if !study.populations.is_empty() {
        return Err(Failure::mistake(
            "the slices of this study are populations, whose frames have no headers: they cannot be \
             captured",
        ));
    }
    if (study.scenarios.iter()).any(|scenario| !scenario.applications.is_empty()) {
        return Err(Failure::mistake(
            "sources of this study have an `application`, whose simulated connections cannot be captured: leave the \
             option out, choose scenarios of a study without such sources, or run it `--on gateway`",
        ));
    }
    let snap_bytes = options.snap_length.unwrap_or(capture::DEFAULT_SNAP_BYTES);
    Ok(simulator.with_captures(root.clone(), snap_bytes))
}
