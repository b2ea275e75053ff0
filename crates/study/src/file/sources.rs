//! Which files were read, and places in them.

use crate::diagnostics::{Diagnostic, Diagnostics, MAX_DIAGNOSTICS, suggestion};
use sha2::{Digest, Sha256};
use slicewise_traffic::RateSeries;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Index of a file in [`Sources`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) u32);

/// Bytes `start..end` of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) file: FileId,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The files a study is made of, in the order they were read; the first is the study's own.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The folder of the study, as messages show it: empty, or ending with a slash.
    folder: String,
    files: Vec<SourceFile>,
    /// Traces of rates that were read, by path: many cases may share one.
    traces: BTreeMap<String, Arc<RateSeries>>,
}

#[derive(Debug)]
struct SourceFile {
    name: String,
    text: String,
    /// For captures, whose content is not kept.
    capture: Option<Capture>,
}

/// A capture that a source replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capture {
    /// SHA-256 of the file.
    pub(crate) digest: [u8; 32],
    /// Bytes of its longest packet from the IP header on.
    pub(crate) longest: u32,
}

impl Sources {
    /// No files yet; messages name them in `folder`.
    pub(crate) fn in_folder(folder: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            files: Vec::new(),
            traces: BTreeMap::new(),
        }
    }

    /// A path as messages show it.
    pub(crate) fn shown(&self, path: &str) -> String {
        if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{}{path}", self.folder)
        }
    }

    pub(crate) fn add(&mut self, name: &str, text: String) -> FileId {
        self.push(SourceFile {
            name: name.to_owned(),
            text,
            capture: None,
        })
    }

    /// A capture, which is part of the study, but too large to hold.
    pub(crate) fn add_capture(&mut self, name: &str, capture: Capture) {
        self.push(SourceFile {
            name: name.to_owned(),
            text: String::new(),
            capture: Some(capture),
        });
    }

    /// The capture that was added under this name.
    pub(crate) fn capture(&self, name: &str) -> Option<Capture> {
        let mut files = self.files.iter();
        files.find(|file| file.name == name)?.capture
    }

    /// The trace of rates that was added under this name.
    pub(crate) fn trace(&self, name: &str) -> Option<Arc<RateSeries>> {
        self.traces.get(name).cloned()
    }

    /// A trace of rates, whose text was added under the same name.
    pub(crate) fn add_trace(&mut self, name: &str, trace: Arc<RateSeries>) {
        self.traces.insert(name.to_owned(), trace);
    }

    fn push(&mut self, file: SourceFile) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(file);
        id
    }

    pub(crate) fn find(&self, name: &str) -> Option<FileId> {
        let index = self.files.iter().position(|file| file.name == name)?;
        u32::try_from(index).ok().map(FileId)
    }

    fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(usize::try_from(id.0).ok()?)
    }

    fn shown_name(&self, id: FileId) -> String {
        self.get(id)
            .map_or_else(String::new, |file| self.shown(&file.name))
    }

    pub(crate) fn text(&self, id: FileId) -> &str {
        self.get(id).map_or("", |file| &file.text)
    }

    /// The path of a file named in the file `id`: relative to it.
    pub(crate) fn beside(&self, id: FileId, path: &str) -> String {
        beside(self.get(id).map_or("", |file| &file.name), path)
    }

    /// File and line of a place, for people.
    pub(crate) fn place(&self, span: Span) -> String {
        let before = self.text(span.file).get(..to_usize(span.start));
        let line = before.unwrap_or_default().matches('\n').count() + 1;
        let name = self.get(span.file).map_or("", |file| &file.name);
        format!("{name} line {line}")
    }

    pub(crate) fn slice(&self, span: Span) -> &str {
        let range = to_usize(span.start)..to_usize(span.end);
        self.text(span.file).get(range).unwrap_or_default()
    }

    /// SHA-256 in hexadecimal over names and contents, each preceded by its length.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(bytes);
        };
        for file in &self.files {
            part(file.name.as_bytes());
            match &file.capture {
                Some(capture) => part(&capture.digest),
                None => part(file.text.as_bytes()),
            }
        }
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The path of a file named in `file`: relative to it.
pub(super) fn beside(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
        _ => path.to_owned(),
    }
}

pub(crate) fn to_usize(offset: u32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

pub(crate) fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Report what is wrong at a place and, behind a semicolon, what to do about it: texts as `format!` takes them.
macro_rules! problem {
    ($problems:expr, $at:expr => $message:literal $(, $value:expr)* $(; $help:literal $(, $of_help:expr)*)?) => {{
        let message = format!($message $(, $value)*);
        let help = problem!(@help $($help $(, $of_help)*)?);
        $problems.add_suggesting($at, message, help);
    }};
    (@help) => { None };
    (@help $help:literal $(, $value:expr)*) => { Some(format!($help $(, $value)*)) };
}
pub(crate) use problem;

/// Mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
    /// Place and message of each, with its number among `found`: the same mistake in a template would otherwise be
    /// reported wherever the template is used.
    seen: BTreeMap<(Span, String), usize>,
    /// The first problem of each place that was found in a point of a sweep.
    of_points: BTreeMap<Span, usize>,
    /// Problems that are worth a warning and no mistakes.
    warnings: Vec<Problem>,
    /// Which part of the file is being checked, from the outermost: a case, a phase.
    parts: Vec<String>,
}

#[derive(Debug)]
struct Problem {
    span: Span,
    message: String,
    help: Option<String>,
    /// Part of the file in which it was found first; empty for the whole.
    part: String,
    /// The outermost part in which it was found last, and how many others than the first there were.
    last: Option<String>,
    others: usize,
}

impl Problems {
    pub(crate) fn add(&mut self, span: Span, message: impl Into<String>) {
        self.add_suggesting(span, message, None);
    }

    pub(crate) fn add_with_help(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add_suggesting(span, message, Some(help.into()));
    }

    /// With help where there is some.
    pub(crate) fn add_suggesting(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let message = message.into();
        let outermost = self.parts.first();
        // A value that a range of a sweep gives points is written once, at its end, and wrong in as many ways as there are points.
        let is_point = outermost.is_some_and(|part| part.starts_with("point "));
        let known = self.of_points.get(&span).filter(|_| is_point);
        let known = known.and_then(|known| self.found.get(*known));
        let first = known.filter(|known| !known.part.starts_with(outermost.map_or("", |it| it)));
        let message = first.map_or(message, |first| first.message.clone());
        if is_point {
            self.of_points.entry(span).or_insert(self.found.len());
        }
        match self.seen.entry((span, message.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(self.found.len());
                self.found.push(Problem {
                    span,
                    message,
                    help,
                    part: self.parts.join(", "),
                    last: outermost.cloned(),
                    others: 0,
                });
            }
            Entry::Occupied(entry) => {
                let known = self.found.get_mut(*entry.get());
                if let Some(known) = known.filter(|known| known.last.as_ref() != outermost) {
                    known.last = outermost.cloned();
                    known.others += 1;
                }
            }
        }
    }

    /// That `written` is none of `known`: what was probably meant is looked for, unless there are very many mistakes.
    pub(crate) fn add_unknown(
        &mut self,
        span: Span,
        message: impl Into<String>,
        (written, known): (&str, &[&str]),
    ) {
        let help = (!self.are_many()).then(|| suggestion(written, known));
        self.add_suggesting(span, message, help.flatten());
    }

    /// Attributes problems to this part of the file until [`leave`](Self::leave): the phase or the case `name`.
    pub(crate) fn enter(&mut self, part: &str, name: &str) {
        self.parts.push(format!("{part} `{name}`"));
    }

    /// Back to the part around it.
    pub(crate) fn leave(&mut self) {
        self.parts.pop();
    }

    /// Something that is worth knowing at its place although it is no mistake.
    pub(crate) fn warn(&mut self, span: Span, message: impl Into<String>) {
        let message = message.into();
        if let Entry::Vacant(entry) = self.seen.entry((span, message.clone())) {
            entry.insert(usize::MAX);
            self.warnings.push(Problem {
                span,
                message,
                help: None,
                part: String::new(),
                last: None,
                others: 0,
            });
        }
    }

    /// So many that looking for what was meant is no help any more.
    pub(crate) fn are_many(&self) -> bool {
        self.found.len() > MAX_DIAGNOSTICS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// In order of place; the first of them where there are very many.
    pub(crate) fn into_diagnostics(self, sources: &Sources) -> Diagnostics {
        diagnostics(self.found, sources)
    }

    /// Returns the warnings as diagnostics.
    pub(crate) fn into_warnings(self, sources: &Sources) -> Diagnostics {
        diagnostics(self.warnings, sources).into_warnings()
    }
}

impl Problem {
    /// The message, and the part of the file to which it applies.
    fn text(&self) -> String {
        let Self { message, part, .. } = self;
        match (part.as_str(), self.others) {
            ("", _) => message.clone(),
            (part, 0) => format!("{message} (in {part})"),
            (part, 1) => format!("{message} (in {part} and 1 other)"),
            (part, others) => format!("{message} (in {part} and {others} others)"),
        }
    }
}

fn diagnostics(mut found: Vec<Problem>, sources: &Sources) -> Diagnostics {
    found.sort_by_key(|problem| problem.span);
    let omitted = found.len().saturating_sub(MAX_DIAGNOSTICS);
    let kept = found.into_iter().take(MAX_DIAGNOSTICS).map(|problem| {
        Diagnostic::at(
            &sources.shown_name(problem.span.file),
            sources.text(problem.span.file),
            to_usize(problem.span.start)..to_usize(problem.span.end),
            &problem.text(),
            problem.help.as_deref(),
        )
    });
    Diagnostics::new(kept.collect(), omitted)
}
