//! The settings of one section: known keys, each once, with numbers as values.

use super::lexer::{Entry, Section, Word};
use crate::error::{Report, Span, TextError, closest, quoted};
use slicewise_model::hqos::{
    BEST_EFFORT_QUEUES, HqosPipeProfile, HqosRates, HqosSection, TRAFFIC_CLASSES,
};
use std::collections::BTreeMap;

/// A range of numbers in a key, and the number that all of them have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) of: u32,
    pub(super) key: Span,
    pub(super) value: Span,
}

impl Range {
    /// As it is written, of `what`.
    pub(super) fn named(&self, what: &str) -> String {
        if self.first == self.last {
            format!("{what} {}", self.first)
        } else {
            format!("{what} {}-{}", self.first, self.last)
        }
    }
}

/// A section whose keys are known.
pub(super) struct Settings<'t> {
    pub(super) section: HqosSection,
    /// Where it begins.
    pub(super) name: Word<'t>,
    entries: BTreeMap<&'t str, Entry<'t>>,
    pub(super) ranges: Vec<Range>,
}

impl<'t> Settings<'t> {
    /// The settings of `written`, which is `section`; keys that it does not have are reported.
    pub(super) fn new(section: HqosSection, written: Section<'t>, report: &mut Report) -> Self {
        let (mut entries, mut ranges) = (BTreeMap::new(), Vec::new());
        let (known, numbered) = (keys(section), numbered(section));
        for entry in written.entries {
            let range = numbered.and_then(|what| entry.key.text.strip_prefix(what));
            let range = range.and_then(|numbers| numbers.strip_prefix(' '));
            if let Some(numbers) = range {
                match self::range(numbers, &entry) {
                    Ok(range) => ranges.push(range),
                    Err(error) => report.add(|| error),
                }
            } else if !known.iter().any(|known| known == entry.key.text) {
                report.add(|| unknown(&entry.key, section, &known, numbered));
            } else if entries.contains_key(entry.key.text) {
                report.add(|| entry.key.error("is there twice").expected("each key once"));
            } else {
                entries.insert(entry.key.text, entry);
            }
        }
        Self {
            section,
            name: written.name,
            entries,
            ranges,
        }
    }

    pub(super) fn entry(&self, key: &str) -> Option<&Entry<'t>> {
        self.entries.get(key)
    }

    /// Where the value of `key` is written, or one of its values.
    pub(super) fn value_at(&self, key: &str, position: Option<usize>) -> Option<Span> {
        let value = self.entry(key)?.value;
        let parts = value.parts();
        let part = position.and_then(|position| parts.get(position));
        Some(part.map_or(value.span, |part| part.span))
    }

    /// Where each key is written: that of the value.
    pub(super) fn places(&self) -> impl Iterator<Item = (String, Span)> {
        let ranges = self.ranges.iter().map(|range| {
            let name = numbered(self.section).unwrap_or_default();
            (range.named(name), range.key)
        });
        let entries = self.entries.iter();
        let entries = entries.map(|(key, entry)| ((*key).to_owned(), entry.value.span));
        entries.chain(ranges)
    }

    /// The number that `key` has; `None` where the key is not there, or has none, which is reported.
    pub(super) fn number(&self, key: &str, most: u64, report: &mut Report) -> Option<u64> {
        let value = self.entry(key)?.value;
        number(&value, most)
            .map_err(|error| report.add(|| error))
            .ok()
    }

    /// The same of a key that must be there.
    pub(super) fn required(&self, key: &str, most: u64, report: &mut Report) -> Option<u64> {
        if self.entry(key).is_none() {
            self.report_missing(key, report);
        }
        self.number(key, most, report)
    }

    pub(super) fn report_missing(&self, key: &str, report: &mut Report) {
        report.add(|| {
            let message = format!("`[{}]` has no `{key}`", self.name.text);
            TextError::at(self.name.span, message).expected(format!("`{key} = …` below it"))
        });
    }

    /// The `N` numbers that `key` has.
    pub(super) fn numbers<const N: usize>(
        &self,
        key: &str,
        each: &str,
        most: u64,
        report: &mut Report,
    ) -> Option<[u64; N]> {
        let value = self.entry(key)?.value;
        let parts = value.parts();
        if parts.len() != N {
            let excess = parts.get(N).map_or(value.end(), |part| part.span);
            let message = format!("`{key}` has {} values", parts.len());
            report.add(|| {
                TextError::at(excess, message).expected(format!("{N}, one for each {each}"))
            });
            return None;
        }
        let mut numbers = [0; N];
        for (number, part) in numbers.iter_mut().zip(&parts) {
            match self::number(part, most) {
                Ok(read) => *number = read,
                Err(error) => {
                    report.add(|| error);
                    return None;
                }
            }
        }
        Some(numbers)
    }

    /// Reads the settings that subport profiles and pipe profiles have in common.
    pub(super) fn rates(&self, report: &mut Report) -> Option<HqosRates> {
        let tb_rate = self.required("tb rate", u64::MAX, report);
        let tb_size = self.required("tb size", u64::MAX, report);
        let tc_period = self.required("tc period", u64::MAX, report);
        let mut tc_rates = [0; TRAFFIC_CLASSES];
        let mut all = true;
        for (class, rate) in tc_rates.iter_mut().enumerate() {
            match self.required(&format!("tc {class} rate"), u64::MAX, report) {
                Some(read) => *rate = read,
                None => all = false,
            }
        }
        let rates = HqosRates {
            tb_rate: tb_rate?,
            tb_size: tb_size?,
            tc_rates,
            tc_period: tc_period?,
        };
        all.then_some(rates)
    }

    /// A pipe profile. The application has values of its own for what profile 0 leaves out, and zero for others.
    pub(super) fn pipe_profile(&self, report: &mut Report) -> Option<HqosPipeProfile> {
        const OVERSUBSCRIPTION: &str = "tc 12 oversubscription weight";
        const WEIGHTS: &str = "tc 12 wrr weights";
        let rates = self.rates(report);
        if self.section != HqosSection::PipeProfile(0) {
            for key in [OVERSUBSCRIPTION, WEIGHTS] {
                if self.entry(key).is_none() {
                    self.report_missing(key, report);
                }
            }
        }
        let most = u64::from(u8::MAX);
        let weight = match self.entry(OVERSUBSCRIPTION) {
            Some(_) => self.number(OVERSUBSCRIPTION, most, report)?,
            None => 1,
        };
        let weights = match self.entry(WEIGHTS) {
            Some(_) => self.numbers(WEIGHTS, "queue of best effort", most, report)?,
            None => [1; BEST_EFFORT_QUEUES],
        };
        let byte = |number| u8::try_from(number).unwrap_or(u8::MAX);
        Some(HqosPipeProfile {
            rates: rates?,
            oversubscription_weight: byte(weight),
            wrr_weights: weights.map(byte),
        })
    }
}

/// The settings that a section may have.
fn keys(section: HqosSection) -> Vec<String> {
    let own: &[&str] = match section {
        HqosSection::Port => &["frame overhead", "number of subports per port"],
        HqosSection::Subport(_) => &["number of pipes per subport", "queue sizes"],
        HqosSection::SubportProfile(_) => &["tb rate", "tb size", "tc period"],
        HqosSection::PipeProfile(_) => &[
            "tb rate",
            "tb size",
            "tc period",
            "tc 12 oversubscription weight",
            "tc 12 wrr weights",
        ],
        HqosSection::Red => &[],
    };
    let mut keys: Vec<String> = own.iter().map(|key| (*key).to_owned()).collect();
    for class in 0..TRAFFIC_CLASSES {
        match section {
            HqosSection::SubportProfile(_) | HqosSection::PipeProfile(_) => {
                keys.push(format!("tc {class} rate"));
            }
            HqosSection::Red => {
                for spelling in RED_SPELLINGS {
                    keys.extend(RED_KEYS.map(|key| format!("tc {class} {spelling} {key}")));
                }
            }
            HqosSection::Port | HqosSection::Subport(_) => {}
        }
    }
    keys
}

/// Returns the name of the keys that a section has for each number of a range.
const fn numbered(section: HqosSection) -> Option<&'static str> {
    match section {
        HqosSection::Port => Some("subport"),
        HqosSection::Subport(_) => Some("pipe"),
        HqosSection::SubportProfile(_) | HqosSection::PipeProfile(_) | HqosSection::Red => None,
    }
}

/// How early detection is spelled: as the application reads it, and as the files do that come with it.
pub(super) const RED_SPELLINGS: [&str; 2] = ["red", "wred"];
/// Settings of early detection, each with a value for each colour.
pub(super) const RED_KEYS: [&str; 4] = ["min", "max", "inv prob", "weight"];

fn unknown(
    key: &Word<'_>,
    section: HqosSection,
    known: &[String],
    numbered: Option<&str>,
) -> TextError {
    let error = key.error("is not read here");
    let class = key.text.strip_prefix("tc ");
    let class = class.and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    if class.is_some_and(|class| class >= TRAFFIC_CLASSES) {
        let message = format!("{} is of no traffic class", quoted(key.text));
        return TextError::at(key.span, message).expected(format!(
            "classes 0 to {}: there are {TRAFFIC_CLASSES}",
            TRAFFIC_CLASSES - 1
        ));
    }
    let single = key
        .parts()
        .iter()
        .map(|part| part.text)
        .collect::<Vec<_>>()
        .join(" ");
    if single != key.text && known.contains(&single) {
        let help = format!("DPDK compares keys letter by letter: write `{single}`");
        return error.expected("one space between words").help(help);
    }
    let suggested = closest(key.text, known.iter().map(String::as_str));
    let suggested = suggested.map(|known| format!("did you mean `{known}`?"));
    let mut shown: Vec<String> = known
        .iter()
        .filter(|key| {
            !key.starts_with("tc ") || key.starts_with("tc 12 ") && !key.ends_with("rate")
        })
        .map(|key| format!("`{key}`"))
        .collect();
    match section {
        HqosSection::SubportProfile(_) | HqosSection::PipeProfile(_) => {
            shown.push("`tc 0 rate` to `tc 12 rate`".to_owned());
        }
        HqosSection::Red => {
            shown = vec!["`tc N red min`, `max`, `inv prob` or `weight`".to_owned()]
        }
        HqosSection::Port | HqosSection::Subport(_) => {
            shown.extend(numbered.map(|what| format!("`{what} FIRST-LAST`")));
        }
    }
    error.expected(shown.join(", ")).maybe_help(suggested)
}

/// `FIRST-LAST` or `ONE`.
fn range(numbers: &str, entry: &Entry<'_>) -> Result<Range, TextError> {
    let expected = || {
        let error = entry.key.error("has no range of numbers");
        error.expected("`FIRST-LAST` or one number, without spaces around the dash")
    };
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let digits = |text: &str| digits(text).and_then(|number| u32::try_from(number).ok());
    let (Some(first), Some(last)) = (digits(first), digits(last)) else {
        return Err(expected());
    };
    if first > last {
        let message = format!("the range {first}-{last} has nothing in it");
        return Err(TextError::at(entry.key.span, message).expected("the smaller number first"));
    }
    let of = number(&entry.value, u64::from(u32::MAX))?;
    Ok(Range {
        first,
        last,
        of: u32::try_from(of).unwrap_or(u32::MAX),
        key: entry.key.span,
        value: entry.value.span,
    })
}

/// The digits of a whole number. A leading zero makes an octal number of it for `strtoull`, which the application uses.
fn is_number(text: &str) -> bool {
    let is_plain = text == "0" || !text.starts_with('0');
    is_plain && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn digits(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| is_number(text))
}

fn number(word: &Word<'_>, most: u64) -> Result<u64, TextError> {
    if !is_number(word.text) {
        let error = word.error("is not a whole number");
        return Err(error.expected("digits alone, with no leading zero and no unit"));
    }
    let number = digits(word.text).filter(|number| *number <= most);
    number.ok_or_else(|| {
        word.error("is too large")
            .expected(format!("at most {most}"))
    })
}
