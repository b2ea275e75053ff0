//! A study of a router's configuration, to start from: `slicewise init --ios`.

mod shares;

use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::spec::{Name, Scalar};
use shares::{Share, shares};
use slicewise_formats::ios::{self, Attached, Direction, IosConfig, IosPolicy, IosPolicyError};
use slicewise_formats::{TextError, TextNote};
use slicewise_model::{ClassMap, ClassParams, Condition, IpPrefix, MatchMode, PolicyParams};
use slicewise_traffic::scenario::{Ecn, SourceHeaders};
use slicewise_units::BitRate;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

/// Rate of an interface about which nothing is known.
const RATE: BitRate = BitRate::new(1_000_000_000);
/// For a configuration with lines that are not modelled.
const LENIENT: &str = ", lenient: yes";
/// Most slices that are written; a comment names the others.
const SLICES_MAX: usize = 64;

/// True where `text` is a configuration of IOS, and no YAML: definitions or interfaces that are not indented.
pub(crate) fn is_ios(text: &str) -> bool {
    const BEGINNINGS: [&str; 4] = ["policy-map ", "class-map ", "interface ", "ip access-list "];
    let begins = |line: &str| BEGINNINGS.iter().any(|word| line.starts_with(word));
    text.lines().any(begins)
}

/// Message about counters, which people take for a configuration.
pub(crate) const STATISTICS: &str = "this is the output of `show policy-map interface`";
/// Remedy for [`STATISTICS`].
pub(crate) const INSTEAD_OF_STATISTICS: &str =
    "give the configuration: the output of `show running-config`";

/// True where `text` is the output of `show policy-map interface`.
pub(crate) fn is_statistics(text: &str) -> bool {
    const BEGINNINGS: [&str; 3] = [
        "Service-policy output:",
        "Service-policy input:",
        "Class-map: ",
    ];
    let begins = |line: &str| {
        BEGINNINGS
            .iter()
            .any(|word| line.trim_start().starts_with(word))
    };
    text.lines().any(begins)
}

/// A study of a configuration.
pub struct IosStudy {
    /// The study: YAML.
    pub text: String,
    /// Lines of the configuration that the study does not use, and what was assumed instead.
    pub warnings: Diagnostics,
    /// The rate of the port, and why that one.
    pub port: String,
}

/// A study of the policy that the configuration `text` of the file `name` attaches, or of its policy map `policy_map`:
/// slices are its classes, the device is a port at the rate of the interface, and what the slices send is to be filled in.
///
/// # Errors
/// Mistakes in the configuration, or that no policy could be chosen.
pub fn study_of_ios(
    name: &str,
    text: &str,
    policy_map: Option<&str>,
) -> Result<IosStudy, Diagnostics> {
    let config = ios::parse(text).map_err(|error| mistakes(name, text, vec![error]))?;
    let (policy, is_lenient) = match config.policy(policy_map) {
        Ok(policy) => (policy, false),
        Err(_) => {
            let config = config.clone().leniently();
            let policy = config.policy(policy_map);
            (policy.map_err(|error| failure(name, text, error))?, true)
        }
    };
    let place = Place::of(&config, &policy);
    let params = policy.spec.resolve(place.rate).map_err(|error| {
        let rate = place.rate;
        Diagnostics::of_file(name, &format!("on a port of {rate}: {error}"))
    })?;
    let mut found = Found::default();
    found.walk(
        &params,
        &Candidate::default(),
        "",
        place.rate,
        &mut Vec::new(),
    );
    let written = Text {
        file: name,
        config: &config,
        policy: &policy,
        policy_map,
        is_lenient,
        place: &place,
        found: &found,
    };
    Ok(IosStudy {
        text: written.written(),
        warnings: warnings(name, text, &policy.notes),
        port: format!("{} ({})", place.rate, place.why),
    })
}

/// `notes` of the configuration `text` at their places.
fn warnings(name: &str, text: &str, notes: &[TextNote]) -> Diagnostics {
    let found = notes.iter().map(|note| {
        let span = bytes(text, note.span);
        Diagnostic::at(name, text, span, &note.message, None)
    });
    Diagnostics::new(found.collect(), 0).into_warnings()
}

fn failure(name: &str, text: &str, error: IosPolicyError) -> Diagnostics {
    match error {
        IosPolicyError::Text(errors) => mistakes(name, text, errors),
        IosPolicyError::Choice(error) => Diagnostics::of_file(
            name,
            &format!("{error} (`slicewise init --ios FILE --policy-map NAME`)"),
        ),
    }
}

fn mistakes(name: &str, text: &str, errors: Vec<TextError>) -> Diagnostics {
    let found = errors.into_iter().map(|error| {
        let span = bytes(text, error.span());
        let message = match &error.expected {
            Some(expected) => format!("{}: expected {expected}", error.message),
            None => error.message.clone(),
        };
        Diagnostic::at(name, text, span, &message, error.help.as_deref())
    });
    Diagnostics::new(found.collect(), 0)
}

/// The bytes of `text` at `span`.
fn bytes(text: &str, span: slicewise_formats::Span) -> Range<usize> {
    let mut lines = text.split_inclusive('\n');
    let before = lines.by_ref().take(span.line.saturating_sub(1));
    let before: usize = before.map(str::len).sum();
    let line = lines.next().unwrap_or_default();
    let offset = |characters: usize| {
        let skipped = line.chars().take(characters);
        before + skipped.map(char::len_utf8).sum::<usize>()
    };
    let first = span.column.saturating_sub(1);
    offset(first)..offset(first + span.length)
}

/// Where the policy is attached.
struct Place {
    /// Of the port.
    rate: BitRate,
    /// Why that rate.
    why: String,
    /// Policies that packets pass before.
    before: Vec<Attached>,
}

impl Place {
    fn of(config: &IosConfig, policy: &IosPolicy) -> Self {
        let own = policy.attached.iter();
        let mut own = own.filter(|attached| attached.policy == policy.spec.name);
        let first = own.next();
        let place = first.and_then(|attached| attached.places.first());
        let known = place.and_then(|place| Some((config.interface_rate(place)?, place)));
        let (rate, why) = match (known, place) {
            (Some((rate, place)), _) if config.states_rate(place) => {
                (rate, format!("the rate of {place}"))
            }
            (Some((rate, place)), _) => (
                rate,
                format!("the usual rate of {place}, which states none"),
            ),
            (None, Some(place)) => (RATE, format!("assumed: fill in the rate of {place}")),
            (None, None) => (
                RATE,
                "assumed: fill in the rate, the policy map is attached nowhere".to_owned(),
            ),
        };
        let is_output = first.is_none_or(|attached| attached.direction == Direction::Output);
        let before = policy.attached.iter().filter(|attached| {
            is_output
                && attached.direction == Direction::Input
                && attached.policy != policy.spec.name
        });
        Self {
            rate,
            why,
            before: before.cloned().collect(),
        }
    }
}

/// Header fields that a packet needs to be of a class; the others are those of any packet.
#[derive(Debug, Clone, Default)]
struct Candidate {
    vlan: Option<u16>,
    inner_vlan: Option<u16>,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    protocol: Option<u8>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    dscp: Option<u8>,
}

/// Set a field, unless it is set to something else.
fn set<T: PartialEq>(field: &mut Option<T>, value: T) -> bool {
    match field {
        Some(known) => *known == value,
        None => {
            *field = Some(value);
            true
        }
    }
}

/// An address in a prefix; `None` for the prefix of all.
fn address_in(prefix: IpPrefix) -> Option<IpAddr> {
    let (address, length) = (prefix.address(), prefix.length());
    (length > 0).then(|| match address {
        IpAddr::V4(address) if length < 31 => IpAddr::V4((u32::from(address) + 1).into()),
        IpAddr::V6(address) if length < 127 => IpAddr::V6((u128::from(address) + 1).into()),
        address => address,
    })
}

impl Candidate {
    /// A packet of these fields that also meets `condition`, as far as that can be told from one condition alone.
    fn and(&self, condition: &Condition) -> Vec<Self> {
        let mut next = self.clone();
        let fits = match condition {
            Condition::Everything | Condition::Not(_) => true,
            Condition::OuterVlan(range) => set(&mut next.vlan, *range.start()),
            Condition::InnerVlan(range) => {
                set(&mut next.inner_vlan, *range.start()) && next.vlan.is_some()
            }
            Condition::Source(prefix) => {
                address_in(*prefix).is_none_or(|address| set(&mut next.source, address))
            }
            Condition::Destination(prefix) => {
                address_in(*prefix).is_none_or(|address| set(&mut next.destination, address))
            }
            Condition::Protocol(protocol) => set(&mut next.protocol, *protocol),
            Condition::SourcePort(ports) => set(&mut next.source_port, *ports.start()),
            Condition::DestinationPort(ports) => set(&mut next.destination_port, *ports.start()),
            Condition::Dscp(set_of) => match next.dscp {
                Some(dscp) => set_of >> dscp & 1 == 1,
                None => set(
                    &mut next.dscp,
                    u8::try_from(set_of.trailing_zeros()).unwrap_or(0),
                ),
            },
            Condition::AccessList(list) => {
                let entries = list.entries.iter().filter(|entry| entry.permit);
                return entries
                    .flat_map(|entry| self.and_all(&entry.conditions))
                    .collect();
            }
            Condition::Ethertype(_) | Condition::IcmpType(_) | Condition::GtpTeid(_) => false,
        };
        fits.then_some(next).into_iter().collect()
    }

    fn and_all(&self, conditions: &[Condition]) -> Vec<Self> {
        const MAX: usize = 16;
        let start = vec![self.clone()];
        conditions.iter().fold(start, |candidates, condition| {
            let more = candidates
                .iter()
                .flat_map(|candidate| candidate.and(condition));
            more.take(MAX).collect()
        })
    }

    fn of_map(&self, map: &ClassMap) -> Vec<Self> {
        match map.mode {
            MatchMode::All => self.and_all(&map.conditions),
            MatchMode::Any => map
                .conditions
                .iter()
                .flat_map(|one| self.and(one))
                .collect(),
        }
    }

    /// The packet that a source of the study sends which has these fields.
    fn headers(&self) -> SourceHeaders {
        SourceHeaders {
            vlan: self.vlan,
            inner_vlan: self.inner_vlan,
            source: self
                .source
                .unwrap_or(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
            destination: (self.destination).unwrap_or(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1))),
            protocol: self.protocol.unwrap_or(17),
            source_port: self.source_port.unwrap_or(49_152),
            destination_port: self.destination_port.unwrap_or(5_201),
            dscp: self.dscp.unwrap_or(0),
            ecn: Ecn::NotEct,
            tunnel: None,
        }
    }

    fn is_in(&self, map: &ClassMap) -> bool {
        map.matches(&(&self.headers()).into())
    }

    /// As settings of a study.
    fn written(&self) -> String {
        fn text<T: ToString>(key: &str, value: Option<T>) -> Option<String> {
            value.map(|value| format!("{key}: {}", value.to_string()))
        }
        let fields = [
            text("vlan", self.vlan),
            text("inner_vlan", self.inner_vlan),
            text("source", self.source),
            text("destination", self.destination),
            text("protocol", self.protocol),
            text("source_port", self.source_port),
            text("destination_port", self.destination_port),
            text("dscp", self.dscp),
        ];
        let fields: Vec<String> = fields.into_iter().flatten().collect();
        format!("{{{}}}", fields.join(", "))
    }
}

/// A class with a queue of its own.
struct Leaf {
    name: String,
    candidate: Candidate,
    /// Rate it may count on.
    share: Share,
    is_priority: bool,
}

/// The slices of a policy.
#[derive(Default)]
struct Found {
    leaves: Vec<Leaf>,
    /// Classes for which no packet was found.
    missing: Vec<String>,
    names: BTreeSet<String>,
    /// Most that passes of everything together, bit/s.
    bottleneck: Option<u64>,
    /// Most that passes of the class around those being looked at, bit/s.
    limit: Option<u64>,
}

impl Found {
    /// The classes of `params`, which divide `rate` and get packets that have the fields of `within`; `above` holds the
    /// class maps of classes before those around them.
    fn walk<'p>(
        &mut self,
        params: &'p PolicyParams,
        within: &Candidate,
        prefix: &str,
        rate: BitRate,
        before: &mut Vec<&'p ClassMap>,
    ) {
        let shares = shares(params, rate);
        let depth = before.len();
        for (class, share) in params.classes.iter().zip(shares) {
            let candidates = match &class.matches {
                Some(map) => within.of_map(map),
                None => vec![within.clone()],
            };
            let is_of_class = |candidate: &Candidate| {
                class
                    .matches
                    .as_ref()
                    .is_none_or(|map| candidate.is_in(map))
                    && !before.iter().any(|map| candidate.is_in(map))
            };
            let candidate = candidates.into_iter().find(is_of_class);
            let name = match prefix {
                "" => class.name.clone(),
                prefix => format!("{prefix}-{}", class.name),
            };
            match candidate {
                None => self.missing.push(name),
                Some(candidate) => self.class(class, candidate, name, share, before),
            }
            before.extend(&class.matches);
        }
        before.truncate(depth);
    }

    fn class<'p>(
        &mut self,
        class: &'p ClassParams,
        candidate: Candidate,
        name: String,
        mut share: Share,
        before: &mut Vec<&'p ClassMap>,
    ) {
        if let Some(child) = class.child.as_deref() {
            let is_all = self.leaves.is_empty() && candidate.written() == "{}";
            if is_all {
                self.bottleneck = [self.bottleneck, share.limit].into_iter().flatten().min();
            }
            let around = self.limit;
            self.limit = [around, share.limit].into_iter().flatten().min();
            let shaped = class.shape.filter(|_| is_all).map(|shape| shape.rate.rate);
            let rate = shaped.unwrap_or(BitRate::new(share.rate));
            let prefix = if is_all { "" } else { name.as_str() };
            self.walk(child, &candidate, prefix, rate, before);
            self.limit = around;
            return;
        }
        share.limit = [self.limit, share.limit].into_iter().flatten().min();
        let name = self.name(&name);
        self.leaves.push(Leaf {
            name,
            candidate,
            share,
            is_priority: class.priority.is_some(),
        });
    }

    /// A name that a slice may have and none has yet.
    fn name(&mut self, class: &str) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let mut name: String = class
            .chars()
            .map(|c| if allowed(c) { c } else { '-' })
            .collect();
        name.truncate(56);
        if !is_name(&name) {
            name = format!("class-{}", self.leaves.len() + 1);
        }
        let mut unique = name.clone();
        let mut number = 2;
        while !self.names.insert(unique.to_ascii_lowercase()) {
            unique = format!("{name}-{number}");
            number += 1;
        }
        unique
    }
}

/// A study that is being written.
struct Text<'a> {
    file: &'a str,
    config: &'a IosConfig,
    policy: &'a IosPolicy,
    policy_map: Option<&'a str>,
    is_lenient: bool,
    place: &'a Place,
    found: &'a Found,
}

impl Text<'_> {
    fn written(&self) -> String {
        let Place { rate, why, before } = self.place;
        let map = &self.policy.spec.name;
        let file = scalar(self.file);
        let lenient = if self.is_lenient { LENIENT } else { "" };
        let mut text = format!(
            "# A study of policy map {map} in {file}: the classes are slices, and what they send is to be filled in.\n\
             #\n\
             #   slicewise check STUDY     every mistake in it, and what of the configuration is not used\n\
             #   slicewise run STUDY       all runs, verdicts, and a report in results/\n\n\
             name: {}\n\
             title: {}\n\n\
             link: {{rate: {}}} # of the senders: faster than the port\n\n",
            self.name(),
            scalar(&format!("Does {map} isolate its classes?")),
            BitRate::new(
                rate.bits_per_second()
                    .saturating_mul(10)
                    .min(BitRate::MAX.bits_per_second())
            ),
        );
        for attached in before {
            let is_read = self.config.policy(Some(&attached.policy)).is_ok();
            let lenient = if is_read { "" } else { LENIENT };
            let _ = writeln!(
                text,
                "# {attached} is not part of this study. To judge it, too, let it be the policy of a first device:\n\
                 #   path: [arrival, port]\n\
                 #   devices:\n\
                 #     arrival: {{model: port, port_rate: 1 Gbit/s, policy: {{ios: {file}, policy_map: {}{lenient}}}}}\n\
                 #     port: {{model: port, port_rate: {rate}}}",
                scalar(&attached.policy)
            );
        }
        let _ = writeln!(text, "dut: {{model: port, port_rate: {rate}}} # {why}\n");
        self.slices(&mut text);
        self.scenarios(&mut text);
        let chosen = self.policy_map;
        let chosen =
            chosen.map_or_else(String::new, |map| format!(", policy_map: {}", scalar(map)));
        let _ = write!(
            text,
            "policies:\n  configured: {{title: as configured, ios: {file}{chosen}{lenient}}}\n\n\
             # The fewest repetitions that show that something holds in 91 % of runs.\n\
             repetitions: 34\nduration: 10 s\n"
        );
        text
    }

    fn name(&self) -> String {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let stem: String = stem
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        if is_name(&stem) {
            stem
        } else {
            "router".to_owned()
        }
    }

    fn slices(&self, text: &mut String) {
        text.push_str(
            "# `match` and `headers`: one kind of packet of each class. Fill in what your hosts send, what it was promised\n\
             # (`share`), and what it needs (`objective: {delay: 10 ms at 99.9 %, loss: 0.1 %}`).\nslices:\n",
        );
        for leaf in self.leaves() {
            let fields = leaf.candidate.written();
            let guaranteed = if leaf.share.is_guaranteed {
                ", guaranteed: true"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "  {}: {{match: {fields}, headers: {fields}, share: {}{guaranteed}}}",
                leaf.name,
                rounded(leaf.share.rate)
            );
        }
        let missing = self.found.missing.iter();
        let rest = self
            .found
            .leaves
            .iter()
            .skip(SLICES_MAX)
            .map(|leaf| &leaf.name);
        for class in missing.chain(rest) {
            let _ = writeln!(
                text,
                "  # {class}: give it a slice with packets that it gets"
            );
        }
        text.push_str("\n# Fill in what the slices send.\nsources:\n");
        for leaf in self.leaves() {
            let (pattern, payload) = match leaf.is_priority {
                true => ("cbr", "160 B"),
                false => ("poisson", "1000 B"),
            };
            let rate = rounded(leaf.share.rate / 10 * 7);
            let _ = writeln!(
                text,
                "  {0}: {{slice: {0}, pattern: {pattern}, payload: {payload}, rate: {rate}}}",
                leaf.name
            );
        }
    }

    fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.found.leaves.iter().take(SLICES_MAX)
    }

    /// Everything within its share, and one slice far above.
    fn scenarios(&self, text: &mut String) {
        let rate = self.place.rate.bits_per_second();
        let all = self.found.bottleneck.map_or(rate, |most| most.min(rate));
        // What a policer or a shaper lets pass: the one that may pass most fills most.
        let most = |leaf: &Leaf| leaf.share.limit.map_or(all, |most| most.min(all));
        let best_effort = self.leaves().filter(|leaf| !leaf.share.is_guaranteed);
        let aggressor = best_effort.max_by_key(|leaf| most(leaf));
        text.push_str("\nscenarios:\n  calm: {title: within the shares, reference: true}\n");
        if let Some(leaf) = aggressor.or_else(|| self.leaves().last()) {
            let (name, passes) = (&leaf.name, BitRate::new(most(leaf)));
            let load = rounded(most(leaf) / 10 * 15);
            let _ = writeln!(
                text,
                "  overload: {{title: {name} at 150 % of {passes}, sources: {{{name}: {{rate: {load}}}}}}}"
            );
        }
        text.push('\n');
    }
}

fn is_name(text: &str) -> bool {
    Name::from_text(text).is_ok()
}

/// A text as YAML takes it.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}

/// A rate in whole kbit/s, at least one.
fn rounded(bits_per_second: u64) -> BitRate {
    BitRate::new((bits_per_second / 1_000).max(1) * 1_000)
}
