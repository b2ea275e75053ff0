//! Measured studies: every setting read, every contradiction reported at its place.

use super::network::DEFAULT_BIN;
use super::traffic::rate_of;
use super::{Checker, MAX_ENTRIES, excess, trimmed};
use crate::file::At;
use crate::measured::{CapturePatterns, MeasuredStudy, Place};
use crate::spec::{
    CapturesSpec, MeasuredScenarioSpec, MeasuredSliceSpec, MeasuredStudySpec, Name, Repetitions,
    Text,
};
use crate::{DutModel, DutParams, device};
use slicewise_model::{ClassMap, Rate, RateSpec};
use slicewise_stats::backend::CAPTURES;
use slicewise_stats::description::{
    Capacity, PolicyDescription, Scalability, ScenarioDescription, SliceDescription, SliceLimit,
    StudyDescription,
};
use slicewise_units::{BitRate, Duration, FrameLengths};
use std::collections::BTreeMap;
use std::path::Path;

/// The largest frame of an Ethernet, without tags: captures do not say which was the largest sent.
const ETHERNET_FRAME: FrameLengths = FrameLengths {
    l2_bytes: 1514,
    l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
};
/// What stands for one part of a run in the path of its captures.
const PLACEHOLDERS: [&str; 3] = ["{policy}", "{scenario}", "{repetition}"];
/// What shares are of where the file does not say what the slices share.
const UNKNOWN: Capacity = Capacity {
    bits_per_second: 0,
    frame_overhead_bytes: 0,
};

impl Checker<'_> {
    /// The study, unless something was found wrong.
    pub(crate) fn measured(
        &mut self,
        spec: &MeasuredStudySpec,
        file_name: &str,
        place: &Place<'_>,
    ) -> Option<MeasuredStudy> {
        if !self.measured_has_fair_size(spec) {
            return None;
        }
        let capacity = spec.link.as_ref().and_then(|link| self.link_rate(link));
        self.names(&spec.slices);
        self.names(&spec.policies);
        self.names(&spec.scenarios);
        self.needs_one("slices");
        let slices: Vec<(SliceDescription, ClassMap)> = spec
            .slices
            .iter()
            .map(|(name, slice)| self.measured_slice(name, slice, capacity))
            .collect();
        let (slices, matches) = slices.into_iter().unzip();
        let policies = self.measured_policies(spec);
        let scenarios = self.measured_scenarios(spec);
        // 0 where the file does not say.
        let Repetitions(repetitions) = self.read_or(spec.repetitions.as_ref(), Repetitions(0));
        let duration = self.nonzero_duration(spec.duration.as_ref());
        let bin = spec
            .measure
            .as_ref()
            .and_then(|measure| measure.bin.as_ref());
        let bin = self.nonzero_duration(bin).unwrap_or(DEFAULT_BIN);
        self.check_whole_bins(spec, duration, bin);
        let captures = self.captures(spec, place.folder);
        let frame = capacity.map_or(Duration::ZERO, |rate| {
            device::frame_time(rate, ETHERNET_FRAME)
        });
        let margins = self.margins(spec.margins.as_ref(), frame);
        let name = self.read(spec.name.as_ref()).map(|name: Name| name.0);
        let name = name.unwrap_or_else(|| "captures".to_owned());
        let title = trimmed(spec.title.as_ref());
        let description = StudyDescription {
            title: if title.is_empty() {
                name.clone()
            } else {
                title
            },
            name,
            description: trimmed(spec.description.as_ref()),
            source: trimmed(spec.source.as_ref()),
            digest: self.sources.digest(),
            file_name: file_name.to_owned(),
            seed: 0,
            program_version: place.program_version.to_owned(),
            backend: CAPTURES.id.to_owned(),
            text_digest: String::new(),
            is_quick: false,
            dut: match trimmed(spec.dut.as_ref()) {
                dut if dut.is_empty() => "not stated (measured from captures)".to_owned(),
                dut => format!("{dut} (measured from captures)"),
            },
            assumptions: Vec::new(),
            repetitions,
            duration_ns: duration.map_or(0, Duration::nanos),
            capacity: capacity.map_or(UNKNOWN, |rate| device::capacity(&port(rate))),
            slices,
            policies,
            scenarios,
            margins,
            published: Vec::new(),
        };
        Some(MeasuredStudy {
            description,
            matches,
            bin,
            duration,
            captures,
            first_sources: Vec::new(),
        })
    }

    fn measured_has_fair_size(&mut self, spec: &MeasuredStudySpec) -> bool {
        let too_many = excess(&spec.slices)
            .or(excess(&spec.policies))
            .or(excess(&spec.scenarios));
        if let Some(at) = too_many {
            let message = format!("there are more than {MAX_ENTRIES} entries");
            self.problems.add(at, message);
        }
        too_many.is_none()
    }

    fn measured_scenarios(&mut self, spec: &MeasuredStudySpec) -> Vec<ScenarioDescription> {
        let scenarios: Vec<ScenarioDescription> = spec
            .scenarios
            .iter()
            .map(|(name, scenario)| self.measured_scenario(name, scenario))
            .collect();
        self.check_one_reference(spec, &scenarios);
        scenarios
    }

    fn measured_slice(
        &mut self,
        name: &Text<Name>,
        slice: &MeasuredSliceSpec,
        capacity: Option<Rate>,
    ) -> (SliceDescription, ClassMap) {
        let matches = self.slice_matches(name, slice.matches.as_ref());
        let share = self.read(slice.share.as_ref());
        let share = match (share, capacity, &slice.share) {
            (Some(share), Some(capacity), _) => rate_of(share, capacity.rate),
            (Some(share), None, Some(text)) => match share.0 {
                RateSpec::Absolute(rate) => rate,
                RateSpec::PercentMilli(_) => {
                    let help = "add `link: RATE`, what the slices share".to_owned();
                    let message = "a percentage, but there is no `link` that it refers to";
                    self.problems
                        .add_with_help(text.span(), message, Some(help));
                    BitRate::ZERO
                }
            },
            _ => BitRate::ZERO,
        };
        let description = SliceDescription {
            name: name.text().to_owned(),
            share_bits_per_second: share.bits_per_second(),
            guaranteed: self.read_or(slice.guaranteed.as_ref(), false),
            objective: self.objective(slice.objective.as_ref(), share),
        };
        (description, matches)
    }

    fn measured_policies(&mut self, spec: &MeasuredStudySpec) -> Vec<PolicyDescription> {
        let policies = spec.policies.iter();
        policies
            .map(|(name, policy)| {
                let scalability = policy.scalability.as_ref();
                let scalability = scalability.and_then(|spec| self.scalability(&spec.value));
                let published = policy.published.as_ref();
                let title = trimmed(policy.title.as_ref());
                PolicyDescription {
                    title: title_or_name(title, name),
                    name: name.text().to_owned(),
                    configuration: trimmed(policy.configuration.as_ref()),
                    scalability: scalability.unwrap_or_else(not_stated),
                    delay_bounds: BTreeMap::new(),
                    unbounded: Vec::new(),
                    published_verdict: published.and_then(|spec| self.verdict(&spec.value)),
                }
            })
            .collect()
    }

    fn measured_scenario(
        &mut self,
        name: &Text<Name>,
        scenario: &MeasuredScenarioSpec,
    ) -> ScenarioDescription {
        ScenarioDescription {
            title: title_or_name(trimmed(scenario.title.as_ref()), name),
            name: name.text().to_owned(),
            reference: self.read_or(scenario.reference.as_ref(), false),
            cycle_ns: self
                .read_or(scenario.cycle.as_ref(), Duration::ZERO)
                .nanos(),
        }
    }

    fn check_one_reference(&mut self, spec: &MeasuredStudySpec, read: &[ScenarioDescription]) {
        let mut references = spec.scenarios.iter().zip(read).filter(|(_, s)| s.reference);
        if let (Some((_, first)), Some(((name, _), _))) = (references.next(), references.next()) {
            let message = format!(
                "`{}` is the reference already: only one is allowed",
                first.name
            );
            self.problems.add(name.span(), message);
        }
    }

    fn check_whole_bins(
        &mut self,
        spec: &MeasuredStudySpec,
        duration: Option<Duration>,
        bin: Duration,
    ) {
        if let (Some(duration), Some(text)) = (duration, &spec.duration)
            && !duration.nanos().is_multiple_of(bin.nanos())
        {
            let message = format!("the run of {duration} is not a whole number of bins of {bin}");
            let help = "give `duration` a multiple of `measure.bin`".to_owned();
            self.problems
                .add_with_help(text.span(), message, Some(help));
        }
    }

    fn captures(&mut self, spec: &MeasuredStudySpec, folder: &Path) -> Option<CapturePatterns> {
        let At { value, span } = spec.captures.as_ref()?;
        let CapturesSpec {
            sent,
            received,
            via,
            loss_timeout,
        } = value;
        if spec.policies.len() == 0 || spec.scenarios.len() == 0 {
            let message = "captures need the `policies` and `scenarios` that were run";
            self.problems.add(*span, message);
        }
        let several = [
            spec.policies.len() > 1,
            spec.scenarios.len() > 1,
            spec.repetitions
                .as_ref()
                .is_some_and(|text| text.text() != "1"),
        ];
        let mut pattern = |text: &Text<String>| {
            self.check_pattern(text, several);
            text.text().trim().to_owned()
        };
        let (sent, received) = (pattern(sent), pattern(received));
        let via = via.0.iter().map(pattern).collect();
        Some(CapturePatterns {
            folder: folder.to_owned(),
            sent,
            received,
            via,
            loss_timeout: self.nonzero_duration(loss_timeout.as_ref()),
        })
    }

    /// Every part of which there are several is in the path, and nothing else in braces.
    fn check_pattern(&mut self, text: &Text<String>, several: [bool; 3]) {
        let mut rest = text.text().to_owned();
        for (placeholder, several) in PLACEHOLDERS.into_iter().zip(several) {
            if several && !rest.contains(placeholder) {
                let message = format!("`{placeholder}` is missing: there are several");
                self.problems.add(text.span(), message);
            }
            rest = rest.replace(placeholder, "");
        }
        if rest.contains(['{', '}']) {
            let message = "only {policy}, {scenario} and {repetition} can stand in braces";
            self.problems.add(text.span(), message);
        }
    }
}

fn title_or_name(title: String, name: &Text<Name>) -> String {
    if title.is_empty() {
        name.text().to_owned()
    } else {
        title
    }
}

/// Source of a limit that nobody stated.
fn not_stated() -> Scalability {
    Scalability {
        slices: SliceLimit::NotStated,
        limited_by: "none is stated".to_owned(),
        source: "the study does not say".to_owned(),
    }
}

/// A port of this rate.
const fn port(rate: Rate) -> DutParams {
    DutParams {
        model: DutModel::Port,
        port_rate: rate,
        processing_delay: Duration::ZERO,
        licence: None,
    }
}
