//! Sections of a profile file, as a policy.

use super::lexer::{self, Section, Word};
use super::section::{RED_KEYS, RED_SPELLINGS, Range, Settings};
use super::{POLICY, TEXT_BYTES_MAX};
use crate::error::{Report, Span, TextError, TextNote, closest};
use slicewise_model::hqos::{
    COLOURS, HqosPipeRange, HqosRed, HqosRedCurve, HqosSection, HqosSubport, MAX_PIPE_PROFILES,
    MAX_PIPES, MAX_SUBPORT_PROFILES, MAX_SUBPORTS, TRAFFIC_CLASSES,
};
use slicewise_model::{ClassSpec, Discipline, HqosError, HqosSpec, PolicySpec};
use slicewise_units::BitRate;

/// The policy that a profile makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DpdkPolicy {
    /// The policy, with class-default alone; its name is `dpdk`.
    pub spec: PolicySpec,
    /// Notes on the profile, in the order of the text.
    pub notes: Vec<TextNote>,
    /// Where settings are written.
    pub places: Vec<DpdkPlace>,
}

/// Where a setting is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DpdkPlace {
    /// Its section.
    pub section: HqosSection,
    /// Its key.
    pub key: String,
    /// Its value, or its key where that is a range.
    pub span: Span,
}

/// Sections of each kind, by number.
#[derive(Default)]
struct Sections<'t> {
    port: Option<Settings<'t>>,
    red: Option<Settings<'t>>,
    subports: Vec<Settings<'t>>,
    subport_profiles: Vec<Settings<'t>>,
    pipe_profiles: Vec<Settings<'t>>,
}

/// Read a profile file, for a port of rate `port`.
///
/// # Errors
/// The independent errors in the order of their places, [`ERRORS_MAX`](crate::ERRORS_MAX) at most: sections and keys
/// that the application does not read, values that it cannot read, sections and keys that are missing. Without these,
/// the first setting that the library refuses for such a port.
pub fn read(text: &str, port: BitRate) -> Result<DpdkPolicy, Vec<TextError>> {
    TextError::check_length(text, TEXT_BYTES_MAX).map_err(|error| vec![error])?;
    if let Some(error) = lexer::lone_return(text) {
        return Err(vec![error]);
    }
    let mut report = Report::default();
    let written = lexer::sections(text, &mut report);
    let sections = Sections::new(written, &mut report);
    let (spec, notes) = sections.spec(&mut report);
    if !report.is_empty() {
        return Err(report.into_errors());
    }
    spec.resolve(port)
        .map_err(|error| vec![sections.place(&error)])?;
    let class = ClassSpec {
        hqos: Some(Box::new(spec)),
        ..ClassSpec::class_default()
    };
    Ok(DpdkPolicy {
        spec: PolicySpec {
            name: POLICY.to_owned(),
            classes: vec![class],
            discipline: Discipline::MinimumShare,
            guaranteed: None,
            queues: Vec::new(),
        },
        notes,
        places: sections.places().collect(),
    })
}

impl<'t> Sections<'t> {
    fn new(written: Vec<Section<'t>>, report: &mut Report) -> Self {
        let mut sections = Self::default();
        for section in written {
            let kind = match kind(&section.name) {
                Ok(kind) => kind,
                Err(error) => {
                    report.add(|| error);
                    continue;
                }
            };
            if sections.all().any(|other| other.section == kind) {
                let error = || section.name.error("is there twice");
                report.add(|| error().expected("each section once: DPDK reads the first alone"));
                continue;
            }
            let settings = Settings::new(kind, section, report);
            match kind {
                HqosSection::Port => sections.port = Some(settings),
                HqosSection::Red => sections.red = Some(settings),
                HqosSection::Subport(_) => sections.subports.push(settings),
                HqosSection::SubportProfile(_) => sections.subport_profiles.push(settings),
                HqosSection::PipeProfile(_) => sections.pipe_profiles.push(settings),
            }
        }
        let numbered = [
            &mut sections.subports,
            &mut sections.subport_profiles,
            &mut sections.pipe_profiles,
        ];
        for numbered in numbered {
            numbered.sort_by_key(|settings| number(settings.section));
        }
        sections
    }

    fn all(&self) -> impl Iterator<Item = &Settings<'t>> {
        let single = self.port.iter().chain(&self.red);
        let profiles = self.subport_profiles.iter().chain(&self.pipe_profiles);
        single.chain(&self.subports).chain(profiles)
    }

    fn places(&self) -> impl Iterator<Item = DpdkPlace> {
        self.all().flat_map(|settings| {
            settings.places().map(|(key, span)| DpdkPlace {
                section: settings.section,
                key,
                span,
            })
        })
    }

    /// Returns the library's refusal at the place of the setting.
    fn place(&self, error: &HqosError) -> TextError {
        let spelled = error.key.replacen(" red ", " wred ", 1);
        let section = self.all().find(|it| it.section == error.section);
        let place = section.and_then(|settings| {
            let mut keys = [&error.key, &spelled].into_iter();
            let value = keys.find_map(|key| settings.value_at(key, error.position));
            let range = || settings.places().find(|(key, _)| *key == error.key);
            value.or_else(|| range().map(|(_, span)| span))
        });
        let span = place.or_else(|| section.map(|settings| settings.name.span));
        let message = format!("`{}` {}", error.key, error.problem);
        TextError::at(span.unwrap_or(Span::BEGIN), message)
    }

    fn spec(&self, report: &mut Report) -> (HqosSpec, Vec<TextNote>) {
        const COUNT: &str = "number of subports per port";
        let standard = HqosSpec::default();
        let mut notes = Vec::new();
        let port = self.port.as_ref();
        let number =
            |key, most, report: &mut Report| port.and_then(|port| port.number(key, most, report));
        let overhead = number("frame overhead", u64::from(u16::MAX), report);
        let count = number(COUNT, MAX_SUBPORTS as u64, report);
        let count = usize::try_from(count.unwrap_or(1)).unwrap_or(MAX_SUBPORTS);
        if let (false, Some(entry)) = (count.is_power_of_two(), port.and_then(|it| it.entry(COUNT)))
        {
            let error = || entry.value.error("is no power of two");
            report.add(|| error().expected("1, 2, 4 or 8 subports"));
        }
        check_numbers(
            &self.subport_profiles,
            "subport profile",
            MAX_SUBPORT_PROFILES,
            report,
        );
        check_numbers(
            &self.pipe_profiles,
            "pipe profile",
            MAX_PIPE_PROFILES,
            report,
        );
        let ranges = port.map_or(&[][..], |port| port.ranges.as_slice());
        let profiles = subport_profiles(ranges, self.subport_profiles.len(), report, &mut notes);
        let mut subports = Vec::new();
        for (number, profile) in (0..count).zip(profiles) {
            let written = self.subports.iter();
            let mut written = written.filter(|it| it.section == HqosSection::Subport(number));
            subports.extend(self.subport(number, profile, written.next(), report));
        }
        let beyond = self.subports.iter();
        for settings in beyond.filter(|it| self::number(it.section) >= count.max(1)) {
            report.add(|| {
                let message = format!(
                    "`[{}]` is of no subport: there are {count}",
                    settings.name.text
                );
                TextError::at(settings.name.span, message)
                    .expected("a larger `number of subports per port`, or no such section")
            });
        }
        let subport_profiles = self.subport_profiles.iter();
        let pipe_profiles = self.pipe_profiles.iter();
        let spec = HqosSpec {
            frame_overhead: overhead.map_or(standard.frame_overhead, low),
            subports,
            subport_profiles: subport_profiles.filter_map(|it| it.rates(report)).collect(),
            pipe_profiles: pipe_profiles
                .filter_map(|it| it.pipe_profile(report))
                .collect(),
            red: self
                .red
                .as_ref()
                .map(|red| early_detection(red, report, &mut notes)),
            ..standard
        };
        notes.sort_by_key(|note| (note.span.line, note.span.column));
        (spec, notes)
    }

    /// A subport. The application has values of its own for what subport 0 leaves out, and none for others.
    fn subport(
        &self,
        number: usize,
        profile: u32,
        written: Option<&Settings<'t>>,
        report: &mut Report,
    ) -> Option<HqosSubport> {
        const PIPES: &str = "number of pipes per subport";
        const SIZES: &str = "queue sizes";
        let standard = HqosSubport {
            profile,
            pipes: MAX_PIPES,
            queue_sizes: [64; TRAFFIC_CLASSES],
            assigned: Vec::new(),
        };
        let Some(written) = written else {
            if number > 0 {
                let at = self
                    .port
                    .as_ref()
                    .map_or(Span::BEGIN, |port| port.name.span);
                let message = format!("there is no `[subport {number}]`");
                report.add(|| TextError::at(at, message).expected("a section for each subport"));
            }
            return Some(standard);
        };
        if number > 0 {
            for key in [PIPES, SIZES] {
                if written.entry(key).is_none() {
                    written.report_missing(key, report);
                }
            }
        }
        let pipes = match written.entry(PIPES) {
            Some(_) => low(written.number(PIPES, u64::from(u32::MAX), report)?),
            None => standard.pipes,
        };
        let most = u64::from(u16::MAX);
        let queue_sizes = match written.entry(SIZES) {
            Some(_) => written
                .numbers(SIZES, "traffic class", most, report)?
                .map(|size| u16::try_from(size).unwrap_or(u16::MAX)),
            None => standard.queue_sizes,
        };
        for range in &written.ranges {
            self.check_profile(range, report);
        }
        check_overlaps(&written.ranges, report);
        let assigned = written.ranges.iter().map(|range| HqosPipeRange {
            first: range.first,
            last: range.last,
            profile: range.of,
        });
        Some(HqosSubport {
            pipes,
            queue_sizes,
            assigned: assigned.collect(),
            ..standard
        })
    }

    /// The pipe profile of a range of pipes is there.
    fn check_profile(&self, range: &Range, report: &mut Report) {
        let count = self.pipe_profiles.len();
        if range.of as usize >= count {
            report.add(|| {
                let message = format!("there is no `[pipe profile {}]`", range.of);
                TextError::at(range.value, message).expected(profiles_to(count))
            });
        }
    }
}

/// Which section a name is of.
fn kind(name: &Word<'_>) -> Result<HqosSection, TextError> {
    const SECTIONS: [&str; 5] = [
        "port",
        "subport N",
        "subport profile N",
        "pipe profile N",
        "red",
    ];
    match name.text {
        "port" => return Ok(HqosSection::Port),
        "red" => return Ok(HqosSection::Red),
        "pie" => {
            let error = name.error("is not modelled");
            return Err(error.expected("`[red]`, or no early dropping"));
        }
        _ => {}
    }
    let numbered = [
        (
            "subport profile ",
            HqosSection::SubportProfile as fn(usize) -> HqosSection,
            MAX_SUBPORT_PROFILES,
        ),
        ("pipe profile ", HqosSection::PipeProfile, MAX_PIPE_PROFILES),
        ("subport ", HqosSection::Subport, MAX_SUBPORTS),
    ];
    for (prefix, section, count) in numbered {
        let Some(number) = name.text.strip_prefix(prefix) else {
            continue;
        };
        let plain = number.parse::<usize>().ok();
        match plain.filter(|it| it.to_string() == number) {
            Some(number) if number < count => return Ok(section(number)),
            Some(_) => {
                let error = name.error("is beyond what the application has");
                return Err(error.expected(format!("a number from 0 to {}", count - 1)));
            }
            None => {}
        }
    }
    let pattern = name.text.trim_end_matches(|c: char| c.is_ascii_digit());
    let without_number = SECTIONS.map(|known| known.trim_end_matches('N'));
    let suggested = closest(pattern, without_number.into_iter());
    let suggested = suggested.and_then(|found| {
        SECTIONS
            .into_iter()
            .find(|it| it.trim_end_matches('N') == found)
    });
    let suggested = suggested.map(|known| format!("did you mean `[{known}]`?"));
    let sections: Vec<String> = SECTIONS
        .iter()
        .map(|known| format!("`[{known}]`"))
        .collect();
    let error = name.error("is not a section of a profile file");
    Err(error.expected(sections.join(", ")).maybe_help(suggested))
}

const fn number(section: HqosSection) -> usize {
    match section {
        HqosSection::Port | HqosSection::Red => 0,
        HqosSection::Subport(number)
        | HqosSection::SubportProfile(number)
        | HqosSection::PipeProfile(number) => number,
    }
}

/// Profiles are numbered from 0 on: the application counts them, and reads that many.
fn check_numbers(profiles: &[Settings<'_>], what: &str, most: usize, report: &mut Report) {
    if profiles.is_empty() {
        let message = format!("there is no `[{what} 0]`");
        let expected = format!("1 to {most} sections `[{what} N]`");
        report.add(|| TextError::at(Span::BEGIN, message).expected(expected));
    }
    for (expected, settings) in profiles.iter().enumerate() {
        if number(settings.section) != expected {
            report.add(|| {
                let message = format!("there is no `[{what} {expected}]` before this");
                TextError::at(settings.name.span, message)
                    .expected("profiles numbered from 0 on without gaps")
            });
            return;
        }
    }
}

/// Describes the profiles that can be named where there are `count`.
fn profiles_to(count: usize) -> String {
    match count {
        0 => "a section for it".to_owned(),
        1 => "0, the only profile".to_owned(),
        _ => format!("a profile from 0 to {}", count - 1),
    }
}

/// A pipe is in one range.
fn check_overlaps(ranges: &[Range], report: &mut Report) {
    for (position, range) in ranges.iter().enumerate() {
        let mut before = ranges.iter().take(position);
        let other = before.find(|it| it.first <= range.last && range.first <= it.last);
        if let Some(other) = other {
            let message = format!(
                "pipe {} is in `{}` (line {}) already",
                range.first.max(other.first),
                other.named("pipe"),
                other.key.line
            );
            report.add(|| TextError::at(range.key, message).expected("each pipe in one range"));
        }
    }
}

/// The subport profile of each subport.
fn subport_profiles(
    ranges: &[Range],
    count: usize,
    report: &mut Report,
    notes: &mut Vec<TextNote>,
) -> Vec<u32> {
    // The ranges of the files that come with the application end at 8, one beyond the last subport.
    let mut profiles = vec![0; MAX_SUBPORTS + 1];
    let mut given = vec![false; MAX_SUBPORTS + 1];
    for range in ranges {
        if range.last as usize > MAX_SUBPORTS {
            report.add(|| {
                let message = format!("there is no subport {}", range.last);
                TextError::at(range.key, message).expected(format!("at most {MAX_SUBPORTS}"))
            });
            continue;
        }
        if range.of as usize >= count && count > 0 {
            report.add(|| {
                let message = format!("there is no `[subport profile {}]`", range.of);
                TextError::at(range.value, message).expected(profiles_to(count))
            });
        }
        if range.of > 0 {
            let message = "the sample application of DPDK 22.11 does not read this and gives every subport the \
                           profile 0; here it has the one that is written";
            notes.push(TextNote {
                span: range.value,
                message: message.to_owned(),
            });
        }
        let (first, last) = (range.first as usize, range.last as usize);
        let pairs = profiles.iter_mut().zip(&mut given).enumerate();
        for (subport, (profile, given)) in pairs.filter(|(at, _)| (first..=last).contains(at)) {
            if *given {
                let message = format!("subport {subport} already has a profile");
                report.add(|| {
                    TextError::at(range.key, message).expected("one profile for each subport")
                });
                break;
            }
            (*profile, *given) = (range.of, true);
        }
    }
    profiles
}

/// Early detection by class and colour.
fn early_detection(red: &Settings<'_>, report: &mut Report, notes: &mut Vec<TextNote>) -> HqosRed {
    let mut curves: HqosRed = Box::new([[None; COLOURS]; TRAFFIC_CLASSES]);
    let mut noted = false;
    for (class, colours) in curves.iter_mut().enumerate() {
        let written = |spelling: &str| {
            let keys = RED_KEYS.map(|key| format!("tc {class} {spelling} {key}"));
            let entry = keys.iter().find_map(|key| red.entry(key));
            entry.map(|entry| (keys, *entry))
        };
        let [own, other] = RED_SPELLINGS.map(written);
        let (keys, first) = match (own, other) {
            (Some(_), Some((_, entry))) => {
                let error = || entry.key.error("is there in both spellings");
                report.add(|| error().expected(format!("`tc {class} red …` alone")));
                continue;
            }
            (Some(own), None) => own,
            (None, Some(other)) => {
                if !noted {
                    let message = "the sample application of DPDK 22.11 reads `tc N red …` instead, and leaves early \
                                   detection off; here it is on";
                    notes.push(TextNote {
                        span: other.1.key.span,
                        message: message.to_owned(),
                    });
                    noted = true;
                }
                other
            }
            (None, None) => continue,
        };
        let mut values = [[0; COLOURS]; 4];
        let mut complete = true;
        for (values, key) in values.iter_mut().zip(&keys) {
            if red.entry(key).is_none() {
                let message = format!("`{}` is there, and `{key}` is not", first.key.text);
                report
                    .add(|| TextError::at(first.key.span, message).expected("all four of a class"));
                complete = false;
                continue;
            }
            match red.numbers(key, "colour", u64::from(u16::MAX), report) {
                Some(read) => *values = read,
                None => complete = false,
            }
        }
        if complete {
            *colours = by_colour(values);
        }
    }
    curves
}

/// Values of `min`, `max`, `inv prob` and `weight`, each by colour, as curves: none with thresholds of zero.
fn by_colour([min, max, inverse, weight]: [[u64; COLOURS]; 4]) -> [Option<HqosRedCurve>; COLOURS] {
    let value = |values: [u64; COLOURS], colour: usize| {
        let value = values.get(colour).copied().unwrap_or(0);
        u16::try_from(value).unwrap_or(u16::MAX)
    };
    std::array::from_fn(|colour| {
        let curve = HqosRedCurve {
            min_packets: value(min, colour),
            max_packets: value(max, colour),
            inverse_probability: value(inverse, colour),
            weight: value(weight, colour),
        };
        (curve.min_packets > 0 || curve.max_packets > 0).then_some(curve)
    })
}

fn low(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
