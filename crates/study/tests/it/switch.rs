//! The switch as a device under test: queues, buffer, and policies that need more of them.

use crate::support::{STUDY, parse, told};
use insta::assert_snapshot;
use slicewise_study::{DutModel, Study, SwitchParams};
use std::fmt::Write;

/// The study of the other tests on a switch, with these further settings of it.
fn on_switch(settings: &str) -> Result<Study, String> {
    parse(&STUDY.replace("  model: port\n", &format!("  model: switch\n{settings}")))
}

/// The same with a policy of so many classes beside class-default.
fn with_classes(count: usize, settings: &str) -> Result<Study, String> {
    policy_of("", count, settings)
}

fn policy_of(discipline: &str, count: usize, settings: &str) -> Result<Study, String> {
    let mut classes = format!("  many:\n{discipline}    classes:\n");
    for class in 0..count {
        writeln!(
            classes,
            "      - {{name: c{class}, match: {{vlan: {}}}}}",
            class + 100
        )
        .unwrap();
    }
    let text = STUDY.replace("  model: port\n", &format!("  model: switch\n{settings}"));
    parse(&text.replace("  router:\n    ios: router.cfg\n", &classes))
}

#[test]
fn a_switch_has_eight_queues_a_port_and_their_limits_unless_it_says_otherwise() {
    let model = |settings| on_switch(settings).unwrap().dut.model;
    let of = |queues, buffer_packets| {
        DutModel::Switch(SwitchParams {
            queues,
            buffer_packets,
            ..SwitchParams::default()
        })
    };
    assert_eq!(model(""), of(8, None));
    assert_eq!(
        model("  queues: 4\n  buffer: 25_000 packets\n"),
        of(4, Some(25_000))
    );
    assert_eq!(model("  buffer: 1 packet\n"), of(8, Some(1)));
    let described = on_switch("  buffer: 300 packets\n").unwrap();
    assert_snapshot!(described.description("test").dut, @"switch (model), ports of 10 Mbit/s with 8 queues, which share a buffer of 300 packets");
    assert_snapshot!(on_switch("").unwrap().description("test").dut, @"switch (model), ports of 10 Mbit/s with 8 queues");
}

#[test]
fn queues_of_a_switch_have_its_hysteresis_and_can_become_so_much_shorter() {
    let limits = |settings: &str| {
        let study = on_switch(settings).unwrap();
        let classes = study.policies[1].params.classes.iter();
        let limits = classes.map(|class| (class.queue.limit.packets, class.queue.limit.hysteresis));
        limits.collect::<Vec<_>>()
    };
    assert!(limits("").iter().all(|(_, hysteresis)| *hysteresis == 0));
    assert!(
        limits("  hysteresis: 8 packets\n")
            .iter()
            .all(|(_, hysteresis)| *hysteresis == 8)
    );
    // No queue has to be shorter than empty.
    let of_all = limits("  hysteresis: 1000000 packets\n");
    assert!(
        of_all
            .iter()
            .all(|(packets, hysteresis)| *hysteresis == packets - 1)
    );
}

#[test]
fn a_policy_that_needs_more_queues_than_a_port_has_is_refused_at_its_first_class_beyond() {
    assert!(with_classes(7, "").is_ok());
    assert_snapshot!(with_classes(8, "").unwrap_err(), @"study.yaml:30:3 `many`: the policy needs 9 queues, that of class-default included, and a port of the switch has 8: merge classes");
    assert_snapshot!(with_classes(10, "").unwrap_err(), @"study.yaml:40:16 `c8`: the policy needs 11 queues, that of class-default included, and a port of the switch has 8: merge classes");
    assert_snapshot!(with_classes(2, "  queues: 2\n").unwrap_err(), @"
    study.yaml:27:3 `weighted`: the policy needs 3 queues, that of class-default included, and a port of the switch has 2: merge classes
    study.yaml:31:3 `many`: the policy needs 3 queues, that of class-default included, and a port of the switch has 2: merge classes
    ");
}

#[test]
fn queues_that_no_class_uses_are_named_where_there_are_too_many() {
    let queues = "    discipline: deficit_round_robin\n    queues: [{name: used}, {name: spare-1}, {name: spare-2}]\n";
    let refused = policy_of(queues, 7, "").map(drop).unwrap_err();
    let said = "a port of the switch has 8: leave out queues that no class uses (`used`, `spare-1`, `spare-2`)";
    assert!(refused.contains(said), "{refused}");
    let elsewhere = queues.replace("{name: used}, ", "");
    let refused = policy_of(&elsewhere, 7, "").map(drop).unwrap_err();
    assert!(refused.contains("uses (`spare-1`, `spare-2`)"), "{refused}");
}

#[test]
fn classes_of_a_shared_queue_need_one_and_flow_queues_one_for_each_flow() {
    let fifo = policy_of("    discipline: fifo\n", 20, "");
    assert_eq!(fifo.map(drop), Ok(()));
    let text = STUDY.replace("  model: port\n", "  model: switch\n");
    let with = |class: &str| {
        parse(&text.replace("name: gold, slice: gold, minimum: 60 %", class)).map(drop)
    };
    assert_eq!(
        with("name: gold, slice: gold, flow_queue: {flows: 6}"),
        Ok(())
    );
    assert_snapshot!(with("name: gold, slice: gold, flow_queue: {}").unwrap_err(), @"study.yaml:28:16 `gold`: the policy needs 1026 queues, that of class-default included, and a port of the switch has 8: merge classes");
    let child = "name: gold, slice: gold, child: {classes: [{name: x, match: {dscp: ef}}, {name: y, match: {dscp: 0}}]}";
    assert_eq!(with(child), Ok(()));
}

#[test]
fn slices_that_share_queues_are_limited_by_meters_and_others_by_queues() {
    let limit = |class: &str| {
        let policy = format!(
            "  shared:\n    queues: [{{name: high, priority: 1}}, {{name: low}}]\n    classes:\n      - {{name: gold, slice: gold, {class}}}\n      - {{name: class-default, queue: low}}\n"
        );
        let text = STUDY.replace("  model: port\n", "  model: switch\n");
        let text = text.replace("  router:\n    ios: router.cfg\n", &policy);
        let study = parse(&text).unwrap();
        let policies = study.policies.iter();
        let mut shared = policies.filter(|policy| policy.name == "shared");
        shared.next().unwrap().scalability.limited_by.clone()
    };
    let meter =
        "police: {rate: 5 Mbit/s, peak_rate: 8 Mbit/s, exceed: {queue: low}, violate: drop}";
    assert_eq!(limit(&format!("queue: high, {meter}")), "35,840 meters");
    assert_eq!(limit("queue: high"), "8 queues a port");
    assert_eq!(limit("police: {rate: 5 Mbit/s}"), "8 queues a port");
}

#[test]
fn settings_of_a_switch_that_cannot_be_are_refused() {
    let refused = |settings| on_switch(settings).unwrap_err();
    assert_snapshot!(refused("  queues: 0\n"), @"study.yaml:5:11 `0`: there must be at least one");
    assert_snapshot!(refused("  buffer: 0 packets\n"), @"study.yaml:5:11 `0 packets`: there must be room for at least one packet");
    assert_snapshot!(refused("  buffer: 25000\n"), @"study.yaml:5:11 `25000`: `25000` is not a number of packets: write for example `25000 packets`");
    assert_snapshot!(refused("  buffer: 37 MB\n"), @"study.yaml:5:11 `37 MB`: `37 MB` is not a number of packets: write for example `25000 packets`");
    let on_port = STUDY.replace(
        "  model: port\n",
        "  model: port\n  queues: 8\n  buffer: 9 packets\n",
    );
    assert_snapshot!(parse(&on_port).unwrap_err(), @"
    study.yaml:5:11 `8`: `queues` is of the model `switch` alone; help: leave it out, or use the model `switch`
    study.yaml:6:11 `9 packets`: `buffer` is of the model `switch` alone; help: leave it out, or use the model `switch`
    ");
}

#[test]
fn every_device_of_a_path_holds_the_policies_it_is_under() {
    let dut = "dut:\n  model: port\n  port_rate: 10 Mbit/s\n";
    let path = "path: [a, b]\ndevices:\n  a: {model: port, port_rate: 10 Mbit/s}\n  b: {model: switch, queues: 2}\n";
    assert_snapshot!(parse(&STUDY.replace(dut, path)).unwrap_err(), @"study.yaml:27:3 `weighted`: on device `b`: the policy needs 3 queues, that of class-default included, and a port of the switch has 2: merge classes");
}

#[test]
fn queues_save_credit_as_time_at_their_own_rates_where_the_policy_says_nothing() {
    let with = |settings: &str, queue: &str| {
        let classes = format!(
            "  queues:\n    classes:\n      - {{name: q1, match: {{vlan: 30}}, {queue}}}\n"
        );
        let text = STUDY.replace("  model: port\n", &format!("  model: switch\n{settings}"));
        let text = text.replace("  router:\n    ios: router.cfg\n", &classes);
        let study = parse(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let policy = study.policies.iter().find(|policy| policy.name == "queues");
        let class = policy.unwrap().params.classes[0].clone();
        let minimum = class.minimum.map(|(_, burst)| burst.bytes());
        (minimum, class.shape.map(|shaper| shaper.burst.bytes()))
    };
    let rates = "minimum: 800 kbit/s, shape: 1.6 Mbit/s";
    assert_eq!(
        with("  credit: 1 s\n", rates),
        (Some(100_000), Some(200_000))
    );
    assert_eq!(
        with("  credit: 100 ms\n", rates),
        (Some(10_000), Some(20_000))
    );
    let stated = "minimum: 800 kbit/s, shape: {rate: 1.6 Mbit/s, burst: 5 kB}";
    assert_eq!(
        with("  credit: 1 s\n", stated),
        (Some(100_000), Some(5_000))
    );
    // A single frame behind two tags.
    assert_eq!(with("", rates).1, Some(1_522));
}

fn refused(settings: &str) -> String {
    on_switch(settings).expect_err("this should be refused")
}

#[test]
fn marks_in_the_wrong_order_are_refused() {
    assert_snapshot!(refused("  flow_control: {buffer: 20 kB, high: 30 kB, low: 1 kB}\n"), @"study.yaml:5:39 `30 kB`: the high mark of 30 kB is not below the buffer of 20 kB; help: a frame that is not dropped would not pause the sender: lower `high`, or give a larger `buffer`");
    assert_snapshot!(refused("  flow_control: {buffer: 20 kB, high: 10 kB, low: 10 kB}\n"), @"study.yaml:5:51 `10 kB`: the low mark of 10 kB is not below the high mark of 10 kB; help: the sender is paused above `high`, and goes on at `low`");
    assert_snapshot!(refused("  flow_control: {buffer: 20 kB, high: 10 kB}\n"), @"study.yaml:5:3 `flow_control`: `low` is missing");
}

#[test]
fn a_buffer_that_does_not_hold_what_is_on_the_wire_is_warned_of_with_what_may_be_lost() {
    let enough = on_switch("  flow_control: {buffer: 40 kB, high: 20 kB, low: 10 kB}\n");
    assert_eq!(told(enough.unwrap().warnings()), "");
    let short = on_switch("  flow_control: {buffer: 21 kB, high: 20 kB, low: 10 kB}\n");
    assert_snapshot!(told(short.unwrap().warnings()), @"study.yaml:5:39 `20 kB`: warning: up to 4.838 kB arrive before a paused sender stops, and above the high mark there is room for 1 kB: up to 3.838 kB are lost at each pause");
}

#[test]
fn a_buffer_has_room_for_a_frame_and_queues_for_what_the_buffer_keeps() {
    assert_snapshot!(refused("  flow_control: {buffer: 1500 B, high: 1 kB, low: 500 B}\n"), @"study.yaml:5:26 `1500 B`: the buffer of 1.5 kB has no room for a frame of 1518 B; help: nothing of that size would pass: give a larger `buffer`");
    let control = "  flow_control: {buffer: 40 kB, high: 20 kB, low: 10 kB}\n";
    let small = on_switch(&format!("{control}  buffer: 20 packets\n"));
    assert_snapshot!(told(small.unwrap().warnings()), @"
    study.yaml:27:3 `nothing`: warning: all queues together (`dut.buffer`) hold 30.36 kB at most, less than the 40 kB of `flow_control.buffer`: what pause frames would have kept is dropped
    study.yaml:28:3 `weighted`: warning: all queues together (`dut.buffer`) hold 30.36 kB at most, less than the 40 kB of `flow_control.buffer`: what pause frames would have kept is dropped
    study.yaml:32:3 `router`: warning: all queues together (`dut.buffer`) hold 30.36 kB at most, less than the 40 kB of `flow_control.buffer`: what pause frames would have kept is dropped
    ");
    let text = STUDY.replace("  model: port\n", &format!("  model: switch\n{control}"));
    let short = "  short:\n    classes: [{name: gold, slice: gold, queue_limit: 5 packets}]\n";
    let text = text.replace("  router:\n    ios: router.cfg\n", short);
    assert_snapshot!(told(parse(&text).unwrap().warnings()), @"study.yaml:31:3 `short`: warning: queue `gold` holds 7.59 kB at most, less than the 40 kB of `flow_control.buffer`: what pause frames would have kept is dropped");
}

#[test]
fn credit_and_flow_control_are_of_switches_alone() {
    let on_port = STUDY.replace("  model: port\n", "  model: port\n  credit: 1 s\n");
    assert_snapshot!(parse(&on_port).unwrap_err(), @"study.yaml:5:11 `1 s`: `credit` is of the model `switch` alone; help: leave it out, or use the model `switch`");
}
