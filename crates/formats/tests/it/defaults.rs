//! What IOS takes where nothing is written, from the text to the parameters of the data plane.

use slicewise_formats::ios;
use slicewise_model::{Action, ClassParams, MeterAlgorithm, Rate};
use slicewise_units::{BitRate, ByteCount};

/// The parameters of class-default with these commands on a link of 35 Mbit/s.
fn class(commands: &str) -> ClassParams {
    let text = format!("policy-map p\n class class-default\n  {commands}\n");
    let config = ios::parse(&text).unwrap();
    let policy = config
        .policy(None)
        .unwrap()
        .spec
        .resolve(BitRate::new(35_000_000))
        .unwrap();
    policy.classes.into_iter().next().unwrap()
}

fn rate(bits: u64) -> Rate {
    Rate::l2(BitRate::new(bits))
}

fn bytes(bytes: u64) -> ByteCount {
    ByteCount::new(bytes)
}

#[test]
fn the_burst_of_a_policer_is_its_rate_over_32_bytes_but_at_least_1500() {
    let algorithm = |text| class(text).police.unwrap().algorithm;
    let two_colours = |cir, cbs| MeterAlgorithm::SingleRateTwoColour {
        cir: rate(cir),
        cbs: bytes(cbs),
    };
    assert_eq!(
        algorithm("police 17500000"),
        two_colours(17_500_000, 17_500_000 / 32)
    );
    assert_eq!(algorithm("police 8000"), two_colours(8_000, 1_500));
    assert_eq!(
        algorithm("police cir percent 50"),
        two_colours(17_500_000, 546_875)
    );
}

#[test]
fn the_peak_burst_is_the_peak_rate_over_32_bytes() {
    assert_eq!(
        class("police cir 8000000 pir 16000000")
            .police
            .unwrap()
            .algorithm,
        MeterAlgorithm::TwoRateThreeColour {
            cir: rate(8_000_000),
            cbs: bytes(250_000),
            pir: rate(16_000_000),
            pbs: bytes(500_000),
        }
    );
}

#[test]
fn a_violate_action_makes_an_excess_burst_as_large_as_the_committed_one() {
    let policer = class(
        "police 64000 conform-action transmit exceed-action set-dscp-transmit af11 violate-action drop",
    );
    let policer = policer.police.unwrap();
    let (cbs, ebs) = (bytes(2_000), bytes(2_000));
    assert_eq!(
        policer.algorithm,
        MeterAlgorithm::SingleRateThreeColour {
            cir: rate(64_000),
            cbs,
            ebs
        }
    );
    assert_eq!(
        (policer.exceed, policer.violate),
        (Action::SetDscp(10), Action::Drop)
    );
}

#[test]
fn a_policer_without_actions_transmits_what_conforms_and_drops_the_rest() {
    let policer = class("police 64000").police.unwrap();
    let actions = (policer.conform, policer.exceed, policer.violate);
    assert_eq!(actions, (Action::Transmit, Action::Drop, Action::Drop));
}

#[test]
fn a_burst_in_milliseconds_is_taken_at_its_own_rate() {
    assert_eq!(
        class("police cir percent 10 bc 20 ms pir percent 20 be 40 ms")
            .police
            .unwrap()
            .algorithm,
        MeterAlgorithm::TwoRateThreeColour {
            cir: rate(3_500_000),
            cbs: bytes(3_500_000 / 8 / 50),
            pir: rate(7_000_000),
            pbs: bytes(7_000_000 / 8 / 25),
        }
    );
}

#[test]
fn peak_shaping_doubles_the_rate_because_be_is_bc() {
    let shape = |text| class(text).shape.unwrap();
    assert_eq!(shape("shape peak 8750000").rate, rate(17_500_000));
    assert_eq!(
        shape("shape peak 8750000").rate,
        shape("shape average 17500000").rate
    );
    assert_eq!(
        shape("shape peak 8750000 35000 17500").rate,
        rate(13_125_000)
    );
}

#[test]
fn a_priority_class_is_policed_with_a_burst_of_200_ms() {
    let text = "class-map c\n match any\npolicy-map p\n class c\n  priority 17500\n";
    let policy = ios::parse(text).unwrap().policy(None).unwrap().spec;
    let policy = policy.resolve(BitRate::new(35_000_000)).unwrap();
    let police = policy.classes[0].priority.unwrap().police;
    assert_eq!(police, Some((rate(17_500_000), bytes(437_500))));
}

#[test]
fn wred_drops_one_packet_in_ten_at_most_before_its_maximum() {
    let wred = class("random-detect\n random-detect precedence 3 20 40")
        .queue
        .wred()
        .cloned()
        .unwrap();
    // DSCP 24 to 31 are precedence 3; the rest keeps the default curve.
    let set = &wred.curves[24];
    assert_eq!(
        (set.min_packets, set.max_packets, set.mark_denominator),
        (20, 40, 10)
    );
    assert_eq!(wred.curves[31], *set);
    assert_eq!(wred.curves[32].mark_denominator, 10);
    assert_ne!(wred.curves[32], *set);
}

#[test]
fn what_ios_does_not_take_together_is_refused_by_the_model() {
    let text = "class-map c\n match any\npolicy-map p\n class c\n  priority\n  shape average 1m\n";
    let policy = ios::parse(text).unwrap().policy(None).unwrap().spec;
    let error = policy.resolve(BitRate::new(35_000_000)).unwrap_err();
    assert_eq!((error.class.as_str(), error.field), ("c", "shape"));
}
