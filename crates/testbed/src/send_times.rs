//! When each packet of a run was sent, and its length, so that the simulator can be offered the same packets.

use slicewise_analysis::{PacketFate, PacketSink};
use slicewise_stats::record::RunRecord;
use slicewise_study::ScenarioParams;
use slicewise_traffic::{Recorded, Timeline};
use slicewise_units::Duration;
use slicewise_wire::{Headers, PROTOCOL_UDP};
use std::collections::BTreeMap;

/// Send times of the packets of each source of a scenario.
pub(crate) struct SendTimes {
    sources: Vec<SentBySource>,
    packets: u64,
    /// Packets of applications depend on what became of those before them.
    has_applications: bool,
}

struct SentBySource {
    name: String,
    headers: Headers,
    packets: Vec<Recorded>,
}

impl SendTimes {
    /// Nothing is known yet.
    pub(crate) fn of(scenario: &ScenarioParams) -> Self {
        let sources = scenario.sources.iter();
        Self {
            sources: sources
                .map(|source| SentBySource {
                    name: source.name.clone(),
                    headers: Headers::from(&source.headers),
                    packets: Vec::new(),
                })
                .collect(),
            packets: 0,
            has_applications: !scenario.applications.is_empty(),
        }
    }

    /// By name of the source; `None` if times alone do not describe the traffic: TCP chooses its own
    /// packet sizes and reacts, and some packets of the record may be unattributed or ambiguous.
    pub(crate) fn timelines(self, record: &RunRecord) -> Option<BTreeMap<String, Timeline>> {
        let sent: u64 = (record.slices.iter())
            .map(|slice| slice.whole.sent_frames)
            .sum();
        let is_whole = self.packets == sent;
        let is_udp = |source: &SentBySource| source.headers.protocol == PROTOCOL_UDP;
        if self.has_applications || !is_whole || !self.sources.iter().all(is_udp) {
            return None;
        }
        let sources = self.sources.into_iter();
        Some(
            sources
                .map(|source| (source.name, Timeline::since_start(source.packets)))
                .collect(),
        )
    }
}

impl PacketSink for SendTimes {
    fn on_packet(&mut self, packet: &PacketFate<'_>) -> Result<(), String> {
        let mut sources = self.sources.iter_mut();
        if let Some(source) = sources.find(|source| is_of(packet.headers, &source.headers)) {
            source.packets.push(Recorded {
                at: Duration::from_nanos(packet.sent_ns),
                ip_bytes: packet
                    .l2_bytes
                    .saturating_sub(packet.headers.l3_offset.into()),
            });
            self.packets += 1;
        }
        Ok(())
    }
}

/// Returns true if a packet belongs to the flow of a source, whatever its DSCP and ECN.
fn is_of(packet: &Headers, source: &Headers) -> bool {
    let flow = |headers: &Headers| Headers {
        dscp: 0,
        ecn: Headers::EMPTY.ecn,
        ..*headers
    };
    flow(packet) == flow(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use slicewise_stats::collect::{CollectorParams, RunCollector};
    use slicewise_stats::record::RunKey;

    fn record(sent_frames: u64) -> RunRecord {
        let mut collector = RunCollector::new(CollectorParams {
            slices: vec!["voice".into()],
            duration: Duration::from_secs(1),
            bin: Duration::from_millis(100),
            cycle: Duration::ZERO,
        })
        .unwrap();
        let key = RunKey {
            policy: "p".to_owned(),
            scenario: "s".to_owned(),
            repetition: 0,
            ..RunKey::default()
        };
        let mut record = collector.finish(key, Vec::new());
        record.slices[0].whole.sent_frames = sent_frames;
        record
    }

    fn packet(send_times: &mut SendTimes, headers: &Headers, sent_ns: u64) {
        let fate = PacketFate {
            slice: "voice",
            headers,
            sequence: 0,
            sent_ns,
            received_ns: None,
            l2_bytes: 100,
            received_dscp: None,
        };
        send_times.on_packet(&fate).unwrap();
    }

    fn of_udp() -> ScenarioParams {
        let mut scenario = example::study().scenarios.remove(0);
        scenario
            .sources
            .retain(|source| source.headers.protocol == PROTOCOL_UDP);
        scenario
    }

    #[test]
    fn packets_are_attributed_to_sources_by_addresses_and_ports() {
        let scenario = of_udp();
        let mut send_times = SendTimes::of(&scenario);
        let last = scenario.sources.len() - 1;
        let headers = |index: usize| Headers::from(&scenario.sources[index].headers);
        packet(&mut send_times, &headers(last), 9);
        packet(&mut send_times, &headers(0), 7);
        packet(
            &mut send_times,
            &Headers {
                dscp: 63,
                ..headers(0)
            },
            5,
        );
        packet(
            &mut send_times,
            &Headers {
                source_port: 1,
                ..headers(0)
            },
            6,
        );
        let timelines = send_times.timelines(&record(3)).unwrap();
        let of = |index: usize| &timelines[&scenario.sources[index].name];
        assert_eq!(of(0).packets(), 2);
        assert_eq!(of(0).span(), Duration::from_nanos(7));
        assert_eq!(of(last).packets(), 1);
        assert_eq!(of(last).longest(), 100 - u32::from(headers(last).l3_offset));
    }

    #[test]
    fn unattributed_packets_and_tcp_give_no_send_times() {
        let mut send_times = SendTimes::of(&of_udp());
        packet(&mut send_times, &Headers::EMPTY, 1);
        assert!(send_times.timelines(&record(1)).is_none());
        let with_tcp = SendTimes::of(&example::study().scenarios[0]);
        assert!(with_tcp.timelines(&record(0)).is_none());
        let mut scenario = of_udp();
        scenario.applications.push(example::bulk());
        let with_application = SendTimes::of(&scenario);
        assert!(with_application.timelines(&record(0)).is_none());
    }
}
