//! A study for tests: three slices, one with two VLAN tags, one with IPv6 and one with TCP.

use slicewise_study::{
    ApplicationParams, ApplicationSourceParams, BulkParams, CongestionControl, FlowArrivals,
    MemoryFiles, SourceParams, Study, TcpProfile, TransportParams,
};
use slicewise_units::Duration;

const STUDY: &str = "
name: example
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 20 Mbit/s}
slices:
  voice: {match: {vlan: 10}, share: 20 %}
  video: {match: {vlan: 20}, share: 30 %}
  files: {match: {protocol: tcp}, share: 50 %}
sources:
  voice:
    slice: voice
    headers: {vlan: 10, inner_vlan: 7, source: 10.0.10.2, destination: 10.0.10.3, dscp: 46}
    pattern: iperf3
    payload: 172 B
    rate: 1 Mbit/s
    counts: L2
  video:
    slice: video
    headers: {vlan: 20, source: 2001:db8::2, destination: 2001:db8::3}
    pattern: iperf3
    payload: 1200 B
    rate: 2 Mbit/s
    on_off: {on_for: 100 ms, off_for: 100 ms}
  files:
    slice: files
    headers: {source: 10.0.30.2, destination: 10.0.30.3, protocol: tcp, source_port: 40000, destination_port: 80}
    pattern: iperf3
    payload: 1448 B
    rate: 5 Mbit/s
scenarios:
  one: {}
policies:
  none: {none: true}
repetitions: 1
duration: 2500 ms
";

pub(crate) fn study() -> Study {
    parse(STUDY)
}

pub(crate) fn parse(text: &str) -> Study {
    Study::parse(text, "example.yaml", &MemoryFiles::new())
        .unwrap_or_else(|wrong| panic!("{}", wrong.render(false)))
}

/// The sources of its scenario.
pub(crate) fn sources() -> Vec<SourceParams> {
    study().scenarios.swap_remove(0).sources
}

/// Four bulk transfers with Reno, of the source of TCP packets.
pub(crate) fn bulk() -> ApplicationSourceParams {
    let files = sources().swap_remove(2);
    ApplicationSourceParams {
        name: "copies".to_owned(),
        host: None,
        slice: files.slice,
        headers: files.headers,
        transport: TransportParams {
            congestion: CongestionControl::NewReno,
            ..TransportParams::of(TcpProfile::Linux)
        },
        application: ApplicationParams::Bulk(BulkParams {
            flows: 4,
            bytes: None,
            bitrate: None,
            arrivals: FlowArrivals::Staggered(Duration::ZERO),
        }),
        start: Duration::ZERO,
        start_spread: Duration::ZERO,
        stop: Duration::from_millis(2_500),
    }
}

/// Returns the transfers of the source.
pub(crate) fn transfers(source: &ApplicationSourceParams) -> BulkParams {
    match &source.application {
        ApplicationParams::Bulk(bulk) => bulk.clone(),
        _ => panic!("{source:?}"),
    }
}
