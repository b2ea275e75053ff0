//! Reading a study: the file, what it names, and every check, in one go.

use crate::check::Checker;
use crate::diagnostics::Diagnostics;
use crate::expand::expand_sources;
use crate::file::{self, FileError, Files, Folder, Problems, Sources};
use crate::spec::StudySpec;
use crate::study::Study;
use std::path::Path;

/// A file that was read, and what it needs to be checked.
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) files: Folder,
    pub(crate) sources: Sources,
}

impl Opened {
    pub(crate) fn at(path: &Path) -> Result<Self, Diagnostics> {
        let shown = path.display().to_string();
        let unusable = |problem: &str| Diagnostics::of_file(&shown, problem);
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(unusable("this is not the path of a study file"));
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let files = Folder::new(folder);
        let text = files.read(name).map_err(|error| match error {
            FileError::NotUtf8(_) => unusable(&format!("{error}; save the file as UTF-8")),
            _ => unusable(&error.to_string()),
        })?;
        let folder = match folder.display().to_string() {
            folder if folder.is_empty() || folder.ends_with('/') => folder,
            folder => format!("{folder}/"),
        };
        Ok(Self {
            name: name.to_owned(),
            text,
            files,
            sources: Sources::in_folder(&folder),
        })
    }
}

impl Study {
    /// Read and check the study file at `path`.
    ///
    /// # Errors
    /// Everything found wrong with it, each with its place. A file above
    /// [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES), or something that is not a file, is refused
    /// without being read.
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        let Opened {
            name,
            text,
            files,
            sources,
        } = Opened::at(path)?;
        read(&name, text, &files, sources)
    }

    /// Check a study given as text. `file_name` is what messages call it; the files it names are
    /// read from `files`.
    ///
    /// # Errors
    /// Everything found wrong with it, each with its place.
    pub fn parse(text: &str, file_name: &str, files: &dyn Files) -> Result<Self, Diagnostics> {
        if u64::try_from(text.len()).map_or(true, |length| length > file::MAX_FILE_BYTES) {
            let problem = FileError::TooLarge.to_string();
            return Err(Diagnostics::of_file(file_name, &problem));
        }
        read(file_name, text.to_owned(), files, Sources::default())
    }
}

pub(crate) fn read(
    name: &str,
    text: String,
    files: &dyn Files,
    mut sources: Sources,
) -> Result<Study, Diagnostics> {
    let mut problems = Problems::default();
    let study = read_into(name, text, files, &mut sources, &mut problems);
    match study {
        Some(study) if problems.is_empty() => Ok(Study {
            warnings: problems.into_warnings(&sources),
            ..study
        }),
        _ => Err(problems.into_diagnostics(&sources)),
    }
}

fn read_into(
    name: &str,
    text: String,
    files: &dyn Files,
    sources: &mut Sources,
    problems: &mut Problems,
) -> Option<Study> {
    let mut root = file::load(name, text, files, sources, problems)?;
    expand_sources(&mut root, problems);
    let spec: StudySpec = file::decode(&root, problems)?;
    // What is there is checked even if some of it could not be read.
    Checker {
        problems,
        sources,
        files,
        root: &root,
    }
    .study(&spec, name)
}
