//! `slicewise check` and `slicewise schema`.

use crate::Failure;
use crate::arguments::{CheckOptions, SchemaOf, SchemaOptions};
use crate::exit::Exit;
use slicewise_study::{
    Diagnostics, FileKind, GatewayConfig, MeasuredStudy, Plan, Study, StudyPolicy,
};
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::Path;

/// Load a study, or say everything that is wrong with it.
pub fn load_study(path: &Path) -> Result<Study, Failure> {
    Study::load(path).map_err(|diagnostics| mistakes(&diagnostics, path))
}

/// Say what of a study a simulation does not do.
pub fn warn(study: &Study) {
    let warnings = study.warnings();
    if warnings.count() > 0 {
        eprintln!("{}\n", warnings.render(stderr().is_terminal()));
    }
}

/// A policy of the study, or which there are.
pub fn policy_named<'a>(study: &'a Study, name: &str) -> Result<&'a StudyPolicy, Failure> {
    let found = study.policies.iter().find(|policy| policy.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = study.policies.iter().map(|p| p.name.as_str()).collect();
        let names = names.join(", ");
        Failure::mistake(format!("the study has no policy `{name}`: it has {names}"))
    })
}

/// Everything that is wrong with a file.
pub fn mistakes(diagnostics: &Diagnostics, path: &Path) -> Failure {
    let count = diagnostics.count();
    let text = diagnostics.render(stderr().is_terminal());
    let mistakes = if count == 1 {
        "1 mistake".to_owned()
    } else {
        format!("{count} mistakes")
    };
    Failure::mistake(format!("{text}\n\nerror: {mistakes} in {}", path.display()))
}

pub fn check(options: &CheckOptions) -> Result<Exit, Failure> {
    let path = &options.study;
    let told = |wrong: Diagnostics| mistakes(&wrong, path);
    let summary = match FileKind::of(path).map_err(told)? {
        FileKind::Study => check_study(path)?,
        FileKind::Plan => {
            let plans = Plan::load(path).map_err(told)?;
            let slices: u64 = plans.iter().flat_map(|p| &p.slices).map(|s| s.count).sum();
            format!("a plan of {slices} slices; `slicewise plan` says whether they fit")
        }
        FileKind::Measured => {
            let version = env!("CARGO_PKG_VERSION");
            let study = MeasuredStudy::load(path, version)
                .map_err(told)?
                .description;
            format!(
                "a measured study of {} slices, {} policies and {} scenarios",
                study.slices.len(),
                study.policies.len(),
                study.scenarios.len()
            )
        }
        FileKind::Gateway => {
            let config = GatewayConfig::load(path).map_err(told)?;
            format!("a gateway between {}", config.interfaces.join(" and "))
        }
    };
    println!("{}: {summary}", path.display());
    Ok(Exit::Success)
}

fn check_study(path: &Path) -> Result<String, Failure> {
    let study = load_study(path)?;
    warn(&study);
    let runs = study.policies.len() * study.scenarios.len() * study.repetitions as usize;
    let mut summary = format!(
        "{} policies × {} scenarios × {} repetitions = {runs} runs of {}",
        study.policies.len(),
        study.scenarios.len(),
        study.repetitions,
        study.duration,
    );
    for note in study.notes() {
        summary.push_str(&format!("\nnote: {note}"));
    }
    Ok(summary)
}

pub fn schema(options: &SchemaOptions) -> Result<Exit, Failure> {
    let schema = slicewise_study::json_schema(match options.of {
        SchemaOf::Study => FileKind::Study,
        SchemaOf::Plan => FileKind::Plan,
        SchemaOf::Measured => FileKind::Measured,
        SchemaOf::Gateway => FileKind::Gateway,
    });
    let text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Failure::system(format!("cannot write the schema: {error}")))?;
    // A closed pipe is not an error of ours: `slicewise schema | head` is fine.
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::system(format!("cannot write the schema: {error}")))
        }
        _ => Ok(Exit::Success),
    }
}
