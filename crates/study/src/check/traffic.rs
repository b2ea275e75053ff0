//! Slices, sources and scenarios.

use super::payload::Sizes;
use super::{Checker, Table, matching};
use crate::diagnostics::{closest, suggestion};
use crate::file::{At, Span};
use crate::params::{
    DutParams, HostTiming, OnOffParams, PatternParams, ScenarioParams, SourceHeaders, SourceParams,
    StudyLink, StudySlice,
};
use crate::spec::{
    Dscp, HeadersSpec, MatchSpec, Name, OnOffSpec, OneOrMany, PatternName, Percent, Protocol,
    ScenarioSpec, Share, SliceSpec, SourceSpec, StudySpec, Text,
};
use slicewise_model::{ClassMap, MatchMode, RateSpec};
use slicewise_units::{BitRate, ByteCount, Duration, FrameLengths};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// Addresses reserved for documentation (RFC 5737), for studies whose classes do not look at them.
const DEFAULT_SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const DEFAULT_DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
/// The first ephemeral port (RFC 6335).
const DEFAULT_SOURCE_PORT: u16 = 49_152;
/// The port of iperf3.
const DEFAULT_DESTINATION_PORT: u16 = 5201;
const UDP: Protocol = Protocol(17);
/// The largest VLAN id that can be used (IEEE 802.1Q).
const MAX_VLAN: u16 = 4094;

/// What is known of the network when traffic is checked.
pub(super) struct Network {
    pub(super) link: StudyLink,
    pub(super) dut: DutParams,
    pub(super) hosts: HostTiming,
    pub(super) duration: Duration,
    /// False where one of them could not be read and stands for something without limits: how much
    /// is sent is then unknown.
    pub(super) is_known: bool,
}

/// Where a source is written.
struct Place<'a> {
    name: &'a Text<Name>,
    slices: &'a [StudySlice],
    slice_specs: &'a StudySpec,
    network: &'a Network,
}

impl Checker<'_> {
    pub(super) fn slices(&mut self, spec: &StudySpec, dut: &DutParams) -> Vec<StudySlice> {
        self.names(&spec.slices);
        self.needs_one("slices");
        let capacity = dut.capacity().rate;
        let mut sum: u128 = 0;
        let mut slices = Vec::new();
        for (name, slice) in spec.slices.iter() {
            let params = self.slice(name, slice, capacity);
            if let Some(text) = &slice.share {
                let before = sum;
                sum += u128::from(params.share.bits_per_second());
                let capacity_bits = u128::from(capacity.bits_per_second());
                if sum > capacity_bits && before <= capacity_bits && params.share <= capacity {
                    let message = format!(
                        "with {} for this slice the shares add up to {}, more than the {capacity} \
                         the device forwards",
                        params.share,
                        BitRate::new(u64::try_from(sum).unwrap_or(u64::MAX)),
                    );
                    self.problems.add(text.span(), message);
                }
            }
            slices.push(params);
        }
        slices
    }

    fn slice(&mut self, name: &Text<Name>, slice: &SliceSpec, capacity: BitRate) -> StudySlice {
        let matches = self.slice_matches(name, slice.matches.as_ref());
        let share = self.required(slice.share.as_ref(), "share", name.span());
        let share = share.map(|share| rate_of(share, capacity));
        if let (Some(text), Some(share)) = (&slice.share, share) {
            if share > capacity {
                let message =
                    format!("a share of {share} is above the {capacity} the device forwards");
                self.problems.add(text.span(), message);
            }
            if share == BitRate::ZERO {
                self.problems.add(text.span(), "a share of zero");
            }
        }
        let share = share.unwrap_or(BitRate::ZERO);
        let guaranteed = self.read_or(slice.guaranteed.as_ref(), false);
        let objective = self.objective(slice.objective.as_ref(), share);
        StudySlice {
            name: name.text().to_owned(),
            matches,
            share,
            guaranteed,
            objective,
        }
    }

    /// Which frames are a slice's.
    pub(super) fn slice_matches(
        &mut self,
        name: &Text<Name>,
        matches: Option<&At<OneOrMany<MatchSpec>>>,
    ) -> ClassMap {
        if let Some(At { value, .. }) = matches {
            return self.class_map(name.text(), value);
        }
        self.problems.add(
            name.span(),
            "`match` is missing: which frames belong to the slice?",
        );
        ClassMap {
            name: name.text().to_owned(),
            mode: MatchMode::All,
            conditions: Vec::new(),
        }
    }

    pub(super) fn scenarios(
        &mut self,
        spec: &StudySpec,
        network: &Network,
        slices: &[StudySlice],
    ) -> Vec<ScenarioParams> {
        self.names(&spec.scenarios);
        self.names(&spec.sources);
        self.needs_one("scenarios");
        let mut scenarios = Vec::new();
        for (name, scenario) in spec.scenarios.iter() {
            scenarios.push(self.scenario(name, scenario, spec, network, slices));
        }
        number_machines(spec, &mut scenarios);
        scenarios
    }

    fn scenario(
        &mut self,
        name: &Text<Name>,
        scenario: &ScenarioSpec,
        spec: &StudySpec,
        network: &Network,
        slices: &[StudySlice],
    ) -> ScenarioParams {
        self.names(&scenario.sources);
        let populations = self.population_counts(name, scenario, spec);
        let written = self.entries_at(&["scenarios", name.text(), "sources"]);
        if written.is_empty() && spec.populations.len() == 0 {
            self.problems.add(
                name.span(),
                "this scenario has no source: nothing would be sent",
            );
        }
        let misspelt = self.misspelt_sources(scenario, spec);
        let mut sources = Vec::new();
        for (name, source) in scenario.sources.iter() {
            if misspelt.contains(name.text()) {
                continue;
            }
            let place = Place {
                name,
                slices,
                slice_specs: spec,
                network,
            };
            sources.extend(self.source(&place, source));
        }
        self.check_link_load(name, &sources, &network.link);
        if network.is_known {
            self.check_packets(name, &sources);
        }
        let title = scenario
            .title
            .as_ref()
            .map_or(name.text(), |title| title.text().trim());
        ScenarioParams {
            name: name.text().to_owned(),
            title: title.to_owned(),
            reference: self.read_or(scenario.reference.as_ref(), false),
            sources,
            populations,
        }
    }

    /// A source that says neither whose it is nor what it sends is one of those that all scenarios
    /// have, or was meant to be. Returns the names of which nothing more is to be said: those that
    /// there are not, and those that were probably meant and now lack a setting.
    fn misspelt_sources<'a>(
        &mut self,
        scenario: &'a ScenarioSpec,
        spec: &'a StudySpec,
    ) -> BTreeSet<&'a str> {
        let known: Vec<&str> = spec.sources.iter().map(|(name, _)| name.text()).collect();
        let mut misspelt = BTreeSet::new();
        for (name, source) in scenario.sources.iter() {
            let says_nothing =
                source.slice.is_none() && source.pattern.is_none() && source.payload.is_none();
            if !says_nothing || known.is_empty() || known.contains(&name.text()) {
                continue;
            }
            let message = format!(
                "no source `{}` is common to all scenarios, and `slice`, `pattern` and \
                 `payload` that would define it here are missing",
                name.text()
            );
            let help = if self.problems.are_many() {
                None
            } else {
                misspelt.extend(closest(name.text(), known.iter().copied()));
                suggestion(name.text(), &known)
            };
            self.problems.add_with_help(name.span(), message, help);
            misspelt.insert(name.text());
        }
        misspelt
    }

    /// The generators cannot offer more than the link between them and the device carries.
    fn check_link_load(&mut self, name: &Text<Name>, sources: &[SourceParams], link: &StudyLink) {
        let mut offered: u128 = 0;
        for source in sources {
            let occupied = source.weighted_sum(|size| {
                let lengths = FrameLengths {
                    l2_bytes: size.l2_bytes,
                    l3_offset: source.headers.l3_offset(),
                };
                link.rate.accounting.count(lengths).bytes()
            });
            let counted = source.weighted_sum(|size| u64::from(size.counted_bytes));
            offered += u128::from(source.rate.bits_per_second()) * occupied / counted.max(1);
        }
        if offered > u128::from(link.rate.rate.bits_per_second()) {
            let rounded_up = offered.div_ceil(1_000_000).saturating_mul(1_000_000);
            let offered = BitRate::new(u64::try_from(rounded_up).unwrap_or(u64::MAX));
            let message = format!(
                "the sources of this scenario send up to {offered}, more than the {} of the link \
                 they send on",
                link.rate.rate
            );
            let help = "overload must occur at the device, not before it: give `link` a higher rate \
                        than `dut.port_rate`";
            self.problems
                .add_with_help(name.span(), message, Some(help.to_owned()));
        }
    }

    fn source(&mut self, place: &Place<'_>, spec: &SourceSpec) -> Option<SourceParams> {
        let at = place.name.span();
        let pattern = self.required(spec.pattern.as_ref(), "pattern", at);
        let payload = self.payload(spec.payload.as_ref(), pattern, at);
        let Some(slice_name) = &spec.slice else {
            self.problems.add(
                at,
                "`slice` is missing: to which slice does the source belong?",
            );
            return None;
        };
        let names: Vec<&str> = place
            .slices
            .iter()
            .map(|slice| slice.name.as_str())
            .collect();
        let slice = self.index_of(Table::Slices, slice_name, &names)?;
        let (_, slice_spec) = place.slice_specs.slices.0.get(slice)?;
        let headers = self.headers(&spec.headers, &slice_spec.headers);
        let (payload, pattern) = (payload?, pattern?);
        let mtu_bytes = place.network.link.mtu_bytes;
        let sizes = self.sizes(&payload, spec, pattern, &headers, mtu_bytes);
        if let Some(params) = place.slices.get(slice)
            && !params.matches.conditions.is_empty()
            && !matching::matches(&params.matches, &headers)
        {
            let message = format!(
                "the packets of source `{}` do not match slice `{}`",
                place.name.text(),
                params.name
            );
            let help = "give the source, or the slice, the `headers` that the slice matches on";
            self.problems
                .add_with_help(slice_name.span(), message, Some(help.to_owned()));
        }
        let Sizes { largest, sizes } = sizes?;
        let rate = self.source_rate(place, spec, pattern)?;
        let (start, stop) = self.span_of_time(spec, place.network.duration);
        let mut source = SourceParams {
            name: place.name.text().to_owned(),
            machine: 0,
            slice,
            headers,
            largest,
            sizes,
            rate,
            pattern: self.pattern(spec, pattern, at)?,
            on_off: spec.on_off.as_ref().and_then(|on_off| self.on_off(on_off)),
            start,
            stop,
            start_spread: Duration::ZERO,
        };
        let period = packet_period(&source, &place.network.hosts);
        source.start_spread = self.read_or(spec.start_spread.as_ref(), period);
        if start < stop {
            self.check_spread(spec, &source);
            if place.network.is_known {
                self.check_pace(spec, &source, pattern);
            }
        }
        Some(source)
    }

    /// Header fields: the source's own, else the slice's, else the defaults.
    fn headers(&mut self, own: &HeadersSpec, slice: &HeadersSpec) -> SourceHeaders {
        let vlan = own.vlan.as_ref().or(slice.vlan.as_ref());
        let inner_vlan = own.inner_vlan.as_ref().or(slice.inner_vlan.as_ref());
        for text in [vlan, inner_vlan].into_iter().flatten() {
            if text.read(self.problems).is_some_and(|id| id > MAX_VLAN) {
                self.problems
                    .add(text.span(), format!("a VLAN id may be at most {MAX_VLAN}"));
            }
        }
        if let (None, Some(inner)) = (vlan, inner_vlan) {
            self.problems.add(
                inner.span(),
                "a second VLAN tag needs a first: set `vlan` too",
            );
        }
        let source_text = own.source.as_ref().or(slice.source.as_ref());
        let destination_text = own.destination.as_ref().or(slice.destination.as_ref());
        let source = self.read_or(source_text, DEFAULT_SOURCE);
        let destination = self.read_or(destination_text, DEFAULT_DESTINATION);
        if source.is_ipv4() != destination.is_ipv4()
            && let Some(text) = destination_text.or(source_text)
        {
            let message = format!(
                "source {source} and destination {destination} are of different IP versions"
            );
            self.problems.add(text.span(), message);
        }
        let protocol = own.protocol.as_ref().or(slice.protocol.as_ref());
        let source_port = own.source_port.as_ref().or(slice.source_port.as_ref());
        let destination_port = own
            .destination_port
            .as_ref()
            .or(slice.destination_port.as_ref());
        let dscp = own.dscp.as_ref().or(slice.dscp.as_ref());
        let headers = SourceHeaders {
            vlan: self.read(vlan),
            inner_vlan: self.read(inner_vlan),
            source,
            destination,
            protocol: self.read_or(protocol, UDP).0,
            source_port: self.read_or(source_port, DEFAULT_SOURCE_PORT),
            destination_port: self.read_or(destination_port, DEFAULT_DESTINATION_PORT),
            dscp: self.read_or(dscp, Dscp(0)).0,
        };
        if headers.has_ports() {
            return headers;
        }
        SourceHeaders {
            source_port: 0,
            destination_port: 0,
            ..headers
        }
    }

    fn source_rate(
        &mut self,
        place: &Place<'_>,
        spec: &SourceSpec,
        pattern: PatternName,
    ) -> Option<BitRate> {
        if pattern == PatternName::Replay {
            if let Some(text) = &spec.rate {
                let message = "a replayed capture has its own rate: leave `rate` out";
                self.problems.add(text.span(), message);
            }
            return Some(BitRate::ZERO);
        }
        let share = self.required(spec.rate.as_ref(), "rate", place.name.span())?;
        let rate = rate_of(share, place.network.dut.capacity().rate);
        if rate == BitRate::ZERO
            && let Some(text) = &spec.rate
        {
            self.problems
                .add(text.span(), "a rate of zero: nothing would be sent");
            return None;
        }
        Some(rate)
    }

    fn span_of_time(&mut self, spec: &SourceSpec, duration: Duration) -> (Duration, Duration) {
        let start = self.read_or(spec.start.as_ref(), Duration::ZERO);
        let stop = self.read_or(spec.stop.as_ref(), duration);
        if let Some(text) = &spec.stop
            && stop > duration
        {
            self.problems.add(
                text.span(),
                format!("this is after the end of the run, {duration}"),
            );
        }
        if start >= stop
            && let Some(text) = spec.start.as_ref().or(spec.stop.as_ref())
        {
            let message = format!("the source would start at {start} and stop at {stop}");
            self.problems.add(text.span(), message);
        }
        (start, stop)
    }

    fn on_off(&mut self, spec: &At<OnOffSpec>) -> Option<OnOffParams> {
        let mut phase = |field: &Option<Text<Duration>>, key| match field {
            Some(text) => {
                let phase = self.nonzero_duration(Some(text))?;
                self.check_phase(text, phase);
                Some(phase)
            }
            None => self.required::<Duration>(None, key, spec.span),
        };
        let (on, off) = (
            phase(&spec.value.on_for, "on_for"),
            phase(&spec.value.off_for, "off_for"),
        );
        Some(OnOffParams { on: on?, off: off? })
    }

    fn pattern(
        &mut self,
        spec: &SourceSpec,
        pattern: PatternName,
        at: Span,
    ) -> Option<PatternParams> {
        if pattern != PatternName::Replay
            && let Some(text) = &spec.pcap
        {
            self.problems
                .add(text.span(), "`pcap` is for the pattern `replay`");
        }
        match pattern {
            PatternName::Iperf3 => Some(PatternParams::Iperf3),
            PatternName::Cbr => Some(PatternParams::Cbr),
            PatternName::Poisson => Some(PatternParams::Poisson),
            PatternName::Replay => {
                let Some(text) = &spec.pcap else {
                    self.problems
                        .add(at, "`pcap` is missing: which capture is replayed?");
                    return None;
                };
                let path = self.sources.beside(text.span().file, text.text().trim());
                match self.files.digest(&path) {
                    Ok(digest) => self.sources.add_digest(&path, digest),
                    Err(error) => {
                        let shown = self.sources.shown(&path);
                        self.problems
                            .add(text.span(), format!("cannot read `{shown}`: {error}"));
                    }
                }
                Some(PatternParams::Replay {
                    pcap: self.files.locate(&path),
                })
            }
        }
    }
}

/// Sources of one name are on one machine: first those of every scenario, then those of some.
fn number_machines(spec: &StudySpec, scenarios: &mut [ScenarioParams]) {
    let names = spec.sources.iter().map(|(name, _)| name.text().to_owned());
    let mut machines: BTreeMap<String, u32> = names.zip(0..).collect();
    for source in scenarios.iter_mut().flat_map(|s| &mut s.sources) {
        let next = u32::try_from(machines.len()).unwrap_or(u32::MAX);
        source.machine = *machines.entry(source.name.clone()).or_insert(next);
    }
}

/// A rate, or its part of `whole`.
pub(super) fn rate_of(share: Share, whole: BitRate) -> BitRate {
    match share.0 {
        RateSpec::Absolute(rate) => rate,
        RateSpec::PercentMilli(share) => whole.scaled(u64::from(share), u64::from(Percent::ALL.0)),
    }
}

/// The time after which a source's sending repeats, roughly: what its start is spread over.
fn packet_period(source: &SourceParams, hosts: &HostTiming) -> Duration {
    match source.pattern {
        PatternParams::Iperf3 => hosts.timer,
        PatternParams::Cbr => source
            .rate
            .time_to_send(ByteCount::new(source.mean_counted_bytes()))
            .unwrap_or(Duration::ZERO),
        PatternParams::Poisson | PatternParams::Replay { .. } => Duration::ZERO,
    }
}
