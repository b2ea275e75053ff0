//! Mistakes in a text, and their places.

use slicewise_model::PolicySpec;
use std::fmt;

/// Most errors reported for one text: later ones are rarely news.
pub const ERRORS_MAX: usize = 20;

/// A stretch of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Characters.
    pub length: usize,
}

impl Span {
    /// Where a text begins: for what has no place of its own.
    pub(crate) const BEGIN: Self = Self {
        line: 1,
        column: 1,
        length: 1,
    };
}

/// One thing wrong with a text, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1; one past the end of the line where something is missing.
    pub column: usize,
    /// Characters concerned; 1 where something is missing.
    pub length: usize,
    /// Description of the mistake.
    pub message: String,
    /// Description of what was expected.
    pub expected: Option<String>,
    /// Remedy.
    pub help: Option<String>,
    /// It is no mistake: the language has what stands here, or may have it, and it is not modelled. A reader may go on
    /// without it and say so.
    pub is_unmodelled: bool,
}

impl TextError {
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Self {
        Self {
            line: span.line,
            column: span.column,
            length: span.length,
            message: message.into(),
            expected: None,
            help: None,
            is_unmodelled: false,
        }
    }

    /// Checks that a text has no more than `most` bytes.
    pub(crate) fn check_length(text: &str, most: usize) -> Result<(), Self> {
        if text.len() <= most {
            return Ok(());
        }
        let message = format!("the text has {} bytes", text.len());
        Err(Self::at(Span::BEGIN, message).expected(format!("at most {most}")))
    }

    /// The language has it, or may have it, and it is not modelled.
    pub(crate) fn unmodelled(self) -> Self {
        Self {
            is_unmodelled: true,
            ..self
        }
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Suggests what was probably meant, where something is like it: then it is a mistake.
    pub(crate) fn maybe_help(mut self, meant: Option<String>) -> Self {
        self.is_unmodelled &= meant.is_none();
        self.help = meant;
        self
    }
}

impl TextError {
    /// Where it is.
    #[must_use]
    pub const fn span(&self) -> Span {
        Span {
            line: self.line,
            column: self.column,
            length: self.length,
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, ": expected {expected}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TextError {}

/// Something worth knowing of a text that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextNote {
    /// Where it is.
    pub span: Span,
    /// Text of the note.
    pub message: String,
}

/// Policy that was read from a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadPolicy {
    /// The policy, under a name of its language.
    pub spec: PolicySpec,
    /// Notes on the policy, in the order of the text.
    pub notes: Vec<TextNote>,
    /// Places of settings of classes and queues.
    pub places: Vec<SettingPlace>,
}

/// Place of a setting in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingPlace {
    /// The class, or named queue.
    pub class: String,
    /// The setting as the model calls it.
    pub field: &'static str,
    /// Its place.
    pub span: Span,
}

/// The errors of one text, or of one definition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report(Vec<TextError>);

impl Report {
    /// True where later errors are not wanted.
    pub fn is_full(&self) -> bool {
        self.0.len() >= ERRORS_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &TextError> {
        self.0.iter()
    }

    /// Note an error. It is made only if it is wanted: suggestions are costly to look for.
    pub fn add(&mut self, error: impl FnOnce() -> TextError) {
        if !self.is_full() {
            self.0.push(error());
        }
    }

    pub fn add_failure(&mut self, result: Result<(), TextError>) {
        if let Err(error) = result {
            self.add(|| error);
        }
    }

    /// Others too, as far as they are wanted.
    pub fn extend<'e>(&mut self, others: impl IntoIterator<Item = &'e TextError>) {
        let wanted = ERRORS_MAX.saturating_sub(self.0.len());
        self.0.extend(others.into_iter().take(wanted).cloned());
    }

    /// The errors in the order of their places.
    pub fn into_errors(self) -> Vec<TextError> {
        let mut errors = self.0;
        errors.sort_by_key(|error| (error.line, error.column));
        errors
    }
}

/// A word of the text as messages show it: control characters escaped, long ones cut.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_CHARS: usize = 40;
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// "`a`, `b` or `c`".
pub(crate) fn one_of(options: &[&str]) -> String {
    let quoted: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".into(),
    }
}

/// The option that was probably meant by `word`.
pub(crate) fn closest<'o>(word: &str, options: impl Iterator<Item = &'o str>) -> Option<&'o str> {
    const COMPARED_BYTES_MAX: usize = 40;
    if word.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let distance_max = (word.chars().count() / 3).max(1);
    options
        .map(|option| {
            (
                strsim::damerau_levenshtein(&word, &option.to_ascii_lowercase()),
                option,
            )
        })
        .filter(|&(distance, _)| distance <= distance_max)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, option)| option)
}

/// "did you mean …?", or that abbreviations are not read.
pub(crate) fn suggestion<'o>(
    word: &str,
    options: impl Iterator<Item = &'o str> + Clone,
) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let mut longer = options.clone().filter(|option| option.starts_with(&lower));
    if let (Some(full), None) = (longer.next(), longer.next())
        && lower.len() >= 2
    {
        return Some(format!("abbreviations are not read: write `{full}`"));
    }
    closest(word, options).map(|option| format!("did you mean `{option}`?"))
}
