//! `slicewise check` and `slicewise schema`.

use crate::Failure;
use crate::arguments::{BackendName, CheckOptions, SchemaOf, SchemaOptions};
use crate::exit::Exit;
use crate::fit;
use crate::load::{sweep_of, warn};
use crate::outln;
use crate::output;
use slicewise_stats::words::count;
use slicewise_study::{
    Diagnostics, FileKind, Folder, Lab, MeasuredStudy, Plan, Series, Study, StudyFile, ios_text,
    study_of_ios,
};
use std::path::Path;

/// Notes on the points of a sweep that are printed.
const MAX_NOTES: usize = 20;

pub fn check(options: &CheckOptions) -> Result<Exit, Failure> {
    let path = &options.study;
    let wrong = |found: Diagnostics| Failure::mistakes(found, path);
    if let Some(text) = ios_text(path).map_err(wrong)? {
        outln!("{}: {}", path.display(), check_ios(path, &text)?);
        return Ok(Exit::Success);
    }
    let kind = FileKind::of(path).map_err(wrong)?;
    if kind != FileKind::Study && options.on != BackendName::Sim {
        return Err(Failure::mistake(format!(
            "`--on` is for studies, and {} is none",
            path.display()
        )));
    }
    let summary = match kind {
        FileKind::Study => check_study(fit::load_study_file(path, &options.on).map_err(wrong)?),
        FileKind::Plan => {
            let plans = Plan::load(path).map_err(wrong)?;
            let slices: u64 = plans.iter().flat_map(|p| &p.slices).map(|s| s.count).sum();
            let slices = count(slices, "slice");
            format!("a plan of {slices}; `slicewise plan` says whether they fit")
        }
        FileKind::Measured => {
            let version = env!("CARGO_PKG_VERSION");
            let study = MeasuredStudy::load(path, version)
                .map_err(wrong)?
                .description;
            format!(
                "a measured study of {}, {} and {}",
                count(study.slices.len() as u64, "slice"),
                count(study.policies.len() as u64, "policy"),
                count(study.scenarios.len() as u64, "scenario")
            )
        }
        FileKind::Gateway => {
            let config = fit::load_gateway(path)?;
            warn(&config.warnings);
            format!("a gateway between {}", config.interfaces.join(" and "))
        }
        FileKind::Lab => {
            let lab = Lab::load(path).map_err(wrong)?;
            let (sender, receiver) = (&lab.sender.ssh, &lab.receiver.ssh);
            format!("a lab of {sender} and {receiver}")
        }
    };
    outln!("{}: {summary}", path.display());
    Ok(Exit::Success)
}

/// A configuration is checked as what a study of it would run.
fn check_ios(path: &Path, text: &str) -> Result<String, Failure> {
    let wrong = |found: Diagnostics| Failure::mistakes(found, path);
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let made = study_of_ios(&name, text, None).map_err(wrong)?;
    let study = Study::parse(
        &made.text,
        &format!("study of {name}"),
        &Folder::new(folder),
    );
    let study = study.map_err(wrong)?;
    warn(study.warnings());
    let maps = study
        .policies
        .iter()
        .filter_map(|policy| policy.policy_map.as_deref());
    let maps: Vec<&str> = maps.collect();
    let mut summary = format!(
        "a configuration of IOS: policy map {}, {}, on a port of {}; `slicewise init --ios {}` writes a study of it",
        maps.join(", "),
        count(study.slices.len() as u64, "slice"),
        made.port,
        path.display()
    );
    for others in study
        .policies
        .iter()
        .filter_map(|policy| policy.not_judged.as_ref())
    {
        summary.push_str(&format!(
            "\nnote: packets pass other policies before: {others}"
        ));
    }
    Ok(summary)
}

fn check_study(file: StudyFile) -> String {
    match file {
        StudyFile::Study(study) => {
            warn(study.warnings());
            amount(&study)
        }
        StudyFile::Series(series) if !series.axes.is_empty() => {
            warn(series.warnings());
            points(&series)
        }
        StudyFile::Series(series) => {
            warn(series.warnings());
            let amounts = series.cases.iter();
            let amounts: Vec<String> = amounts
                .map(|study| format!("\n{}: {}", study.name, amount(study)))
                .collect();
            let cases = count(series.cases.len() as u64, "case");
            format!("{cases}{}", amounts.concat())
        }
    }
}

/// The points of a sweep, and notes on them.
fn points(series: &Series) -> String {
    let runs = series.cases.iter().map(Study::run_count).sum();
    let mut summary = sweep_of(series.cases.len(), runs);
    let mut notes: Vec<(String, u64)> = Vec::new();
    for study in &series.cases {
        let case = study.case.as_deref().unwrap_or_default();
        summary.push_str(&format!("\n{case}: {}", study.title));
        for note in study.too_few_repetitions().into_iter().chain(study.notes()) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, points)) => *points += 1,
                None => notes.push((note, 1)),
            }
        }
    }
    for (note, points) in notes.iter().take(MAX_NOTES) {
        summary.push_str(&format!("\nnote (of {}): {note}", count(*points, "point")));
    }
    if let Some(more) = notes.len().checked_sub(MAX_NOTES).filter(|more| *more > 0) {
        summary.push_str(&format!("\nand {}", count(more as u64, "more note")));
    }
    summary
}

/// How much there is to run.
fn amount(study: &Study) -> String {
    let mut summary = format!(
        "{} × {} × {} = {} of {}",
        count(study.policies.len() as u64, "policy"),
        count(study.scenarios.len() as u64, "scenario"),
        count(study.repetitions.into(), "repetition"),
        count(study.run_count(), "run"),
        study.duration,
    );
    for note in study.too_few_repetitions().into_iter().chain(study.notes()) {
        summary.push_str(&format!("\nnote: {note}"));
    }
    summary
}

pub fn schema(options: &SchemaOptions) -> Result<Exit, Failure> {
    let schema = slicewise_study::json_schema(match options.of {
        SchemaOf::Study => FileKind::Study,
        SchemaOf::Plan => FileKind::Plan,
        SchemaOf::Measured => FileKind::Measured,
        SchemaOf::Gateway => FileKind::Gateway,
        SchemaOf::Lab => FileKind::Lab,
    });
    output::json(&schema);
    Ok(Exit::Success)
}
