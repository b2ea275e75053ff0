//! Slices, sources and scenarios.

use super::StudySpec;
use super::application::{Application, Count};
use super::headers::{Defaults, HeadersSpec};
use super::matching::{Matches, class_map};
use super::payload::{PayloadSpec, Sizes};
use super::transport::Transport;
use super::{Checker, Table, UNKNOWN_RATE};
use crate::diagnostics::{closest, suggestion};
use crate::file::{Capture, Placed, Span};
use crate::params::{
    DutParams, HostTiming, OnOffParams, PatternParams, Periods, ScenarioParams, SizesParams,
    SourceHeaders, SourceParams, StudyLink, StudySlice,
};
use crate::spec::{
    At, Counted, List, Name, Named, PatternName, Percent, Positive, Reference, Share,
};
use crate::{problem, settings};
use slicewise_model::{ClassMap, MatchMode, RateSpec};
use slicewise_stats::objective::Objective;
use slicewise_traffic::{RateSeries, ReplayError, Timeline};
use slicewise_units::{BitRate, ByteCount, Duration};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

settings! {
    /// A slice: which frames belong to it and what it was promised.
    struct SliceSpec as "SliceSpec" {
        /// Which frames belong to it: conditions that must all hold, or a list of such groups, one of which
        /// must.
        [expected ": which frames belong to the slice?"] r#match: Option<Matches>,
        /// Its share of the device's rate (a rate, or a percentage of it): guaranteed to a guaranteed
        /// slice, its fair part otherwise. Needed where it is guaranteed or there is an objective.
        share: Option<Share>,
        /// True if the share is guaranteed, and the slice's isolation judged. Default false.
        guaranteed: bool,
        /// Objectives in absolute terms: isolation is then judged by them.
        objective: Option<Placed<Objective>>,
        /// Header fields of the packets its sources send.
        headers: Placed<HeadersSpec>,
    }
}

settings! {
    /// A traffic source: one flow, or an application. In a scenario: only the differences from
    /// the common source of the same name.
    struct SourceSpec as "SourceSpec" {
        /// The slice it belongs to.
        slice: Option<At<Reference>>,
        /// The host that sends it: sources that name the same one share its adapter and its link to the device.
        /// Default: the host of all sources that name none.
        host: Option<Name>,
        /// When packets leave: `iperf3` (on a timer, all packets due at once), `cbr` (evenly),
        /// `poisson` (at random), `replay` (as in a capture).
        pattern: Option<PatternName>,
        /// Sending rate: a rate, or a percentage of the device's rate.
        rate: Option<Share>,
        /// How many flows send this rate together, in equal parts, each with a source port, a start and a clock of its own. Default 1.
        flows: Option<Count>,
        /// Bytes of each packet that the rate counts: `payload`, L1, L2 or L3. Default: payload for `iperf3`, as it
        /// does itself, else L2.
        counts: Option<Counted>,
        /// Bytes behind the transport header: one size; sizes and the weight with which each is drawn,
        /// `{64 B: 7, 576 B: 4, 1448 B: 1}`; `imix`, IP packets of 40, 576 and 1500 B with weights 7, 4
        /// and 1; or, for `replay`, `capture` (default): those of the capture.
        payload: Option<At<PayloadSpec>>,
        /// Header fields that differ from the slice's.
        headers: HeadersSpec,
        /// Sends for a while, pauses for a while.
        on_off: Option<Placed<OnOffParams>>,
        /// When it starts. Default 0 s.
        start: Duration,
        /// When it stops. Default: at the end of the run.
        stop: Option<Duration>,
        /// Random addition to the start, uniform from 0 to this, drawn for each repetition; of an application, for each connection. Default:
        /// the period of its packets or of its timer, whichever is longer, so that sources do not lock phase; of applications `stagger`,
        /// 100 ms at least, of `requests` the time between two.
        start_spread: Option<Duration>,
        /// The capture that `replay` takes times and sizes from, relative to the study file.
        pcap: Option<At<String>>,
        /// Instead of a pattern: an application, which reacts to what it gets. A kind, or settings.
        application: Option<Application>,
        /// The transport of an application's connections. Default `tcp`, as a Linux host of today has it.
        transport: Option<Transport>,
    }
}

settings! {
    /// A source that pauses.
    impl OnOffParams as "OnOffSpec", strict = Self {
        on: Duration::ZERO,
        off: Duration::ZERO,
        periods: Periods::Fixed,
    };
    {
        // Not `on` and `off`: many YAML parsers take these words for true and false.
        /// How long it sends, on average.
        [expected] on_for: Positive = |phases, on| phases.on = on.0,
        /// How long it is silent, on average.
        [expected] off_for: Positive = |phases, off| phases.off = off.0,
        /// How long each period is: `fixed` (default), or `exponential`, drawn anew each time.
        periods: Periods = |phases, periods| phases.periods = periods,
    }
}

settings! {
    /// A scenario: the offered traffic.
    struct ScenarioSpec as "ScenarioSpec", strict {
        /// One line for people. Default: the name.
        title: Option<String>,
        /// No slice exceeds what was promised: isolation is judged against this scenario.
        reference: bool,
        /// Its place on the axis of charts, a number with its quantity and unit: `130 % of the link`. All scenarios state
        /// one, in the same unit, or none does.
        x: Option<At<String>>,
        /// Sources, by name: differences from the common ones, and additional ones.
        sources: Named<Placed<SourceSpec>>,
        /// How many slices each population has.
        populations: Named<At<u32>>,
        /// Common sources that this scenario leaves out.
        without: List<Reference>,
    }
}

/// Network that checks of traffic refer to.
pub(super) struct Network {
    pub(super) link: StudyLink,
    /// Of a path, the device that limits it.
    pub(super) dut: DutParams,
    /// Rates of its port, where they change during a run.
    pub(super) port_series: Option<Arc<RateSeries>>,
    /// The devices of a path that could be read, each with its place among those written.
    pub(super) path: Vec<(usize, DutParams)>,
    pub(super) hosts: HostTiming,
    pub(super) duration: Duration,
    /// False where one of them could not be read and stands for something without limits: how much
    /// is sent is then unknown.
    pub(super) is_known: bool,
}

/// Where a source is written.
pub(super) struct Place<'a> {
    pub(super) name: &'a At<String>,
    slices: &'a [StudySlice],
    /// Their names.
    slice_names: &'a [&'a str],
    pub(super) spec: &'a StudySpec,
    pub(super) network: &'a Network,
}

/// The slice of a source.
pub(super) struct Slice<'a> {
    pub(super) index: usize,
    /// Header fields of its packets.
    pub(super) headers: &'a HeadersSpec,
    params: Option<&'a StudySlice>,
    /// Where the source names it.
    at: Span,
}

impl Checker<'_> {
    pub(super) fn slices(&mut self, spec: &StudySpec, dut: &DutParams) -> Vec<StudySlice> {
        self.names(&spec.slices);
        self.needs_one("slices");
        let capacity = dut.capacity().rate;
        let mut sum: u128 = 0;
        let mut slices = Vec::new();
        // Capacity is reallocated where a slice gets more than its share.
        let is_promise = |slice: &SliceSpec| slice.guaranteed || slice.objective.is_some();
        let needs_share = spec.slices.iter().any(|(_, it)| is_promise(&it.value));
        for (name, slice) in spec.slices.iter() {
            let params = self.slice(name, slice, capacity, needs_share);
            if let Some(at) = slice.place("share") {
                let before = sum;
                sum += u128::from(params.share.bits_per_second());
                let capacity_bits = u128::from(capacity.bits_per_second());
                if sum > capacity_bits && before <= capacity_bits && params.share <= capacity {
                    problem!(self.problems, at => "with {} for this slice the shares add up to {}, more than the \
                        {capacity} the device forwards",
                        params.share, BitRate::new(u64::try_from(sum).unwrap_or(u64::MAX)));
                }
            }
            slices.push(params);
        }
        slices
    }

    fn slice(
        &mut self,
        name: &At<String>,
        slice: &Placed<SliceSpec>,
        capacity: BitRate,
        needs_share: bool,
    ) -> StudySlice {
        let spec = &slice.value;
        let share = spec.share.map(|share| rate_of(share, capacity));
        match (slice.place("share"), share) {
            (None, _) if needs_share => {
                problem!(self.problems, name.span => "`share` is missing: where a slice is guaranteed, or has an objective, \
                    every slice has a share");
            }
            (Some(at), Some(share)) if share > capacity => {
                problem!(self.problems, at => "a share of {share} is above the {capacity} the device forwards");
            }
            (Some(at), Some(BitRate::ZERO)) => self.problems.add(at, "a share of zero"),
            _ => {}
        }
        let share = share.unwrap_or(BitRate::ZERO);
        StudySlice {
            name: name.value.clone(),
            matches: matches_of(name, spec.r#match.as_ref()),
            share,
            guaranteed: spec.guaranteed,
            objective: self.objective(spec.objective.as_ref(), share),
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
        name: &At<String>,
        scenario: &ScenarioSpec,
        spec: &StudySpec,
        network: &Network,
        slices: &[StudySlice],
    ) -> ScenarioParams {
        self.names(&scenario.sources);
        let populations = self.population_counts(name, scenario, spec);
        let written = self.entries_at(&["scenarios", &name.value, "sources"]);
        if written.is_empty() && spec.populations.len() == 0 {
            problem!(self.problems, name.span => "this scenario has no source: nothing would be sent");
        }
        let misspelt = self.misspelt_sources(scenario, spec);
        let slice_names: Vec<&str> = slices.iter().map(|slice| slice.name.as_str()).collect();
        let (mut sources, mut applications) = (Vec::new(), Vec::new());
        for (name, source) in scenario.sources.iter() {
            if misspelt.contains(name.value.as_str()) {
                continue;
            }
            let place = Place {
                name,
                slices,
                slice_names: &slice_names,
                spec,
                network,
            };
            if source.place("application").is_some() {
                let application = self.application_source(&place, source, &applications);
                applications.extend(application);
            } else {
                sources.extend(self.source(&place, source).unwrap_or_default());
            }
        }
        // Of a device that could not be read, percentages are not known.
        if network.dut.port_rate != UNKNOWN_RATE {
            self.check_link_load(name, &sources, &network.link);
        }
        if network.is_known {
            self.check_packets(name, &sources);
        }
        ScenarioParams {
            name: name.value.clone(),
            title: scenario.title.clone().unwrap_or_else(|| name.value.clone()),
            reference: scenario.reference,
            x: scenario
                .x
                .as_ref()
                .map_or_else(String::new, |x| x.value.clone()),
            sources,
            applications,
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
        let known = spec.sources.names();
        let mut misspelt = BTreeSet::new();
        for (name, source) in scenario.sources.iter() {
            let says = |key| source.place(key).is_some();
            let defining = ["slice", "pattern", "payload", "application"];
            let says_nothing = !defining.into_iter().any(says);
            if !says_nothing || known.is_empty() || known.contains(&name.value.as_str()) {
                continue;
            }
            let message = format!(
                "no source `{}` is common to all scenarios, and `slice`, `pattern` and \
                 `payload` that would define it here are missing",
                name.value.as_str()
            );
            let help = if self.problems.are_many() {
                None
            } else {
                misspelt.extend(closest(name.value.as_str(), known.iter().copied()));
                suggestion(name.value.as_str(), &known)
            };
            self.problems.add_suggesting(name.span, message, help);
            misspelt.insert(name.value.as_str());
        }
        misspelt
    }

    /// The generators of a host cannot offer more than the link between it and the device carries.
    fn check_link_load(&mut self, name: &At<String>, sources: &[SourceParams], link: &StudyLink) {
        let mut by_host: BTreeMap<Option<&str>, u128> = BTreeMap::new();
        for source in sources {
            *by_host.entry(source.host.as_deref()).or_default() +=
                source.offered(link.rate.accounting);
        }
        let are_all = by_host.len() == 1;
        for (host, offered) in by_host {
            if offered <= u128::from(link.rate.rate.bits_per_second()) {
                continue;
            }
            let rounded_up = offered.div_ceil(1_000_000).saturating_mul(1_000_000);
            let offered = BitRate::new(u64::try_from(rounded_up).unwrap_or(u64::MAX));
            let of = match host {
                Some(host) => format!("on host `{host}`"),
                None if are_all => "of this scenario".to_owned(),
                None => "that name no `host`".to_owned(),
            };
            problem!(self.problems, name.span => "the sources {of} send up to {offered}, more than the {} of the link \
                they send on", link.rate.rate;
                "overload must occur at the device, not before it: give some of them another `host`, or `link` a \
                higher rate than `dut.port_rate`");
        }
    }

    fn source(
        &mut self,
        place: &Place<'_>,
        source: &Placed<SourceSpec>,
    ) -> Option<Vec<SourceParams>> {
        let at = place.name.span;
        let spec = &source.value;
        if source.place("pattern").is_none() {
            self.problems.add(at, "`pattern` is missing");
        }
        if let Some(at) = source.place("transport") {
            problem!(self.problems, at => "a `transport` is that of an `application`, and this source has none: its \
                packets leave when `pattern` says");
        }
        let is_written = source.place("payload").is_some();
        let payload = self.payload(spec.payload.as_ref(), is_written, spec.pattern, at);
        let slice = self.slice_of(place, source)?;
        let headers = self.headers(&spec.headers, slice.headers, Defaults::OPEN_LOOP);
        let (payload, pattern) = (payload?, spec.pattern?);
        let mtu_bytes = place.network.link.mtu_bytes;
        let sizes = self.sizes(&payload, spec.counts, pattern, &headers, mtu_bytes);
        self.check_match(place, &slice, &headers);
        let Sizes { largest, sizes } = sizes?;
        let rate = self.source_rate(place, source, pattern)?;
        let (flows, rate, rest) = self.flows(place, source, &slice, (&headers, rate))?;
        let (start, stop) = self.span_of_time(source, place.network.duration);
        let mut params = SourceParams {
            name: place.name.value.clone(),
            machine: 0,
            host: spec.host.clone().map(|Name(host)| host),
            slice: slice.index,
            headers,
            largest,
            sizes,
            rate,
            pattern: self.pattern(source, pattern, at)?,
            on_off: spec.on_off.as_ref().map(|on_off| self.on_off(on_off)),
            start,
            stop,
            start_spread: Duration::ZERO,
        };
        if let (PatternName::Replay, Some(pcap)) = (pattern, &spec.pcap) {
            self.check_capture(pcap, &mut params);
        }
        let period = packet_period(&params, &place.network.hosts);
        params.start_spread = spec.start_spread.unwrap_or(period);
        if start < stop {
            self.check_spread(
                source.place("start_spread"),
                params.start_spread,
                (start, stop),
            );
            if place.network.is_known {
                self.check_pace(source, &params, pattern);
            }
        }
        Some(Self::divided(params, flows, rest))
    }

    /// The slice that a source names.
    pub(super) fn slice_of<'a>(
        &mut self,
        place: &Place<'a>,
        source: &Placed<SourceSpec>,
    ) -> Option<Slice<'a>> {
        if source.place("slice").is_none() {
            problem!(self.problems, place.name.span => "`slice` is missing: to which slice does the source belong?");
        }
        let name = source.value.slice.as_ref()?;
        let index = self.index_of(Table::SLICES, name, place.slice_names)?;
        let (_, spec) = place.spec.slices.0.get(index)?;
        Some(Slice {
            index,
            headers: &spec.value.headers.value,
            params: place.slices.get(index),
            at: name.span,
        })
    }

    /// Checks that the packets of a source belong to its slice: it matches them, and no slice before it does.
    pub(super) fn check_match(
        &mut self,
        place: &Place<'_>,
        slice: &Slice<'_>,
        headers: &SourceHeaders,
    ) {
        let Some(params) = slice.params else {
            return;
        };
        let source = &place.name.value;
        let headers = headers.into();
        if !params.matches.conditions.is_empty() && !params.matches.matches(&headers) {
            problem!(self.problems, slice.at => "the packets of source `{source}` do not match slice `{}`", params.name;
                "give the source, or the slice, the `headers` that the slice matches on");
            return;
        }
        let mut before = place.slices.iter().take(slice.index);
        if let Some(first) = before.find(|earlier| earlier.matches.matches(&headers)) {
            let (name, first) = (&params.name, &first.name);
            problem!(self.problems, slice.at => "the packets of source `{source}` belong to slice `{first}`, which \
                stands before `{name}` and matches them too";
                "narrow the `match` of `{first}`, or write `{name}` before it");
        }
    }

    fn source_rate(
        &mut self,
        place: &Place<'_>,
        source: &Placed<SourceSpec>,
        pattern: PatternName,
    ) -> Option<BitRate> {
        let at = source.place("rate");
        if pattern == PatternName::Replay {
            if let Some(at) = at {
                problem!(self.problems, at => "a replayed capture has its own rate: leave `rate` out");
            }
            return Some(BitRate::ZERO);
        }
        let Some(at) = at else {
            self.problems.add(place.name.span, "`rate` is missing");
            return None;
        };
        let rate = rate_of(source.value.rate?, place.network.dut.capacity().rate);
        if rate == BitRate::ZERO {
            problem!(self.problems, at => "a rate of zero: nothing would be sent");
            return None;
        }
        Some(rate)
    }

    pub(super) fn span_of_time(
        &mut self,
        source: &Placed<SourceSpec>,
        duration: Duration,
    ) -> (Duration, Duration) {
        let start = source.value.start;
        let stop = source.value.stop.unwrap_or(duration);
        if let Some(at) = source.place("stop")
            && stop > duration
        {
            problem!(self.problems, at => "this is after the end of the run, {duration}");
        }
        if start >= stop
            && let Some(at) = source.place("start").or(source.place("stop"))
        {
            problem!(self.problems, at => "the source would start at {start} and stop at {stop}");
        }
        (start, stop)
    }

    fn on_off(&mut self, spec: &Placed<OnOffParams>) -> OnOffParams {
        let phases = spec.value;
        for (key, phase) in [("on_for", phases.on), ("off_for", phases.off)] {
            self.check_phase(spec.place(key), phase);
        }
        phases
    }

    fn pattern(
        &mut self,
        source: &Placed<SourceSpec>,
        pattern: PatternName,
        at: Span,
    ) -> Option<PatternParams> {
        if pattern != PatternName::Replay
            && let Some(at) = source.place("pcap")
        {
            self.problems.add(at, "`pcap` is for the pattern `replay`");
        }
        match pattern {
            PatternName::Iperf3 => Some(PatternParams::Iperf3),
            PatternName::Cbr => Some(PatternParams::Cbr),
            PatternName::Poisson => Some(PatternParams::Poisson),
            PatternName::Replay => {
                if source.place("pcap").is_none() {
                    problem!(self.problems, at => "`pcap` is missing: which capture is replayed?");
                }
                let pcap = source.value.pcap.as_ref()?;
                let path = self.sources.beside(pcap.span.file, &pcap.value);
                Some(PatternParams::Replay {
                    pcap: self.files.locate(&path),
                    sha256: [0; 32],
                })
            }
        }
    }

    /// The capture that a source replays can be replayed, and its packets fit on the link.
    fn check_capture(&mut self, pcap: &At<String>, params: &mut SourceParams) {
        let path = self.sources.beside(pcap.span.file, &pcap.value);
        let known = self.sources.capture(&path);
        let Some(capture) = known.or_else(|| self.add_capture(&path, pcap.span)) else {
            return;
        };
        if let PatternParams::Replay { sha256, .. } = &mut params.pattern {
            *sha256 = capture.digest;
        }
        let header_bytes = u32::from(params.headers.l3_offset());
        let mtu = params.largest.l2_bytes.saturating_sub(header_bytes);
        if params.sizes == SizesParams::Capture && capture.longest > mtu {
            let longest = capture.longest;
            self.cannot_replay(&path, pcap.span, &ReplayError::AboveMtu { longest, mtu });
        }
    }

    fn add_capture(&mut self, path: &str, at: Span) -> Option<Capture> {
        let read = self.files.digest(path).and_then(|digest| {
            let file = self.files.open(path)?;
            Ok((digest, Timeline::read(file)))
        });
        match read {
            Ok((digest, Ok(timeline))) => {
                let longest = timeline.longest();
                let capture = Capture { digest, longest };
                self.sources.add_capture(path, capture);
                return Some(capture);
            }
            Ok((_, Err(error))) => self.cannot_replay(path, at, &error),
            Err(error) => self.unreadable(at, path, &error),
        }
        None
    }

    fn cannot_replay(&mut self, path: &str, at: Span, error: &ReplayError) {
        let shown = self.sources.shown(path);
        self.problems.add(at, format!("`{shown}`: {error}"));
    }
}

/// Which frames are a slice's; none where it does not say.
pub(super) fn matches_of(name: &At<String>, matches: Option<&Matches>) -> ClassMap {
    matches.map_or_else(
        || ClassMap {
            name: name.value.clone(),
            mode: MatchMode::All,
            conditions: Vec::new(),
        },
        |matches| class_map(&name.value, matches),
    )
}

/// Sources of one name are on one machine: first those of every scenario, then those of some.
fn number_machines(spec: &StudySpec, scenarios: &mut [ScenarioParams]) {
    let names = spec.sources.iter().map(|(name, _)| name.value.clone());
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

/// The time after which a source's sending repeats: what its start is spread over. A slow flow of `iperf3` repeats with its
/// packets, at ticks of its timer; a fast one with its timer.
fn packet_period(source: &SourceParams, hosts: &HostTiming) -> Duration {
    let gap = source
        .rate
        .time_to_send(ByteCount::new(source.mean_counted_bytes()))
        .unwrap_or(Duration::ZERO);
    match source.pattern {
        PatternParams::Iperf3 => gap.max(hosts.timer),
        PatternParams::Cbr => gap,
        PatternParams::Poisson | PatternParams::Replay { .. } => Duration::ZERO,
    }
}
