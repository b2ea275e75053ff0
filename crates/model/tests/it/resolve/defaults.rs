use super::support::*;
use slicewise_model::{
    Action, CLASS_DEFAULT, ClassSpec, ColourMode, MeterAlgorithm, PolicerParams, PolicerSpec,
    PortParams, PrioritySpec, QueueLimitParams, QueueLimitSpec, QueueSpec, Rate, ShaperSpec,
    WredKey, WredSpec,
};
use slicewise_units::{Accounting, ByteCount, Duration};

fn meter(spec: PolicerSpec) -> MeterAlgorithm {
    resolved(policed(spec)).police.unwrap().algorithm
}

fn size(bytes: u64) -> ByteCount {
    ByteCount::new(bytes)
}

fn packets(packets: u32) -> QueueLimitParams {
    QueueLimitParams {
        packets,
        bytes: size(u64::MAX),
        hysteresis: 0,
    }
}

#[test]
fn a_policer_holds_250_ms_and_drops_what_exceeds() {
    let params = resolved(policed(police(absolute("17.5 Mbit/s"))))
        .police
        .unwrap();
    let expected = PolicerParams {
        algorithm: MeterAlgorithm::SingleRateTwoColour {
            cir: Rate::l2(bits(17_500_000)),
            cbs: size(546_875),
        },
        mode: ColourMode::Blind,
        refill_interval: None,
        conform: Action::Transmit,
        exceed: Action::Drop,
        violate: Action::Drop,
    };
    assert_eq!(params, expected);
}

#[test]
fn a_slow_policer_holds_one_packet() {
    let MeterAlgorithm::SingleRateTwoColour { cbs, .. } = meter(police(absolute("8 kbit/s")))
    else {
        panic!("one rate, two colours");
    };
    assert_eq!(cbs, size(1_500));
}

#[test]
fn the_rates_and_bursts_of_a_policer_choose_its_algorithm() {
    let cir = Rate::l2(bits(8_000_000));
    let spec = || police(absolute("8 Mbit/s"));
    let cbs = size(250_000);
    let with_ebs = PolicerSpec {
        ebs: Some(size(9_000).into()),
        ..spec()
    };
    assert_eq!(
        meter(with_ebs),
        MeterAlgorithm::SingleRateThreeColour {
            cir,
            cbs,
            ebs: size(9_000)
        }
    );
    let with_pir = PolicerSpec {
        pir: Some(absolute("16 Mbit/s")),
        ..spec()
    };
    let pir = Rate::l2(bits(16_000_000));
    assert_eq!(
        meter(with_pir),
        MeterAlgorithm::TwoRateThreeColour {
            cir,
            cbs,
            pir,
            pbs: size(500_000)
        }
    );
    let with_eir = PolicerSpec {
        eir: Some(absolute("4 Mbit/s")),
        ..spec()
    };
    let eir = Rate::l2(bits(4_000_000));
    assert_eq!(
        meter(with_eir),
        MeterAlgorithm::TwoRateThreeColourEfficient {
            cir,
            cbs,
            eir,
            ebs: size(125_000)
        }
    );
}

#[test]
fn a_violate_action_gives_a_single_rate_policer_an_excess_burst() {
    let spec = PolicerSpec {
        violate: Some(Action::Drop),
        ..police(absolute("8 Mbit/s"))
    };
    let expected = MeterAlgorithm::SingleRateThreeColour {
        cir: Rate::l2(bits(8_000_000)),
        cbs: size(250_000),
        ebs: size(250_000),
    };
    assert_eq!(meter(spec), expected);
}

#[test]
fn violate_defaults_to_exceed() {
    let spec = PolicerSpec {
        pir: Some(absolute("16 Mbit/s")),
        exceed: Some(Action::SetDscp(8)),
        ..police(absolute("8 Mbit/s"))
    };
    let params = resolved(policed(spec)).police.unwrap();
    let actions = (params.conform, params.exceed, params.violate);
    assert_eq!(
        actions,
        (Action::Transmit, Action::SetDscp(8), Action::SetDscp(8))
    );
}

#[test]
fn a_burst_in_time_is_the_rate_times_the_time() {
    let spec = PolicerSpec {
        cbs: Some(Duration::from_millis(10).into()),
        pir: Some(absolute("16 Mbit/s")),
        pbs: Some(Duration::from_millis(10).into()),
        ..police(absolute("8 Mbit/s"))
    };
    let MeterAlgorithm::TwoRateThreeColour { cbs, pbs, .. } = meter(spec) else {
        panic!("two rates");
    };
    assert_eq!((cbs, pbs), (size(10_000), size(20_000)));
}

#[test]
fn percentages_are_of_the_link() {
    let MeterAlgorithm::SingleRateTwoColour { cir, .. } = meter(police(percent(50))) else {
        panic!("one rate");
    };
    assert_eq!(cir.rate, bits(17_500_000));
    let shaper = resolved(shaped(shape(percent(20)))).shape.unwrap();
    assert_eq!(shaper.rate.rate, bits(7_000_000));
    let (minimum, _) = resolved(guaranteed(percent(10))).minimum.unwrap();
    assert_eq!(minimum.rate, bits(3_500_000));
    let (priority, _) = resolved(prioritised(priority(Some(percent(100)))))
        .priority
        .unwrap()
        .police
        .unwrap();
    assert_eq!(priority.rate, bits(35_000_000));
}

#[test]
fn a_child_policy_divides_the_rate_of_its_parents_shaper() {
    let child = policy(vec![guaranteed(percent(50))]);
    let parent = ClassSpec {
        child: Some(Box::new(child)),
        ..shaped(shape(absolute("10 Mbit/s")))
    };
    let child = resolved(parent).child.unwrap();
    assert_eq!(child.classes[0].minimum.unwrap().0.rate, bits(5_000_000));
}

#[test]
fn a_shaper_holds_4_ms_but_at_least_one_frame() {
    let params = resolved(shaped(shape(absolute("17.5 Mbit/s"))))
        .shape
        .unwrap();
    assert_eq!(
        (params.rate, params.burst),
        (Rate::l2(bits(17_500_000)), size(8_750))
    );
    assert!(!params.priority_borrows);
    let slow = resolved(shaped(shape(absolute("64 kbit/s"))))
        .shape
        .unwrap();
    assert_eq!(slow.burst, size(1_522));
}

#[test]
fn peak_shaping_at_half_the_rate_is_average_shaping_at_the_rate() {
    let average = resolved(shaped(shape(absolute("17.5 Mbit/s")))).shape;
    let peak = ShaperSpec {
        peak: true,
        ..shape(absolute("8.75 Mbit/s"))
    };
    assert_eq!(resolved(shaped(peak)).shape, average);
}

#[test]
fn peak_shaping_sends_committed_and_excess_burst_every_interval() {
    let spec = ShaperSpec {
        peak: true,
        committed_burst_bits: Some(40_000.into()),
        excess_burst_bits: Some(20_000.into()),
        ..shape(absolute("10 Mbit/s"))
    };
    let params = resolved(shaped(spec)).shape.unwrap();
    assert_eq!(
        (params.rate.rate, params.burst),
        (bits(15_000_000), size(7_500))
    );
    let average = resolved(shaped(ShaperSpec {
        peak: false,
        ..spec
    }))
    .shape
    .unwrap();
    assert_eq!(
        (average.rate.rate, average.burst),
        (bits(10_000_000), size(7_500))
    );
}

#[test]
fn rates_use_the_stated_accounting() {
    let accounting = Accounting {
        overhead_bytes: -4,
        ..Accounting::L1
    };
    let class = ClassSpec {
        shape: Some(ShaperSpec {
            accounting,
            ..shape(percent(10))
        }),
        police: Some(PolicerSpec {
            accounting,
            ..police(percent(10))
        }),
        ..class("be")
    };
    let params = resolved(class);
    assert_eq!(params.shape.unwrap().rate.accounting, accounting);
    let MeterAlgorithm::SingleRateTwoColour { cir, .. } = params.police.unwrap().algorithm else {
        panic!("one rate");
    };
    assert_eq!(cir.accounting, accounting);
}

#[test]
fn bursts_hold_the_largest_frame_with_what_a_link_adds() {
    let bursts = |counts: &str| {
        let accounting = counts.parse().unwrap();
        let slow = Some(absolute("8 kbit/s"));
        let priority = resolved(prioritised(PrioritySpec {
            accounting,
            ..priority(slow)
        }));
        let shaper = resolved(shaped(ShaperSpec {
            accounting,
            ..shape(absolute("8 kbit/s"))
        }));
        let (_, policer) = priority.priority.unwrap().police.unwrap();
        [policer.bytes(), shaper.shape.unwrap().burst.bytes()]
    };
    for layer in ["L1", "L2", "L3", "L2 - 4 B"] {
        assert_eq!(bursts(layer), [1_522; 2], "{layer}");
    }
    assert_eq!(bursts("L2 + 8 B"), [1_530; 2]);
    assert_eq!(bursts("L2 + 18 B in ATM cells"), [33 * 53; 2]);
}

#[test]
fn a_priority_class_is_policed_with_200_ms_and_queues_512_packets() {
    let params = resolved(prioritised(priority(Some(absolute("17.5 Mbit/s")))));
    let expected = (Rate::l2(bits(17_500_000)), size(437_500));
    assert_eq!(params.priority.unwrap().police, Some(expected));
    assert_eq!(params.queue.limit, packets(512));
    let without_rate = resolved(prioritised(PrioritySpec {
        level: 2,
        ..priority(None)
    }));
    assert_eq!(without_rate.priority.unwrap().police, None);
    assert_eq!(without_rate.priority.unwrap().level, 2);
}

#[test]
fn a_queue_holds_50_ms_of_full_packets_at_the_rate_of_its_class() {
    let limit = |class| resolved(class).queue.limit;
    assert_eq!(limit(shaped(shape(absolute("17.5 Mbit/s")))), packets(72));
    assert_eq!(limit(guaranteed(absolute("17.5 Mbit/s"))), packets(72));
    assert_eq!(limit(class("be")), packets(145), "35 Mbit/s, the link's");
    assert_eq!(
        limit(shaped(shape(absolute("1 Mbit/s")))),
        packets(64),
        "at least"
    );
    let both = ClassSpec {
        shape: Some(shape(absolute("30 Mbit/s"))),
        ..guaranteed(percent(10))
    };
    assert_eq!(
        limit(both),
        packets(125),
        "the shaper counts before the minimum"
    );
    let gigabit = policy(vec![class("be")])
        .resolve(bits(1_000_000_000))
        .unwrap();
    assert_eq!(gigabit.classes[0].queue.limit, packets(4_166));
    assert_eq!(gigabit.classes[1].queue.limit, packets(4_166));
}

#[test]
fn a_queue_limit_in_time_is_bytes_at_the_rate_of_the_class() {
    let class = ClassSpec {
        shape: Some(shape(absolute("17.5 Mbit/s"))),
        ..limited(QueueLimitSpec::Time(Duration::from_millis(10)))
    };
    let limit = resolved(class).queue.limit;
    assert_eq!(
        limit,
        QueueLimitParams {
            packets: 365,
            bytes: size(21_875),
            hysteresis: 0
        }
    );
    assert!(
        u64::from(limit.packets) * 60 >= 21_875,
        "the smallest frames reach the bytes first"
    );
}

#[test]
fn wred_weighs_2_to_the_minus_9_and_drops_between_a_quarter_and_half_of_the_queue() {
    let class = ClassSpec {
        queue: QueueSpec::from(wred(WredKey::Dscp, vec![]))
            .with_limit(Some(QueueLimitSpec::Packets(160))),
        ..class("be")
    };
    let params = resolved(class).queue.wred().unwrap().clone();
    assert_eq!(params.exponential_weight, 9);
    assert_eq!(
        params.typical_transmission,
        Duration::from_nanos(342_858),
        "1500 B at 35 Mbit/s"
    );
    let curves: Vec<String> = params
        .curves
        .chunks(8)
        .map(|chunk| {
            assert!(
                chunk.iter().all(|curve| *curve == chunk[0]),
                "alike within a precedence"
            );
            format!(
                "{} {} {}",
                chunk[0].min_packets, chunk[0].max_packets, chunk[0].mark_denominator
            )
        })
        .collect();
    insta::assert_snapshot!(curves.join(", "), @"40 80 10, 45 80 10, 50 80 10, 55 80 10, 60 80 10, 65 80 10, 70 80 10, 75 80 10");
}

#[test]
fn default_curves_of_a_queue_limited_in_bytes_assume_full_packets() {
    let class = ClassSpec {
        queue: QueueSpec::from(wred(WredKey::Dscp, vec![]))
            .with_limit(Some(QueueLimitSpec::Bytes(size(60_000)))),
        ..class("be")
    };
    let params = resolved(class).queue.wred().unwrap().clone();
    assert_eq!(params.curves[0], curve(10, 20, 10));
}

#[test]
fn the_smallest_queue_still_has_a_curve() {
    let class = ClassSpec {
        queue: QueueSpec::from(wred(WredKey::Dscp, vec![]))
            .with_limit(Some(QueueLimitSpec::Packets(1))),
        ..class("be")
    };
    assert_eq!(
        resolved(class).queue.wred().unwrap().curves[0],
        curve(1, 2, 10)
    );
}

#[test]
fn random_detect_dscp_0_1_1_1_sets_one_code_point() {
    let class = ClassSpec {
        queue: wred(WredKey::Dscp, vec![(0, curve(1, 1, 1))]).into(),
        ..shaped(shape(absolute("17.5 Mbit/s")))
    };
    let params = resolved(class).queue.wred().unwrap().clone();
    assert_eq!(params.curves.len(), 64);
    assert_eq!(params.curves[0], curve(1, 1, 1));
    assert_eq!(params.curves[1], curve(18, 36, 10));
    assert_eq!(
        params.typical_transmission,
        Duration::from_nanos(685_715),
        "1500 B at its shaper"
    );
}

#[test]
fn a_curve_by_precedence_sets_eight_code_points() {
    let class = ClassSpec {
        queue: WredSpec {
            exponential_weight: Some(4),
            ..wred(WredKey::Precedence, vec![(5, curve(3, 30, 100))])
        }
        .into(),
        ..limited(QueueLimitSpec::Packets(160))
    };
    let params = resolved(class).queue.wred().unwrap().clone();
    assert_eq!(params.exponential_weight, 4);
    let set = (0..64).filter(|&dscp| params.curves[dscp] == curve(3, 30, 100));
    assert_eq!(set.collect::<Vec<_>>(), (40..48).collect::<Vec<_>>());
}

#[test]
fn class_default_always_exists_and_is_last() {
    let names = |classes| {
        let params = policy(classes).resolve(bits(1_000_000)).unwrap();
        params
            .classes
            .into_iter()
            .map(|class| class.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(vec![]), [CLASS_DEFAULT]);
    assert_eq!(names(vec![class("a")]), ["a", CLASS_DEFAULT]);
    let configured = ClassSpec {
        weight: Some(7),
        ..ClassSpec::class_default()
    };
    assert_eq!(
        names(vec![configured.clone(), class("a"), class("b")]),
        ["a", "b", CLASS_DEFAULT]
    );
    let params = policy(vec![configured, class("a")])
        .resolve(bits(1_000_000))
        .unwrap();
    assert_eq!(
        params
            .classes
            .iter()
            .map(|class| class.weight)
            .collect::<Vec<_>>(),
        [1, 7]
    );
}

#[test]
fn a_minimum_keeps_the_burst_of_a_shaper_and_at_least_two_frames() {
    let (_, burst) = resolved(guaranteed(absolute("17.5 Mbit/s")))
        .minimum
        .unwrap();
    assert_eq!(burst, size(8_750));
    let (_, burst) = resolved(guaranteed(absolute("64 kbit/s"))).minimum.unwrap();
    assert_eq!(burst, size(3_044));
}

#[test]
fn defaults_follow_the_port_rate_of_a_device_that_forwards_less() {
    let spec = policy(vec![guaranteed(absolute("17.5 Mbit/s"))]);
    let port = PortParams {
        rate: Rate::l2(bits(1_000_000_000)),
        admissible: Rate::l2(bits(35_000_000)),
        hysteresis: 0,
    };
    let params = spec.resolve_for(port).unwrap();
    assert_eq!(params.classes[1].queue.limit, packets(4_166));
    let too_much = policy(vec![guaranteed(percent(5))]);
    assert!(too_much.resolve(bits(1_000_000_000)).is_ok());
    assert!(too_much.resolve_for(port).is_err());
}
