//! Policies written in IOS's own language, in a file or inside the study file.

use super::Checker;
use crate::file::{FileId, Sources, Span};
use crate::spec::{At, Verbatim};
use slicewise_formats::ios::{self, IosPolicyError};
use slicewise_model::PolicySpec;

/// A policy read from IOS text.
pub(super) struct IosPolicy {
    pub(super) spec: PolicySpec,
    pub(super) configuration: String,
    pub(super) text: IosText,
    /// The name of its policy map.
    pub(super) map_name: String,
}

/// Where the text of a configuration stands.
#[derive(Debug, Clone)]
pub(super) struct IosText {
    text: String,
    /// Numbers of the lines that the policy needs, from 1, in order.
    needed: Vec<usize>,
    placement: Placement,
}

#[derive(Debug, Clone, Copy)]
enum Placement {
    /// A file of its own.
    File(FileId),
    /// A block in the study file: line `n` of it is line `first_line + n` (from 0) of the file,
    /// without the first `indent` bytes.
    Block {
        at: Span,
        first_line: usize,
        indent: usize,
    },
}

impl Checker<'_> {
    pub(super) fn ios_policy(
        &mut self,
        name: &At<String>,
        text: &At<Verbatim>,
        policy_map: Option<&At<String>>,
    ) -> Option<IosPolicy> {
        let mut ios = if text.value.0.contains('\n') {
            self.ios_block(text)
        } else {
            self.ios_file(text)?
        };
        let chosen = policy_map.map(|text| text.value.as_str());
        let read = ios::parse(&ios.text).map_err(|error| IosPolicyError::Text(vec![error]));
        let whole = read.and_then(|config| {
            let is_whole = config.skipped().is_some();
            config.policy(chosen).map(|policy| (policy, is_whole))
        });
        let (policy, is_whole) = match whole {
            Ok(policy) => policy,
            Err(IosPolicyError::Text(errors)) => {
                for error in errors {
                    let message = match &error.expected {
                        Some(expected) => format!("{}: expected {expected}", error.message),
                        None => error.message,
                    };
                    let span = ios.span(self.sources, error.line, error.column, error.length);
                    self.problems.add_suggesting(span, message, error.help);
                }
                return None;
            }
            Err(IosPolicyError::Choice(error)) => {
                let at = policy_map.map_or(text.span, |name| name.span);
                let help = policy_map
                    .is_none()
                    .then(|| "name it with `policy_map`".to_owned());
                self.problems.add_suggesting(at, error.to_string(), help);
                return None;
            }
        };
        for note in policy.notes {
            let span = ios.span(self.sources, note.line, note.column, note.length);
            self.problems.warn(span, note.message);
        }
        // Of a whole configuration, reports show what the policy needs: the rest holds secrets.
        let configuration = match is_whole {
            true => lines_of(&ios.text, &policy.lines),
            false => ios.text.trim_end().to_owned(),
        };
        ios.needed = policy.lines;
        let mut spec = policy.spec;
        let map_name = std::mem::replace(&mut spec.name, name.value.clone());
        Some(IosPolicy {
            spec,
            configuration,
            text: ios,
            map_name,
        })
    }

    fn ios_file(&mut self, text: &At<Verbatim>) -> Option<IosText> {
        let path = self.sources.beside(text.span.file, text.value.0.trim());
        let file = match self.sources.find(&path) {
            Some(file) => file,
            None => match self.files.read(&path) {
                Ok(content) => self.sources.add(&path, content),
                Err(error) => {
                    self.unreadable(text.span, &path, &error);
                    return None;
                }
            },
        };
        let text = self.sources.text(file).to_owned();
        Some(IosText {
            text,
            needed: Vec::new(),
            placement: Placement::File(file),
        })
    }

    fn ios_block(&self, text: &At<Verbatim>) -> IosText {
        let at = text.span;
        let file = self.sources.text(at.file);
        let start = usize::try_from(at.start).unwrap_or(usize::MAX);
        let before = file.get(..start).unwrap_or_default();
        // The place of a block is its first line that is not blank; blank ones before it count.
        let blank = (text.value.0)
            .lines()
            .take_while(|line| line.trim().is_empty())
            .count();
        let first_line = before.matches('\n').count().saturating_sub(blank);
        let lines = file.lines().skip(first_line);
        let indented = lines
            .clone()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let indent = indented.len() - indented.trim_start_matches(' ').len();
        IosText {
            text: text.value.0.clone(),
            needed: Vec::new(),
            placement: Placement::Block {
                at,
                first_line,
                indent,
            },
        }
    }
}

/// The lines of `text` with these numbers, from 1.
fn lines_of(text: &str, numbers: &[usize]) -> String {
    let lines = text.lines().zip(1..);
    let kept = lines.filter(|(_, number)| numbers.binary_search(number).is_ok());
    let kept: Vec<&str> = kept.map(|(line, _)| line.trim_end()).collect();
    kept.join("\n")
}

/// The command of IOS that sets what the model calls `field`.
fn command(field: &str) -> &'static [&'static str] {
    match field {
        "police" => &["police"],
        "set_dscp" => &["set"],
        "priority" => &["priority"],
        "minimum" => &["bandwidth", "priority"],
        "weight" => &["bandwidth"],
        "shape" => &["shape"],
        "queue_limit" => &["queue-limit"],
        "wred" => &["random-detect"],
        "flow_queue" => &["fair-queue"],
        "child" => &["service-policy"],
        _ => &[],
    }
}

impl IosText {
    /// The bytes of `length` characters at `line` and `column`, both from 1.
    fn span(&self, sources: &Sources, line: usize, column: usize, length: usize) -> Span {
        let (file, line, indent) = match self.placement {
            Placement::File(file) => (file, line.saturating_sub(1), 0),
            Placement::Block {
                at,
                first_line,
                indent,
            } => {
                let in_file = first_line + line.saturating_sub(1);
                // A quoted text is not laid out line by line: it is pointed at as a whole.
                if !self.is_block_line(sources, at, in_file, line, indent) {
                    return at;
                }
                (at.file, in_file, indent)
            }
        };
        let text = sources.text(file);
        let mut start = 0;
        for _ in 0..line {
            let rest = text.get(start..).unwrap_or_default();
            let Some(newline) = rest.find('\n') else {
                break;
            };
            start += newline + 1;
        }
        let content = text.get(start..).unwrap_or_default();
        let content = content.split('\n').next().unwrap_or_default();
        let offset = |characters: usize| {
            let shown = content.get(indent.min(content.len())..).unwrap_or_default();
            let bytes: usize = shown.chars().take(characters).map(char::len_utf8).sum();
            u32::try_from(start + indent.min(content.len()) + bytes).unwrap_or(u32::MAX)
        };
        let first = column.saturating_sub(1);
        Span {
            file,
            start: offset(first),
            end: offset(first + length),
        }
    }

    fn is_block_line(
        &self,
        sources: &Sources,
        at: Span,
        in_file: usize,
        line: usize,
        indent: usize,
    ) -> bool {
        let own = self
            .text
            .lines()
            .nth(line.saturating_sub(1))
            .unwrap_or_default();
        let written = sources
            .text(at.file)
            .lines()
            .nth(in_file)
            .unwrap_or_default();
        written.get(indent..).unwrap_or_default().trim_end() == own.trim_end()
    }

    /// Where class `class` is configured, and in it the command that sets `field`.
    pub(super) fn place(&self, sources: &Sources, class: &str, field: &str) -> Option<Span> {
        let mut found = None;
        let mut is_inside = false;
        for (index, line) in self.text.lines().enumerate() {
            if self.needed.binary_search(&(index + 1)).is_err() {
                continue;
            }
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            let column = line.chars().take_while(|c| c.is_whitespace()).count() + 1;
            let length = line.trim().chars().count();
            let here = || self.span(sources, index + 1, column, length);
            if first.eq_ignore_ascii_case("class") {
                is_inside = words.next() == Some(class);
                if is_inside && found.is_none() {
                    found = Some(here());
                }
            } else if first.eq_ignore_ascii_case("policy-map")
                || first.eq_ignore_ascii_case("class-map")
            {
                is_inside = false;
            } else if is_inside && command(field).iter().any(|c| first.eq_ignore_ascii_case(c)) {
                return Some(here());
            }
        }
        found
    }
}
