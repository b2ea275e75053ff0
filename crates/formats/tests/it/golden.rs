//! Whole configurations: what they are read as, and that what is written reads the same.

use slicewise_formats::ios::{self, IosPolicyError, PolicyChoiceError};
use slicewise_model::{
    Action, ClassSpec, Condition, MatchMode, PolicySpec, PortParams, PrioritySpec, QueueLimitSpec,
    Rate, RateSpec, RedCurve, WredKey,
};
use slicewise_units::{Accounting, BitRate, Duration};
use std::fs;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn policy(text: &str) -> PolicySpec {
    let config = ios::parse(text).unwrap();
    config.policy(None).unwrap().spec
}

fn class<'p>(policy: &'p PolicySpec, name: &str) -> &'p ClassSpec {
    policy
        .classes
        .iter()
        .find(|class| class.name == name)
        .unwrap()
}

fn mbit(tenths: u64) -> RateSpec {
    RateSpec::Absolute(BitRate::new(tenths * 100_000))
}

#[test]
fn canonical_texts_are_written_as_they_were_read() {
    let mut seen = 0;
    for entry in fs::read_dir(folder().join("canonical")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        if path.ends_with("no-policy.cfg") {
            continue;
        }
        assert_eq!(
            ios::write(&policy(&text)).unwrap(),
            text,
            "{}",
            path.display()
        );
        seen += 1;
    }
    assert!(seen >= 14, "only {seen} files found");
}

#[test]
fn other_texts_are_written_in_canonical_form() {
    for name in ["as-configured", "as-printed"] {
        let first = policy(&golden(&format!("other/{name}.cfg")));
        let written = ios::write(&first).unwrap();
        assert_eq!(
            written,
            golden(&format!("other/{name}.canonical.cfg")),
            "{name}"
        );
        assert_eq!(policy(&written), first, "{name}");
    }
}

#[test]
fn no_policy_is_no_policy_map() {
    let config = ios::parse(&golden("canonical/no-policy.cfg")).unwrap();
    assert_eq!(
        config.class_map_names().collect::<Vec<_>>(),
        ["critical", "be"]
    );
    let error = IosPolicyError::Choice(PolicyChoiceError::NoPolicyMap);
    assert_eq!(config.policy(None), Err(error));
}

#[test]
fn class_maps_of_the_study_match_either_vlan() {
    let policy = policy(&golden("canonical/shaping.cfg"));
    let map = class(&policy, "be").matches.as_ref().unwrap();
    assert_eq!(map.mode, MatchMode::Any);
    assert_eq!(
        map.conditions,
        [Condition::OuterVlan(20..=20), Condition::OuterVlan(40..=40)]
    );
}

#[test]
fn shaping_leaves_its_bursts_to_default() {
    for (file, tenths, peak) in [("shaping", 175, false), ("shaping-peak", 87, true)] {
        let shape = class(&policy(&golden(&format!("canonical/{file}.cfg"))), "be")
            .shape
            .unwrap();
        let rate = if peak {
            RateSpec::Absolute(BitRate::new(8_750_000))
        } else {
            mbit(tenths)
        };
        assert_eq!((shape.rate, shape.peak), (rate, peak));
        assert_eq!(
            (shape.committed_burst_bits, shape.excess_burst_bits),
            (None, None)
        );
    }
}

#[test]
fn policing_leaves_its_burst_to_default() {
    let policer = class(&policy(&golden("canonical/policing.cfg")), "be")
        .police
        .clone()
        .unwrap();
    assert_eq!(policer.cir, mbit(175));
    assert_eq!((policer.cbs, policer.ebs, policer.pir), (None, None, None));
    assert_eq!(
        (policer.conform, policer.exceed, policer.violate),
        (Some(Action::Transmit), Some(Action::Drop), None)
    );
}

#[test]
fn bandwidth_is_a_minimum_and_priority_a_level_with_a_rate() {
    let minimum = policy(&golden("canonical/bandwidth.cfg"));
    assert_eq!(class(&minimum, "critical").minimum, Some(mbit(175)));
    let priority = policy(&golden("canonical/priority.cfg"));
    let place = |level| {
        let (rate, accounting) = (Some(mbit(175)), Accounting::L2);
        Some(PrioritySpec {
            level,
            rate,
            burst: None,
            accounting,
        })
    };
    assert_eq!(class(&priority, "critical").priority, place(1));
    let levels = policy(&golden("canonical/priority-levels.cfg"));
    assert_eq!(class(&levels, "critical").priority, place(1));
    assert_eq!(class(&levels, "be").priority, place(2));
}

#[test]
fn wred_and_tail_drop_stand_on_top_of_shaping() {
    let wred = policy(&golden("canonical/wred.cfg"));
    let spec = class(&wred, "be").queue.wred().cloned().unwrap();
    let curve = RedCurve {
        min_packets: 1,
        max_packets: 1,
        mark_denominator: 1,
    };
    assert_eq!(
        (spec.key, spec.curves),
        (WredKey::Dscp, vec![(0, curve.into())])
    );
    assert!(class(&wred, "be").shape.is_some());
    let tail_drop = policy(&golden("canonical/tail-drop.cfg"));
    let limit = class(&tail_drop, "be").queue.limit;
    assert_eq!(limit, Some(QueueLimitSpec::Time(Duration::from_millis(10))));
    assert!(class(&tail_drop, "be").shape.is_some());
}

#[test]
fn every_policy_of_the_study_fits_its_device() {
    for entry in fs::read_dir(folder().join("canonical")).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("no-policy.cfg") || path.ends_with("everything.cfg") {
            continue;
        }
        let policy = policy(&fs::read_to_string(&path).unwrap());
        let port = PortParams {
            rate: Rate::l2(BitRate::new(1_000_000_000)),
            admissible: Rate::l2(BitRate::new(35_000_000)),
            hysteresis: 0,
        };
        if let Err(error) = policy.resolve_for(port) {
            panic!("{}: {error}", path.display());
        }
    }
}

#[test]
fn the_unassigned_rest_of_remaining_percentages_goes_to_the_other_classes() {
    let policy = policy(&golden("other/as-printed.cfg"));
    let child = class(&policy, "class-default").child.as_deref().unwrap();
    let weights: Vec<_> = child
        .classes
        .iter()
        .map(|c| (c.name.as_str(), c.weight))
        .collect();
    // 60 %, 30 % and the 10 % that class-default is left with.
    assert_eq!(
        weights,
        [
            ("WEB", Some(6)),
            ("HOSTS", Some(3)),
            ("class-default", Some(1))
        ]
    );
}
