//! `--transactions` of `slicewise run`: how many rows there will be, and whether the disk has room for them.

use crate::arguments::RunOptions;
use crate::executor::Work;
use crate::{Failure, noteln};
use slicewise_stats::words::count;
use slicewise_study::{RunSpec, Study};
use slicewise_units::{ByteCount, Rounded as _};
use std::path::Path;

/// Bytes of a row in its file: five numbers that hardly repeat, and names that take next to nothing.
const ROW_BYTES: u64 = 40;

/// Refuses what can be refused before results are touched: that no run asked for has transactions, and, where results are
/// replaced, more than fit on the disk. `all` are the runs asked for, `own` those of this shard.
pub fn check(
    options: &RunOptions,
    studies: &[Study],
    all: &[Vec<RunSpec>],
    own: &[Vec<RunSpec>],
) -> Result<(), Failure> {
    if !options.transactions {
        return Ok(());
    }
    let rows = |runs: &[Vec<RunSpec>]| {
        let runs = studies.iter().zip(runs);
        let rows = runs.flat_map(|(study, runs)| {
            runs.iter()
                .map(|run| study.most_transactions(run.policy, run.scenario))
        });
        rows.fold(0, u64::saturating_add)
    };
    if rows(all) == 0 {
        return Err(Failure::mistake(
            "these runs have no transactions, which are requests, flows of a given size and segments of a video: leave out \
             `--transactions`, or add a source with an `application` that has them",
        ));
    }
    match &options.out {
        Some(folder) if options.replace => refuse_without_room(folder, rows(own)),
        _ => Ok(()),
    }
}

/// Says, before runs are carried out, how many transactions will be written, and refuses more than fit on the disk.
pub fn announce(works: &[Work<'_>]) -> Result<(), Failure> {
    let mut works = works.iter().filter(|work| work.transactions).peekable();
    let Some(first) = works.peek() else {
        return Ok(());
    };
    let folder = first.folder.path();
    let (mut rows, mut runs, mut again) = (0_u64, 0, 0);
    for work in works {
        for run in work.runs {
            let of_run = work.transactions_of(run);
            let Some(key) = run.key(work.study).filter(|_| of_run > 0) else {
                continue;
            };
            let has_record = work.folder.has_run(&key);
            if has_record && work.folder.has_transactions(&key) {
                continue;
            }
            rows = rows.saturating_add(of_run);
            runs += 1;
            again += u64::from(has_record);
        }
    }
    if runs == 0 {
        return Ok(());
    }
    refuse_without_room(folder, rows)?;
    let runs = count(runs, "run");
    noteln!(
        "transactions of {runs}: at most about {rows} rows, {}",
        size(rows)
    );
    if again > 0 {
        noteln!("runs carried out again for their transactions, with records that stay: {again}");
    }
    Ok(())
}

fn size(rows: u64) -> ByteCount {
    ByteCount::new(rows.saturating_mul(ROW_BYTES)).rounded_up()
}

fn refuse_without_room(folder: &Path, rows: u64) -> Result<(), Failure> {
    match room(folder) {
        Some(free) if free < size(rows) => Err(Failure::mistake(format!(
            "`--transactions` would write about {rows} rows, {}, but the disk of `{}` has {} free: choose another folder \
             (`--out DIR`), or fewer runs (`--policy`, `--scenario`, `--repetitions`)",
            size(rows),
            folder.display(),
            free.rounded_down()
        ))),
        _ => Ok(()),
    }
}

/// `None` where it is not known.
fn room(folder: &Path) -> Option<ByteCount> {
    #[cfg(feature = "linux")]
    return slicewise_live::sys::storage::free_bytes(folder)
        .ok()
        .map(ByteCount::new);
    #[cfg(not(feature = "linux"))]
    {
        let _ = folder;
        None
    }
}
