//! Findings as text for people.

use crate::output::escaped;
use console::Style;
use slicewise_testbed::doctor::{Examination, Finding, Fix, Group, Purpose, Readiness, State};
use std::fmt::Write;

/// Where details begin when names are not beside them.
const INDENT: usize = 4;
/// With less room than this for details, they go below names.
const LEAST_DETAIL: usize = 36;

/// How to write.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Width of a line.
    pub columns: usize,
    /// True if the terminal shows colours.
    pub colours: bool,
}

/// Words of one look.
type Run<'a> = (&'a str, Style);

impl Page {
    /// A list by group, what can be run, and what installs what is missing.
    pub fn write(self, examination: &Examination) -> String {
        let mut text = String::new();
        let names = examination.findings.iter().map(|one| one.name.len());
        let name_width = names.max().unwrap_or(0);
        for group in Group::ALL {
            let of_group: Vec<&Finding> = (examination.findings.iter())
                .filter(|finding| finding.group == group)
                .collect();
            if of_group.is_empty() {
                continue;
            }
            let title = self.style().bold().apply_to(group.title());
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{title}");
            for alike in of_group.chunk_by(|a, b| is_as_unknown(a, b)) {
                self.entry(&mut text, alike, name_width);
            }
            text.push('\n');
        }
        let (sentence, rest) = summary(examination);
        let runs = [
            (sentence.as_str(), self.style().bold()),
            (&rest, self.style()),
        ];
        self.paragraph(&mut text, 0, &runs);
        if let Some(command) = examination.install_command() {
            // In one line, to be copied.
            let command = self.style().bold().apply_to(command);
            let _ = writeln!(text, "What is missing is installed by:\n\n    {command}");
        }
        text
    }

    fn style(self) -> Style {
        Style::new().force_styling(self.colours)
    }

    fn mark(self, state: State) -> String {
        let (mark, style) = match state {
            State::Ready => ("✓", self.style().green()),
            State::Limited => ("!", self.style().yellow()),
            State::Missing => ("✗", self.style().red()),
            State::Unknown => ("?", self.style().cyan()),
        };
        style.apply_to(mark).to_string()
    }

    /// One finding, or several of which nothing is known for the same reason.
    fn entry(self, text: &mut String, alike: &[&Finding], name_width: usize) {
        let Some(finding) = alike.first() else {
            return;
        };
        let _ = write!(text, "  {} ", self.mark(finding.state));
        if alike.len() > 1 {
            let names: Vec<&str> = alike.iter().map(|one| one.name).collect();
            let fix = finding.fix.as_ref();
            let fix = fix.map_or_else(String::new, |fix| format!(": {fix}"));
            let names = format!("{}:", names.join(", "));
            let why = format!("{}{fix}", finding.detail);
            let runs = [(names.as_str(), self.style()), (&why, self.style().cyan())];
            self.lines(text, INDENT, INDENT, &runs);
            return;
        }
        let indent = INDENT + name_width + 2;
        if self.columns < indent.saturating_add(LEAST_DETAIL) {
            let _ = writeln!(text, "{}", finding.name);
            let _ = write!(text, "{:1$}", "", INDENT + 2);
            self.details(text, finding, INDENT + 2);
        } else {
            let _ = write!(text, "{:name_width$}  ", finding.name);
            self.details(text, finding, indent);
        }
    }

    fn details(self, text: &mut String, finding: &Finding, indent: usize) {
        let (plain, dim) = (self.style(), self.style().dim());
        if finding.state == State::Ready {
            let purpose = format!("(for {})", finding.needed_for);
            self.lines(
                text,
                indent,
                indent,
                &[(&finding.detail, plain), (&purpose, dim)],
            );
            return;
        }
        self.lines(text, indent, indent, &[(&finding.detail, plain.clone())]);
        self.paragraph(
            text,
            indent,
            &[("needed for", dim.clone()), (finding.needed_for, dim)],
        );
        if let Some(fix) = &finding.fix {
            let words = fix.to_string();
            let (what, look) = match fix {
                Fix::Install(_) | Fix::Run(_) => ("run:", self.style().bold()),
                Fix::Advice(_) => ("fix:", plain.clone()),
            };
            self.paragraph(text, indent, &[(what, plain), (&words, look)]);
        }
    }

    fn paragraph(self, text: &mut String, indent: usize, runs: &[Run]) {
        text.extend(std::iter::repeat_n(' ', indent));
        self.lines(text, indent, indent, runs);
    }

    /// Words, in lines no longer than the page is wide, as long as each word fits: from column `at` on, and
    /// on further lines from `indent` on.
    fn lines(self, text: &mut String, mut at: usize, indent: usize, runs: &[Run]) {
        let mut is_first = true;
        for (run, style) in runs {
            // What of this run is on one line.
            let mut piece = String::new();
            for word in escaped(run).split_whitespace() {
                let width = word.chars().count();
                if is_first {
                    is_first = false;
                } else if at + 1 + width > self.columns {
                    let _ = write!(text, "{}", style.apply_to(&piece));
                    piece.clear();
                    text.push('\n');
                    text.extend(std::iter::repeat_n(' ', indent));
                    at = indent;
                } else {
                    // Between two runs it has no look.
                    let end = if piece.is_empty() {
                        &mut *text
                    } else {
                        &mut piece
                    };
                    end.push(' ');
                    at += 1;
                }
                piece.push_str(word);
                at += width;
            }
            let _ = write!(text, "{}", style.apply_to(&piece));
        }
        text.push('\n');
    }
}

/// Returns true if one line does for both findings.
fn is_as_unknown(a: &Finding, b: &Finding) -> bool {
    a.state == State::Unknown && (b.state, &b.detail, &b.fix) == (a.state, &a.detail, &a.fix)
}

/// Returns a line about which commands can run, which cannot, and which are not known; and further remarks.
fn summary(examination: &Examination) -> (String, String) {
    let with = |readiness| -> Vec<&str> {
        let all = Purpose::ALL.into_iter();
        let those = all.filter(|&purpose| examination.readiness(purpose) == readiness);
        those.map(Purpose::command).collect()
    };
    let is_root = !examination
        .findings
        .iter()
        .any(|finding| finding.name == "root" && finding.state != State::Ready);
    let mut subject = if is_root { "this machine" } else { "this user" };
    let (can, cannot, unknown) = (
        with(Readiness::Can),
        with(Readiness::Cannot),
        with(Readiness::Unknown),
    );
    let mut clauses = Vec::new();
    for (before, after, commands, conjunction) in [
        ("", "can run", &can, "and"),
        ("", "cannot run", &cannot, "or"),
        ("it is not known whether ", "can run", &unknown, "or"),
    ] {
        if !commands.is_empty() {
            let list = listed(commands, conjunction);
            clauses.push(format!("{before}{subject} {after} {list}"));
            subject = "it";
        }
    }
    let mut sentence = format!("{}.", clauses.join("; "));
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let mut rest = String::new();
    let without: Vec<&str> = (examination.findings.iter())
        .filter(|finding| finding.state == State::Missing && finding.stops.is_empty())
        .map(|finding| finding.needed_for)
        .collect();
    if is_root && !can.is_empty() && !without.is_empty() {
        let _ = write!(rest, "Not possible: {}.", without.join("; "));
    }
    if !is_root {
        rest.push_str("What root can run: sudo slicewise doctor");
    }
    (sentence, rest)
}

/// `a`, `a and b`, `a, b and c`.
fn listed(commands: &[&str], conjunction: &str) -> String {
    let quoted: Vec<String> = commands.iter().map(|one| format!("`{one}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {conjunction} {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
