//! Requests over an idle path, and how soon they are acknowledged, beside Linux.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::application::TransportFigures;
use slicewise_study::{Backend, RunFilter};

/// One connection, whose client asks each 150 ms, less than a time-out: acknowledgements are not quick for ever.
const WEB: &str = "\
name: acknowledgements
link: {rate: 100 Mbit/s, propagation: 5 ms}
dut: {model: port, port_rate: 100 Mbit/s}
slices:
  web: {match: {vlan: 10}, share: 100 %, headers: {vlan: 10}}
sources:
  web: {slice: web, transport: {profile: linux}, application: {kind: requests, rate: 6.67 /s, connections: 1, response: 2000 B}}
scenarios:
  idle: {reference: true}
policies:
  fifo: {none: true}
repetitions: 1
duration: 9 s
";

fn transport(profile: &str, response: u32) -> TransportFigures {
    let changes = [
        ("profile: linux", format!("profile: {profile}")),
        ("response: 2000 B", format!("response: {response} B")),
    ];
    let changes = changes.each_ref().map(|(from, to)| (*from, to.as_str()));
    let study = changed(WEB, &changes);
    let runs = study.runs(&RunFilter::default()).unwrap();
    let record = Simulator::default().run(&study, &runs[0]).unwrap();
    record.applications[0].transport
}

/// Linux 6.18, two network namespaces 10 ms apart, sixty responses each, on a busy machine: nothing was late, so nothing was probed for.
/// Medians of round-trip times, ms.
const LINUX: [(u32, f64); 7] = [
    (1_000, 21.9),
    (1_448, 20.3),
    (2_000, 20.3),
    (2_896, 21.9),
    (3_500, 26.0),
    (4_344, 21.9),
    (10_000, 20.3),
];

#[test]
fn responses_over_an_idle_path_are_acknowledged_as_soon_as_by_linux_and_nothing_is_sent_again() {
    for (response, linux_ms) in LINUX {
        let figures = transport("linux", response);
        let segments = 60 * u64::from(response.div_ceil(1_448));
        assert_eq!(figures.segments, segments, "{response} B");
        assert_eq!(figures.retransmitted_segments, 0, "{response} B");
        let [mean, longest] = [figures.rtt_mean_ns, figures.rtt_max_ns as f64].map(|ns| ns / 1e6);
        assert!((20.0..21.0).contains(&mean), "{response} B: {mean} ms");
        assert!(longest < 21.0, "{response} B: {longest} ms");
        // The machine's own time is in Linux's figures.
        assert!(mean < linux_ms + 1.0, "{response} B: {mean} ms");
    }
}

/// Linux before 6.6 waits where a response fills its segments, and they are odd in number.
#[test]
fn before_6_6_linux_delays_acknowledgements_of_responses_that_fill_their_segments() {
    let delayed = [1_000, 1_448, 2_000, 2_896, 3_500, 4_344, 10_000].map(|response| {
        let figures = transport("linux-4.15", response);
        figures.rtt_max_ns > 60_000_000
    });
    // After the first response of 1000 B a full segment is that long.
    assert_eq!(delayed, [true, true, false, false, false, true, false]);
}

/// RFC 5681, section 4.2, asks for less, and probes do not wait for it.
#[test]
fn the_tail_of_a_response_is_probed_for_where_the_receiver_follows_the_rfc_alone() {
    let figures = transport("rfc", 2_000);
    assert!(figures.retransmitted_segments >= 59, "{figures:?}");
}
