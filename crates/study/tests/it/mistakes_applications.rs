//! Mistakes in sources with an application.

use crate::support::{changed, parse, told, with_application};
use insta::assert_snapshot;
use slicewise_study::Study;

fn study(source: &str) -> Study {
    parse(&with_application(source)).unwrap()
}

/// Messages about the small study with this source.
fn said(source: &str) -> String {
    parse(&with_application(source)).expect_err("this should be refused")
}

/// What is warned of in it.
fn warned(source: &str) -> String {
    told(study(source).warnings())
}

#[test]
fn an_application_excludes_a_pattern_and_its_settings() {
    assert_snapshot!(said("application: bulk, pattern: cbr, rate: 1 Mbit/s"), @"study.yaml:18:50 `cbr`: a source has a `pattern` or an `application`, not both; help: in a scenario, `without` leaves out a source that all scenarios have");
    assert_snapshot!(said("application: bulk, payload: 500 B"), @"study.yaml:18:50 `500 B`: `payload` is of sources with a `pattern`: what this one sends follows from its `application`; help: leave it out");
    assert_snapshot!(said("application: bulk, pcap: video.pcap"), @"study.yaml:18:47 `video.pcap`: `pcap` is of sources with a `pattern`: what this one sends follows from its `application`; help: leave it out");
    assert_snapshot!(said("transport: tcp, pattern: cbr, payload: 500 B, rate: 1 Mbit/s"), @"study.yaml:18:33 `tcp`: a `transport` is that of an `application`, and this source has none: its packets leave when `pattern` says");
}

#[test]
fn an_application_runs_over_tcp() {
    assert_snapshot!(said("application: bulk, headers: {protocol: udp}"), @"study.yaml:18:61 `udp`: the application of source `app` runs over TCP, and these packets have another protocol; help: give the source `headers: {protocol: tcp}`, or leave `protocol` out");
    assert_snapshot!(said("application: bulk, headers: {ecn: ect0}"), @"study.yaml:18:41 `headers`: whether packets of an application are ECN-capable is up to its transport; help: leave `ecn` out of `headers`, and give the source `transport: {ecn: yes}`");
    assert_snapshot!(said("application: bulk, transport: quic"), @"study.yaml:18:52 `quic`: `quic` is not a transport that is modelled: known are `tcp`");
}

#[test]
fn a_kind_has_its_own_settings() {
    assert_snapshot!(said("application: {flows: 10}"), @"study.yaml:18:22 `application`: `kind` is missing: is it `bulk`, `requests`, `short_flows` or `video`?");
    assert_snapshot!(said("application: {kind: video, flows: 10, ladder: [1 Mbit/s]}"), @"study.yaml:18:56 `10`: `flows` is no setting of `kind: video`; help: it has clients, ladder, segment, buffer, rule, stagger, service_time, workers");
    assert_snapshot!(said("application: bluk"), @"study.yaml:18:35 `bluk`: `bluk` is not an application: did you mean `bulk`?");
}

#[test]
fn what_is_asked_for_and_how_often_has_to_be_said() {
    assert_snapshot!(said("application: requests"), @"
    study.yaml:18:35 `requests`: `response` is missing: how large is a response?
    study.yaml:18:35 `requests`: `rate` is missing: how many requests are due, for example `1000 /s`?
    ");
    assert_snapshot!(said("application: {kind: requests, rate: 1000, response: 1 kB}"), @"study.yaml:18:58 `1000`: `1000` is not a rate of events: write for example `1000 /s`");
    assert_snapshot!(said("application: {kind: requests, rate: 0 /s, response: 1 kB}"), @"study.yaml:18:58 `0 /s`: a rate of zero: nothing would happen");
    assert_snapshot!(said("application: {kind: requests, rate: 99000000 /s, response: 1 kB}"), @"study.yaml:18:58 `99000000 /s`: at most 10000000 /s can be simulated");
}

#[test]
fn a_segment_fits_in_buffers_and_packets() {
    assert_snapshot!(said("application: bulk, transport: {receive_buffer: 1 kB}"), @"study.yaml:18:69 `1 kB`: a buffer of 1000 B does not hold one segment, which has 1448 B of data: nothing would be sent; help: give it room for several segments, or leave it out");
    assert_snapshot!(said("application: bulk, transport: {send_buffer: 2 GiB}"), @"study.yaml:18:66 `2 GiB`: a buffer of 2147483648 B is above 1 GiB, the largest window of TCP");
    assert_snapshot!(said("application: bulk, transport: {mss: 1461 B}"), @"study.yaml:18:58 `1461 B`: an MSS of 1461 B makes IP packets of 1501 B, above the link's MTU of 1500 B; help: these headers leave room for an MSS of 1460 B, or raise `link.mtu`");
    assert_snapshot!(said("application: bulk, transport: {mss: 20 B}"), @"study.yaml:18:58 `20 B`: IP packets of at most 60 B leave a segment 8 B of data behind 52 B of headers: it takes 16 B at least; help: raise `mss`, or `link.mtu`");
}

#[test]
fn there_are_connections_and_not_too_many() {
    assert_snapshot!(said("application: {kind: bulk, flows: 0}"), @"study.yaml:18:55 `0`: there must be at least one");
    assert_snapshot!(said("application: {kind: bulk, flows: 1000000}"), @"study.yaml:18:55 `1000000`: with 1000000 flows of this source, the applications of the scenario have more than 16000 connections; help: 16000 are left for it: lower `flows`");
    let two = with_application("application: {kind: bulk, flows: 10000}").replace(
        "scenarios:\n",
        "  more: {slice: rest, application: {kind: video, clients: 6001, ladder: [1 kbit/s]}}\nscenarios:\n",
    );
    assert_snapshot!(parse(&two).unwrap_err(), @"study.yaml:19:59 `6001`: with 6001 clients of this source, the applications of the scenario have more than 16000 connections; help: 6000 are left for it: lower `clients`");
    assert_snapshot!(said("application: {kind: bulk, flows: 10000}, headers: {source_port: 60000}"), @"study.yaml:18:22 `application`: every connection has a port of its own, and there are not 10000 of them from 60000 on; help: give the source a lower `source_port` in its `headers`");
}

#[test]
fn every_connection_belongs_to_the_slice() {
    let text = changed("match: {vlan: 20}\n", "match: {source_port: 49152-49155}\n");
    let text = text.replace(
        "scenarios:\n",
        "  app: {slice: rest, application: {kind: bulk, flows: 5}}\nscenarios:\n",
    );
    assert_snapshot!(parse(&text).unwrap_err(), @"study.yaml:18:16 `rest`: the packets of source `app` do not match slice `rest`; help: give the source, or the slice, the `headers` that the slice matches on");
    parse(&text.replace("flows: 5", "flows: 4")).unwrap();
}

#[test]
fn a_response_has_bytes_and_can_be_complete() {
    assert_snapshot!(said("application: {kind: short_flows, response: 0 B}"), @"study.yaml:18:65 `0 B`: a size of zero: nothing would be sent");
    assert_snapshot!(said("application: {kind: short_flows, response: {1 kB: 1, 0 B: 1}}"), @"study.yaml:18:75 `0 B`: a size of zero: nothing would be sent");
    assert_snapshot!(said("application: {kind: short_flows, response: 1000 GB}"), @"study.yaml:18:65 `1000 GB`: a response of 1000 GB takes 800000 s at the 10 Mbit/s that the device forwards, and the source lasts 5 s: it would not be complete; help: choose a smaller size, or let the source last longer");
    assert_snapshot!(said("application: {kind: short_flows, response: {exponential: 10 MB}}"), @"study.yaml:18:55 `response`: a mean response of 10 MB takes 8 s at the 10 Mbit/s that the device forwards, and the source lasts 5 s: it would not be complete; help: choose a smaller size, or let the source last longer");
    assert_snapshot!(said("application: {kind: bulk, bytes: 10 MB}, stop: 1 s"), @"study.yaml:18:55 `10 MB`: a transfer of 10 MB takes 8 s at the 10 Mbit/s that the device forwards, and the source lasts 1 s: it would not be complete; help: choose a smaller size, or let the source last longer");
}

#[test]
fn a_ladder_goes_up() {
    assert_snapshot!(said("application: video"), @"study.yaml:18:35 `video`: `ladder` is missing: which bit rates is the video offered in?");
    assert_snapshot!(said("application: {kind: video, ladder: []}"), @"study.yaml:18:49 `ladder`: a ladder without a bit rate: there is nothing to play");
    assert_snapshot!(said("application: {kind: video, ladder: [2 Mbit/s, 1 Mbit/s]}"), @"study.yaml:18:68 `1 Mbit/s`: 1 Mbit/s is not above 2 Mbit/s, the quality before it: a ladder goes from the lowest bit rate to the highest");
    assert_snapshot!(said("application: {kind: video, ladder: [1 Mbit/s], buffer: 2 s}"), @"study.yaml:18:77 `2 s`: a buffer of 2 s does not hold a segment of 4 s");
    assert_snapshot!(said("application: {kind: video, ladder: [100 Mbit/s]}"), @"study.yaml:18:22 `application`: a segment of the lowest quality of 50 MB takes 40 s at the 10 Mbit/s that the device forwards, and the source lasts 5 s: it would not be complete; help: choose a smaller size, or let the source last longer");
}

#[test]
fn a_server_slower_than_what_it_is_asked_for_is_warned_of() {
    assert_snapshot!(warned("application: {kind: requests, rate: 100 /s, response: 1 kB, service_time: 30 ms, workers: 2}"), @"study.yaml:18:58 `100 /s`: warning: 100 requests/s are due, and with 2 workers that each take 30 ms for one, the server manages 66.666: latency grows for as long as the source lasts");
    assert_snapshot!(warned("application: {kind: requests, rate: 100 /s, response: 1 kB, service_time: 30 ms, connections: 2}"), @"study.yaml:18:58 `100 /s`: warning: 100 requests/s are due, and with 2 connections that each take 30 ms for one, the client manages 66.666: latency grows for as long as the source lasts");
    assert_eq!(
        warned(
            "application: {kind: requests, rate: 66 /s, response: 1 kB, service_time: 30 ms, workers: 2}"
        ),
        ""
    );
}

#[test]
fn a_transport_that_answers_to_marks_is_warned_of_where_no_queue_marks() {
    assert_snapshot!(warned("application: bulk, transport: {ecn: yes}"), @"study.yaml:18:41 `transport`: warning: no queue of this study marks packets (`flow_queue: {}` does): this transport has losses alone to answer to");
    let study = study("application: bulk, transport: {congestion: dctcp}");
    assert_eq!(study.warnings().count(), 1);
    assert_snapshot!(study.description("test").assumptions.join("\n"), @"No queue marks packets, so transports with ECN have losses alone to answer to.");
    let text = with_application("application: bulk, transport: {ecn: yes}");
    for (queue, warnings) in [
        ("flow_queue: {ecn: true}", 0),
        // It marks by default.
        ("flow_queue: {}", 0),
        (
            "child: {classes: [{name: a, match: {}, flow_queue: {}}]}",
            0,
        ),
        ("flow_queue: {ecn: no}", 1),
        ("queue_limit: 64 packets", 1),
    ] {
        let marking = text.replace("minimum: 60 %}", &format!("minimum: 60 %, {queue}}}"));
        let study = parse(&marking).unwrap();
        assert_eq!(study.warnings().count(), warnings, "{queue}");
        let stated = study.description("test").assumptions.len();
        assert_eq!(stated, warnings, "{queue}");
    }
    assert_snapshot!(said("application: bulk, transport: {congestion: bbr, ecn: yes}"), @"study.yaml:18:75 `yes`: BBR does not answer to marks (draft-ietf-ccwg-bbr), and packets that are ECN-capable must be of a sender that does; help: leave `ecn` out, or choose another `congestion`");
    assert_snapshot!(said("application: bulk, transport: {congestion: dctcp, ecn: no}"), @"study.yaml:18:77 `no`: DCTCP answers to marks, and without ECN nothing is marked; help: leave `ecn` out, or choose another `congestion`");
    assert_snapshot!(said("application: bulk, transport: {congestion: prague, ecn: no}"), @"study.yaml:18:78 `no`: TCP Prague answers to marks, and without ECN nothing is marked; help: leave `ecn` out, or choose another `congestion`");
}

#[test]
fn an_application_starts_before_it_stops() {
    assert_snapshot!(said("application: bulk, start: 3 s, stop: 3 s"), @"study.yaml:18:48 `3 s`: the source would start at 3 s and stop at 3 s");
}

#[test]
fn flows_that_arrive_at_random_have_a_size_and_nothing_else_says_when_they_begin() {
    assert_snapshot!(said("application: {kind: bulk, arrivals: 10 /s}"), @"study.yaml:18:58 `10 /s`: flows that arrive and never end are ever more: how much does each transfer?; help: give `bytes`, such as `100 kB` or `{exponential: 100 kB}`");
    assert_snapshot!(said("application: {kind: bulk, arrivals: 10 /s, bytes: 1 kB, flows: 3, stagger: 1 s}"), @"
    study.yaml:18:85 `3`: `flows` is of a given number of flows, and `arrivals` of flows that begin at random: leave out one of them
    study.yaml:18:97 `1 s`: `stagger` is of a given number of flows, and `arrivals` of flows that begin at random: leave out one of them
    ");
    assert_snapshot!(said("application: {kind: bulk, arrivals: 10000 /s, bytes: 100 B}"), @"study.yaml:18:58 `10000 /s`: with 51354 flows that arrive of this source, the applications of the scenario have more than 16000 connections; help: 16000 are left for it: lower `arrivals`");
    assert_snapshot!(said("start: 0 s, application: {kind: bulk, arrivals: 10000000 /s, bytes: 100 B}"), @"study.yaml:18:70 `10000000 /s`: with 50042442 flows that arrive of this source, the applications of the scenario have more than 16000 connections; help: 16000 are left for it: lower `arrivals`");
    assert_snapshot!(said("application: {kind: bulk, arrivals: 10, bytes: 1 kB}"), @"study.yaml:18:58 `10`: `10` is not a rate of events: write for example `1000 /s`");
    assert_snapshot!(said("application: {kind: bulk, bytes: {1 kB: 0}}"), @"study.yaml:18:48 `bytes`: no size has a weight: nothing would be sent");
    assert_snapshot!(said("application: {kind: bulk, bytes: {exponential: 100 MB}}"), @"study.yaml:18:48 `bytes`: a mean transfer of 100 MB takes 80 s at the 10 Mbit/s that the device forwards, and the source lasts 5 s: it would not be complete; help: choose a smaller size, or let the source last longer");
    assert_snapshot!(warned("application: {kind: bulk, arrivals: 130 /s, bytes: {exponential: 10 kB}}"), @"study.yaml:18:58 `130 /s`: warning: flows of 10.4 Mbit/s arrive, and the device forwards 10 Mbit/s: there are more and more of them for as long as the source lasts");
}
