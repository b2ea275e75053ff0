//! Sources in GTP-U tunnels: how long their packets are, what tells them apart, and what is refused.

use crate::support::{STUDY, changed, mistakes, parse};
use insta::assert_snapshot;
use slicewise_study::Study;

/// The study in which slice `gold` is told by a TEID.
fn tunnelled(headers: &str) -> String {
    let text = changed("match: {vlan: 10}", "match: {teid: 7}");
    text.replacen("headers: {vlan: 10}", &format!("headers: {headers}"), 1)
}

fn told(text: &str) -> String {
    parse(text).unwrap_err()
}

fn study(headers: &str) -> Study {
    parse(&tunnelled(headers)).unwrap_or_else(|why| panic!("{why}"))
}

fn source<'s>(study: &'s Study, name: &str) -> &'s slicewise_study::SourceParams {
    let mut sources = study.scenarios[0].sources.iter();
    sources.find(|source| source.name == name).unwrap()
}

#[test]
fn a_packet_in_a_tunnel_is_36_bytes_longer() {
    let plain = parse(STUDY).unwrap();
    let inside = study("{teid: 7, vlan: 10}");
    let bytes = |study: &Study| source(study, "steady").largest;
    assert_eq!(bytes(&inside).l2_bytes, bytes(&plain).l2_bytes + 36);
    assert_eq!(bytes(&inside).payload_bytes, bytes(&plain).payload_bytes);
    // The rate counts L2, so that fewer packets are sent.
    assert_eq!(bytes(&inside).counted_bytes, bytes(&inside).l2_bytes);
}

#[test]
fn a_tunnel_has_ends_of_its_own_around_the_addresses_of_the_packet() {
    let text = "{teid: 7, source: \"2001:db8::1\", destination: \"2001:db8::2\", tunnel: {destination: 192.0.2.9}}";
    let study = study(text);
    let headers = source(&study, "steady").headers;
    let outer = headers.outermost();
    assert!(headers.source.is_ipv6());
    assert_eq!(
        (outer.source.to_string(), outer.destination.to_string()),
        ("192.0.2.1".to_owned(), "192.0.2.9".to_owned())
    );
    assert_eq!((outer.protocol, outer.destination_port), (17, 2152));
    assert_eq!(source(&study, "other").headers.tunnel, None);
}

#[test]
fn a_source_has_a_tunnel_of_its_own_in_those_of_its_slice() {
    let text = tunnelled("{teid: 7, tunnel: {source: 192.0.2.7}}");
    let text = text.replace("match: {teid: 7}", "match: {teid: 7-8}");
    let text = text.replace(
        "{slice: gold, pattern: cbr,",
        "{slice: gold, headers: {teid: 8}, pattern: cbr,",
    );
    let study = parse(&text).unwrap();
    let tunnel = source(&study, "steady").headers.tunnel.unwrap();
    assert_eq!(
        (tunnel.teid.get(), tunnel.source.to_string()),
        (8, "192.0.2.7".to_owned())
    );
}

#[test]
fn the_segments_of_an_application_fit_into_the_tunnel() {
    let web = |headers: &str| {
        let text = tunnelled(headers);
        let old = "pattern: cbr, rate: 50 %, payload: 1000 B}";
        let text = text.replacen(old, "application: bulk, transport: {mss: 1424 B}}", 1);
        parse(&text).map(|study| study.scenarios[0].applications[0].headers.ip_bytes())
    };
    assert_eq!(web("{teid: 7}"), Ok(56));
    let larger = tunnelled("{teid: 7}").replacen(
        "pattern: cbr, rate: 50 %, payload: 1000 B}",
        "application: bulk, transport: {mss: 1425 B}}",
        1,
    );
    assert_snapshot!(told(&larger), @"study.yaml:17:61 `1425 B`: an MSS of 1425 B makes IP packets of 1501 B, above the link's MTU of 1500 B; help: these headers leave room for an MSS of 1424 B, or raise `link.mtu`");
}

#[test]
fn tunnels_that_cannot_be_are_refused() {
    // Packets above the MTU.
    assert_snapshot!(told(&tunnelled("{teid: 7}").replace("1000 B", "1437 B")), @"study.yaml:17:60 `1437 B`: a payload of 1437 B makes IP packets of 1501 B, above the link's MTU of 1500 B; help: these headers leave room for a payload of 1436 B, or raise `link.mtu`");
    parse(&tunnelled("{teid: 7}").replace("1000 B", "1436 B")).unwrap();
    // A tunnel without a TEID.
    assert_snapshot!(told(&tunnelled("{tunnel: {source: 192.0.2.7}}")), @"
    study.yaml:11:32 `192.0.2.7`: `tunnel` needs a `teid`, by which its packets are told; help: set `teid` too, in these `headers`, or leave `tunnel` out
    study.yaml:17:19 `gold`: the packets of source `steady` do not match slice `gold`; help: give the source, or the slice, the `headers` that the slice matches on
    ");
    // TEIDs that user packets do not have.
    let teids = ["0", "-1", "1.5", "4294967296", "one"];
    let first_of = |teid| {
        let told = told(&tunnelled(&format!("{{teid: {teid}}}")));
        told.lines().next().unwrap().to_owned()
    };
    assert_snapshot!(teids.map(first_of).join("\n"), @"
    study.yaml:11:21 `0`: TEID 0 is not used by user packets: the smallest is 1
    study.yaml:11:21 `-1`: `-1` is not a whole number from 0 to 4,294,967,295
    study.yaml:11:21 `1.5`: `1.5` is not a whole number from 0 to 4,294,967,295
    study.yaml:11:21 `4294967296`: `4294967296` is not a whole number from 0 to 4,294,967,295
    study.yaml:11:21 `one`: `one` is not a whole number from 0 to 4,294,967,295
    ");
    // An outer address of IPv6.
    assert_snapshot!(told(&tunnelled("{teid: 7, tunnel: {source: \"2001:db8::1\"}}")), @r#"study.yaml:11:41 `"2001:db8::1"`: tunnels go over IPv4, and 2001:db8::1 is an address of IPv6; help: write an address such as 192.0.2.1; the packets inside may be of IPv6"#);
    // A TEID that the slice does not match.
    assert_snapshot!(told(&tunnelled("{teid: 8}")), @"study.yaml:17:19 `gold`: the packets of source `steady` do not match slice `gold`; help: give the source, or the slice, the `headers` that the slice matches on");
    // IMIX has packets shorter than these headers.
    assert_snapshot!(told(&tunnelled("{teid: 7}").replace("payload: 1000 B", "payload: imix")), @"study.yaml:17:60 `imix`: `imix` has IP packets of 40 B, and the headers of this source alone have 64 B; help: write the sizes of the payload and their weights, for example `{64 B: 7, 528 B: 4, 1448 B: 1}`");
    // A device that does not look inside.
    let router = "model: isr4221\n  licence: {rate: 10 Mbit/s, credit: 3 kB}";
    assert_snapshot!(told(&tunnelled("{teid: 7}").replace("model: port", router)), @"study.yaml:8:3 `gold`: packets of slice `gold` are in a tunnel (`headers: {teid: ..}`), and the models `isr4221` and `qos_sched` are of devices that look at the outer packet; help: give `dut: {model: port}`, `switch` or `gateway`, which look into tunnels, or leave `teid` out");
    // Misspelt settings.
    assert_snapshot!(mistakes("headers: {vlan: 10}", "headers: {vlan: 10, tunel: {}}"), @"study.yaml:11:25 `tunel`: `tunel` is not a setting here; help: did you mean `tunnel`?");
}
