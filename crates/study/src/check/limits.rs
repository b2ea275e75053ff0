//! Refuses studies with a run that would not end, or in which nothing would arrive.

use super::Checker;
use super::StudySpec;
use super::traffic::{Network, SourceSpec};
use crate::file::{Placed, Span};
use crate::params::{OnOffParams, SourceParams};
use crate::problem;
use crate::spec::{At, PatternName};
use slicewise_units::{ByteCount, Duration};

/// Most packets one source sends in a second: a third more than the smallest frames fill
/// 100 Gbit/s with (148.8 million).
const MAX_PACKETS_PER_SECOND: u64 = 200_000_000;
/// Most packets all sources of a scenario send in a run; a simulator that handles some millions
/// of packets a second is at that for the better part of an hour.
const MAX_PACKETS_PER_RUN: u128 = 10_000_000_000;
/// Shortest phase of a source that pauses.
const MIN_PHASE: Duration = Duration::from_micros(1);

const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Checker<'_> {
    /// Nothing takes longer than the run it happens in.
    pub(super) fn check_delays(&mut self, spec: &StudySpec, network: &Network) {
        let duration = network.duration;
        let propagation = spec
            .link
            .as_ref()
            .and_then(|link| link.place("propagation"));
        let processing = spec
            .dut
            .as_ref()
            .and_then(|dut| dut.place("processing_delay"));
        let (each_link, in_device) = (network.link.propagation, network.dut.processing_delay);
        let on_both_links = each_link.nanos().saturating_mul(2);
        let transit = on_both_links.saturating_add(in_device.nanos());
        // The larger part is the one to fix.
        let at = if on_both_links > in_device.nanos() {
            propagation
        } else {
            processing
        };
        if transit >= duration.nanos()
            && let Some(at) = at
        {
            problem!(self.problems, at => "a packet would take {} (two links of {each_link}, {in_device} in the \
                device), and none would arrive in a run of {duration}", Duration::from_nanos(transit);
                "shorten `link.propagation` and `dut.processing_delay`, or give `duration` more than their sum");
        }
        let Some(hosts) = &spec.hosts else { return };
        for (name, time) in hosts.value.propagation.iter() {
            let transit = time
                .value
                .nanos()
                .saturating_add(each_link.nanos())
                .saturating_add(in_device.nanos());
            if transit >= duration.nanos() {
                problem!(self.problems, time.span => "a packet of host `{}` would take {}, and none would arrive in a run of \
                    {duration}", name.value, Duration::from_nanos(transit);
                    "give it a shorter link, or `duration` more");
            }
        }
        let waits = [
            ("timer", network.hosts.timer),
            ("send_cost", network.hosts.send_cost),
            ("interrupt_moderation", network.hosts.interrupt_moderation),
        ];
        for (key, wait) in waits {
            if let Some(at) = hosts.place(key)
                && wait >= duration
            {
                problem!(self.problems, at => "{wait} is not shorter than the run, which takes {duration}";
                    "choose a shorter time, or a longer `duration`");
            }
        }
    }

    /// A source's packets are neither closer together nor further apart than can be meant.
    pub(super) fn check_pace(
        &mut self,
        written: &Placed<SourceSpec>,
        source: &SourceParams,
        pattern: PatternName,
    ) {
        let Some(at) = written.place("rate") else {
            return;
        };
        let rate = source.rate;
        let per_second = source.packets_per_second().unwrap_or(u64::MAX);
        if per_second > MAX_PACKETS_PER_SECOND {
            problem!(self.problems, at => "{rate} in packets of {} B are {per_second} packets/s: a source may send at \
                most {MAX_PACKETS_PER_SECOND}", source.mean_counted_bytes();
                "lower `rate`, or send larger packets (`payload`)");
            return;
        }
        let bytes = source.largest.counted_bytes;
        let Some(gap) = rate.time_to_send(ByteCount::new(u64::from(bytes))) else {
            return;
        };
        if matches!(pattern, PatternName::Poisson | PatternName::Replay) {
            return;
        }
        let sends_for = sends_for(source);
        if gap > sends_for {
            problem!(self.problems, at => "at {rate} a packet of {bytes} B leaves every {gap}, and the source sends \
                for {sends_for}: no second packet would leave";
                "raise `rate`, or let the source send for longer");
        } else if let (Some(on_off), Some(phases)) = (&written.value.on_off, source.on_off)
            && let Some(at) = on_off.place("on_for")
            && phases.on >= MIN_PHASE
            && gap > phases.on
        {
            problem!(self.problems, at => "at {rate} a packet of {bytes} B leaves every {gap}, and each time the \
                source sends it does so for {} only: it could not reach its rate", phases.on;
                "give `on_for` at least {gap}, or raise `rate`");
        }
    }

    /// A phase is long enough to be simulated and short enough to matter.
    pub(super) fn check_phase(&mut self, at: Option<Span>, phase: Duration) {
        if let Some(at) = at
            && phase < MIN_PHASE
        {
            problem!(self.problems, at => "a phase of {phase} is too short: it must last at least {MIN_PHASE}";
                "for a lower rate without pauses, leave `on_off` out");
        }
    }

    /// The random part of a start ends before the source does.
    pub(super) fn check_spread(
        &mut self,
        at: Option<Span>,
        spread: Duration,
        (start, stop): (Duration, Duration),
    ) {
        if let Some(at) = at
            && start < stop
            && start.nanos().saturating_add(spread.nanos()) > stop.nanos()
        {
            problem!(self.problems, at => "the source may start {spread} after its earliest start at {start}, when it has \
                stopped already, at {stop}";
                "set `start_spread` to at most {}", Duration::from_nanos(stop.nanos() - start.nanos()));
        }
    }

    /// All sources together send what can be simulated.
    pub(super) fn check_packets(&mut self, name: &At<String>, sources: &[SourceParams]) {
        let packets = sources
            .iter()
            .map(packets)
            .fold(0u128, u128::saturating_add);
        if packets > MAX_PACKETS_PER_RUN {
            problem!(self.problems, name.span => "the sources of this scenario send about {packets} packets in a run: \
                at most {MAX_PACKETS_PER_RUN} can be simulated";
                "shorten `duration`, lower rates, or send larger packets");
        }
    }
}

fn sends_for(source: &SourceParams) -> Duration {
    Duration::from_nanos(source.stop.nanos().saturating_sub(source.start.nanos()))
}

/// About how many packets a source sends in a run; a capture's own are not known here.
fn packets(source: &SourceParams) -> u128 {
    let span = u128::from(sends_for(source).nanos());
    let (sending, cycles) = match source.on_off {
        Some(OnOffParams { on, off, .. }) => {
            let cycle = u128::from(on.nanos()) + u128::from(off.nanos());
            let cycle = cycle.max(1);
            // Each time it begins anew it sends one packet at once.
            (span * u128::from(on.nanos()) / cycle, span / cycle)
        }
        None => (span, 0),
    };
    let bits = source
        .weighted_sum(|size| u64::from(size.counted_bytes))
        .max(1)
        * 8;
    let rate = u128::from(source.rate.bits_per_second()) * source.weighted_sum(|_| 1);
    rate.saturating_mul(sending) / (bits * NANOS_PER_SECOND) + cycles
}
