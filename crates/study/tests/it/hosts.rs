//! The hosts that sources are on.

use crate::support::{STUDY, parse};
use insta::assert_snapshot;
use slicewise_study::{Pacing, Study};

/// The study of the other tests with two sources of 600 Mbit/s, on these hosts, on links of 1 Gbit/s.
fn on(steady: &str, other: &str) -> Result<Study, String> {
    parse(&study_text(steady, other))
}

fn study_text(steady: &str, other: &str) -> String {
    STUDY
        .replace(
            "pattern: cbr, rate: 50 %",
            &format!("pattern: cbr, rate: 600 Mbit/s{steady}"),
        )
        .replace(
            "pattern: poisson, rate: 20 Mbit/s",
            &format!("pattern: cbr, rate: 600 Mbit/s{other}"),
        )
}

#[test]
fn sources_of_two_hosts_send_more_together_than_one_link_carries() {
    let study = on(", host: a", ", host: b").unwrap();
    assert_eq!(study.scenarios[1].hosts(), [Some("a"), Some("b")]);
    // Sources that name none are together on a host of their own.
    let study = on(", host: a", "").unwrap();
    assert_eq!(study.scenarios[1].hosts(), [Some("a"), None]);
}

#[test]
fn what_a_host_sends_is_compared_with_its_own_link() {
    let refused = |steady, other| on(steady, other).unwrap_err();
    assert_snapshot!(refused("", ""), @"study.yaml:22:3 `storm`: the sources of this scenario send up to 1.241 Gbit/s, more than the 1 Gbit/s of the link they send on; help: overload must occur at the device, not before it: give some of them another `host`, or `link` a higher rate than `dut.port_rate`");
    assert_snapshot!(refused(", host: a", ", host: a"), @"study.yaml:22:3 `storm`: the sources on host `a` send up to 1.241 Gbit/s, more than the 1 Gbit/s of the link they send on; help: overload must occur at the device, not before it: give some of them another `host`, or `link` a higher rate than `dut.port_rate`");
    let three = STUDY.replace(
        "sources:\n  steady",
        "sources:\n  third: {slice: rest, pattern: cbr, rate: 10 Mbit/s, payload: 500 B, host: a}\n  steady",
    );
    let three = three.replace("rate: 20 Mbit/s", "rate: 2 Gbit/s");
    assert_snapshot!(parse(&three).unwrap_err(), @"study.yaml:23:3 `storm`: the sources that name no `host` send up to 2.094 Gbit/s, more than the 1 Gbit/s of the link they send on; help: overload must occur at the device, not before it: give some of them another `host`, or `link` a higher rate than `dut.port_rate`");
}

#[test]
fn a_host_has_a_name() {
    assert_snapshot!(on(", host: \"a b\"", ", host: b").unwrap_err(), @r#"study.yaml:17:63 `"a b"`: the name `a b` has an invalid character: letters, digits, `.`, `_` and `-` are allowed"#);
    assert_snapshot!(on(", host: \"\"", ", host: b").unwrap_err(), @r#"study.yaml:17:63 `""`: the name `` is empty"#);
}

#[test]
fn a_source_stays_on_its_host() {
    let timeline = "timeline:\n  settle: 500 ms\n  changes:\n    moved: {at: 2 s, sources: {steady: {host: b}}}\n";
    assert_snapshot!(parse(&format!("{STUDY}{timeline}")).unwrap_err(), @"study.yaml:37:41 `host`: `host` of a source cannot change during a run; help: define another source with a `start` at this moment, and let this one `stop`");
}

#[test]
fn on_real_packets_there_is_one_host() {
    let study = on(", host: a", ", host: b").unwrap();
    let study = study.into_testbed(Pacing::Departures).unwrap();
    assert_eq!(study.scenarios[1].hosts(), [None]);
}

#[test]
fn the_bound_of_a_slice_counts_what_its_own_host_sends() {
    let bound_at = |steady: &str, rest: &str, hosts: &str| {
        let text = STUDY
            .replace("payload: 1000 B", &format!("payload: 1000 B{steady}"))
            .replace("pattern: poisson", "pattern: cbr")
            .replace(
                "    classes:\n",
                "    discipline: guaranteed\n    classes:\n",
            )
            .replace(
                "minimum: 60 %",
                "guarantee: {rate: 6 Mbit/s, burst: 3044 B, delay: 10 ms}",
            )
            .replace(
                "    sources: {other",
                &format!("    sources: {{{rest}other"),
            );
        let study = parse(&format!("{text}\n{hosts}")).unwrap();
        let policies = study.description("test").policies;
        policies[1].delay_bounds.get("gold").map(|b| b.outside_ns)
    };
    let bound = |steady: &str, rest: &str| bound_at(steady, rest, "");
    let alone = bound(", host: a", "").unwrap();
    let shared = bound("", "").unwrap();
    // A frame of 546 B, of 24 B more on the wire.
    assert_eq!(shared - alone, 570 * 8);
    let tcp = "bulk: {slice: rest, headers: {vlan: 20}, application: bulk}, ";
    assert_eq!(bound("", tcp), None);
    assert_eq!(bound(", host: a", tcp), Some(alone));
    // A longer link of its own host, and of another one.
    let far = "hosts: {propagation: {a: 20 ms}}\n";
    assert_eq!(bound_at(", host: a", "", far), Some(alone + 20_000_000));
    let other = "far: {slice: rest, host: b, pattern: cbr, rate: 1 Mbit/s, payload: 500 B}, ";
    let far = "hosts: {propagation: {b: 20 ms}}\n";
    assert_eq!(bound_at(", host: a", other, far), Some(alone));
}

#[test]
fn a_host_may_have_a_link_of_its_own_length() {
    let at = |hosts: &str| {
        let study = on(", host: a", ", host: b").unwrap();
        let text = format!("{}\nhosts: {hosts}\n", study_text(", host: a", ", host: b"));
        parse(&text).inspect(|it| assert_ne!(it.inputs(0, 1, 1), study.inputs(0, 1, 1)))
    };
    let study = at("{propagation: {b: 20 ms}}").unwrap();
    let of = |host| study.propagation_from(host).to_string();
    assert_eq!(
        (of(Some("a")), of(Some("b")), of(None)),
        ("0 ns".into(), "20 ms".into(), "0 ns".into())
    );
    assert_snapshot!(study.into_testbed(Pacing::Departures).unwrap_err().to_string(), @"host `b` has a link of its own length (`hosts.propagation`), and on a testbed one host sends everything: simulate the study, or leave it out in a study that extends this one (`without: [hosts.propagation]`)");
    assert_snapshot!(at("{propagation: {bb: 20 ms}}").unwrap_err(), @"study.yaml:35:23 `bb`: no source has the host `bb`; help: did you mean `b`?");
    assert_snapshot!(at("{propagation: {a: 5 s}}").unwrap_err(), @"study.yaml:35:26 `5 s`: a packet of host `a` would take 5 s, and none would arrive in a run of 5 s; help: give it a shorter link, or `duration` more");
    assert_snapshot!(at("{propagation: 20 ms}").unwrap_err(), @"study.yaml:35:22 `20 ms`: keys with values are expected here");
    let switch = |text: &str| {
        text.replace(
            "model: port",
            "model: switch\n  flow_control: {buffer: 1 MB, high: 500 kB, low: 400 kB}",
        )
    };
    let text = format!(
        "{}\nhosts: {{propagation: {{b: 20 ms}}}}\n",
        study_text(", host: a", ", host: b")
    );
    assert_snapshot!(parse(&switch(&text)).unwrap_err(), @"study.yaml:36:9 `propagation`: a device sends pause frames, and hosts at several distances are not modelled with them; help: give `link.propagation` alone");
}
