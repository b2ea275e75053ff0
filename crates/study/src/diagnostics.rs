//! Messages about a study file: the problem, its place and its remedy.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// One mistake: place, message, and help where there is some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, as it was named.
    pub file: String,
    /// Line, from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// Column in characters, from 1; 0 where the file as a whole is meant.
    pub column: usize,
    /// The bytes of the file that are meant.
    pub span: Range<usize>,
    /// Description of the problem.
    pub message: String,
    /// Remedy.
    pub help: Option<String>,
    /// It is worth knowing, and no mistake.
    pub is_warning: bool,
    /// The line, so that a message can be printed without the file.
    excerpt: Option<Excerpt>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    highlight: Range<usize>,
}

/// Longest line shown whole, bytes; of a longer one, the surroundings of the mistake are shown.
const EXCERPT_BYTES: usize = 400;
/// Longest message, characters.
const MESSAGE_CHARS: usize = 2_000;
/// Longest name that is compared with what it may have been meant to be, bytes.
const COMPARED_BYTES: usize = 64;

impl Diagnostic {
    /// A mistake about a file as a whole.
    pub(crate) fn of_file(file: &str, message: &str) -> Self {
        Self {
            file: printable(file),
            line: 0,
            column: 0,
            span: 0..0,
            message: printable(message),
            help: None,
            is_warning: false,
            excerpt: None,
        }
    }

    /// A mistake at bytes `span` of `text`; a span outside the text is moved to its end.
    pub(crate) fn at(
        file: &str,
        text: &str,
        span: Range<usize>,
        message: &str,
        help: Option<&str>,
    ) -> Self {
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end).max(start);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = text.get(start..).unwrap_or_default();
        let line_end = start + rest.find('\n').unwrap_or(rest.len());
        Self {
            file: printable(file),
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: text
                .get(line_start..start)
                .unwrap_or_default()
                .chars()
                .count()
                + 1,
            span: start..end,
            message: printable(message),
            help: help.map(printable),
            is_warning: false,
            excerpt: Some(Excerpt::of(text, line_start..line_end, start..end)),
        }
    }

    fn render(&self, renderer: &Renderer) -> String {
        let level = if self.is_warning {
            Level::WARNING
        } else {
            Level::ERROR
        };
        let title = level.primary_title(self.message.as_str());
        let mut group = match &self.excerpt {
            Some(excerpt) => title.element(
                Snippet::source(excerpt.text.as_str())
                    .line_start(self.line)
                    .path(self.file.as_str())
                    .annotation(AnnotationKind::Primary.span(excerpt.highlight.clone())),
            ),
            None => title.element(annotate_snippets::Origin::path(self.file.as_str())),
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl Excerpt {
    /// `line` cropped around `span`, both in bytes of `text`.
    fn of(text: &str, line: Range<usize>, span: Range<usize>) -> Self {
        let (mut from, mut to) = (line.start, line.end);
        if to - from > EXCERPT_BYTES {
            from = floor_boundary(text, from.max(span.start.saturating_sub(EXCERPT_BYTES / 2)));
            to = floor_boundary(text, to.min(from + EXCERPT_BYTES)).max(span.start);
        }
        let shown = text
            .get(from..to)
            .unwrap_or_default()
            .trim_end_matches('\r');
        let start = (span.start - from).min(shown.len());
        let end = (span.end.clamp(span.start, to) - from).clamp(start, shown.len());
        Self {
            text: without_c1(shown),
            highlight: start..end,
        }
    }
}

/// The renderer writes out the control characters of ASCII. Those above are two bytes long, and what stands
/// for them is, too, so that places stay what they are.
fn without_c1(text: &str) -> String {
    text.replace(|c: char| c.is_control() && !c.is_ascii(), "·")
}

fn floor_boundary(text: &str, mut index: usize) -> usize {
    index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// With hidden characters escaped, which must not reach a terminal, and of bounded length: what is
/// wrong may be quoted in it.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == MESSAGE_CHARS {
            printable.push('…');
            break;
        }
        if slicewise_units::is_hidden(c) {
            printable.extend(c.escape_debug());
        } else {
            printable.push(c);
        }
    }
    printable
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Renderer::plain()))
    }
}

/// Everything found wrong with a study file, in the order of the file: never empty. Or what is worth
/// knowing of one that is not wrong, which may be nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    /// How many more there were than are kept.
    omitted: usize,
}

/// Most mistakes kept: past these a reader fixes the first ones and tries again.
pub(crate) const MAX_DIAGNOSTICS: usize = 50;

impl Diagnostics {
    /// `found`, of which there were `omitted` more.
    pub(crate) fn new(found: Vec<Diagnostic>, omitted: usize) -> Self {
        Self { found, omitted }
    }

    /// The same, worth knowing and no mistakes.
    pub(crate) fn into_warnings(mut self) -> Self {
        for diagnostic in &mut self.found {
            diagnostic.is_warning = true;
        }
        self
    }

    /// One mistake about a file as a whole.
    pub(crate) fn of_file(file: &str, message: &str) -> Self {
        Self::new(vec![Diagnostic::of_file(file, message)], 0)
    }

    /// The mistakes.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }

    /// How many there are, those beyond the first fifty included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.found.len() + self.omitted
    }

    /// As text for people, each with the line it is about; with ANSI colours where `colour`.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut texts: Vec<String> = self.found.iter().map(|d| d.render(&renderer)).collect();
        if self.omitted > 0 {
            texts.push(format!("… and {} more", self.omitted));
        }
        texts.join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// The name of `known` that `written` was probably meant to be.
pub(crate) fn closest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if written.len() > COMPARED_BYTES {
        return None;
    }
    known
        .into_iter()
        .filter(|name| name.len() <= COMPARED_BYTES)
        .map(|name| {
            (
                strsim::jaro_winkler(&written.to_lowercase(), &name.to_lowercase()),
                name,
            )
        })
        .filter(|&(similarity, _)| similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Names that a suggestion lists.
const MOST_LISTED: usize = 20;

/// "did you mean …" where there is a likely one, else the list of what would do.
pub(crate) fn suggestion(written: &str, known: &[&str]) -> Option<String> {
    if let Some(name) = closest(written, known.iter().copied()) {
        return Some(format!("did you mean `{name}`?"));
    }
    // Of a long list, names with a part in common with the written one come first: `fct_p99`, `delay_p99`.
    let shares_a_part = |name: &str| {
        name.split('_')
            .any(|part| written.split('_').any(|it| it == part))
    };
    let mut known = known.to_vec();
    if known.len() > MOST_LISTED {
        known.sort_by_key(|name| !shares_a_part(name));
    }
    let listed = known.iter().take(MOST_LISTED);
    let listed: Vec<String> = listed.map(|name| format!("`{name}`")).collect();
    match known.len().saturating_sub(listed.len()) {
        _ if known.is_empty() => None,
        0 => Some(format!("known are {}", listed.join(", "))),
        more => Some(format!("known are {} and {more} more", listed.join(", "))),
    }
}
