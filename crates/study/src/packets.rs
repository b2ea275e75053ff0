//! Checks that a study sends enough packets to show what it is to show.

use crate::params::ScenarioParams;
use crate::study::Study;
use slicewise_stats::objective::Objective;
use slicewise_stats::pooled::{packets_needed, runs_needed};
use slicewise_stats::words;
use slicewise_units::NANOS_PER_SECOND;

/// Objectives of shares of packets that cannot be shown to be met by as many packets as are sent, a sentence each.
pub(crate) fn notes(study: &Study) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, slice) in study.slices.iter().enumerate() {
        let Some(objective) = slice.objective else {
            continue;
        };
        notes.extend(note_of_intervals(study, &slice.name, &objective));
        let delay = objective.delay.map(|delay| delay.at.share_beyond());
        let finest = [objective.loss_ratio, delay].into_iter().flatten();
        let finest = finest.filter(|share| *share > 0.0).reduce(f64::min);
        let confidence = study.margins.confidence;
        let needed = finest.and_then(|share| packets_needed(share, confidence));
        let (Some(share), Some(needed)) = (finest, needed) else {
            continue;
        };
        for scenario in &study.scenarios {
            let sent = packets_of(study, scenario, index);
            let repetitions = study.repetitions;
            let is_short = |&sent: &u64| {
                let a_run = sent as f64 / f64::from(repetitions);
                let runs = runs_needed(share, a_run, confidence);
                sent > 0 && runs.is_none_or(|runs| runs > repetitions)
            };
            let Some(sent) = sent.filter(is_short) else {
                continue;
            };
            notes.push(format!(
                "slice `{}`, scenario {}: about {} are sent in all repetitions; to show that at most {} of them are lost or late takes {needed} \
                 without one that is: run more repetitions, or longer",
                slice.name,
                scenario.name,
                words::count(sent, "packet"),
                words::share(share),
            ));
            break;
        }
    }
    notes
}

/// Of an availability that cannot be shown by as many intervals as the runs have.
fn note_of_intervals(study: &Study, slice: &str, objective: &Objective) -> Option<String> {
    let bin_ns = study.measure.bin.nanos();
    let intervals = objective.in_bins(bin_ns).availability?;
    let a_run = study.duration.nanos() / intervals.length_ns.max(1);
    let share = 1.0 - intervals.share;
    let confidence = study.margins.confidence;
    let needed = packets_needed(share, confidence)?;
    let runs = runs_needed(share, a_run as f64, confidence);
    runs.is_none_or(|runs| runs > study.repetitions).then(|| {
        format!(
            "slice `{slice}`: a run has {} of {}; to show its availability takes {needed} that all conform: run more repetitions, or \
             longer, or state shorter intervals",
            words::count(a_run, "interval"),
            words::time(intervals.length_ns as f64),
        )
    })
}

/// Packets of a slice in all repetitions, about; `None` where applications decide.
fn packets_of(study: &Study, scenario: &ScenarioParams, slice: usize) -> Option<u64> {
    let mut applications = scenario.applications.iter();
    if applications.any(|source| source.slice == slice) || !study.populations.is_empty() {
        return None;
    }
    let own = scenario
        .sources
        .iter()
        .filter(|source| source.slice == slice);
    let packets = own.map(|source| {
        let rate = source.rate.bits_per_second();
        let packet =
            u128::from(source.mean_counted_bytes().max(1)) * 8 * u128::from(NANOS_PER_SECOND);
        u128::from(rate) * u128::from(study.duration.nanos()) / packet
    });
    u64::try_from(packets.sum::<u128>() * u128::from(study.repetitions)).ok()
}
