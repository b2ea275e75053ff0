use super::*;
use crate::example;
use insta::assert_snapshot;
use slicewise_live::sys::diag::TcpFigures;
use slicewise_study::{
    ApplicationParams, CongestionControl, RequestsParams, ServerParams, TransferSizes,
};
use slicewise_wire::PROTOCOL_UDP;

/// Returns the verdict on a scenario with bulk transfers and requests, where the requests are changed.
fn said(change: impl FnOnce(&mut ApplicationSourceParams)) -> String {
    let mut scenario = example::study().scenarios.swap_remove(0);
    scenario.applications = vec![example::bulk(), requests()];
    change(&mut scenario.applications[1]);
    check(&scenario).map_or_else(|why| why.to_string(), |()| "suitable".to_owned())
}

fn requests() -> ApplicationSourceParams {
    let mut source = example::bulk();
    source.name = "web".to_owned();
    source.headers.source_port = 0;
    source.headers.destination_port = 50_000;
    source.application = ApplicationParams::Requests(RequestsParams {
        per_kilosecond: 1_000,
        connections: 100,
        request_bytes: 100,
        response: TransferSizes::Equal(1_000),
        server: ServerParams::default(),
    });
    source
}

#[test]
fn what_hosts_cannot_do_is_said_before_anything_is_built() {
    assert_snapshot!(said(|_| ()), @"suitable");
    assert_snapshot!(said(|web| web.headers.protocol = PROTOCOL_UDP), @"source web has an application and no TCP");
    assert_snapshot!(said(|web| web.transport.receive_buffer_bytes += 1), @"sources copies and web have different buffers (`transport`): the hosts of a testbed have one setting (`tcp_rmem`, `tcp_wmem`), so give both the same");
    assert_snapshot!(said(|web| *web = example::bulk()), @"sources copies and copies both use port 80 of 10.0.30.3: give one other ports");
    let same_ports = |web: &mut ApplicationSourceParams| {
        *web = example::bulk();
        web.headers.destination_port += 1;
        web.headers.source_port += 3;
    };
    assert_snapshot!(said(same_ports), @"sources copies and copies both use port 40003 of 10.0.30.2: give one other ports");
    if !congestion::is_available(CongestionControl::Dctcp) {
        let dctcp = said(|web| web.transport.congestion = CongestionControl::Dctcp);
        assert_snapshot!(dctcp, @"source web asks for congestion control `dctcp`, which this kernel does not have (`modprobe tcp_dctcp`): use a kernel with it, or another congestion control");
    }
}

#[test]
fn connections_are_told_apart_by_their_ports_at_the_sending_host() {
    let ends = [Ends::of(&example::bulk()), Ends::of(&requests())];
    let owners = |local: &str, remote: &str| -> Vec<bool> {
        let history = History {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            samples: vec![(0, TcpFigures::default())],
            has_ended: false,
        };
        ends.iter().map(|ends| ends.has(&history)).collect()
    };
    let (bulk, web, nobody) = ([true, false], [false, true], [false, false]);
    assert_eq!(owners("10.0.30.2:40000", "10.0.30.3:80"), bulk);
    assert_eq!(owners("10.0.30.2:40003", "10.0.30.3:80"), bulk);
    assert_eq!(owners("10.0.30.2:40004", "10.0.30.3:80"), nobody, "control");
    assert_eq!(owners("10.0.30.2:5201", "10.0.30.3:50099"), web);
    assert_eq!(owners("10.0.30.2:5201", "10.0.30.3:50100"), nobody);
    assert_eq!(
        owners("10.0.30.3:50000", "10.0.30.2:5201"),
        nobody,
        "the other host"
    );
}
