//! Measured studies: every setting read, every contradiction reported at its place.

use super::Checker;
use super::matching::Matches;
use super::network::{MarginsSpec, ShortLink};
use super::traffic::{matches_of, rate_of};
use crate::file::Placed;
use crate::measured::{CapturePatterns, MeasuredStudy};
use crate::params::MeasureParams;
use crate::spec::{At, List, Name, Named, Positive, Repetitions, Share};
use crate::{DutModel, DutParams, device};
use crate::{problem, settings};
use slicewise_model::{ClassMap, Rate, RateSpec};
use slicewise_stats::backend::CAPTURES;
use slicewise_stats::description::{
    Capacity, PolicyDescription, PublishedVerdict, Scalability, ScenarioDescription,
    SliceDescription, SliceLimit, StudyDescription,
};
use slicewise_stats::objective::Objective;
use slicewise_units::{BitRate, Duration, FrameLengths};
use std::collections::BTreeMap;
use std::path::Path;

/// The largest frame of an Ethernet, without tags: captures do not say which was the largest sent.
const ETHERNET_FRAME: FrameLengths = FrameLengths {
    l2_bytes: 1514,
    l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
};
/// Placeholders for the parts of a run in the path of its captures.
const PLACEHOLDERS: [&str; 3] = ["{policy}", "{scenario}", "{repetition}"];
/// Capacity that shares refer to where the file does not state the link.
const UNKNOWN: Capacity = Capacity {
    varies: false,
    bits_per_second: 0,
    frame_overhead_bytes: 0,
    in_atm_cells: false,
};

settings! {
    /// A study whose runs have been captured. With slices alone: how to classify packets of any capture.
    struct MeasuredSpec as "MeasuredStudySpec" {
        /// Name of the study, and of the folder its results go to.
        name: Option<Name>,
        /// One line that says what is studied.
        title: String,
        /// A paragraph for the report.
        description: String,
        /// The publication that the published verdicts come from.
        source: String,
        /// Device that was tested, in one line.
        dut: String,
        /// Link that the slices share: a rate, or a rate and what it counts.
        link: Option<ShortLink>,
        /// The slices, by name: a packet belongs to the first that matches.
        slices: Named<Placed<MeasuredSliceSpec>>,
        /// The policies that were compared, by name.
        policies: Named<MeasuredPolicySpec>,
        /// The scenarios, by name.
        scenarios: Named<MeasuredScenarioSpec>,
        /// How often each policy was run under each scenario.
        repetitions: Option<Repetitions>,
        /// How long traffic was offered in a run. Default: as long as the captures show.
        duration: Option<At<Positive>>,
        /// Where the captures of each run are.
        captures: Option<At<CapturesSpec>>,
        /// How it is measured.
        measure: MeasureParams,
        /// How much worsening the verdicts tolerate, and with what confidence.
        margins: Option<Placed<MarginsSpec>>,
    }
}

settings! {
    /// A slice: which frames belong to it and what it was promised.
    struct MeasuredSliceSpec as "MeasuredSliceSpec" {
        /// Which frames belong to it: conditions that must all hold, or a list of such groups, one of which must.
        [expected ": which frames belong to the slice?"] r#match: Option<Matches>,
        /// Its share of the link: needed where isolation and reallocation are to be judged.
        share: Option<At<Share>>,
        /// True if the share is guaranteed, and the slice's isolation judged. Default false.
        guaranteed: bool,
        /// Objectives in absolute terms.
        objective: Option<Placed<Objective>>,
    }
}

settings! {
    /// Policy that was configured: reported, not interpreted.
    struct MeasuredPolicySpec as "MeasuredPolicySpec" {
        /// One line for people. Default: the name.
        title: String,
        /// The configuration, for the report.
        configuration: String,
        /// How many slices it can hold.
        scalability: Option<Scalability>,
        /// The verdicts of a publication.
        published: Option<PublishedVerdict>,
    }
}

settings! {
    /// Load that was offered.
    struct MeasuredScenarioSpec as "MeasuredScenarioSpec" {
        /// One line for people. Default: the name.
        title: String,
        /// No slice exceeds what was promised: isolation is judged against this scenario.
        reference: bool,
        /// Its place on the axis of charts, a number with its quantity and unit: `130 % of the link`. All scenarios state
        /// one, in the same unit, or none does.
        x: Option<At<String>>,
        /// The time after which the load repeats, where it is switched on and off.
        cycle: Duration,
    }
}

settings! {
    /// Where the captures are: paths relative to the file, with `{policy}`, `{scenario}` and
    /// `{repetition}`, and `*` for any part of a file's name.
    struct CapturesSpec as "CapturesSpec", strict {
        /// Captured where packets were sent.
        [required] sent: At<String>,
        /// Captured where they were received.
        [required] received: At<String>,
        /// Points between the two, in the order packets pass them.
        via: List<At<String>>,
        /// A packet that has not arrived after this time is lost (RFC 7680).
        loss_timeout: Option<Positive>,
    }
}

impl Checker<'_> {
    /// The study, unless something was found wrong.
    pub(crate) fn measured(
        &mut self,
        spec: &MeasuredSpec,
        file_name: &str,
        folder: &Path,
        program_version: &str,
    ) -> Option<MeasuredStudy> {
        let is_fair = self.is_fair("slices", &spec.slices)
            & self.is_fair("policies", &spec.policies)
            & self.is_fair("scenarios", &spec.scenarios);
        if !is_fair {
            return None;
        }
        let capacity = spec.link.map(|link| link.value.0);
        self.names(&spec.slices);
        self.names(&spec.policies);
        self.names(&spec.scenarios);
        self.needs_one("slices");
        let slices = spec.slices.iter();
        let slices: Vec<(SliceDescription, ClassMap)> = slices
            .map(|(name, slice)| self.measured_slice(name, &slice.value, capacity))
            .collect();
        let (slices, matches) = slices.into_iter().unzip();
        let scenarios = self.measured_scenarios(spec);
        let duration = spec.duration.as_ref().map(|at| at.value.0);
        let bin = spec.measure.bin;
        if let (Some(duration), Some(at)) = (duration, &spec.duration) {
            self.is_whole_bins(at.span, duration, bin);
        }
        let captures = self.captures(spec, folder);
        let frame = capacity.map_or(Duration::ZERO, |rate| {
            device::frame_time(rate, ETHERNET_FRAME)
        });
        let margins = self.margins(spec.margins.as_ref(), frame);
        let name = spec.name.as_ref().map_or("captures", |Name(name)| name);
        let description = StudyDescription {
            title: title_or_name(&spec.title, name),
            name: name.to_owned(),
            description: spec.description.clone(),
            source: spec.source.clone(),
            digest: self.sources.digest(),
            file_name: file_name.to_owned(),
            seed: 0,
            program_version: program_version.to_owned(),
            backend: CAPTURES.id.to_owned(),
            is_quick: false,
            dut: match spec.dut.as_str() {
                "" => "not stated (measured from captures)".to_owned(),
                dut => format!("{dut} (measured from captures)"),
            },
            assumptions: Vec::new(),
            // 0 where the file does not say.
            repetitions: spec.repetitions.map_or(0, |Repetitions(number)| number),
            duration_ns: duration.map_or(0, Duration::nanos),
            is_without_chance: false,
            capacity: capacity.map_or(UNKNOWN, |rate| device::capacity(&port(rate))),
            slices,
            policies: spec.policies.iter().map(measured_policy).collect(),
            scenarios,
            inputs: Vec::new(),
            phases: Vec::new(),
            margins,
            published: Vec::new(),
            case: None,
            coordinates: Vec::new(),
            plots: Vec::new(),
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

    fn measured_scenarios(&mut self, spec: &MeasuredSpec) -> Vec<ScenarioDescription> {
        let scenarios = spec.scenarios.iter();
        let scenarios: Vec<ScenarioDescription> = scenarios
            .map(|(name, scenario)| ScenarioDescription {
                title: title_or_name(&scenario.title, &name.value),
                name: name.value.clone(),
                reference: scenario.reference,
                cycle_ns: scenario.cycle.nanos(),
                x: scenario
                    .x
                    .as_ref()
                    .map_or_else(String::new, |x| x.value.clone()),
            })
            .collect();
        let names = spec.scenarios.iter().map(|(name, _)| name).zip(&scenarios);
        self.check_one_reference(names.map(|(name, scenario)| (name, scenario.reference)));
        let places = spec.scenarios.iter();
        self.check_places(places.map(|(name, scenario)| (name, scenario.x.as_ref())));
        scenarios
    }

    fn measured_slice(
        &mut self,
        name: &At<String>,
        slice: &MeasuredSliceSpec,
        capacity: Option<Rate>,
    ) -> (SliceDescription, ClassMap) {
        let share = match (&slice.share, capacity) {
            (Some(share), Some(capacity)) => rate_of(share.value, capacity.rate),
            (Some(share), None) => match share.value.0 {
                RateSpec::Absolute(rate) => rate,
                RateSpec::PercentMilli(_) => {
                    problem!(self.problems, share.span => "a percentage, but there is no `link` that it refers to";
                        "add `link: RATE`, what the slices share");
                    BitRate::ZERO
                }
            },
            (None, _) => BitRate::ZERO,
        };
        self.refuse_objectives_of_applications(slice.objective.as_ref());
        let description = SliceDescription {
            name: name.value.clone(),
            share_bits_per_second: share.bits_per_second(),
            guaranteed: slice.guaranteed,
            objective: self.objective(slice.objective.as_ref(), share),
        };
        (description, matches_of(name, slice.r#match.as_ref()))
    }

    fn captures(&mut self, spec: &MeasuredSpec, folder: &Path) -> Option<CapturePatterns> {
        let At { value, span } = spec.captures.as_ref()?;
        if spec.policies.len() == 0 || spec.scenarios.len() == 0 {
            problem!(self.problems, *span => "captures need the `policies` and `scenarios` that were run");
        }
        let several = [
            spec.policies.len() > 1,
            spec.scenarios.len() > 1,
            spec.repetitions.is_some_and(|Repetitions(it)| it != 1),
        ];
        let mut pattern = |text: &At<String>| {
            self.check_pattern(text, several);
            text.value.clone()
        };
        Some(CapturePatterns {
            folder: folder.to_owned(),
            sent: pattern(&value.sent),
            received: pattern(&value.received),
            via: value.via.0.iter().map(pattern).collect(),
            loss_timeout: value.loss_timeout.map(|timeout| timeout.0),
        })
    }

    /// Every part of which there are several is in the path, and nothing else in braces.
    fn check_pattern(&mut self, text: &At<String>, several: [bool; 3]) {
        let mut rest = text.value.clone();
        for (placeholder, several) in PLACEHOLDERS.into_iter().zip(several) {
            if several && !rest.contains(placeholder) {
                problem!(self.problems, text.span => "`{placeholder}` is missing: there are several");
            }
            rest = rest.replace(placeholder, "");
        }
        if rest.contains(['{', '}']) {
            problem!(self.problems, text.span => "only {{policy}}, {{scenario}} and {{repetition}} can stand in \
                braces");
        }
    }
}

fn measured_policy((name, policy): (&At<String>, &MeasuredPolicySpec)) -> PolicyDescription {
    PolicyDescription {
        title: title_or_name(&policy.title, &name.value),
        name: name.value.clone(),
        configuration: policy.configuration.clone(),
        scalability: policy.scalability.clone().unwrap_or_else(not_stated),
        delay_bounds: BTreeMap::new(),
        round_ns: 0,
        unbounded: Vec::new(),
        not_judged: None,
        rests_on: Vec::new(),
        published_verdict: policy.published.clone(),
        phase: None,
    }
}

fn title_or_name(title: &str, name: &str) -> String {
    let title = if title.is_empty() { name } else { title };
    title.to_owned()
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
