//! Configurations of gateways: what is understood, and how mistakes are reported.

use crate::support::told;
use proptest::prelude::*;
use slicewise_study::{GatewayConfig, GatewayPacketIo, MemoryFiles};
use slicewise_units::{BitRate, Layer};

const GOOD: &str = "\
interfaces: [left, right]
link: 35 Mbit/s
slices:
  critical:
    match: {vlan: 10}
policy:
  classes:
    - name: critical
      slice: critical
      priority: {}
";

fn parse(text: &str) -> Result<GatewayConfig, String> {
    GatewayConfig::parse(text, "gateway.yaml", &MemoryFiles::default())
        .map_err(|mistakes| told(&mistakes))
}

fn classes_of(config: &GatewayConfig, direction: usize) -> Vec<&str> {
    let classes = config.directions[direction].policy.classes.iter();
    classes.map(|class| class.name.as_str()).collect()
}

#[test]
fn both_directions_are_alike_unless_something_else_is_said() {
    let config = parse(GOOD).unwrap();
    assert_eq!(config.interfaces, ["left", "right"]);
    assert_eq!(config.directions[0], config.directions[1]);
    let link = config.directions[0].link;
    assert_eq!(link.rate, BitRate::new(35_000_000));
    assert_eq!(link.accounting.layer, Layer::L1);
    assert_eq!(config.packet_io, GatewayPacketIo::Auto);
    assert_eq!(config.metrics_port, Some(9640));
}

#[test]
fn percentages_are_of_the_rate_of_their_direction() {
    let text = GOOD.replace("priority: {}", "shape: 50 %") + "backward: {link: 10 Mbit/s}\n";
    let config = parse(&text).unwrap();
    let shaped = |direction: usize| {
        let shape = config.directions[direction].policy.classes[1].shape;
        shape.unwrap().rate.rate.bits_per_second()
    };
    assert_eq!((shaped(0), shaped(1)), (17_500_000, 5_000_000));
}

#[test]
fn the_way_back_can_have_a_policy_of_its_own() {
    let text = format!("{GOOD}backward:\n  policy: {{none: true}}\nmetrics_port: 0\n");
    let config = parse(&text).unwrap();
    assert_eq!(classes_of(&config, 1), ["network-control", "class-default"]);
    assert_eq!(config.directions[1].link, config.directions[0].link);
    assert_eq!(config.metrics_port, None);
}

#[test]
fn ios_text_is_a_policy_too() {
    let files = MemoryFiles::new().with(
        "priority.cfg",
        "class-map match-all critical\n match vlan 10\npolicy-map p\n class critical\n  priority\n",
    );
    let text =
        "interfaces: [a, b]\nlink: {rate: 1 Gbit/s, counts: L2}\npolicy: {ios: priority.cfg}\n";
    let config = GatewayConfig::parse(text, "gateway.yaml", &files).unwrap();
    assert!(config.directions[0].policy.classes[0].priority.is_some());
}

#[test]
fn mistakes_are_told_at_their_places() {
    let text = GOOD
        .replace("[left, right]", "[left, left]")
        .replace("slice: critical", "slice: critcal")
        .replace("35 Mbit/s", "35 Mbps");
    insta::assert_snapshot!(parse(&text).unwrap_err(), @"
    gateway.yaml:1:1 `interfaces`: a gateway forwards between two interfaces, but both are the same
    gateway.yaml:2:7 `35 Mbps`: `Mbps` is not a unit of a rate: did you mean `Mbit/s`?
    gateway.yaml:9:14 `critcal`: there is no slice `critcal`; help: did you mean `critical`?
    ");
}

#[test]
fn what_is_missing_or_not_for_a_gateway_is_told() {
    let text = "interfaces: [left, a/b]\nduration: 1 s\npolicy:\n  none: true\n  published: {isolation: \
                yes, reallocation: yes, scalability: 2}\n";
    insta::assert_snapshot!(
        parse(text).unwrap_err(),
        @"
    gateway.yaml:1:1 `i`: `link` is missing
    gateway.yaml:1:20 `a/b`: `a/b` is not an interface name: Linux allows 1 to 15 letters, digits and punctuation marks except `/` and `:`
    gateway.yaml:2:1 `duration`: `duration` is not a setting here; help: known are `interfaces`, `link`, `policy`, `backward`, `slices`, `network_control`, `packet_io`, `memory`, `metrics_port`, `controller`
    gateway.yaml:5:3 `published`: `published` is for policies of a study
    "
    );
}

/// Two classes that fit with longer delays than their defaults, in either order.
#[test]
fn a_guarantee_that_states_no_delay_gets_one_that_fits_and_the_check_says_which() {
    let config = |order: [&str; 2]| {
        let class = |name: &str| match name {
            "first" => {
                "    - {name: first, match: {vlan: 1}, guarantee: {rate: 10 Mbit/s, burst: 250 kB}}\n"
            }
            _ => {
                "    - {name: other, match: {vlan: 2}, guarantee: {rate: 24 Mbit/s, burst: 60 kB}}\n"
            }
        };
        let policy = "policy:\n  discipline: guaranteed\n  guaranteed: {counts: L1}\n  classes:\n";
        let text = format!("interfaces: [left, right]\nlink: 35 Mbit/s\n{policy}");
        parse(&(text + &order.map(class).concat())).unwrap()
    };
    let forward = config(["first", "other"]);
    insta::assert_snapshot!(told(&forward.warnings), @"
    gateway.yaml:3:1 `policy`: warning: class `first`: delay of 134.3 ms (none is stated: the smallest that fits, instead of the default of 97.42 ms)
    gateway.yaml:3:1 `policy`: warning: class `other`: delay of 43.37 ms (none is stated: the smallest that fits, instead of the default of 17.23 ms)
    ");
    let delays = |config: &GatewayConfig| {
        let classes = config.directions[0].policy.classes.iter();
        let delay = |name: &str| {
            let mut named = classes.clone().filter(|class| class.name == name);
            named
                .next()?
                .slice?
                .guarantee
                .map(|guarantee| guarantee.delay)
        };
        [delay("first").unwrap(), delay("other").unwrap()]
    };
    assert_eq!(delays(&forward), delays(&config(["other", "first"])));
}

#[test]
fn a_guarantee_that_cannot_be_kept_is_told() {
    let text = GOOD.replace(
        "priority: {}",
        "guarantee: {rate: 34 Mbit/s, burst: 60 kB, delay: 1 ms}",
    );
    let text = text.replace("  classes:", "  discipline: guaranteed\n  classes:");
    insta::assert_snapshot!(parse(&text).unwrap_err(), @"gateway.yaml:11:7 `guarantee`: class `critical`, guarantee: guarantees 34 Mbit/s (L2), in small frames 47.6 Mbit/s (L1), but only 35 Mbit/s (L1) of the link is free: write `counts: L1` for all guarantees of the link");
}

#[test]
fn a_whole_configuration_of_a_router_is_taken_with_a_warning() {
    let (settings, _) = GOOD.split_once("policy:").unwrap();
    let text = format!(
        "{settings}policy:\n  ios: |\n    hostname edge\n    policy-map UPLINK\n     class class-default\n      \
         fair-queue\n    interface GigabitEthernet0\n     service-policy output UPLINK\n"
    );
    let config = parse(&text).unwrap();
    let warnings = told(&config.warnings);
    assert!(
        warnings.contains("skipped 2 lines: hostname, interface"),
        "{warnings}"
    );
    assert_eq!(parse(GOOD).unwrap().warnings.count(), 0);
}

const LENT: &str = "\
interfaces: [left, right]
link: 35 Mbit/s
policy:
  classes:
    - {name: critical, match: {vlan: 10}}
    - {name: rest, match: {vlan: 20}, shape: 50 %, queue_limit: 10 ms}
  reallocate:
    every: 100 ms
    classes:
      critical: {guarantee: 50 %}
      rest: {guarantee: 50 %, minimum: 50 %}
";

#[test]
fn a_loop_sets_rates_of_both_directions() {
    let config = parse(&format!("{LENT}backward: {{link: 10 Mbit/s}}\n")).unwrap();
    let rates = config.directions.map(|direction| {
        let looped = direction.reallocated.unwrap();
        let rates = [1_000_000, 9_000_000].map(BitRate::new);
        let policy = looped.params.apply(&looped.spec, &rates);
        let policy = policy.resolve_for(direction.link.into()).unwrap();
        let mut classes = policy.classes.iter();
        // The class for ARP and the like stays.
        assert_eq!(classes.next().unwrap().name, "network-control");
        let rest = classes.find(|class| class.name == "rest").unwrap();
        (looped.params.rate, rest.shape.unwrap().rate.rate)
    });
    let [whole, slow, set] = [35_000_000, 10_000_000, 9_000_000].map(BitRate::new);
    assert_eq!(rates, [(whole, set), (slow, set)]);
    assert_eq!(parse(GOOD).unwrap().directions[0].reallocated, None);
}

#[test]
fn what_is_wrong_with_a_loop_is_told_at_its_place() {
    let wrong = |from: &str, to: &str| {
        assert!(LENT.contains(from), "{from}");
        parse(&LENT.replacen(from, to, 1)).unwrap_err()
    };
    insta::assert_snapshot!(wrong("100 ms", "5 ms"), @"gateway.yaml:8:12 `5 ms`: every: is 5 ms: at least 10 ms on a gateway, whose loop shares the processor with others");
    insta::assert_snapshot!(wrong("      critical: {", "      critcal: {"), @"gateway.yaml:10:7 `critcal`: there is no class `critcal` in this policy; help: did you mean `critical`?");
    insta::assert_snapshot!(wrong("shape: 50 %, queue_limit: 10 ms", "weight: 3"), @"gateway.yaml:9:5 `classes`: no class of the loop has a rate that it could set: give one of them `shape` or `police`");
    let controller = "  url: http://127.0.0.1:9650\n  name: e\n  link: u\n  state: s\n";
    insta::assert_snapshot!(wrong("policy:", &format!("controller:\n{controller}policy:")), @"gateway.yaml:12:3 `reallocate`: a loop would set rates beside slices of the controller; help: leave out `reallocate` or `controller`");
    let back = "backward: {policy: {discipline: guaranteed, classes: []}}\npolicy:";
    insta::assert_snapshot!(wrong("policy:", back), @"gateway.yaml:8:3 `reallocate`: each decision of the loop commits the policies of both directions, and the other one is `guaranteed`, whose delay bounds hold from the next busy period after a commit; help: leave `reallocate` out");
}

const CONTROLLED: &str = "\
interfaces: [left, right]
link: 35 Mbit/s
policy: {discipline: guaranteed, classes: []}
controller:
  url: http://127.0.0.1:9650
  name: edge-1
  link: uplink
  state: slices.state
";

/// A configuration with so many slices, as classes that refer to them by these names; each has about 15 values.
fn of_many_slices(count: u32, name: impl Fn(u32) -> String) -> String {
    let numbers = || 0..count;
    let slices: String = numbers()
        .map(|n| {
            format!(
                "  s{n}: {{match: {{destination: 10.0.{}.{}}}}}\n",
                n >> 8,
                n & 255
            )
        })
        .collect();
    let guarantee = "{rate: 10 kbit/s, burst: 1522 B, delay: 100 ms}";
    let classes: String = numbers()
        .map(|n| {
            format!(
                "    - {{name: c{n}, slice: {}, guarantee: {guarantee}}}\n",
                name(n)
            )
        })
        .collect();
    format!(
        "interfaces: [left, right]\nlink: 10 Gbit/s\nslices:\n{slices}policy:\n  discipline: guaranteed\n  classes:\n{classes}"
    )
}

#[test]
fn a_file_may_have_tens_of_thousands_of_slices() {
    let config = parse(&of_many_slices(16_000, |n| format!("s{n}"))).unwrap();
    let with_default_and_control = 16_000 + 2;
    assert_eq!(
        config.directions[1].policy.classes.len(),
        with_default_and_control
    );
}

#[test]
fn each_slice_that_is_missing_is_counted_where_many_are() {
    let refused = parse(&of_many_slices(3_000, |n| format!("t{n}"))).unwrap_err();
    assert!(refused.contains("did you mean `s49`?"), "{refused}");
    assert!(refused.contains("… and 2950 more"), "{refused}");
}

#[test]
fn slices_that_cannot_be_read_are_not_missing_where_many_cannot() {
    let text = of_many_slices(200, |n| format!("s{n}"));
    let text = text.replace(": {match: {", ": nonsense # ");
    let refused = parse(&text).unwrap_err();
    assert!(!refused.contains("there is no slice"), "{refused}");
    assert!(refused.contains("… and 150 more"), "{refused}");
}

#[test]
fn a_policy_has_few_named_queues() {
    let queues: String = (0..5_000)
        .map(|n| format!("    - {{name: q{n}}}\n"))
        .collect();
    let text = format!(
        "interfaces: [left, right]\nlink: 10 Gbit/s\npolicy:\n  classes: [{{name: a, match: {{vlan: 1}}, queue: q0}}]\n  queues:\n{queues}"
    );
    let refused = parse(&text).unwrap_err();
    assert!(
        refused.contains("there are more than 4096 queues"),
        "{refused}"
    );
}

#[test]
fn slices_may_come_from_a_controller() {
    let config = parse(CONTROLLED).unwrap();
    let controller = config.controller.unwrap();
    assert_eq!(controller.name, "edge-1");
    assert_eq!(controller.state, std::path::Path::new("slices.state"));
    assert_eq!(controller.token_file, None);
    assert_eq!(parse(GOOD).unwrap().controller, None);
}

#[test]
fn what_is_wrong_with_a_controller_is_told() {
    let wrong = |from: &str, to: &str| parse(&CONTROLLED.replace(from, to)).unwrap_err();
    insta::assert_snapshot!(wrong("http://", "ftp://") + "\n" + &wrong("uplink", "Up link"), @"
    gateway.yaml:5:8 `ftp://127.0.0.1:9650`: `ftp://127.0.0.1:9650` is not the address of a controller: expected for example `http://127.0.0.1:9650`
    gateway.yaml:7:9 `Up link`: `Up link` is no name that a link can have at a controller: expected 1 to 63 of a-z, 0-9, `.`, `_` and `-`, and a letter or digit first
    ");
    insta::assert_snapshot!(wrong("  state: slices.state\n", ""), @"gateway.yaml:4:1 `controller`: `state` is missing");
    insta::assert_snapshot!(wrong("{discipline: guaranteed, classes: []}", "{none: true}"), @"gateway.yaml:4:1 `controller`: slices of a controller need `discipline: guaranteed` in the policy of both directions, or the data plane of P4-TINS: this policy is neither, because its discipline is not `deficit_round_robin`; help: docs/mechanisms/metered-slices.md has an example of the latter");
}

#[test]
fn slices_of_a_controller_may_be_meters() {
    const METERED: &str = "{discipline: deficit_round_robin, queues: [{name: high, priority: 1}, {name: udp}, {name: sliced-tcp}], \
        classes: [{name: class-default, queue: udp}]}";
    let with =
        |policy: &str| parse(&CONTROLLED.replace("{discipline: guaranteed, classes: []}", policy));
    let config = with(METERED).unwrap();
    assert_eq!(config.warnings.count(), 0, "slices will use the queues");
    config.directions[1].policy.check_metered().unwrap();
    let wrong = |from: &str, to: &str| with(&METERED.replace(from, to)).unwrap_err();
    let both = [
        wrong("sliced-tcp", "other"),
        wrong(", priority: 1", ""),
        wrong("queue: udp", "queue: high"),
        wrong("queue: udp", "queue: udp, police: 1 Mbit/s"),
        with(&format!(
            "{METERED}\nbackward: {{policy: {{discipline: guaranteed, classes: []}}}}"
        ))
        .unwrap_err(),
    ];
    let because = both.map(|text| {
        text.replace(
            "slices of a controller need `discipline: guaranteed` in the policy of both directions",
            "…",
        )
    });
    insta::assert_snapshot!(because.join("\n"), @"
    gateway.yaml:4:1 `controller`: …, or the data plane of P4-TINS: this policy is neither, because it has no queue `sliced-tcp` without a priority; help: docs/mechanisms/metered-slices.md has an example of the latter
    gateway.yaml:4:1 `controller`: …, or the data plane of P4-TINS: this policy is neither, because it has no queue `high` with a priority; help: docs/mechanisms/metered-slices.md has an example of the latter
    gateway.yaml:4:1 `controller`: …, or the data plane of P4-TINS: this policy is neither, because class `class-default` does not wait in a queue without a priority, or has a meter of its own; help: docs/mechanisms/metered-slices.md has an example of the latter
    gateway.yaml:4:1 `controller`: …, or the data plane of P4-TINS: this policy is neither, because class `class-default` does not wait in a queue without a priority, or has a meter of its own; help: docs/mechanisms/metered-slices.md has an example of the latter
    gateway.yaml:5:1 `controller`: slices of a controller need the same kind of policy in both directions: `discipline: guaranteed`, or the data plane of P4-TINS
    ");
}

#[test]
fn the_schema_has_every_key_and_names_those_that_are_needed() {
    let schema = slicewise_study::json_schema(slicewise_study::FileKind::Gateway);
    assert_eq!(
        schema["required"],
        serde_json::json!(["interfaces", "link", "policy"])
    );
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    insta::assert_snapshot!(keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(" "), @"backward controller interfaces link memory metrics_port network_control packet_io policy slices");
}

proptest! {
    #[test]
    fn a_configuration_cut_or_changed_anywhere_is_read_or_refused(
        at in 0..GOOD.len(),
        length in 0usize..12,
        instead in "\\PC{0,6}",
    ) {
        let end = (at + length).min(GOOD.len());
        let text = format!("{}{instead}{}", &GOOD[..at], &GOOD[end..]);
        if let Ok(config) = parse(&text) {
            prop_assert!(config.directions.iter().all(|one| one.link.rate > BitRate::ZERO));
        }
    }
}

#[test]
fn names_at_a_controller_are_told_apart_from_those_of_controllers() {
    let text = CONTROLLED
        .replace("edge-1", "Edge 1")
        .replace("uplink", "\"\"");
    insta::assert_snapshot!(parse(&text).unwrap_err(), @r#"
    gateway.yaml:6:9 `Edge 1`: `Edge 1` is no name that a gateway can have at a controller: expected 1 to 63 of a-z, 0-9, `.`, `_` and `-`, and a letter or digit first
    gateway.yaml:7:9 `""`: `` is no name that a link can have at a controller: expected 1 to 63 of a-z, 0-9, `.`, `_` and `-`, and a letter or digit first
    "#);
}

#[test]
fn a_study_is_no_configuration_of_a_gateway() {
    insta::assert_snapshot!(parse(crate::support::STUDY).unwrap_err(), @"gateway.yaml:1:1 `n`: this is a study, not the configuration of a gateway, which has `interfaces`, `link` and `policy`; help: to forward with a policy of the study: `--study FILE --policy NAME --interfaces FROM TO`");
}

#[test]
fn what_guarantees_have_in_common_belongs_under_guaranteed() {
    let common = "tenants: {a: 1}\nbuffer: 1 MB\n";
    insta::assert_snapshot!(parse(&format!("{GOOD}{common}")).unwrap_err(), @"
    gateway.yaml:11:1 `tenants`: `tenants` is not a setting here; help: write it in the policy: `policy: {guaranteed: {tenants: …}}`
    gateway.yaml:12:1 `buffer`: `buffer` is not a setting here; help: write it in the policy: `policy: {guaranteed: {buffer: …}}`
    ");
    let in_policy = GOOD.replace("policy:\n", "policy:\n  buffer: 1 MB\n");
    insta::assert_snapshot!(parse(&in_policy).unwrap_err(), @"gateway.yaml:7:3 `buffer`: `buffer` is not a setting here; help: write it as `guaranteed: {buffer: …}`");
}
