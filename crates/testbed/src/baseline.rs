//! The idle baseline: delays without competing traffic.
//!
//! Before the load, a few packets of each slice pass the device, far enough apart never to queue behind
//! each other. Their delays are those of the machine: scheduling, timers, captures.

use crate::error::AttemptError;
use crate::hosts::Hosts;
use crate::sender::{Sender, SendingFlow, TimeZero};
use crate::suitability::sending_flow;
use crate::udp_sink::UdpSink;
use slicewise_live::sys::time;
use slicewise_stats::record::RunRecord;
use slicewise_stats::testbed::IdleBaseline;
use slicewise_study::{PatternParams, ScenarioParams, SizesParams, SourceParams, Study};
use slicewise_traffic::Sources;
use slicewise_traffic::application::ApplicationSourceParams;
use slicewise_traffic::scenario::{PacketSize, SourceHeaders};
use slicewise_units::{BitRate, Duration as Span, FrameLengths};
use slicewise_wire::PROTOCOL_UDP;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

/// Duration of the probes.
const LASTS: Span = Span::from_secs(1);
/// Pause for the last probes to arrive and the machine to become idle.
const REST: Duration = Duration::from_millis(100);
/// Most packets over all slices, and the largest share of the link they use.
const PACKETS_MAX: u64 = 500;
const LINK_SHARE: u64 = 10;
/// Payload of probes of applications.
const PROBE_BYTES: u32 = 500;

/// Start of a baseline measurement, and the probes sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Baseline {
    pub(crate) zero: TimeZero,
}

impl Baseline {
    pub(crate) fn measure(
        hosts: &Hosts,
        study: &Study,
        scenario: &ScenarioParams,
        sources: &Sources,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let flows = flows(study, scenario, sources)?;
        let remotes: Vec<SocketAddr> = flows.iter().map(|flow| flow.remote).collect();
        let _udp_sink = UdpSink::bind(Some(hosts.sink()), &remotes)
            .map_err(AttemptError::failed("the sink"))?;
        let sender = Sender::start(Some(hosts.generator()), flows)
            .map_err(AttemptError::failed("the sender"))?;
        let zero = TimeZero::after(Span::from_millis(100));
        sender.start_at(zero);
        let baseline = Self { zero };
        // Until the end of the last bin analysed: the load must not start before.
        let end = zero.monotonic.saturating_add(duration(study.measure.bin));
        while time::now() < end {
            if is_interrupted() {
                return Err(AttemptError::Interrupted);
            }
            thread::sleep(Duration::from_millis(10));
        }
        sender
            .join()
            .map_err(|error| AttemptError::Retryable(error.to_string()))?;
        thread::sleep(REST);
        Ok(baseline)
    }

    /// Its figures from the captures: those of the slice with the largest median.
    pub(crate) fn figures(self, record: &RunRecord) -> IdleBaseline {
        let figures = record.slices.iter().map(|slice| &slice.whole);
        let sent_frames = figures.clone().map(|one| one.sent_frames).sum();
        let longest = figures
            .map(|one| one.delay)
            .filter(|delay| delay.samples > 0)
            .max_by_key(|delay| delay.p50_ns);
        longest.map_or_else(IdleBaseline::default, |delay| IdleBaseline {
            sent_frames,
            samples: delay.samples,
            p50_ns: delay.p50_ns,
            p99_ns: delay.p99_ns,
            max_ns: delay.max_ns,
        })
    }
}

/// Duration of a measurement, in whole bins.
pub(crate) fn duration(bin: Span) -> Span {
    Span::from_nanos(LASTS.nanos().next_multiple_of(bin.nanos().max(1)))
}

/// The probes as flows.
pub(crate) fn flows(
    study: &Study,
    scenario: &ScenarioParams,
    sources: &Sources,
) -> Result<Vec<SendingFlow>, AttemptError> {
    let probes = probes(study, scenario);
    let flows = probes.iter().filter_map(|probe| {
        sending_flow(study, sources, std::slice::from_ref(probe), 0).transpose()
    });
    flows.collect()
}

/// One source per slice, like its first UDP source including ports, so that it gets the same class, but
/// slow and evenly spaced, slices taking turns. Of a slice with applications only, from their ports: it
/// gets their class where that is not of TCP alone.
fn probes(study: &Study, scenario: &ScenarioParams) -> Vec<SourceParams> {
    let of_slice = |index: usize| {
        let mut sources = scenario.sources.iter();
        let is_udp = |source: &&SourceParams| source.headers.protocol == PROTOCOL_UDP;
        let udp = sources.find(|source| source.slice == index && is_udp(source));
        let mut applications = scenario.applications.iter();
        udp.cloned()
            .or_else(|| Some(like(applications.find(|source| source.slice == index)?)))
    };
    let firsts: Vec<SourceParams> = (0..study.slices.len()).filter_map(of_slice).collect();
    let capacity = study.dut.capacity();
    let longest = firsts
        .iter()
        .map(|source| {
            capacity.accounting.count(FrameLengths {
                l2_bytes: source.largest.l2_bytes,
                l3_offset: source.headers.l3_offset(),
            })
        })
        .map(|bytes| bytes.bytes() * 8)
        .max()
        .unwrap_or(1);
    let each = u64::try_from(firsts.len()).unwrap_or(u64::MAX).max(1);
    let packets = (capacity.rate.bits_per_second() / LINK_SHARE / longest.max(1))
        .min(PACKETS_MAX)
        .max(each)
        / each;
    let period = LASTS.nanos() / packets.max(1);
    let probe = |(source, turn): (&SourceParams, u64)| SourceParams {
        // On one clock, or they might overlap.
        machine: 0,
        pattern: PatternParams::Cbr,
        on_off: None,
        sizes: SizesParams::Equal,
        rate: BitRate::new(packets * 8 * u64::from(source.largest.counted_bytes)),
        start: Span::from_nanos(turn * (period / each)),
        stop: LASTS,
        start_spread: Span::ZERO,
        ..source.clone()
    };
    firsts.iter().zip(0u64..).map(probe).collect()
}

/// Datagrams with the addresses of an application.
fn like(source: &ApplicationSourceParams) -> SourceParams {
    let headers = SourceHeaders {
        protocol: PROTOCOL_UDP,
        ..source.headers
    };
    let before = u32::from(headers.l3_offset()) + headers.ip_bytes() + headers.transport_bytes();
    let l2_bytes = before + PROBE_BYTES;
    SourceParams {
        name: source.name.clone(),
        machine: 0,
        host: None,
        slice: source.slice,
        headers,
        largest: PacketSize {
            payload_bytes: PROBE_BYTES,
            l2_bytes,
            counted_bytes: l2_bytes,
        },
        sizes: SizesParams::Equal,
        rate: BitRate::new(0),
        pattern: PatternParams::Cbr,
        on_off: None,
        start: Span::ZERO,
        stop: LASTS,
        start_spread: Span::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A study with this many slices on a link of this rate, with packets of this payload.
    fn study(slices: u16, kbit: u32, payload: u32) -> Study {
        let lines = |line: &dyn Fn(u16) -> String| (1..=slices).map(line).collect::<String>();
        example::parse(&format!(
            "name: probes\nlink: {{rate: 10 Gbit/s}}\ndut: {{model: port, port_rate: {kbit} kbit/s}}\n\
             slices:\n{}sources:\n{}scenarios:\n  one: {{}}\npolicies:\n  none: {{none: true}}\n\
             repetitions: 1\nduration: 1 s\n",
            lines(&|slice| format!("  s{slice}: {{match: {{vlan: {slice}}}, share: 0.1 %}}\n")),
            lines(&|slice| format!(
                "  s{slice}: {{slice: s{slice}, headers: {{vlan: {slice}}}, pattern: cbr, payload: {payload} B, \
                 rate: 100 kbit/s}}\n"
            )),
        ))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn probes_are_few_never_overlap_and_cover_every_slice(
            slices in 1_u16..12,
            kbit in 64_u32..1_000_000,
            payload in 18_u32..1_400,
        ) {
            let study = study(slices, kbit, payload);
            let probes = probes(&study, &study.scenarios[0]);
            prop_assert_eq!(probes.len(), usize::from(slices));
            let packets = |probe: &SourceParams| {
                probe.rate.bits_per_second() / (8 * u64::from(probe.largest.counted_bytes))
            };
            let of_each: BTreeSet<u64> = probes.iter().map(packets).collect();
            prop_assert_eq!(of_each.len(), 1, "as many of each slice");
            let each = *of_each.first().unwrap();
            prop_assert!(each >= 1);
            let all = each * u64::from(slices);
            prop_assert!(all <= PACKETS_MAX);
            let bits = all * 8 * u64::from(probes[0].largest.l2_bytes);
            let tenth = u64::from(kbit) * 1_000 / LINK_SHARE;
            prop_assert!(bits <= tenth || each == 1, "{} of {}", bits, tenth);
            // They never overlap: the gap between two is at least the transmission time of one.
            let mut starts: Vec<u64> = probes.iter().map(|probe| probe.start.nanos()).collect();
            starts.dedup();
            prop_assert_eq!(starts.len(), probes.len());
            let gap = starts.get(1).map_or(LASTS.nanos() / each, |second| second - starts[0]);
            let serialized = 8_000_000 * u64::from(probes[0].largest.l2_bytes) / u64::from(kbit);
            prop_assert!(gap > serialized || each == 1, "{} ns, {} ns", gap, serialized);
        }
    }

    #[test]
    fn more_slices_than_packets_are_probed_once_each() {
        let study = study(600, 1_000_000, 100);
        let probes = probes(&study, &study.scenarios[0]);
        assert_eq!(probes.len(), 600);
        let one_packet = BitRate::new(8 * u64::from(probes[0].largest.counted_bytes));
        assert!(probes.iter().all(|probe| probe.rate == one_packet));
    }

    #[test]
    fn a_slice_without_udp_is_not_probed() {
        let study = example::study();
        let probes = probes(&study, &study.scenarios[0]);
        let names: Vec<&str> = probes.iter().map(|probe| probe.name.as_str()).collect();
        assert_eq!(names, ["voice", "video"], "files are TCP");
        let mut scenario = study.scenarios[0].clone();
        scenario.applications = vec![example::bulk()];
        let probes = super::probes(&study, &scenario);
        assert_eq!(probes.len(), 3);
        let copies = &probes[2];
        assert_eq!(
            (copies.name.as_str(), copies.largest.l2_bytes),
            ("copies", 542)
        );
        assert_eq!(copies.headers.protocol, PROTOCOL_UDP);
    }
}
