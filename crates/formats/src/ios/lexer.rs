//! Text to lines of words with their places.

/// A stretch of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// In characters.
    pub length: usize,
}

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

/// A line that says something.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Characters before the first word.
    pub indent: usize,
    /// At least one.
    pub words: Vec<Word<'a>>,
    /// Just past the last word.
    pub end: Span,
}

/// White space within a line. `lines` has taken the line ends.
const SPACES: [char; 5] = [' ', '\t', '\r', '\u{b}', '\u{c}'];

/// The lines of `text` that are neither blank nor a comment (`!` as the first character that is
/// not white space; IOS knows no other comments).
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines()
        .enumerate()
        .filter_map(|(index, line)| split(index + 1, line))
}

fn split(number: usize, text: &str) -> Option<Line<'_>> {
    let first = text.trim_start_matches(SPACES);
    if first.is_empty() || first.starts_with('!') {
        return None;
    }
    let mut words = Vec::new();
    let mut column = 1;
    for piece in text.split(SPACES) {
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
    let last = words.last()?.span;
    let end = Span {
        line: number,
        column: last.column + last.length,
        length: 1,
    };
    let indent = words.first()?.span.column - 1;
    Some(Line { indent, words, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_columns_in_characters_and_skips_comments() {
        let text = "! head\n\n\tmatch  vlän 10 \r\nend";
        let lines: Vec<Line<'_>> = lines(text).collect();
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
}
