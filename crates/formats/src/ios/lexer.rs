//! Text to lines of words with their places.

use crate::error::Span;

/// A run of characters without white space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub span: Span,
}

impl Word<'_> {
    /// Keywords are read in either case, as IOS does.
    pub fn is(&self, keyword: &str) -> bool {
        self.text.eq_ignore_ascii_case(keyword)
    }
}

/// One line of the text.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// From 1.
    pub number: usize,
    /// As written.
    pub text: &'a str,
    /// Characters before the first word; after a prompt they count from its end.
    pub indent: usize,
    /// Behind the prompt of the outermost configuration mode.
    pub is_top: bool,
    /// None in a blank line, a comment, and what a terminal adds to a configuration.
    pub words: Vec<Word<'a>>,
    /// Just past the last word.
    pub end: Span,
}

/// White space within a line. `lines` has taken the line ends.
const SPACES: [char; 5] = [' ', '\t', '\r', '\u{b}', '\u{c}'];
/// Prompt that a pager overwrites before it goes on.
const PAGER: &str = "--More--";
const BACKSPACE: char = '\u{8}';

/// The lines of `text`. `!` as the first character that is not white space makes a comment; IOS
/// knows no other.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines()
        .enumerate()
        .map(|(index, line)| split(index + 1, line))
}

fn split(number: usize, text: &str) -> Line<'_> {
    let start = command_start(text);
    let shown = text.get(start..).unwrap_or_default();
    let skipped = text
        .get(..start)
        .map_or(0, |skipped| skipped.chars().count());
    let mut words = Vec::new();
    let mut column = skipped + 1;
    for piece in shown.split(SPACES) {
        let length = piece.chars().count();
        if length > 0 {
            words.push(Word {
                text: piece,
                span: Span {
                    line: number,
                    column,
                    length,
                },
            });
        }
        // The white space that ended the piece is one character.
        column += length + 1;
    }
    let is_said = words
        .first()
        .is_some_and(|word| !word.text.starts_with('!'));
    if !is_said || is_heading(&words) {
        words.clear();
    }
    let first = words.first().map(|word| word.span.column);
    let last = words.last().map(|word| word.span);
    Line {
        number,
        text,
        is_top: text
            .get(..start)
            .is_some_and(|prompt| prompt.ends_with("(config)#")),
        indent: first.map_or(0, |column| column - 1 - skipped),
        end: Span {
            line: number,
            column: last.map_or(1, |last| last.column + last.length),
            length: 1,
        },
        words,
    }
}

/// The byte at which the command begins: behind what a pager left, and behind the prompt of a
/// configuration mode. The whole line is skipped where a prompt is followed by something else.
fn command_start(text: &str) -> usize {
    let mut start = text.rfind(BACKSPACE).map_or(0, |at| at + 1);
    let rest = || text.get(start..).unwrap_or_default();
    if let Some(after) = rest().trim_start_matches(SPACES).strip_prefix(PAGER) {
        start = text.len() - after.len();
    }
    let rest = text.get(start..).unwrap_or_default();
    let shown = rest.trim_start_matches(SPACES);
    let word = shown.split(SPACES).next().unwrap_or_default();
    let Some(at) = word.find(['#', '>']) else {
        return start;
    };
    let prompt = word.get(..at).unwrap_or_default();
    let (host, mode) = match prompt.split_once('(') {
        Some((host, mode)) => (host, Some(mode)),
        None => (prompt, None),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    if host.is_empty() || !host.chars().all(is_host) {
        return start;
    }
    match mode {
        Some(mode) if mode.starts_with("config") && mode.ends_with(')') => {
            text.len() - shown.len() + at + 1
        }
        Some(_) => start,
        // What is typed there only shows something.
        None => text.len(),
    }
}

/// Returns true for a heading that IOS prints above a configuration.
fn is_heading(words: &[Word<'_>]) -> bool {
    let begins = |with: &[&str]| {
        let words = words.iter().take(with.len());
        words.len() == with.len() && words.zip(with).all(|(word, with)| word.is(with))
    };
    begins(&["Building", "configuration..."])
        || begins(&["Enter", "configuration", "commands,"])
        || begins(&["Current", "configuration"])
        || (begins(&["Using"]) && words.iter().any(|word| word.is("bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_columns_in_characters_and_skips_comments() {
        let text = "! head\n\n\tmatch  vlän 10 \r\nend";
        let lines: Vec<Line<'_>> = lines(text).filter(|l| !l.words.is_empty()).collect();
        let seen: Vec<(usize, usize, usize, &str)> = lines
            .iter()
            .flat_map(|l| &l.words)
            .map(|w| (w.span.line, w.span.column, w.span.length, w.text))
            .collect();
        assert_eq!(
            seen,
            [
                (3, 2, 5, "match"),
                (3, 9, 4, "vlän"),
                (3, 14, 2, "10"),
                (4, 1, 3, "end")
            ]
        );
        assert_eq!(lines[0].indent, 1);
        assert_eq!(
            lines[0].end,
            Span {
                line: 3,
                column: 16,
                length: 1
            }
        );
    }

    #[test]
    fn a_byte_order_mark_is_not_a_word() {
        assert_eq!(lines("\u{feff}end").next().unwrap().words[0].text, "end");
    }

    #[test]
    fn what_a_terminal_adds_is_not_a_command() {
        let text = "R1#show running-config\nBuilding configuration...\n\n\
                    Current configuration : 4711 bytes\nUsing 4711 out of 262136 bytes\n\
                    R1(config-pmap-c)# fair-queue\n --More-- \u{8}\u{8}\u{8} class gold\n\
                    --More--  match any\nR1>\n";
        let seen: Vec<(usize, usize, usize, &str)> = lines(text)
            .filter_map(|l| {
                Some((
                    l.number,
                    l.words.first()?.span.column,
                    l.indent,
                    l.words[0].text,
                ))
            })
            .collect();
        assert_eq!(
            seen,
            [
                (6, 20, 1, "fair-queue"),
                (7, 15, 1, "class"),
                (8, 11, 2, "match")
            ]
        );
    }
}
