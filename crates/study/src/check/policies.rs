//! Policies: from either form to what a data plane runs on the study's device.

use super::Checker;
use crate::device;
use crate::file::{At, Node, Span};
use crate::params::DutParams;
use crate::spec::{
    ClassFileSpec, GuaranteedFileSpec, List, Name, Named, PolicyFileSpec, ScalabilitySpec,
    SliceSpec, StudySpec, Text, VerdictSpec,
};
use crate::study::StudyPolicy;
use slicewise_model::{Discipline, PolicyError, PolicyParams, PolicySpec, PortParams};
use slicewise_stats::description::{PublishedVerdict, Scalability, SliceLimit};

/// A policy as it was understood, and where to point at when it cannot be run.
pub(super) struct Understood<'a> {
    pub(super) spec: PolicySpec,
    pub(super) configuration: String,
    pub(super) origin: Origin<'a>,
}

/// Where a policy is written.
pub(super) enum Origin<'a> {
    /// In the study file.
    Classes(&'a List<At<ClassFileSpec>>, Option<&'a GuaranteedFileSpec>),
    /// In IOS text, as the policy map of this name.
    Ios(super::ios::IosText, String),
    /// Nowhere: there is none.
    None,
}

impl Checker<'_> {
    pub(super) fn policies(&mut self, spec: &StudySpec, dut: &DutParams) -> Vec<StudyPolicy> {
        self.names(&spec.policies);
        self.needs_one("policies");
        let mut policies = Vec::new();
        for (name, policy) in spec.policies.iter() {
            policies.extend(self.policy(name, policy, spec, dut));
        }
        policies
    }

    fn policy(
        &mut self,
        name: &Text<Name>,
        policy: &PolicyFileSpec,
        spec: &StudySpec,
        dut: &DutParams,
    ) -> Option<StudyPolicy> {
        let published_verdict = policy
            .published
            .as_ref()
            .and_then(|v| self.verdict(&v.value));
        let stated = policy
            .scalability
            .as_ref()
            .and_then(|s| self.scalability(&s.value));
        let understood = self.understand(name, policy, &spec.slices)?;
        let resolved = understood.spec.resolve_for(PortParams {
            rate: dut.port_rate,
            admissible: dut.capacity(),
        });
        let params = match resolved {
            Ok(params) => params,
            Err(error) => {
                let at = self
                    .place(&understood.origin, &error)
                    .unwrap_or(name.span());
                let message = message_of(&error);
                self.problems.add(at, message);
                return None;
            }
        };
        if let Err(error) = device::check_limits(dut.model, &params) {
            let at = self
                .place(&understood.origin, &error)
                .unwrap_or(name.span());
            self.problems.add(at, error.problem);
            return None;
        }
        let title = policy
            .title
            .as_ref()
            .map_or(name.text(), |title| title.text().trim());
        let is_none = matches!(understood.origin, Origin::None);
        let policy_map = match understood.origin {
            Origin::Ios(_, name) => Some(name),
            Origin::Classes(..) | Origin::None => None,
        };
        Some(StudyPolicy {
            name: name.text().to_owned(),
            title: title.to_owned(),
            configuration: understood.configuration,
            spec: understood.spec,
            policy_map,
            scalability_is_of_device: stated.is_none() && !is_none,
            scalability: stated.unwrap_or_else(|| declared(dut, is_none, &params)),
            params,
            published_verdict,
        })
    }

    pub(super) fn understand<'a>(
        &mut self,
        name: &Text<Name>,
        policy: &'a PolicyFileSpec,
        slices: &Named<SliceSpec>,
    ) -> Option<Understood<'a>> {
        if let (None, Some(text)) = (&policy.classes, &policy.discipline) {
            self.problems
                .add(text.span(), "`discipline` is for policies with `classes`");
        }
        if let (None, Some(common)) = (&policy.classes, &policy.guaranteed) {
            self.problems
                .add(common.span, "`guaranteed` is for policies with `classes`");
        }
        if let (None, Some(text)) = (&policy.ios, &policy.policy_map) {
            self.problems
                .add(text.span(), "`policy_map` is for policies with `ios`");
        }
        let none = match &policy.none {
            Some(text) => match text.read(self.problems)? {
                true => true,
                false => {
                    let message =
                        "`none: false` has no meaning: give the policy's `ios` or `classes`";
                    self.problems.add(text.span(), message);
                    return None;
                }
            },
            None => false,
        };
        match (&policy.ios, &policy.classes, none) {
            (Some(text), None, false) => self.ios_policy(name, text, policy.policy_map.as_ref()),
            (None, Some(classes), false) => {
                let discipline = self.read_or(policy.discipline.as_ref(), Discipline::MinimumShare);
                let classes = &classes.value;
                let common = policy.guaranteed.as_ref();
                let guaranteed = common.map(|common| self.guaranteed(&common.value));
                let mut spec = self.native_policy(name.text(), classes, discipline, slices)?;
                if let (Some(common), true) = (common, discipline != Discipline::Guaranteed) {
                    let message = "this requires the discipline `guaranteed`: set that too";
                    self.problems.add(common.span, message);
                    return None;
                }
                spec.guaranteed = match guaranteed {
                    Some(guaranteed) => Some(guaranteed?),
                    None => None,
                };
                let configuration = self.written(name, "classes");
                Some(Understood {
                    spec,
                    configuration,
                    origin: Origin::Classes(classes, common.map(|common| &common.value)),
                })
            }
            (None, None, true) => Some(Understood {
                spec: PolicySpec {
                    name: name.text().to_owned(),
                    classes: Vec::new(),
                    discipline: Discipline::Fifo,
                    guaranteed: None,
                },
                configuration: "(no policy: one queue, first in, first out)".to_owned(),
                origin: Origin::None,
            }),
            (None, None, false) => {
                let message = "the policy is empty: give its `ios` or `classes`, or `none: true`";
                self.problems.add(name.span(), message);
                None
            }
            _ => {
                let message = "a policy has only one of `ios`, `classes` and `none`";
                let help = "if it comes from an extended file, leave it out with \
                            `extends: {file: …, without: [policies.…]}`";
                self.problems
                    .add_with_help(name.span(), message, Some(help.to_owned()));
                None
            }
        }
    }

    /// Where the setting that `error` is about is written.
    pub(super) fn place(&self, origin: &Origin<'_>, error: &PolicyError) -> Option<Span> {
        match origin {
            Origin::Classes(classes, guaranteed) => guaranteed
                .and_then(|guaranteed| guaranteed.place(error.field))
                .or_else(|| place_in_classes(classes, &error.class, error.field)),
            Origin::Ios(text, _) => text.place(self.sources, &error.class, error.field),
            Origin::None => None,
        }
    }

    /// A setting of a policy as it is written, for people to read.
    fn written(&self, policy: &Text<Name>, key: &str) -> String {
        let entry = |node: &Node| {
            let (_, policies) = node.entry("policies")?;
            let (_, policy) = policies.entry(policy.text())?;
            let (key, node) = policy.entry(key)?;
            Some((key.span, node.extent()))
        };
        let Some((key, extent)) = entry(self.root) else {
            return String::new();
        };
        if key.file != extent.file {
            return String::new();
        }
        let text = self.sources.text(key.file);
        let start = usize::try_from(key.start.min(extent.start)).unwrap_or(usize::MAX);
        let end = usize::try_from(extent.end.max(key.end)).unwrap_or(usize::MAX);
        let line_start = text
            .get(..start)
            .and_then(|t| t.rfind('\n'))
            .map_or(0, |at| at + 1);
        let rest = text.get(end..).unwrap_or_default();
        let line_end = end + rest.find('\n').unwrap_or(rest.len());
        dedent(text.get(line_start..line_end).unwrap_or_default())
    }

    pub(super) fn verdict(&mut self, spec: &VerdictSpec) -> Option<PublishedVerdict> {
        let isolation = spec.isolation.read(self.problems);
        let reallocation = spec.reallocation.read(self.problems);
        let remark = spec
            .remark
            .as_ref()
            .map(|remark| remark.text().trim().to_owned());
        Some(PublishedVerdict {
            isolation: isolation?,
            reallocation: reallocation?,
            scalability: spec.scalability.text().trim().to_owned(),
            remark: remark.unwrap_or_default(),
        })
    }

    pub(super) fn scalability(&mut self, spec: &ScalabilitySpec) -> Option<Scalability> {
        Some(Scalability {
            slices: spec.slices.read(self.problems)?,
            limited_by: spec.limited_by.text().trim().to_owned(),
            source: spec.source.text().trim().to_owned(),
        })
    }
}

/// What is wrong, without the policy: the place says which.
pub(super) fn message_of(error: &PolicyError) -> String {
    match error.field {
        // Settings of all classes.
        "largest_frame" | "delays" | "tenants" | "buffer" => {
            format!("{}: {}", error.field, error.problem)
        }
        field => format!("class `{}`, {field}: {}", error.class, error.problem),
    }
}

/// What the device declares of a policy; without a policy there is nothing to run out of.
fn declared(dut: &DutParams, is_none: bool, params: &PolicyParams) -> Scalability {
    if is_none {
        return Scalability {
            slices: SliceLimit::NoPracticalLimit,
            limited_by: "no classification".to_owned(),
            source: "there is no policy".to_owned(),
        };
    }
    device::scalability(dut.model, params)
}

/// Where in `classes`, or in their children, the setting `field` of class `name` is written.
fn place_in_classes(classes: &List<At<ClassFileSpec>>, name: &str, field: &str) -> Option<Span> {
    for At { value: class, .. } in &classes.0 {
        if class.name.text() == name {
            return Some(class.place(field).unwrap_or(class.name.span()));
        }
        let child = class.child.as_ref();
        let inner = child.and_then(|c| place_in_classes(&c.value.classes, name, field));
        if inner.is_some() {
            return inner;
        }
    }
    None
}

/// Lines without the indentation that all of them have.
fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let common = lines().map(indent).min().unwrap_or(0);
    let dedented: Vec<&str> = text
        .lines()
        .map(|line| line.get(common..).unwrap_or_default().trim_end())
        .collect();
    dedented.join("\n")
}
