//! `slicewise init`: a study to start from.

mod libreqos;

use crate::Failure;
use crate::arguments::InitOptions;
use crate::exit::Exit;
use crate::load::warn;
use crate::{outln, output};
use slicewise_study::{IosStudy, ios_text, study_of_ios};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

const STARTER: &str = include_str!("init/starter.yaml");

pub fn init(options: &InitOptions) -> Result<Exit, Failure> {
    let file = &options.file;
    let (study, holds) = match (&options.ios, &options.libreqos) {
        (Some(configuration), _) => {
            let study = of_ios(configuration, file, options.policy_map.as_deref())?;
            warn(&study.warnings);
            let holds = format!(
                "a study of {} on a port of {}. Fill in what its slices send, then run it",
                configuration.display(),
                study.port
            );
            (study.text, holds)
        }
        (None, Some(folder)) => {
            let (study, holds) = libreqos::study(folder)?;
            (study, format!("{holds}. Run it"))
        }
        (None, None) => (
            STARTER.to_owned(),
            "two slices, three policies, two loads. Run it".to_owned(),
        ),
    };
    if file == Path::new("-") {
        output::styled(&study);
        return Ok(Exit::Success);
    }
    // `create_new` follows no link and overwrites nothing.
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let mut created = created.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::mistake(format!(
            "`{}` exists: name another file (`slicewise init FILE`)",
            file.display()
        )),
        _ => Failure::system(format!("cannot create `{}`: {error}", file.display())),
    })?;
    created
        .write_all(study.as_bytes())
        .map_err(|error| Failure::system(format!("cannot write `{}`: {error}", file.display())))?;
    outln!("{0}: {holds}: `slicewise run {0}`", file.display());
    Ok(Exit::Success)
}

/// The study of a configuration, to be written to `file`.
fn of_ios(configuration: &Path, file: &Path, map: Option<&str>) -> Result<IosStudy, Failure> {
    let wrong = |found| Failure::mistakes(found, configuration);
    let text = ios_text(configuration).map_err(wrong)?.ok_or_else(|| {
        Failure::mistake(format!(
            "`{}` is no configuration of IOS: it has no `policy-map`, `class-map` or `interface` at the start of a line",
            configuration.display()
        ))
    })?;
    study_of_ios(&as_seen_from(file, configuration), &text, map).map_err(wrong)
}

/// The path of `configuration` for a study in `file`: relative where both are in one folder.
fn as_seen_from(file: &Path, configuration: &Path) -> String {
    let folder = |path: &Path| match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => Path::new(".").to_owned(),
    };
    let is_beside = folder(file) == folder(configuration);
    let name = configuration.file_name().filter(|_| is_beside);
    match (name, fs::canonicalize(configuration)) {
        (Some(name), _) => Path::new(name).display().to_string(),
        (None, Ok(path)) => path.display().to_string(),
        (None, Err(_)) => configuration.display().to_string(),
    }
}
