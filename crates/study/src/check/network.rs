//! Links, the device under test, the hosts, measuring and margins.

use super::application::Count;
use super::policies::PolicyFileSpec;
use super::port_rate::{PortRateSpec, PortSeries};
use super::qos_sched::{BurstsSpec, OF_THREADS, ThreadsSpec};
use super::traffic::Network;
use super::{Checker, StudySpec};
use crate::diagnostics::suggestion;
use crate::file::Placed;
use crate::params::{
    CRYSTAL_PPB, DutModel, DutParams, FlowControlParams, HostTiming, LicenceParams,
    MAX_SLOWNESS_PPB, MeasureParams, QosSchedRings, QosSchedThreads, ScenarioParams, StudyLink,
    SwitchParams,
};
use crate::spec::{
    At, Borrows, Fraction, Named, PartsPerMillion, PassingRate, Positive, Scalar, Short, narrowed,
};
use crate::{problem, settings};
use slicewise_model::{BurstSpec, Rate};
use slicewise_stats::collect::MAX_BINS;
use slicewise_stats::description::Margins;
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};
use std::collections::{BTreeMap, BTreeSet};

/// Settings of a `switch` alone.
const OF_SWITCH: [&str; 5] = ["queues", "buffer", "hysteresis", "credit", "flow_control"];
/// Default MTU, bytes: an Ethernet without jumbo frames.
const DEFAULT_MTU: u32 = 1500;
/// The largest IP packet, bytes.
const MAX_MTU: u32 = 65_535;
/// The smallest maximum that IPv4 allows, bytes (RFC 791).
const MIN_MTU: u32 = 68;
/// The pacing timer of iperf3.
const IPERF3_TIMER: Duration = Duration::from_millis(1);
/// Most looks at the queues in a run.
const MAX_LOOKS: u64 = 10_000_000;
/// The interval of the time series unless it is said.
const DEFAULT_BIN: Duration = Duration::from_millis(50);
/// Ordinary Linux hosts on real packets keep it; delays of milliseconds are then right within a tenth.
const DEFAULT_LATENESS: Duration = Duration::from_micros(100);
/// Of a link that states none: nothing passes.
const NO_RATE: Rate = Rate {
    rate: BitRate::ZERO,
    accounting: Accounting::L1,
};

narrowed! {
    /// Longest IP packet.
    #[derive(Copy)]
    Mtu(ByteCount) as "Size": |text| match ByteCount::from_text(text)? {
        size if (u64::from(MIN_MTU)..=u64::from(MAX_MTU)).contains(&size.bytes()) => Ok(size),
        _ => Err(format!("the MTU must be from {MIN_MTU} to {MAX_MTU} bytes")),
    };
    /// By how much a clock is slower than the one before it.
    #[derive(Copy)]
    ClockDrift(PartsPerMillion) as "PartsPerMillion": |text| {
        let drift = PartsPerMillion::from_text(text)?;
        match drift.ppb() <= MAX_SLOWNESS_PPB {
            true => Ok(drift),
            false => Err("a clock drift may be at most 10 %".to_owned()),
        }
    };
}

/// A number of packets, and not none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packets(pub(crate) u32);

impl Scalar for Packets {
    const NAME: &'static str = "Packets";

    fn from_text(text: &str) -> Result<Self, String> {
        let number = || {
            let written = text.trim();
            let packets = written.strip_suffix("packets");
            let number = packets.or(written.strip_suffix("packet"))?;
            number.trim().replace('_', "").parse().ok()
        };
        match number() {
            Some(0) => Err("there must be room for at least one packet".to_owned()),
            Some(packets) => Ok(Self(packets)),
            None => Err(format!(
                "`{text}` is not a number of packets: write for example `25000 packets`"
            )),
        }
    }

    fn accepted() -> serde_json::Value {
        serde_json::json!({
            "type": "string",
            "pattern": "^ *[0-9][0-9_]* *packets? *$",
            "examples": ["25000 packets"],
        })
    }
}

settings! {
    /// The links between the hosts and the device under test.
    impl StudyLink as "LinkSpec" = Self {
        rate: NO_RATE,
        propagation: Duration::ZERO,
        mtu_bytes: DEFAULT_MTU,
        impairments: crate::LinkImpairments::default(),
    };
    {
        /// Rate of each link.
        [expected] rate: PassingRate = |link, rate| link.rate.rate = rate.0,
        /// Which bytes of a frame occupy the link: L1 (default) counts preamble, FCS and gap too.
        counts => rate.accounting,
        /// Propagation delay of each link. Default 0 s.
        propagation,
        /// Longest IP packet. Default 1500 B.
        mtu: Mtu = |link, mtu| link.mtu_bytes = u32::try_from(mtu.0.bytes()).unwrap_or(MAX_MTU),
        /// Frames lost and delayed on the links. Default: none.
        impairments,
    }
}

/// A rate, and what occupies it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkRate(pub(crate) Rate);

/// A link as its rate, or its rate and what it counts.
pub(crate) type ShortLink = Short<PassingRate, LinkRate>;

impl From<PassingRate> for LinkRate {
    fn from(PassingRate(rate): PassingRate) -> Self {
        Self(Rate { rate, ..NO_RATE })
    }
}

settings! {
    /// A link, and which bytes of a frame occupy it.
    impl LinkRate as "PlanLinkSpec", strict = Self(NO_RATE); {
        /// Its rate.
        [required] rate: PassingRate = |link, rate| link.0.rate = rate.0,
        /// Which bytes of a frame occupy it. Default L1.
        counts: Accounting = |link, accounting| link.0.accounting = accounting,
    }
}

settings! {
    /// The device under test, or a device of a path.
    struct DutSpec as "DutSpec" {
        /// Which device: `isr4221` (Cisco ISR 4221, whose licence limits what it forwards), `port` (one
        /// egress port), `gateway` (a port emulated by software, which hands frames on whole), `switch` (a port with a
        /// few queues, which share a buffer) or `qos_sched` (a port behind the threads of DPDK's sample application).
        [expected] model: Option<DutModel>,
        /// Rate of the egress port. Default: the link's. Of a `port` that is simulated also steps, `[{at: 0 s, rate: 20 Mbit/s},
        /// ...]`, or `{trace: FILE}`, a trace in the format of Mahimahi.
        port_rate: Option<At<PortRateSpec>>,
        /// Which bytes of a frame occupy the port. Default L1; L3 with a trace.
        port_counts: Option<Accounting>,
        /// From the last bit received to the earliest departure. Default 0 s.
        processing_delay: Duration,
        /// Queues of a port of a `switch`: a policy that needs more is refused. Default 8.
        queues: Option<Count>,
        /// Packets that wait in all queues of a port of a `switch` together, for example `25000 packets`. Default: what the
        /// queues' limits add up to.
        buffer: Option<Packets>,
        /// Of a switch: a queue that has dropped a packet because it was full admits none before it is shorter by so
        /// much, for example `32 packets`. Default: it admits one as soon as there is room.
        hysteresis: Option<Packets>,
        /// How much of its minimum and of its maximum an idle queue of a `switch` saves, as time at that rate. Default: what
        /// the policy says.
        credit: Option<Positive>,
        /// Pause frames that a `switch` sends to those who send to it. Default: none.
        flow_control: Option<Placed<FlowControlParams>>,
        /// Of a `qos_sched`: `separate` (default), a thread that transmits behind the worker, or `mixed`, a worker that also
        /// transmits.
        threads: Option<QosSchedThreads>,
        /// Of a `qos_sched`: packets that its threads move at once; one number for all of them, or one for each.
        burst: Option<BurstsSpec>,
        /// Of a `qos_sched`: sizes of its rings.
        ring: Option<QosSchedRings>,
        /// Of a `qos_sched`: how long after the last packets from the scheduler the thread that transmits sends what it has
        /// collected. Default 100 us.
        drain: Option<Positive>,
        /// The licence that limits what `isr4221` forwards.
        licence: Option<Placed<LicenceParams>>,
        /// Of a device in `devices`: its own policy, under which it is in every run. Default: the policy that is
        /// compared.
        policy: Option<Placed<PolicyFileSpec>>,
    }
}

settings! {
    /// A licence: a token bucket over everything the device forwards.
    impl LicenceParams as "LicenceSpec", strict = Self {
        rate: Rate::l2(BitRate::ZERO),
        credit: ByteCount::ZERO,
        priority_borrows: false,
    };
    {
        /// The licensed rate.
        [expected] rate: PassingRate = |licence, rate| licence.rate.rate = rate.0,
        /// Maximum credit: a size, or a duration at the licensed rate. The bucket
        /// starts full.
        [expected] credit: BurstSpec = |licence, credit| licence.credit = match credit {
            BurstSpec::Size(size) => size,
            BurstSpec::Time(time) => licence.rate.rate.bytes_in(time),
        },
        /// Which bytes of a frame are charged. Default L2.
        counts => rate.accounting,
        /// Treatment of priority frames without credit: `borrows` (they are sent, as debt) or `waits` (default).
        priority: Borrows = |licence, borrows| licence.priority_borrows = borrows.0,
    }
}

/// Hosts: their times, and where some of them are.
#[derive(Debug, Clone)]
pub(crate) struct HostsSpec {
    pub(super) timing: HostTiming,
    pub(super) propagation: Named<At<Duration>>,
}

settings! {
    /// The hosts that send and receive.
    impl HostsSpec as "HostSpec" = Self {
        timing: HostTiming {
            timer: IPERF3_TIMER,
            clock_drift_ppb: CRYSTAL_PPB,
            timer_slack: Duration::ZERO,
            send_cost: Duration::ZERO,
            interrupt_moderation: Duration::ZERO,
        },
        propagation: Named::default(),
    };
    {
        /// Period of the timer on which an iperf3 source wakes. Default 1 ms, as iperf3.
        timer: Positive = |hosts, timer| hosts.timing.timer = timer.0,
        /// By how much the clock of each source is slower than that of the source before it. Default
        /// 100 ppm, what IEEE 802.3 lets a crystal be off; 0 ppm where all have one clock.
        clock_drift: ClockDrift = |hosts, drift| hosts.timing.clock_drift_ppb = drift.0.ppb(),
        /// How late the operating system may wake it. Default 0 s.
        timer_slack => timing.timer_slack,
        /// Least time between two packets that a source sends back to back. Default 0 s.
        send_cost => timing.send_cost,
        /// How long the receiving interface may wait before it raises an interrupt. Default 0 s.
        interrupt_moderation => timing.interrupt_moderation,
        /// By the name of a host that sends: propagation delay of its link. Default: that of `link`.
        propagation,
    }
}

settings! {
    /// How it is measured.
    impl MeasureParams as "MeasureSpec" = Self::default(); {
        /// Width of a bin of the time series. Default 50 ms.
        bin: Positive = |measure, bin| measure.bin = bin.0,
        /// How often a simulated run looks at the lengths of the device's queues. Default: never.
        queue_lengths: Positive = |measure, interval| measure.queue_lengths = Some(interval.0),
        /// On real packets: how late frames may leave the gateway, by its own clock. A run in which more than 0.5 % are later
        /// is rejected. Default 100 us.
        lateness: Positive = |measure, lateness| measure.lateness = lateness.0,
    }
}

impl Default for MeasureParams {
    fn default() -> Self {
        Self {
            bin: DEFAULT_BIN,
            queue_lengths: None,
            lateness: DEFAULT_LATENESS,
            medians: false,
        }
    }
}

/// Margins, and the resolution of delay where it is said.
#[derive(Debug, Clone, Default)]
pub(crate) struct MarginsSpec {
    margins: Margins,
    delay_resolution: Option<Duration>,
}

settings! {
    /// Margins and confidence of the verdicts.
    impl MarginsSpec as "MarginsSpec" = Self::default(); {
        /// Confidence of decisions and of intervals. Default 95 %.
        confidence: Fraction = |spec, part| spec.margins.confidence = part.0,
        /// Relative loss of throughput tolerated. Default 1 %.
        throughput: Fraction = |spec, part| spec.margins.throughput_relative = part.0,
        /// Increase of the loss ratio tolerated, in percent of all packets. Default 0.1 %.
        loss: Fraction = |spec, part| spec.margins.loss_absolute = part.0,
        /// Relative increase of delay tolerated, mean and 99th percentile. Default 25 %.
        delay => margins.delay_relative,
        /// Which delay that is: `queueing` (default: the one-way delay minus the smallest of the slice) or
        /// `one_way`.
        delay_of => margins.delay_of,
        /// Increase of delay that is always tolerated. Default: the transmission time of the largest frame at the rate
        /// that slices share, at least 10 µs; under `deficit_round_robin` a round of it; a tenth of an objective of delay.
        delay_resolution,
        /// Share of runs that may be beyond a limit: "holds" says that no more are, which takes 34 repetitions at the
        /// default, 9 %.
        rare_runs => margins.rare_runs,
        /// Reallocated fraction from which reallocation holds. Default 95 %.
        reallocation_holds: Fraction = |spec, part| spec.margins.reallocation_holds = part.0,
        /// Reallocated fraction up to which it is broken. Default 5 %.
        reallocation_broken: Fraction = |spec, part| spec.margins.reallocation_broken = part.0,
    }
}

fn switch(spec: &DutSpec) -> SwitchParams {
    SwitchParams {
        queues: spec
            .queues
            .map_or(SwitchParams::default().queues, |Count(queues)| queues),
        buffer_packets: spec.buffer.map(|Packets(packets)| packets),
        hysteresis_packets: spec.hysteresis.map_or(0, |Packets(packets)| packets),
        credit: spec.credit.map(|Positive(credit)| credit),
        flow_control: spec.flow_control.as_ref().map(|control| control.value),
    }
}

/// No application notices 10 µs: a frame of 30 ns at 400 Gbit/s is no margin.
const LEAST_RESOLUTION: Duration = Duration::from_micros(10);

impl Checker<'_> {
    /// A device that is not of `model` has none of its settings.
    pub(super) fn check_has_none<T>(
        &mut self,
        written: &Placed<T>,
        settings: &[&str],
        model: &str,
    ) {
        for key in settings {
            if let Some(at) = written.place(key) {
                problem!(self.problems, at => "`{key}` is of the model `{model}` alone";
                    "leave it out, or use the model `{model}`");
            }
        }
    }

    pub(super) fn dut(
        &mut self,
        spec: Option<&Placed<DutSpec>>,
        link: Option<&StudyLink>,
        series: Option<&PortSeries>,
    ) -> Option<DutParams> {
        let written = spec?;
        let spec = &written.value;
        let rate = match written.place("port_rate") {
            Some(_) => {
                let constant = spec
                    .port_rate
                    .as_ref()
                    .and_then(|rate| rate.value.constant());
                constant.or(series.map(|series| series.mean))
            }
            None => link.map(|link| link.rate.rate),
        };
        let model = match spec.model? {
            DutModel::Switch(_) => DutModel::Switch(switch(spec)),
            DutModel::QosSched(_) => {
                let threads = ThreadsSpec {
                    threads: spec.threads,
                    burst: spec.burst,
                    ring: spec.ring,
                    drain: spec.drain,
                };
                self.qos_sched(written, threads)
            }
            other => other,
        };
        if !matches!(model, DutModel::Switch(_)) {
            self.check_has_none(written, &OF_SWITCH, "switch");
        }
        if !matches!(model, DutModel::QosSched(_)) {
            self.check_has_none(written, &OF_THREADS, "qos_sched");
        }
        match (model, written.place("licence")) {
            (DutModel::Isr4221, None) => {
                problem!(self.problems, written.span => "`licence` is missing: an ISR 4221 forwards what its licence \
                    allows");
                return None;
            }
            (_, Some(at)) if model != DutModel::Isr4221 => {
                problem!(self.problems, at => "only the model `isr4221` has a licence";
                    "leave it out, or use the model `isr4221`");
                return None;
            }
            _ => {}
        }
        let is_trace = spec
            .port_rate
            .as_ref()
            .is_some_and(|rate| rate.value.is_trace());
        let default = if is_trace {
            Accounting::L3
        } else {
            Accounting::L1
        };
        let accounting = spec.port_counts.unwrap_or(default);
        let dut = DutParams {
            model,
            port_rate: Rate {
                rate: rate?,
                accounting,
            },
            processing_delay: spec.processing_delay,
            licence: spec.licence.as_ref().map(|licence| licence.value),
        };
        if let Some(control) = &spec.flow_control {
            self.flow_control(control, link, &dut);
        }
        let Some(licence) = &spec.licence else {
            // One that cannot be read is no device without a licence.
            return (model != DutModel::Isr4221).then_some(dut);
        };
        let LicenceParams { rate, credit, .. } = licence.value;
        if let Some(at) = licence.place("credit")
            && credit < ByteCount::new(u64::from(DEFAULT_MTU))
        {
            problem!(self.problems, at => "a credit of {credit} is less than one packet");
            return None;
        }
        if let Some(at) = licence.place("rate")
            && rate.rate > dut.port_rate.rate
        {
            let ports = dut.port_rate.rate;
            problem!(self.problems, at => "the licence is above the rate of the ports, {ports}");
        }
        Some(dut)
    }

    pub(super) fn hosts(&mut self, spec: Option<&Placed<HostsSpec>>) -> HostTiming {
        let Some(spec) = spec else {
            return <HostsSpec as crate::file::Settings>::start().timing;
        };
        let hosts = spec.value.timing;
        if let Some(at) = spec.place("timer_slack")
            && hosts.timer_slack > hosts.timer
        {
            let timer = hosts.timer;
            problem!(self.problems, at => "this is longer than the timer's period of {timer}");
        }
        hosts
    }

    /// Propagation delays of the links of hosts that sources name.
    pub(super) fn host_propagation(
        &mut self,
        study: &StudySpec,
        scenarios: &[ScenarioParams],
        network: &Network,
    ) -> BTreeMap<String, Duration> {
        let Some(spec) = &study.hosts else {
            return BTreeMap::new();
        };
        let hosts = scenarios.iter().flat_map(ScenarioParams::hosts).flatten();
        let known: Vec<&str> = hosts.collect::<BTreeSet<_>>().into_iter().collect();
        for (name, _) in spec.value.propagation.iter() {
            if !known.contains(&name.value.as_str()) {
                problem!(self.problems, name.span => "no source has the host `{}`", name.value;
                    "{}", suggestion(&name.value, &known).unwrap_or_else(|| "give a source `host: NAME`".to_owned()));
            }
        }
        let devices = network.path.iter().map(|(_, device)| device);
        let pauses = |device: &DutParams| matches!(device.model, DutModel::Switch(switch) if switch.flow_control.is_some());
        if devices.chain([&network.dut]).any(pauses)
            && let Some(at) = spec.place("propagation")
        {
            problem!(self.problems, at => "a device sends pause frames, and hosts at several distances are not modelled with \
                them"; "give `link.propagation` alone");
        }
        let propagation = spec.value.propagation.iter();
        let propagation = propagation.map(|(name, time)| (name.value.clone(), time.value));
        propagation.collect()
    }

    /// The series of a run has a whole number of bins, and no more than fit in memory.
    pub(super) fn measure(&mut self, study: &StudySpec, slices: usize) -> MeasureParams {
        let spec = study.measure.as_ref();
        let measure = spec.map_or_else(MeasureParams::default, |spec| spec.value);
        // A duration that cannot be used has been reported.
        let Some(length) = &study.duration else {
            return measure;
        };
        let at = spec.and_then(|spec| spec.place("bin"));
        let (at, duration) = (at.unwrap_or(length.span), length.value.0);
        if !self.is_whole_bins(at, duration, measure.bin) {
            return measure;
        }
        let bins = duration.nanos() / measure.bin.nanos().max(1);
        if bins.saturating_mul(slices as u64) > MAX_BINS {
            problem!(self.problems, at => "a run would have {bins} bins for each of {slices} slices, more than \
                {MAX_BINS} in all";
                "choose a longer `measure.bin` or a shorter `duration`");
        }
        self.check_queue_lengths(study, duration);
        measure
    }

    fn check_queue_lengths(&mut self, study: &StudySpec, duration: Duration) {
        let measure = study.measure.as_ref();
        let interval = measure.and_then(|measure| measure.value.queue_lengths);
        let at = measure.and_then(|measure| measure.place("queue_lengths"));
        let (Some(interval), Some(at)) = (interval, at) else {
            return;
        };
        if !study.populations.0.is_empty() {
            problem!(self.problems, at => "in a study of `populations` queues are not looked at one by one");
        }
        let looks = duration.nanos() / interval.nanos().max(1);
        if looks > MAX_LOOKS {
            problem!(self.problems, at => "a run would look at the queues {looks} times, more than {MAX_LOOKS}";
                "choose a longer interval");
        }
        if looks == 0 {
            problem!(self.problems, at => "a run of {duration} would not look at the queues once");
        }
    }

    /// Returns true if a run has a whole number of bins; otherwise reports it.
    pub(super) fn is_whole_bins(
        &mut self,
        at: crate::file::Span,
        duration: Duration,
        bin: Duration,
    ) -> bool {
        let is_whole = duration.nanos().is_multiple_of(bin.nanos().max(1));
        if !is_whole {
            problem!(self.problems, at => "the run of {duration} is not a whole number of bins of {bin}";
                "give `duration` a multiple of `measure.bin`");
        }
        is_whole
    }

    /// Margins as written; unless it says otherwise, delay is resolved to the time of one largest frame, or 10 µs if that is longer.
    pub(super) fn margins(
        &mut self,
        spec: Option<&Placed<MarginsSpec>>,
        largest_frame: Duration,
    ) -> Margins {
        let written = spec.cloned().unwrap_or_default();
        let mut margins = written.value.margins;
        let default = largest_frame.max(LEAST_RESOLUTION);
        let resolution = written.value.delay_resolution.unwrap_or(default);
        margins.delay_resolution_ns = resolution.nanos();
        if let Some(at) = written.place("rare_runs")
            && !(margins.rare_runs > 0.0 && margins.rare_runs < 1.0)
        {
            problem!(self.problems, at => "this must be above 0 % and below 100 %: no number of repetitions excludes \
                everything");
        }
        if let Some(at) = written.place("confidence")
            && !(0.5..1.0).contains(&margins.confidence)
        {
            problem!(self.problems, at => "a confidence must be at least 50 % and below 100 %");
        }
        let holds = written.place("reallocation_holds");
        if let Some(at) = holds.or(written.place("reallocation_broken"))
            && margins.reallocation_holds <= margins.reallocation_broken
        {
            problem!(self.problems, at => "reallocation would hold and be broken at once: the fraction from which it \
                holds must be the larger one");
        }
        margins
    }
}
