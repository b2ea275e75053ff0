//! Sizes of packets and impairments of links: what they mean, and what is said of mistakes.

use crate::support::{STUDY, changed, mistakes, parse};
use insta::assert_snapshot;
use slicewise_study::{
    DelayDistribution, DelayVariationParams, ImpairmentParams, LossParams, Pacing, SizesParams,
    SourceParams, Study,
};
use slicewise_units::Duration;

const STEADY: &str = "payload: 1000 B}";
const LINK: &str = "link: {rate: 1 Gbit/s}";

fn steady(text: &str) -> SourceParams {
    let study = parse(text).unwrap();
    study.scenarios[0].sources[0].clone()
}

fn with_payload(payload: &str) -> SourceParams {
    steady(&changed(STEADY, &format!("payload: {payload}}}")))
}

/// Payload and weight of each size.
fn sizes(source: &SourceParams) -> Vec<(u32, u32)> {
    (source.weighted_sizes())
        .map(|sized| (sized.size.payload_bytes, sized.weight))
        .collect()
}

#[test]
fn a_mix_has_payloads_with_weights_in_order_of_size() {
    let source = with_payload("{1400 B: 1, 64 B: 7, 0.5 kB: 4}");
    assert_eq!(sizes(&source), [(64, 7), (500, 4), (1400, 1)]);
    assert_eq!(source.largest.payload_bytes, 1400);
    // IPv4, UDP, Ethernet with one tag.
    assert_eq!(source.largest.l2_bytes, 1400 + 20 + 8 + 18);
    // 5 Mbit/s of L2 frames, of 7 × 110 + 4 × 546 + 1446 bytes in 12.
    assert_eq!(
        source.packets_per_second(),
        Some(5_000_000 * 12 / (8 * 4_400))
    );
}

#[test]
fn imix_is_of_ip_packets_of_40_576_and_1500_bytes() {
    let source = with_payload("imix");
    assert_eq!(sizes(&source), [(12, 7), (548, 4), (1472, 1)]);
    assert_eq!(source.largest.l2_bytes, 1500 + 18);
    let tcp = steady(&changed(STEADY, "payload: imix, headers: {protocol: tcp}}"));
    assert_eq!(sizes(&tcp), [(0, 7), (536, 4), (1460, 1)]);
}

#[test]
fn one_size_is_no_mix_and_a_size_of_no_weight_is_none() {
    for payload in ["1000 B", "{1000 B: 3}", "{1000 B: 3, 64 B: 0}"] {
        let source = with_payload(payload);
        assert_eq!(source.sizes, SizesParams::Equal);
        assert_eq!(source, with_payload("1 kB"));
    }
}

#[test]
fn a_scenario_changes_the_weights_of_a_mix() {
    let text = changed(STEADY, "payload: {64 B: 7, 576 B: 4}}");
    let text = text.replace(
        "    reference: true\n    sources: {other:",
        "    reference: true\n    sources: {steady: {payload: {64 B: 0, 1400 B: 1}}, other:",
    );
    assert_eq!(sizes(&steady(&text)), [(576, 4), (1400, 1)]);
}

#[test]
fn a_payload_leaves_room_for_headers() {
    assert_snapshot!(mistakes(STEADY, "payload: {64 B: 7, 576 B: 4, 1500 B: 1}}"), @"study.yaml:17:51 `payload`: a payload of 1500 B makes IP packets of 1528 B, above the link's MTU of 1500 B; help: these headers leave room for a payload of 1472 B, or raise `link.mtu`");
    let v6 = "payload: imix, headers: {source: '2001:db8::1', destination: '2001:db8::2'}}";
    assert_snapshot!(mistakes(STEADY, v6), @"study.yaml:17:60 `imix`: `imix` has IP packets of 40 B, and the headers of this source alone have 48 B; help: write the sizes of the payload and their weights, for example `{64 B: 7, 528 B: 4, 1448 B: 1}`");
}

#[test]
fn sizes_and_weights_are_checked_each() {
    assert_snapshot!(mistakes(STEADY, "payload: {64: 7, 0 B: 4, 576 B: many, 1400 B: 2000000}}"), @"
    study.yaml:17:61 `64`: `64` is a number without a unit: a size needs one of B, byte, bytes, kB, MB, GB, KiB, MiB, GiB
    study.yaml:17:68 `0 B`: a payload of zero
    study.yaml:17:83 `many`: `many` is not a whole number from 0 to 4,294,967,295
    study.yaml:17:97 `2000000`: a weight may be at most 1000000
    ");
    assert_snapshot!(mistakes(STEADY, "payload: {64 B: 0}}"), @"study.yaml:17:51 `payload`: no size has a weight: nothing would be sent");
    assert_snapshot!(mistakes(STEADY, "payload: {1 kB: 1, 1000 B: 2}}"), @"study.yaml:17:70 `1000 B`: 1000 B has a weight already");
    assert_snapshot!(mistakes(STEADY, "payload: [64 B, 576 B]}"), @"study.yaml:17:51 `payload`: keys with values are expected here");
}

#[test]
fn a_word_for_sizes_is_a_known_one() {
    assert_snapshot!(mistakes(STEADY, "payload: imixx}"), @"study.yaml:17:60 `imixx`: `imixx` is not a payload: write a size (`1448 B`), sizes with weights (`{64 B: 7, 1448 B: 1}`), `imix` or `capture`");
    assert_snapshot!(mistakes(STEADY, "payload: capture}"), @"study.yaml:17:60 `capture`: only the pattern `replay` has the sizes of a capture; help: write a size, sizes with weights, or `imix`");
}

#[test]
fn the_largest_packet_decides_what_a_guarantee_needs() {
    let unbounded = |payload: &str, burst: &str| {
        let text = changed(STEADY, &format!("payload: {payload}}}"));
        let text = text.replace(
            "  weighted:\n    classes:\n      - {name: gold, slice: gold, minimum: 60 %}",
            &format!(
                "  weighted:\n    discipline: guaranteed\n    guaranteed: {{largest_frame: 1400 B}}\n    classes:\n      - {{name: gold, slice: gold, guarantee: \
                 {{rate: 60 %, burst: {burst}, delay: 20 ms}}}}"
            ),
        );
        let study = parse(&text).unwrap();
        let description = study.description("test");
        let mut unbounded = description.policies[1].unbounded.iter();
        unbounded.next().map(|one| one.why.clone())
    };
    let judged_at_scheduler =
        "source `other` is Poisson, and may send any number of packets at once";
    assert_eq!(
        unbounded("100 B", "1446 B").as_deref(),
        Some(judged_at_scheduler)
    );
    assert_eq!(
        unbounded("{100 B: 1, 1400 B: 1}", "1446 B").as_deref(),
        Some(judged_at_scheduler)
    );
    assert_snapshot!(unbounded("{100 B: 1000, 1400 B: 1}", "1445 B").unwrap(), @"class `gold` may receive bursts of 1.446 kB, but only 1.445 kB are guaranteed");
    // Where the rate counts payload, small packets come to more than it says.
    assert_snapshot!(unbounded("{1 B: 1, 1400 B: 1}, counts: payload", "1446 B").unwrap(), @"class `gold` receives 235 Mbit/s, but only 6 Mbit/s are guaranteed");
}

fn impaired(text: &str) -> Study {
    parse(&changed(
        LINK,
        &format!("link: {{rate: 1 Gbit/s, impairments: {text}}}"),
    ))
    .unwrap()
}

#[test]
fn impairments_are_of_the_link_before_the_device_or_of_the_one_behind_it() {
    assert!(parse(STUDY).unwrap().link.impairments.is_none());
    let study = impaired(
        "{ingress: {loss: 0.5 %, bit_errors: 1e-7}, \
         egress: {loss: {to_bad: 0.1 %, to_good: 25 %}, delay_variation: 2 ms}}",
    );
    let impairments = study.link.impairments;
    assert_eq!(
        impairments.ingress,
        ImpairmentParams {
            loss: Some(LossParams::independent(5_000)),
            bit_errors_per_1e15: 100_000_000,
            delay_variation: None,
        }
    );
    assert_eq!(
        impairments.egress,
        ImpairmentParams {
            loss: Some(LossParams {
                to_bad_ppm: 1_000,
                to_good_ppm: 250_000,
                in_good_ppm: 0,
                in_bad_ppm: 1_000_000,
            }),
            bit_errors_per_1e15: 0,
            delay_variation: Some(DelayVariationParams {
                up_to: Duration::from_millis(2),
                distribution: DelayDistribution::Uniform,
                reorder: false,
            }),
        }
    );
    assert_snapshot!(study.description("test").assumptions.join("\n"), @"
    The link to the device (ingress) is impaired: 0.5 % of frames lost at random, bit error ratio 1e-7.
    The link from the device (egress) is impaired: 0.3984 % of frames lost in bursts, delay up to 2 ms longer.
    ");
    let study =
        impaired("{egress: {delay_variation: {up_to: 1 ms, distribution: normal, reorder: true}}}");
    let variation = study.link.impairments.egress.delay_variation.unwrap();
    assert_eq!(variation.distribution, DelayDistribution::Normal);
    assert!(variation.reorder);
}

#[test]
fn impairments_are_checked_each() {
    let said = |text: &str| {
        mistakes(
            LINK,
            &format!("link: {{rate: 1 Gbit/s, impairments: {text}}}"),
        )
    };
    assert_snapshot!(said("{ingress: {loss: 101 %}, egress: {loss: 0.01}}"), @"
    study.yaml:2:54 `101 %`: this is more than 100 %
    study.yaml:2:77 `0.01`: `0.01` is not a number of parts per million: write for example `100 ppm` or `0.1 %`
    ");
    assert_snapshot!(said("{egress: {loss: {to_bad: 0 %, to_good: 0 %}}}"), @"
    study.yaml:2:62 `0 %`: no burst of losses would begin
    study.yaml:2:76 `0 %`: no burst of losses would end
    ");
    assert_snapshot!(said("{egress: {loss: {in_bad: 50 %}, bit_errors: 0.5}}"), @"
    study.yaml:2:47 `loss`: `to_bad` is missing
    study.yaml:2:47 `loss`: `to_good` is missing
    study.yaml:2:81 `0.5`: `0.5` is not a bit error ratio from 1e-15 to 0.01: write for example `1e-7`
    ");
    assert_snapshot!(said("{egress: {delay_variation: {distribution: pareto, up_to: 5 s}}}"), @"
    study.yaml:2:79 `pareto`: `pareto` is not a distribution of delay: known are `uniform`, `normal`
    study.yaml:2:94 `5 s`: this is not shorter than the run, which takes 5 s; help: choose a shorter time, or a longer `duration`
    ");
    assert_snapshot!(said("{both: {loss: 1 %}}"), @"study.yaml:2:38 `both`: `both` is not a setting here; help: known are `ingress`, `egress`");
}

#[test]
fn a_testbed_does_not_impair_its_links() {
    let study = impaired("{egress: {loss: 1 %}}");
    assert_snapshot!(study.into_testbed(Pacing::Departures).unwrap_err(), @"the links of this study are impaired (`link.impairments`), and those of a testbed carry every frame: simulate it, or leave the impairments out in a study that extends this one (`without: [link.impairments]`)");
}

#[test]
fn delay_that_varies_before_the_device_leaves_the_bound_of_the_scheduler() {
    let guaranteed = |impairments: &str| {
        let text = changed(
            LINK,
            &format!("link: {{rate: 1 Gbit/s, impairments: {impairments}}}"),
        );
        let text = text.replace("pattern: poisson", "pattern: cbr").replace(
            "  weighted:\n    classes:\n      - {name: gold, slice: gold, minimum: 60 %}",
            "  weighted:\n    discipline: guaranteed\n    classes:\n      - {name: gold, slice: gold, guarantee: \
             {rate: 60 %, burst: 1600 B, delay: 20 ms}}",
        );
        parse(&text).unwrap().description("test").policies[1].clone()
    };
    let plain = guaranteed("{}").delay_bounds["gold"];
    let behind = guaranteed("{egress: {delay_variation: 2 ms}}").delay_bounds["gold"];
    assert_eq!(behind.outside_ns, plain.outside_ns + 2_000_000);
    let before = guaranteed("{ingress: {delay_variation: 2 ms}}");
    assert!(before.delay_bounds.is_empty());
    assert_eq!(before.unbounded[0].scheduler_ns, Some(plain.scheduler_ns));
    assert_snapshot!(before.unbounded[0].why, @"delay varies on it (`link.impairments.ingress`)");
}
