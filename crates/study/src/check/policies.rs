//! Policies: from either form to what a data plane runs on the study's device.

use super::classes::Class;
use super::foreign::ForeignText;
use super::ios::IosText;
use super::named_queues::Queue;
use super::qos_sched::PolicyDutSpec;
use super::traffic::{SliceSpec, matches_of};
use super::{Checker, StudySpec, Table};
use crate::device;
use crate::file::{Entry, Node, Placed, Span, Value};
use crate::params::{DutParams, HopParams};
use crate::spec::{At, List, Named, Reference, Verbatim, Weights};
use crate::study::StudyPolicy;
use crate::{problem, settings};
use slicewise_formats::ovs::{self, OvsSlice};
use slicewise_formats::p4_tins::{self, DataPlane};
use slicewise_formats::{ReadPolicy, SettingPlace, TextError};
use slicewise_model::{
    Discipline, GuaranteedSpec, Part, PolicyError, PolicyParams, PolicySpec, PortParams,
    ReallocationParams, ReallocationSpec,
};
use slicewise_stats::description::{PublishedVerdict, Scalability, SliceLimit};
use slicewise_units::BitRate;

settings! {
    /// A policy. Exactly one of `ios`, `p4_tins`, `ovs`, `dpdk`, `classes` and `none`.
    struct PolicyFileSpec as "PolicyFileSpec" {
        /// One line for people. Default: the name.
        title: Option<String>,
        /// A file of IOS configuration, relative to the study file; or the configuration itself as a
        /// block of text.
        ios: Option<At<Verbatim>>,
        /// Which policy-map of the configuration, where it has several.
        policy_map: Option<At<String>>,
        /// Leave out what of the configuration is not modelled, and say so in the report. Default no: it is an error.
        lenient: bool,
        /// A file of slice requests of P4-TINS (JSON), relative to the study file; or the requests themselves as a
        /// block of text.
        p4_tins: Option<At<Verbatim>>,
        /// Which data plane of that publication: `baseline`, or `p4-tins` (default).
        data_plane: DataPlane,
        /// A file of `ovs-vsctl` commands and OpenFlow rules, relative to the study file; or the text itself as a
        /// block.
        ovs: Option<At<Verbatim>>,
        /// Of `ovs`, for rules by `in_port`: the slice whose frames come in by a port, by the number of the port or the name of
        /// its interface.
        in_ports: Named<At<Reference>>,
        /// A profile file of DPDK's sample application `qos_sched`, relative to the study file; or the profile itself as a
        /// block of text.
        dpdk: Option<At<Verbatim>>,
        /// Classes in order: a frame belongs to the first that matches. What matches none belongs to
        /// `class-default`, which may be listed to configure it.
        classes: Option<List<Placed<Class>>>,
        /// How the classes without priority share the remaining capacity: `minimum_share` (default),
        /// `deficit_round_robin`, `fifo`, or `guaranteed` (rates with a delay bound).
        discipline: Discipline,
        /// Settings that the classes of a guaranteed policy have in common.
        guaranteed: Option<GuaranteedSpec>,
        /// Queues that several classes may use, and that the colours of their meters may choose.
        queues: Option<List<Placed<Queue>>>,
        /// `by_active_flows`: the weight of a named queue counts once for each of its active flows. Default `fixed`.
        weights: Weights,
        /// True for no policy at all: one queue for everything.
        none: Option<bool>,
        /// A control loop that readjusts the rates of its shapers and policers to measured demand: simulated, and on the gateway.
        reallocate: Option<ReallocationSpec>,
        /// The device that runs it, where that is another one than the study's `dut`: what differs.
        dut: Option<Placed<PolicyDutSpec>>,
        /// How many slices it can hold, where that differs from what the device declares.
        scalability: Option<Scalability>,
        /// The verdicts of the publication.
        published: Option<PublishedVerdict>,
        /// Which of the study's `assumptions` its verdict rests on, and what it would be otherwise, in a few words: shown beside it.
        rests_on: Named<String>,
    }
}

settings! {
    /// How many slices a policy can hold.
    impl Scalability as "ScalabilitySpec", strict = Self {
        slices: SliceLimit::NotStated,
        limited_by: String::new(),
        source: String::new(),
    };
    {
        /// A number of slices, or `unlimited`.
        [required] slices,
        /// Limiting resource, in words.
        [required] limited_by,
        /// Where the limit is stated.
        [required] source,
    }
}

settings! {
    /// Verdicts as published.
    impl PublishedVerdict as "VerdictSpec", strict = Self {
        isolation: false,
        reallocation: false,
        scalability: String::new(),
        remark: String::new(),
    };
    {
        /// Performance isolation: what the publication says.
        [required] isolation,
        /// Resource reallocation: what the publication says.
        [required] reallocation,
        /// Scalability, in the publication's words.
        [required] scalability,
        /// A remark of the publication.
        remark,
    }
}

/// Keys of the forms in which a policy may be written.
pub(super) const FORMS: [&str; 6] = ["classes", "ios", "p4_tins", "ovs", "dpdk", "none"];

/// A policy as it was understood, and where to point at when it cannot be run.
pub(super) struct Understood {
    pub(super) spec: PolicySpec,
    pub(super) configuration: String,
    pub(super) origin: Origin,
}

/// In which form a policy is written.
pub(super) enum Origin {
    /// As classes.
    Classes,
    /// In IOS text.
    Ios(IosText),
    /// In another language, with the settings of classes that it places.
    Foreign(ForeignText, Vec<SettingPlace>),
    /// Not at all: there is none.
    None,
}

impl Checker<'_> {
    pub(super) fn policies(
        &mut self,
        policies: &Named<Placed<PolicyFileSpec>>,
        slices: &Named<Placed<SliceSpec>>,
        dut: &DutParams,
    ) -> Vec<StudyPolicy> {
        self.names(policies);
        self.needs_one("policies");
        let policies = policies.iter();
        policies
            .filter_map(|(name, policy)| self.policy(name, policy, slices, dut))
            .collect()
    }

    fn policy(
        &mut self,
        name: &At<String>,
        policy: &Placed<PolicyFileSpec>,
        slices: &Named<Placed<SliceSpec>>,
        dut: &DutParams,
    ) -> Option<StudyPolicy> {
        let path = ["policies", &name.value];
        let own = policy.value.dut.as_ref();
        let device = match own {
            Some(own) => Some(self.dut_of_policy(own, dut)?),
            None => None,
        };
        let dut = device.as_ref().unwrap_or(dut);
        let port = dut.port();
        let understood = self.understand(name, &path, policy, slices, port.rate.rate)?;
        let params = self.resolved(&understood, &path, name.span, port)?;
        let params = device::with_credit(dut.model, &understood.spec, params);
        self.warn_of_thresholds(&understood, &path, name.span, &params);
        if let Err(error) = device::check_limits(dut.model, &params) {
            let at = self.place(&understood.origin, &path, &error);
            self.problems.add(at.unwrap_or(name.span), error.problem);
            return None;
        }
        let reallocation = self.reallocation(&path, policy, &understood.spec, dut)?;
        let (is_none, policy_map) = match understood.origin {
            Origin::Ios(text) => (false, Some(text.map_name)),
            Origin::Classes | Origin::Foreign(..) => (false, None),
            Origin::None => (true, None),
        };
        let stated = policy.value.scalability.clone();
        let title = policy.value.title.as_ref();
        Some(StudyPolicy {
            name: name.value.clone(),
            title: title.unwrap_or(&name.value).clone(),
            configuration: with_loop(understood.configuration, reallocation.as_ref()),
            spec: understood.spec,
            policy_map,
            scalability_is_of_device: stated.is_none() && !is_none,
            scalability: stated.unwrap_or_else(|| declared(dut, is_none, &params)),
            params,
            reallocation,
            device,
            published_verdict: policy.value.published.clone(),
            not_judged: None,
            rests_on: (policy.value.rests_on.iter())
                .map(|(assumption, otherwise)| format!("{}: {otherwise}", assumption.value))
                .collect(),
        })
    }

    /// A verdict rests on assumptions that are stated.
    pub(super) fn check_rests_on(&mut self, spec: &StudySpec) {
        let known = spec.assumptions.names();
        let policies = spec.policies.iter();
        for (name, _) in policies.flat_map(|(_, policy)| policy.value.rests_on.iter()) {
            if !known.contains(&name.value.as_str()) {
                let message = format!("there is no assumption `{}`", name.value);
                self.problems
                    .add_unknown(name.span, message, (&name.value, &known));
            }
        }
    }

    /// The policy for a port; what is wrong with it is reported, `path` being where it is written.
    pub(super) fn resolved(
        &mut self,
        understood: &Understood,
        path: &[&str],
        otherwise: Span,
        port: PortParams,
    ) -> Option<PolicyParams> {
        let resolved = understood.spec.resolve_for(port);
        resolved
            .map_err(|error| {
                let at = self.place(&understood.origin, path, &error);
                self.problems
                    .add(at.unwrap_or(otherwise), message_of(&error));
            })
            .ok()
    }

    /// Say which delays guarantees get that state none and cannot have their default.
    pub(super) fn warn_of_delays(
        &mut self,
        spec: &StudySpec,
        path: &[HopParams],
        policies: &[StudyPolicy],
    ) {
        for (index, policy) in policies.iter().enumerate() {
            let at = spec.policies.entry(&policy.name);
            let at = at.map_or(self.root.span, |(name, _)| name.span);
            if path.is_empty() {
                for note in policy.spec.delay_notes(&policy.params) {
                    self.problems.warn(at, note);
                }
            }
            for hop in path {
                let spec = hop.own.as_ref().unwrap_or(&policy.spec);
                let params = hop.policies.get(index);
                for note in params.map_or_else(Vec::new, |params| spec.delay_notes(params)) {
                    let note = format!("on device `{}`: {note}", hop.name);
                    self.problems.warn(at, note);
                }
            }
        }
    }

    /// Returns the policy that `policy` describes, for a link of rate `link`.
    pub(super) fn understand(
        &mut self,
        name: &At<String>,
        path: &[&str],
        policy: &Placed<PolicyFileSpec>,
        slices: &Named<Placed<SliceSpec>>,
        link: BitRate,
    ) -> Option<Understood> {
        let is_written = |key| policy.place(key).is_some();
        for (key, of) in [
            ("discipline", "classes"),
            ("guaranteed", "classes"),
            ("queues", "classes"),
            ("weights", "queues"),
            ("policy_map", "ios"),
            ("lenient", "ios"),
            ("data_plane", "p4_tins"),
            ("in_ports", "ovs"),
        ] {
            if let (Some(at), false) = (policy.place(key), is_written(of)) {
                problem!(self.problems, at => "`{key}` is for policies with `{of}`");
            }
        }
        let spec = &policy.value;
        if let (Some(at), Some(false)) = (policy.place("none"), spec.none) {
            problem!(self.problems, at => "`none: false` has no meaning: give the policy's `classes`, `ios`, \
                `p4_tins`, `ovs` or `dpdk`");
            return None;
        }
        let forms: Vec<&str> = FORMS.into_iter().filter(|form| is_written(form)).collect();
        match forms.as_slice() {
            ["ios"] => {
                let text = spec.ios.as_ref()?;
                let chosen = (spec.policy_map.as_ref(), spec.lenient);
                let (spec, configuration, text) = self.ios_policy(name, path, text, chosen)?;
                Some(Understood {
                    spec,
                    configuration,
                    origin: Origin::Ios(text),
                })
            }
            ["p4_tins"] => self.foreign_policy(name, spec.p4_tins.as_ref()?, |text| {
                Ok(p4_tins::parse(text)?.policy(spec.data_plane))
            }),
            ["ovs"] => {
                let slices = self.slices_of_ports(&spec.in_ports, slices)?;
                self.foreign_policy(name, spec.ovs.as_ref()?, |text| {
                    ovs::read(text, link, &slices)
                })
            }
            ["dpdk"] => self.dpdk_policy(name, spec.dpdk.as_ref()?, link),
            ["classes"] => self.native_policy(name, path, policy, slices),
            ["none"] => spec.none.map(|_| Understood {
                spec: PolicySpec {
                    name: name.value.clone(),
                    classes: Vec::new(),
                    discipline: Discipline::Fifo,
                    guaranteed: None,
                    queues: Vec::new(),
                },
                configuration: "(no policy: one queue, first in, first out)".to_owned(),
                origin: Origin::None,
            }),
            [] => {
                problem!(self.problems, name.span => "the policy is empty: give its `classes`, `ios`, `p4_tins`, `ovs` \
                    or `dpdk`, or `none: true`");
                None
            }
            [first, others @ ..] => {
                let others: Vec<String> = others.iter().map(|form| format!("`{form}`")).collect();
                problem!(self.problems, name.span => "a policy has one form: `{first}` excludes \
                    {}", others.join(" and ");
                    "if it comes from an extended file, leave it out with `extends: {{file: …, without: \
                    [policies.…]}}`");
                None
            }
        }
    }

    /// The slices in order, and which ports stand for them.
    fn slices_of_ports(
        &mut self,
        in_ports: &Named<At<Reference>>,
        slices: &Named<Placed<SliceSpec>>,
    ) -> Option<Vec<OvsSlice>> {
        let names = slices.names();
        let mut of_ports: Vec<OvsSlice> = (slices.iter())
            .map(|(name, slice)| OvsSlice {
                name: name.value.clone(),
                matches: matches_of(name, slice.value.r#match.as_ref()),
                ports: Vec::new(),
            })
            .collect();
        let mut is_known = true;
        for (port, slice) in in_ports.iter() {
            let index = self.index_of(Table::SLICES, slice, &names);
            match index.and_then(|index| of_ports.get_mut(index)) {
                Some(slice) => slice.ports.push(port.value.clone()),
                None => is_known = false,
            }
        }
        is_known.then_some(of_ports)
    }

    /// A policy written in another language, as `read` understands it, under the name that the study gives it.
    pub(super) fn foreign_policy(
        &mut self,
        name: &At<String>,
        text: &At<Verbatim>,
        read: impl FnOnce(&str) -> Result<ReadPolicy, Vec<TextError>>,
    ) -> Option<Understood> {
        let text = self.foreign_text(text)?;
        let policy = match read(&text.text) {
            Ok(policy) => policy,
            Err(errors) => {
                self.report_foreign(&text, errors);
                return None;
            }
        };
        self.note_foreign(name, &text, policy.notes);
        Some(Understood {
            spec: PolicySpec {
                name: name.value.clone(),
                ..policy.spec
            },
            configuration: text.text.trim_end().to_owned(),
            origin: Origin::Foreign(text, policy.places),
        })
    }

    fn native_policy(
        &mut self,
        name: &At<String>,
        path: &[&str],
        policy: &Placed<PolicyFileSpec>,
        slices: &Named<Placed<SliceSpec>>,
    ) -> Option<Understood> {
        let discipline = policy.value.discipline;
        let classes = policy.value.classes.as_ref()?;
        let queues = policy.value.queues.clone().unwrap_or_default();
        let mut spec = self.level(&name.value, classes, discipline, &queues, slices)?;
        let by_flows = policy.value.weights == Weights::ByActiveFlows;
        for queue in &mut spec.queues {
            queue.per_flow = by_flows;
        }
        if let Some(at) = policy.place("guaranteed") {
            if discipline != Discipline::Guaranteed {
                problem!(self.problems, at => "this requires the discipline `guaranteed`: set that too");
                return None;
            }
            spec.guaranteed = Some(policy.value.guaranteed.clone()?);
        }
        Some(Understood {
            spec,
            configuration: self.written_of(path),
            origin: Origin::Classes,
        })
    }

    /// Where the setting that `error` is about is written, of a policy that is written at `path`.
    pub(super) fn place(
        &self,
        origin: &Origin,
        path: &[&str],
        error: &PolicyError,
    ) -> Option<Span> {
        match origin {
            Origin::Classes => {
                let policy = self.entry_at(path)?.node;
                let of_all = policy.entry("guaranteed");
                of_all
                    .and_then(|(_, common)| common_place(common, error.field))
                    .or_else(|| class_place(policy, error))
            }
            Origin::Ios(text) => text.place(self.sources, &error.class, error.field),
            Origin::Foreign(text, places) => {
                let of_class = || places.iter().filter(|place| place.class == error.class);
                let mut of_field = of_class().filter(|place| place.field == error.field);
                let place = of_field.next().or(of_class().next())?;
                Some(text.span(self.sources, place.span))
            }
            Origin::None => None,
        }
    }

    /// The queues and classes of the policy at `path` as they are written, for people to read.
    fn written_of(&self, path: &[&str]) -> String {
        let parts = ["queues", "classes"].map(|part| self.written(&[path, &[part]].concat()));
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n")
    }

    /// The setting at `path` as it is written, for people to read.
    fn written(&self, path: &[&str]) -> String {
        let Some(Entry {
            node,
            key: Some(key),
        }) = self.entry_at(path)
        else {
            return String::new();
        };
        if !node.is_written_from(key) {
            // Parts of it are written elsewhere, as an alias is.
            let Value::List(items) = &node.value else {
                return format!("{}: {node}", path.join("."));
            };
            let items: Vec<String> = items.iter().map(|item| format!("  - {item}")).collect();
            let name = path.last().unwrap_or(&"");
            return format!("{name}:\n{}", items.join("\n"));
        }
        let extent = node.extent();
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
}

/// Adds the loop over its rates to a configuration.
fn with_loop(configuration: String, reallocation: Option<&ReallocationParams>) -> String {
    match reallocation {
        Some(reallocation) => format!("{configuration}\n\n{reallocation}"),
        None => configuration,
    }
}

/// Formats an error without the policy: its place says which.
fn message_of(error: &PolicyError) -> String {
    match error.field {
        // Settings of all classes.
        "largest_frame" | "delays" | "tenants" | "buffer" => {
            format!("{}: {}", error.field, error.problem)
        }
        field => format!(
            "{} `{}`, {field}: {}",
            error.part, error.class, error.problem
        ),
    }
}

/// Returns the limit that the device declares for a policy; without a policy there is nothing to run out of.
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

/// Where, among the settings that guarantees have in common, `field` is written.
pub(super) fn common_place(common: &Node, field: &str) -> Option<Span> {
    let (key, node) = common.entry(field)?;
    match field {
        "largest_frame" | "buffer" => Some(node.anchor(Some(key.span))),
        "tenants" | "delays" => node.entries().first().map(|(key, node)| match field {
            "tenants" => key.span,
            _ => node.anchor(Some(key.span)),
        }),
        _ => None,
    }
}

/// Where, in the classes or queues of a policy or in children of classes, the setting that `error` is about is written.
pub(crate) fn class_place(policy: &Node, error: &PolicyError) -> Option<Span> {
    let parts = match error.part {
        Part::Class => classes_of(policy),
        Part::Queue => policy.entry("queues").map_or(&[][..], |(_, it)| it.items()),
    };
    let named = parts.iter().find_map(|part| {
        let (_, name) = part.entry("name")?;
        (name.text() == Some(&error.class)).then_some((part, name.span))
    });
    if let Some((part, mut place)) = named {
        // `police.exceed` is the setting `exceed` of the setting `police`.
        let mut node = part;
        for key in error.field.split('.') {
            let Some((key, inner)) = node.entry(key) else {
                break;
            };
            place = inner.anchor(Some(key.span));
            node = inner;
        }
        return Some(place);
    }
    let mut children = classes_of(policy)
        .iter()
        .filter_map(|class| class.entry("child"));
    children.find_map(|(_, child)| class_place(child, error))
}

/// The classes of a policy, or of the child of a class, as they are written.
pub(super) fn classes_of(policy: &Node) -> &[Node] {
    let classes = policy.entry("classes");
    classes.map_or(&[], |(_, classes)| classes.items())
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
