//! The verdict table in a terminal.

#![allow(clippy::unwrap_used)]

use slicewise_report::terminal::verdict_table_text;
use slicewise_stats::description::{DelayBound, PublishedVerdict, SliceLimit};
use slicewise_stats::estimate::Interval;
use slicewise_stats::verdict::{
    Agreement, BoundCheck, DecidedBy, Indicator, InfluenceVerdict, IsolationVerdict, Outcome,
    PolicyVerdict, ReallocationVerdict, ScalabilityVerdict, Scale, TestName, VerdictTable,
};

fn numbers(indicator: Indicator, statistic: f64, scale: Scale, margin: f64) -> DecidedBy {
    DecidedBy {
        test: TestName::PairedRatio,
        scenario: Some("6".to_owned()),
        slice: "critical".to_owned(),
        indicator: Some(indicator),
        reference: Some(200_000.0),
        treatment: Some(408_000.0),
        statistic,
        scale,
        interval: Interval {
            low: Some(statistic * 0.98),
            high: Some(statistic * 1.02),
        },
        margin,
        repetitions: 32,
        repetitions_beyond: 32,
        p_value: Some(1e-9),
    }
}

fn policy(
    name: &str,
    isolation: (Outcome, Option<DecidedBy>, Option<u32>),
    reallocation: (Outcome, Option<f64>),
    limit: Option<u64>,
) -> PolicyVerdict {
    let (outcome, decided_by, repetitions_needed) = isolation;
    let threshold = if reallocation.0 == Outcome::Broken {
        0.05
    } else {
        0.95
    };
    PolicyVerdict {
        policy: name.to_owned(),
        isolation: IsolationVerdict {
            outcome,
            objectives: None,
            influence: InfluenceVerdict {
                outcome,
                decided_by,
                first_broken: None,
                repetitions_needed,
                tests: Vec::new(),
            },
            influence_decides: true,
            bounds: Vec::new(),
            not_judged: Vec::new(),
        },
        reallocation: ReallocationVerdict {
            outcome: reallocation.0,
            decided_by: reallocation.1.map(|fraction| DecidedBy {
                indicator: None,
                scenario: None,
                ..numbers(Indicator::Throughput, fraction, Scale::Fraction, threshold)
            }),
            repetitions_needed: None,
            scenarios: Vec::new(),
        },
        scalability: ScalabilityVerdict {
            limit: limit.map_or(SliceLimit::NotStated, SliceLimit::Slices),
            limited_by: "256 classes in a policy".to_owned(),
            source: "data sheet".to_owned(),
        },
        published: None,
        agrees: Agreement::default(),
        not_supported: None,
    }
}

fn table() -> VerdictTable {
    let published = |isolation, remark: &str| {
        Some(PublishedVerdict {
            isolation,
            reallocation: true,
            scalability: "256".to_owned(),
            remark: remark.to_owned(),
        })
    };
    let agrees = |isolation| Agreement {
        isolation: Some(isolation),
        reallocation: Some(true),
        scalability: Some(true),
    };
    let mean = |statistic| numbers(Indicator::DelayMean, statistic, Scale::Relative, 0.25);
    let loss = numbers(Indicator::LossRatio, 0.000_4, Scale::RatioDifference, 0.001);
    let rate = numbers(Indicator::Throughput, 0.000_1, Scale::Relative, 0.01);
    VerdictTable {
        study: "made up".to_owned(),
        confidence: 0.95,
        policies: vec![
            PolicyVerdict {
                published: published(false, "latency"),
                agrees: agrees(true),
                ..policy(
                    "bandwidth",
                    (Outcome::Broken, Some(mean(1.04)), None),
                    (Outcome::Holds, Some(0.992)),
                    Some(256),
                )
            },
            PolicyVerdict {
                published: published(false, ""),
                agrees: agrees(false),
                ..policy(
                    "priority",
                    (Outcome::Holds, Some(rate), None),
                    (Outcome::Partial, Some(0.42)),
                    Some(1),
                )
            },
            policy(
                "a policy with a long name",
                (Outcome::Inconclusive, Some(loss), Some(23)),
                (Outcome::Broken, Some(-0.013)),
                None,
            ),
            policy(
                "unjudged",
                (Outcome::NotTested, None, None),
                (Outcome::NotTested, None),
                Some(2),
            ),
        ],
    }
}

#[test]
fn shows_each_verdict_with_its_number_and_the_published_one() {
    insta::assert_snapshot!(verdict_table_text(&table(), 120).unwrap(), @"
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     Policy                    Performance isolation     Resource reallocation    Scalability        Published
    ════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     bandwidth                 broken                    holds                    256 slices         no (latency) / yes /
                               critical: mean delay      99.2 % of what is left   256 classes in a   256
                               +104 % in scenario 6      (95 % needed)            policy             = agrees
                               (margin 25 %)
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     priority                  holds                     partial                  1 slice            no / yes / 256
                               critical: throughput      42 % of what is left     256 classes in a   ≠ differs: isolation
                               −0.01 % in scenario 6     (95 % needed)            policy
                               (margin 1 %)
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     a policy with a long      inconclusive              broken                   no limit known     –
     name                      critical: loss ratio      −1.3 % of what is left   256 classes in a
                               +0.04 points in           (up to 5 % is none)      policy
                               scenario 6 (margin
                               0.1 points); about 23
                               repetitions would
                               decide
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     unjudged                  not tested                not tested               2 slices           –
                               nothing to judge it by    nothing was left to      256 classes in a
                                                         reallocate               policy
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ");
}

#[test]
fn is_never_wider_than_the_terminal_nor_than_120_columns() {
    for (asked, widest) in [(80, 80), (100, 100), (120, 120), (u16::MAX, 120)] {
        let text = verdict_table_text(&table(), asked).unwrap();
        let width = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(
            width <= widest,
            "{width} columns where {asked} were asked for:\n{text}"
        );
        assert!(text.lines().all(|line| !line.ends_with(' ')));
    }
}

#[test]
fn a_proved_bound_is_told_beside_the_tests_and_decides_where_it_is_broken() {
    let mut verdicts = table();
    let check = |largest_ns, outcome| BoundCheck {
        slice: "critical".to_owned(),
        bound: DelayBound {
            scheduler_ns: 480_000,
            outside_ns: 60_000,
        },
        largest_ns,
        scenario: "6".to_owned(),
        repetition: 3,
        runs: 70,
        outcome,
        way_unbounded: None,
    };
    verdicts.policies.retain(|p| p.policy == "priority");
    verdicts.policies[0].isolation.bounds = vec![check(500_000, Outcome::Holds)];
    // A cell is wrapped: its words are there, in several lines.
    let has = |verdicts: &VerdictTable, words: &[&str]| {
        let text = verdict_table_text(verdicts, 120).unwrap();
        let missing = words.iter().find(|word| !text.contains(**word));
        assert_eq!(missing, None, "{text}");
        text
    };
    has(&verdicts, &["throughput", "500", "bound", "540"]);
    verdicts.policies[0].isolation.bounds[0].way_unbounded = Some("source `x` is Poisson".into());
    has(&verdicts, &["500", "scheduler", "no bound", "Poisson"]);
    verdicts.policies[0].isolation.bounds = vec![check(2_100_000, Outcome::Broken)];
    let text = has(&verdicts, &["largest", "2.1", "above", "540"]);
    assert!(!text.contains("throughput"), "{text}");
}
