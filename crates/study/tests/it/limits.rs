//! What would run without end, or in which nothing would arrive, is refused before it runs.

use crate::support::{STUDY, changed, mistakes, parse, with_application};
use insta::assert_snapshot;
use slicewise_study::{MemoryFiles, Periods, Plan};
use slicewise_units::Duration;

/// Messages about the study with more settings of the source `steady`.
fn steady(settings: &str) -> String {
    mistakes(
        "payload: 1000 B}",
        &format!("payload: 1000 B, {settings}}}"),
    )
}

#[test]
fn phases_are_not_so_short_that_nothing_else_would_happen() {
    assert_snapshot!(steady("on_off: {on_for: 1 ns, off_for: 1 ns}"), @"
    study.yaml:17:85 `1 ns`: a phase of 1 ns is too short: it must last at least 1 µs; help: for a lower rate without pauses, leave `on_off` out
    study.yaml:17:100 `1 ns`: a phase of 1 ns is too short: it must last at least 1 µs; help: for a lower rate without pauses, leave `on_off` out
    ");
}

#[test]
fn a_source_that_pauses_sends_long_enough_to_keep_its_rate() {
    assert_snapshot!(steady("on_off: {on_for: 500 us, off_for: 10 ms}"), @"study.yaml:17:85 `500 us`: at 5 Mbit/s a packet of 1046 B leaves every 1673.6 µs, and each time the source sends it does so for 500 µs only: it could not reach its rate; help: give `on_for` at least 1673.6 µs, or raise `rate`");
}

#[test]
fn a_source_pauses_for_fixed_or_random_times() {
    let periods = |periods: &str| {
        let on_off = format!("payload: 1000 B, on_off: {{on_for: 1 s, off_for: 2 s{periods}}}}}");
        let study = parse(&changed("payload: 1000 B}", &on_off)).unwrap();
        let on_off = study.scenarios[0].sources[0].on_off.unwrap();
        assert_eq!(on_off.off, Duration::from_secs(2));
        on_off.periods
    };
    assert_eq!(periods(""), Periods::Fixed);
    assert_eq!(periods(", periods: exponential"), Periods::Exponential);
    assert_snapshot!(steady("on_off: {on_for: 1 s, off_for: 1 s, periods: poisson}"), @"study.yaml:17:113 `poisson`: `poisson` is not a distribution of periods: known are `fixed`, `exponential`");
}

#[test]
fn random_gaps_may_be_longer_than_a_phase() {
    let text = changed(
        "pattern: poisson, rate: 2 Mbit/s",
        "pattern: poisson, rate: 2 Mbit/s, on_off: {on_for: 500 us, off_for: 10 ms}",
    );
    assert!(parse(&text).is_ok());
}

#[test]
fn a_source_sends_no_more_packets_a_second_than_are_simulated() {
    let text = STUDY.replace("rate: 1 Gbit/s", "rate: 400 Gbit/s").replace(
        "rate: 50 %, payload: 1000 B",
        "rate: 90 Gbit/s, payload: 8 B",
    );
    assert_snapshot!(parse(&text).unwrap_err(), @"study.yaml:17:45 `90 Gbit/s`: 90 Gbit/s in packets of 54 B are 208333333 packets/s: a source may send at most 200000000; help: lower `rate`, or send larger packets (`payload`)");
    // As many of the smallest frames as 100 Gbit/s carry, for a moment.
    let text = text
        .replace(
            "rate: 90 Gbit/s, payload: 8 B",
            "counts: L1, rate: 100 Gbit/s, payload: 14 B",
        )
        .replace("duration: 5 s", "duration: 50 ms");
    assert_eq!(parse(&text).map(|study| study.name), Ok("small".to_owned()));
}

#[test]
fn a_run_has_no_more_packets_than_are_simulated() {
    let text = STUDY
        .replace("link: {rate: 1 Gbit/s}", "link: {rate: 100 Gbit/s}")
        .replace("rate: 50 %", "rate: 50 Gbit/s")
        .replace("duration: 5 s", "duration: 1 h");
    assert_snapshot!(parse(&text).unwrap_err(), @"
    study.yaml:19:3 `calm`: the sources of this scenario send about 21512164603 packets in a run: at most 10000000000 can be simulated; help: shorten `duration`, lower rates, or send larger packets
    study.yaml:22:3 `storm`: the sources of this scenario send about 21526999768 packets in a run: at most 10000000000 can be simulated; help: shorten `duration`, lower rates, or send larger packets
    ");
}

#[test]
fn a_source_sends_more_than_one_packet() {
    assert_snapshot!(mistakes("rate: 50 %", "rate: 50 bit/s"), @"study.yaml:17:45 `50 bit/s`: at 50 bit/s a packet of 1046 B leaves every 167.36 s, and the source sends for 5 s: no second packet would leave; help: raise `rate`, or let the source send for longer");
}

#[test]
fn packets_arrive_within_the_run() {
    assert_snapshot!(mistakes("rate: 1 Gbit/s}", "rate: 1 Gbit/s, propagation: 3 s}"), @"study.yaml:2:37 `3 s`: a packet would take 6 s (two links of 3 s, 0 ns in the device), and none would arrive in a run of 5 s; help: shorten `link.propagation` and `dut.processing_delay`, or give `duration` more than their sum");
    assert_snapshot!(mistakes("model: port", "model: port\n  processing_delay: 1 h"), @"study.yaml:5:21 `1 h`: a packet would take 3600 s (two links of 0 ns, 3600 s in the device), and none would arrive in a run of 5 s; help: shorten `link.propagation` and `dut.processing_delay`, or give `duration` more than their sum");
}

#[test]
fn hosts_wait_for_less_than_the_run() {
    let hosts = "hosts: {timer: 5 s, send_cost: 6 s, interrupt_moderation: 2 h}\nslices:";
    assert_snapshot!(mistakes("slices:", hosts), @"
    study.yaml:6:16 `5 s`: 5 s is not shorter than the run, which takes 5 s; help: choose a shorter time, or a longer `duration`
    study.yaml:6:32 `6 s`: 6 s is not shorter than the run, which takes 5 s; help: choose a shorter time, or a longer `duration`
    study.yaml:6:59 `2 h`: 7200 s is not shorter than the run, which takes 5 s; help: choose a shorter time, or a longer `duration`
    ");
}

#[test]
fn a_random_start_is_before_the_stop() {
    assert_snapshot!(steady("start: 1 s, stop: 3 s, start_spread: 1 h"), @"study.yaml:17:105 `1 h`: the source may start 3600 s after its earliest start at 1 s, when it has stopped already, at 3 s; help: set `start_spread` to at most 2 s");
    assert_snapshot!(steady("start: 1 h"), @"study.yaml:17:75 `1 h`: the source would start at 3600 s and stop at 5 s");
}

#[test]
fn a_plan_has_no_more_tenants_than_can_be_looked_up() {
    let tenants: String = (0..4_097).map(|n| format!("  t{n}: 1\n")).collect();
    let plan = format!("link: 1 Gbit/s\ntenants:\n{tenants}slices: {{voice: {{tenant: t1}}}}\n");
    let message = Plan::parse(&plan, "plan.yaml", &MemoryFiles::new()).unwrap_err();
    assert_eq!(message.count(), 1, "{message}");
    assert!(
        message
            .to_string()
            .contains("there are more than 4096 tenants"),
        "{message}"
    );
}

#[test]
fn priority_that_may_exceed_the_licence_it_borrows_from_is_noted() {
    let notes = |priority: &str, licence: &str| {
        let text = STUDY
            .replace(
                "model: port",
                &format!("model: isr4221\n  licence: {{rate: 9 Mbit/s, credit: 9 kB{licence}}}"),
            )
            .replace(
                "match: {vlan: 20}, queue_limit: 64 packets",
                &format!("match: {{vlan: 20}}, {priority}"),
            );
        parse(&text.replace("share: 4 Mbit/s", "share: 3 Mbit/s"))
            .unwrap()
            .notes()
            .join("\n")
    };
    let borrows = ", priority: borrows";
    assert_snapshot!(notes("priority: {}", borrows), @"policy `weighted`: in scenario storm, priority without a policer is offered up to 20 Mbit/s, more than the licence of 9 Mbit/s that it borrows from: once it owes 200 ms of that it waits, too, and other classes get nothing (`police` the class to leave them something)");
    assert_eq!(notes("priority: {}, police: 3 Mbit/s", borrows), "");
    assert_eq!(notes("priority: {}", ""), "");
    assert_eq!(notes("weight: 1", borrows), "");
}

#[test]
fn an_objective_that_takes_more_packets_than_are_sent_is_noted() {
    let notes = |loss: &str| {
        let stated = format!("share: 4 Mbit/s\n    objective: {{loss: {loss}}}");
        let text = STUDY.replacen("share: 4 Mbit/s", &stated, 1);
        parse(&text).unwrap().notes().join("\n")
    };
    assert_snapshot!(notes("0.001 %"), @"slice `rest`, scenario calm: about 4578 packets are sent in all repetitions; to show that at most 0.001 % of them are lost or late takes 368888 without one that is: run more repetitions, or longer");
    assert_eq!(notes("1 %"), "");
    assert_snapshot!(notes("1 %, availability: 99 % of 70 ms"), @"slice `rest`: a run has 50 intervals of 100 ms; to show its availability takes 369 that all conform: run more repetitions, or longer, or state shorter intervals");
    assert_snapshot!(notes("1 %, availability: 99 % of 1 h"), @"slice `rest`: a run has 0 intervals of 3600 s; to show its availability takes 369 that all conform: run more repetitions, or longer, or state shorter intervals");
}

#[test]
fn a_source_is_divided_into_flows_that_send_its_rate_together() {
    let study = parse(&changed("payload: 1000 B}", "payload: 1000 B, flows: 3}")).unwrap();
    let sources = &study.scenarios[0].sources;
    let flows: Vec<_> = sources
        .iter()
        .filter(|s| s.name.starts_with("steady#"))
        .collect();
    let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["steady#1", "steady#2", "steady#3"]);
    let rates: Vec<u64> = flows
        .iter()
        .map(|flow| flow.rate.bits_per_second())
        .collect();
    assert_eq!(rates, [1_666_667, 1_666_667, 1_666_666]);
    let ports: Vec<u16> = flows.iter().map(|flow| flow.headers.source_port).collect();
    assert_eq!(ports, [49_152, 49_153, 49_154]);
    let machines: std::collections::BTreeSet<u32> = sources.iter().map(|s| s.machine).collect();
    assert_eq!(machines.len(), sources.len());
    // Each starts at a moment of its own within the gap of its own packets.
    assert_eq!(flows[0].start_spread.nanos() / 1_000_000, 5);
    let one = parse(&changed("payload: 1000 B}", "payload: 1000 B, flows: 1}")).unwrap();
    assert_eq!(one.scenarios, parse(STUDY).unwrap().scenarios);
}

#[test]
fn flows_that_cannot_be_are_refused() {
    assert_snapshot!(steady("flows: 0"), @"study.yaml:17:75 `0`: there must be at least one");
    assert_snapshot!(steady("flows: 10001"), @"study.yaml:17:75 `10001`: a source has at most 10000 flows");
    assert_snapshot!(steady("flows: 2, headers: {protocol: icmp}"), @"study.yaml:17:75 `2`: flows of a source differ by their source ports, and its protocol has none; help: give the source `headers: {protocol: udp}`, or leave `flows` out");
    assert_snapshot!(steady("flows: 2, headers: {source_port: 65535}"), @"study.yaml:17:75 `2`: every flow has a source port of its own, and there are not 2 of them from 65535 on; help: give the source a lower `source_port` in its `headers`");
    assert_snapshot!(steady("flows: 10000"), @"study.yaml:17:45 `50 %`: at 500 bit/s a packet of 1046 B leaves every 16.736 s, and the source sends for 5 s: no second packet would leave; help: raise `rate`, or let the source send for longer");
    assert_snapshot!(mistakes("rate: 50 %, payload: 1000 B}", "rate: 3 bit/s, payload: 1000 B, flows: 4}"), @"study.yaml:17:78 `4`: 3 bit/s divided by 4 flows is less than 1 bit/s for each; help: raise `rate`, which is that of all flows together");
    let application = with_application("flows: 7, application: bulk");
    assert_snapshot!(parse(&application).unwrap_err(), @"study.yaml:18:29 `7`: `flows` is of sources with a `pattern`: what this one sends follows from its `application`; help: leave it out");
}
