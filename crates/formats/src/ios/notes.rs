//! Notes on the parts of a text that a policy was not made of.

use super::attach::{Attached, grouped, listed};
use super::config::IosConfig;
use super::definition::{Source, WithoutEffect};
use super::policy_map::PolicyMapText;
use super::reach::Reach;
use crate::error::{Span, TextNote, quoted};
use std::collections::BTreeMap;

/// Names listed in a message.
const NAMES_SHOWN: usize = 5;
/// Ranges of line numbers listed in a message.
const RANGES_SHOWN: usize = 100;

/// Notes of a policy.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Worth a warning.
    pub notes: Vec<TextNote>,
    /// The rest of what was not used.
    pub unused: Vec<TextNote>,
}

impl IosConfig {
    /// Returns the notes on the policy of `map`; `is_chosen` where nobody named it.
    pub(super) fn notes(&self, reach: &Reach, map: &PolicyMapText, is_chosen: bool) -> Notes {
        let mut found = Notes::default();
        if let (Some(skipped), Some(first)) = (self.skipped(), self.skipped.first()) {
            found.note(first, skipped.to_string());
            let lines = line_ranges(skipped.numbers());
            found.add_unused(first, format!("not about quality of service: {lines}"));
        }
        for class in reach.policy_maps(self).flat_map(|map| &map.left_out) {
            let message = format!(
                "class {} is left out: `match {}` is not supported, but the class changes nothing for \
                 its packets; they go to the classes after it",
                quoted(&class.class),
                class.criterion,
            );
            found.note(class.span, message);
        }
        found.without_effect(reach.policy_maps(self));
        if self.is_lenient {
            self.note_left_out(reach, &mut found);
        }
        let (used, others): (Vec<Attached>, Vec<Attached>) = grouped(&self.attachments)
            .into_iter()
            .partition(|attached| attached.policy == map.name);
        if !others.is_empty() {
            let (used, others) = (listed(&used), listed(&others));
            match is_chosen {
                true => found.note(map.span, format!("used: {used}; not used: {others}")),
                false => found.add_unused(map.span, format!("attached and not used: {others}")),
            }
        }
        let unused: Vec<(String, &Source)> = reach.unused(self).collect();
        let is_wrong = |source: &Source| !source.wrong.is_empty() || !source.unmodelled.is_empty();
        let wrong = unused.iter().filter(|(_, source)| is_wrong(source));
        if let Some(names) = names(wrong.map(|(name, _)| name.as_str())) {
            let message = "not needed by this policy, and with lines that are not supported";
            found.note(map.span, format!("{message}: {names}"));
        }
        let mut lines: Vec<usize> = unused
            .iter()
            .flat_map(|(_, source)| source.lines.iter().copied())
            .collect();
        lines.sort_unstable();
        if let Some(names) = names(unused.iter().map(|(name, _)| name.as_str())) {
            let message = format!(
                "not needed by this policy: {names} ({})",
                line_ranges(&lines)
            );
            found.add_unused(map.span, message);
        }
        found.sorted()
    }

    /// Notes the lines that a lenient reader leaves out although they may change results.
    fn note_left_out(&self, reach: &Reach, found: &mut Notes) {
        for line in reach.sources(self).flat_map(|source| &source.unmodelled) {
            let message = format!(
                "{} is left out: {}",
                quoted(&line.command),
                line.error.message
            );
            found.note(line.error.span(), message);
        }
        for (criterion, negated, error) in reach.unseen(self) {
            let (not, packets) = match negated {
                false => ("", "no packet"),
                true => ("not ", "every packet"),
            };
            let message = format!(
                "`match {not}{criterion}` is taken to match {packets}, because headers do not tell"
            );
            found.note(error.span(), message);
        }
    }
}

impl Notes {
    fn note(&mut self, span: Span, message: String) {
        self.notes.push(TextNote { span, message });
    }

    fn add_unused(&mut self, span: Span, message: String) {
        self.unused.push(TextNote { span, message });
    }

    /// Commands that change no result, those that are alike in one note.
    fn without_effect<'c>(&mut self, maps: impl Iterator<Item = &'c PolicyMapText>) {
        let mut alike: BTreeMap<(&str, &str), Vec<Span>> = BTreeMap::new();
        let all = maps.flat_map(|map| &map.classes);
        for WithoutEffect { command, why, span } in all.flat_map(|class| &class.without_effect) {
            alike.entry((command, *why)).or_default().push(*span);
        }
        for ((command, why), spans) in alike {
            let lines: Vec<usize> = spans.iter().map(|span| span.line).collect();
            let Some(first) = spans.first() else { continue };
            let message = format!(
                "`{command}` changes no result here and is left out: {why} ({})",
                line_ranges(&lines)
            );
            self.note(*first, message);
        }
    }

    fn sorted(mut self) -> Self {
        for notes in [&mut self.notes, &mut self.unused] {
            notes.sort_by_key(|note| (note.span.line, note.span.column));
        }
        self
    }
}

/// "A, B and 2 more"; `None` where there is none.
fn names<'n>(all: impl Iterator<Item = &'n str>) -> Option<String> {
    let all: Vec<&str> = all.collect();
    let shown: Vec<&str> = all.iter().take(NAMES_SHOWN).copied().collect();
    let more = match all.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

/// "lines 1–3, 7" of numbers in order.
fn line_ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if number <= *last + 1 => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}–{last}"),
    };
    let shown: Vec<String> = ranges.iter().take(RANGES_SHOWN).map(text).collect();
    let more = match ranges.len() - shown.len() {
        0 => "",
        _ => " and more",
    };
    let one = matches!(ranges[..], [(first, last)] if first == last);
    format!(
        "{} {}{more}",
        if one { "line" } else { "lines" },
        shown.join(", ")
    )
}
