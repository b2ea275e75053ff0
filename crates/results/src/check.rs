//! Conditions that a record must meet before it is trusted: a file can be whole and still not be ours.

use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::{
    CdfPoint, Figures, OTHER_INPUTS, RunRecord, SCHEMA_VERSION, Series, SliceRecord,
};

/// Check that `record` is of `study` and that its numbers can be: every reader after this relies
/// on it.
pub(crate) fn record_of_study(record: &RunRecord, study: &StudyDescription) -> Result<(), String> {
    schema_version(record.schema_version)?;
    let key = &record.key;
    if key.inputs != study.inputs_of(&key.policy, &key.scenario) {
        return Err(OTHER_INPUTS.to_owned());
    }
    if record.bin_ns == 0 {
        return Err("its bins have no width".to_owned());
    }
    let slices = record.slices.iter().map(|s| s.slice.as_str());
    if !slices.eq(study.slices.iter().map(|s| s.name.as_str())) {
        return Err("its slices are not those of the study".to_owned());
    }
    phases(record, study)?;
    figures(&record.aggregate)?;
    finite(&[
        record.transient.throughput_before_bits_per_second,
        record.transient.throughput_after_bits_per_second,
    ])?;
    let of_phases = record.phases.iter().flat_map(|phase| &phase.applications);
    for application in record.applications.iter().chain(of_phases) {
        let source = &application.source;
        for times in [&application.times, &application.unfinished_times] {
            distribution(times).map_err(|e| format!("source `{source}`: {e}"))?;
        }
    }
    record
        .slices
        .iter()
        .try_for_each(|s| slice(s).map_err(|e| format!("slice `{}`: {e}", s.slice)))
}

/// Check that the phases are those of the study, and each has every slice.
fn phases(record: &RunRecord, study: &StudyDescription) -> Result<(), String> {
    let names = record.phases.iter().map(|phase| phase.phase.as_str());
    if !names.eq(study.phases.iter().map(|phase| phase.name.as_str())) {
        return Err("its phases are not those of the study".to_owned());
    }
    for phase in &record.phases {
        let ends_in_run = phase.ends_ns <= record.duration_ns;
        if phase.measured_from_ns >= phase.ends_ns || !ends_in_run {
            return Err(format!("phase `{}` is measured for no time", phase.phase));
        }
        if phase.slices.len() != record.slices.len() {
            return Err(format!("phase `{}` lacks a slice", phase.phase));
        }
        figures(&phase.aggregate)?;
        for slice in &phase.slices {
            figures(&slice.figures)?;
            distribution(&slice.delay_cdf)?;
        }
    }
    Ok(())
}

/// Check that this program reads records of version `found`.
pub(crate) fn schema_version(found: u32) -> Result<(), String> {
    if found == SCHEMA_VERSION {
        return Ok(());
    }
    Err(format!(
        "its schema version is {found}, this program reads version {SCHEMA_VERSION}: run the study again"
    ))
}

/// Check that `record` lies where it belongs.
pub(crate) fn record_of_slot(
    record: &RunRecord,
    policy: &str,
    scenario: &str,
    repetition: u32,
) -> Result<(), String> {
    let key = &record.key;
    if key.policy == policy && key.scenario == scenario && key.repetition == repetition {
        Ok(())
    } else {
        Err(format!(
            "it is of policy `{}`, scenario `{}`, repetition {}",
            key.policy, key.scenario, key.repetition
        ))
    }
}

fn slice(slice: &SliceRecord) -> Result<(), String> {
    figures(&slice.whole)?;
    figures(&slice.steady)?;
    distribution(&slice.delay_cdf)?;
    for iat in [Some(&slice.iat_sent), slice.iat_received.as_ref()] {
        let Some(iat) = iat else { continue };
        finite(&[iat.mean_ns, iat.variance_ns2])?;
        distribution(&iat.cdf)?;
    }
    series(&slice.series)
}

fn figures(figures: &Figures) -> Result<(), String> {
    finite(&[
        figures.offered_bits_per_second,
        figures.throughput_bits_per_second,
        figures.loss_ratio,
        figures.delay.mean_ns,
        figures.variation.pdv_mean_ns,
        figures.variation.ipdv_mean_ns,
    ])?;
    if figures.loss_ratio > 1.0 {
        return Err(format!("a loss ratio of {}", figures.loss_ratio));
    }
    Ok(())
}

fn finite(values: &[f64]) -> Result<(), String> {
    match values.iter().find(|v| !v.is_finite() || **v < 0.0) {
        Some(value) => Err(format!("{value} where a number of at least 0 should be")),
        None => Ok(()),
    }
}

fn distribution(cdf: &[CdfPoint]) -> Result<(), String> {
    let rises = cdf.windows(2).all(|pair| match pair {
        [
            CdfPoint(value, fraction),
            CdfPoint(next_value, next_fraction),
        ] => value <= next_value && fraction <= next_fraction,
        _ => true,
    });
    if rises && cdf.iter().all(|point| (0.0..=1.0).contains(&point.1)) {
        Ok(())
    } else {
        Err("a distribution function that does not rise from 0 to 1".to_owned())
    }
}

fn series(series: &Series) -> Result<(), String> {
    let bins = series.sent_bytes.len();
    let lengths = [
        series.received_bytes.len(),
        series.served_bytes.len(),
        series.lost_bytes.len(),
        series.sent_frames.len(),
        series.lost_frames.len(),
        series.delay_mean_ns.len(),
        series.delay_max_ns.len(),
    ];
    let late = series.late_frames.len();
    if lengths.iter().any(|&length| length != bins) || (late != bins && late != 0) {
        return Err("time series of different lengths".to_owned());
    }
    let delays = series.delay_mean_ns.iter().zip(&series.delay_max_ns);
    let possible = |(mean, max): (&Option<u64>, &Option<u64>)| match (mean, max) {
        (Some(mean), Some(max)) => mean <= max,
        (mean, max) => mean.is_none() && max.is_none(),
    };
    if delays.into_iter().all(possible) {
        Ok(())
    } else {
        Err("an interval whose mean delay is not that of its largest".to_owned())
    }
}
