//! The verdict table in a terminal.

use crate::support;
use slicewise_report::terminal::{Colours, quick_note, verdict_matrix_text, verdict_table_text};
use slicewise_stats::description::{DelayBound, Margins, PublishedVerdict, SliceLimit};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::verdict::{
    Agreement, BoundCheck, DecidedBy, InfluenceTest, InfluenceVerdict, IsolationVerdict, Outcome,
    PolicyVerdict, ReallocationVerdict, RunCount, ScalabilityVerdict, Scale, VerdictTable,
};

fn numbers(indicator: Quantity, statistic: f64, scale: Scale, margin: f64) -> DecidedBy {
    let (reference, change) = match indicator {
        Quantity::Throughput => (17_500_000.0, -17_500_000.0 * statistic),
        Quantity::LossRatio => (0.0, statistic),
        _ => (200_000.0, 200_000.0 * statistic),
    };
    DecidedBy {
        scenario: Some("6".to_owned()),
        slice: "critical".to_owned(),
        indicator: Some(indicator),
        reference: Some(reference),
        treatment: Some(reference + change),
        statistic,
        scale,
        worst: Some(statistic * 1.02),
        margin,
        runs: RunCount {
            runs: 34,
            beyond: if statistic > margin { 34 } else { 0 },
            ..RunCount::none(&Margins::default())
        },
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
    let influence = InfluenceVerdict {
        outcome,
        decided_by,
        first_broken: None,
        repetitions_needed,
        tests: Vec::new(),
    };
    PolicyVerdict {
        policy: name.to_owned(),
        isolation: IsolationVerdict {
            outcome,
            objectives: None,
            influence: influence.clone(),
            deciding_influence: Some(influence),
            bounds: Vec::new(),
            not_judged: Vec::new(),
        },
        reallocation: ReallocationVerdict {
            outcome: reallocation.0,
            claimed: reallocation.0,
            decided_by: reallocation.1.map(|fraction| DecidedBy {
                indicator: None,
                scenario: None,
                reference: Some(5_250_000.0),
                treatment: Some(5_250_000.0 * fraction),
                ..numbers(Quantity::Throughput, fraction, Scale::Fraction, threshold)
            }),
            repetitions_needed: None,
            scenarios: Vec::new(),
            rate_varies: false,
        },
        scalability: ScalabilityVerdict {
            limit: limit.map_or(SliceLimit::NotStated, SliceLimit::Slices),
            limited_by: "256 classes in a policy".to_owned(),
            source: "data sheet".to_owned(),
        },
        published: None,
        agrees: Agreement::default(),
        not_judged: None,
        not_supported: None,
        not_run: false,
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
    let mean = |statistic| numbers(Quantity::DelayMean, statistic, Scale::Relative, 0.25);
    let loss = numbers(Quantity::LossRatio, 0.000_4, Scale::RatioDifference, 0.001);
    let rate = numbers(Quantity::Throughput, 0.000_1, Scale::Relative, 0.01);
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

fn matrix(verdicts: &VerdictTable, width: u16, colours: Colours) -> String {
    verdict_matrix_text(
        &support::study(support::Size::SMALL),
        verdicts,
        width,
        colours,
    )
    .unwrap()
}

#[test]
fn a_policy_is_one_line_with_a_number_in_each_cell_and_a_sentence_answers() {
    insta::assert_snapshot!(matrix(&table(), 120, Colours::None));
    insta::assert_snapshot!(matrix(&table(), 60, Colours::None));
}

#[test]
fn the_matrix_is_as_wide_with_colours_and_never_wider_than_the_terminal() {
    let coloured = matrix(&table(), 100, Colours::Ansi);
    for (cell, code) in [("✗ +104 % delay", 31), ("✓ 99.2 %", 32), ("~ 42 % ≠", 33)] {
        let cell = cell.split(" ≠").next().unwrap();
        assert!(
            coloured.contains(&format!("\u{1b}[1;{code}m{cell}")),
            "{coloured}"
        );
    }
    for width in [60, 80, 100, 120] {
        let text = matrix(&table(), width, Colours::None);
        let table = text.lines().take_while(|line| !line.starts_with('✓'));
        let widest = table.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(width), "{width}:\n{text}");
    }
}

#[test]
fn shows_each_verdict_with_its_number_and_the_published_one() {
    insta::assert_snapshot!(verdict_table_text(&table(), 120, Colours::None).unwrap(), @"
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     Policy                Performance isolation        Resource reallocation        Scalability       Published
    ════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     bandwidth             broken                       holds                        256 slices        no (latency) / yes /
                           critical: mean delay 200 µs  5.208 Mbit/s of              256 classes in a  256
                           → 408 µs (+104 %) in 6,      5.25 Mbit/s, 99.2 % of the   policy            = agrees
                           within +25 % in 0 of 34      unused capacity, at least
                           runs                         95 % in 0 of 34 runs
     priority              holds                        partial                      1 slice           no / yes / 256
                           critical: throughput         2.205 Mbit/s of              256 classes in a  ≠ differs: isolation
                           17.5 Mbit/s → 17.5 Mbit/s    5.25 Mbit/s, 42 % of the     policy
                           (−0.01 %) in 6, within −1 %  unused capacity, a part
                           in 34 of 34 runs             below 95 % in 34 of 34 runs
     a policy with a long  inconclusive                 broken                       no limit known    –
     name                  critical: loss ratio 0 % →   −68.25 kbit/s of             256 classes in a
                           0.04 % (+0.04 points) in 6,  5.25 Mbit/s, −1.3 % of the   policy
                           within +0.1 points in 34 of  unused capacity, at most
                           34 runs                      5 % in 34 of 34 runs
     unjudged              not tested                   not tested                   2 slices          –
                           no slice states an           no unused capacity           256 classes in a
                           objective, and there is no                                policy
                           guaranteed slice, no
                           reference scenario, or no
                           other scenario
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ");
}

#[test]
fn a_policy_without_runs_was_not_run() {
    let mut verdicts = table();
    verdicts.policies.retain(|p| p.policy == "unjudged");
    verdicts.policies[0].not_run = true;
    insta::assert_snapshot!(verdict_table_text(&verdicts, 120, Colours::None).unwrap(), @"
    ───────────────────────────────────────────────────────────────────────────────────────────────────
     Policy    Performance isolation           Resource reallocation           Scalability
    ═══════════════════════════════════════════════════════════════════════════════════════════════════
     unjudged  not run                         not run                         2 slices
               no run of this policy is there  no run of this policy is there  256 classes in a policy
    ───────────────────────────────────────────────────────────────────────────────────────────────────
    ");
}

#[test]
fn colours_outcomes_and_leaves_the_layout_as_it_is() {
    let plain = verdict_table_text(&table(), 100, Colours::None).unwrap();
    let coloured = verdict_table_text(&table(), 100, Colours::Ansi).unwrap();
    for (word, code) in [
        ("holds", 32),
        ("broken", 31),
        ("partial", 33),
        ("inconclusive", 33),
    ] {
        let expected = format!("\u{1b}[1;{code}m{word}\u{1b}[0m");
        assert!(coloured.contains(&expected), "{coloured}");
    }
    let escapes = ["\u{1b}[1;31m", "\u{1b}[1;32m", "\u{1b}[1;33m", "\u{1b}[0m"];
    let stripped = escapes
        .iter()
        .fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(stripped, plain);
    assert!(plain.chars().all(|c| c == '\n' || !c.is_control()));
    let is_mark = |c: char| ('\u{2060}'..='\u{2064}').contains(&c);
    assert!(!plain.contains(is_mark), "marks are no part of the text");
}

#[test]
fn leaves_out_what_was_published_where_nothing_was_and_breaks_no_word() {
    let mut verdicts = table();
    verdicts.policies.retain(|p| p.published.is_none());
    insta::assert_snapshot!(verdict_table_text(&verdicts, 80, Colours::None).unwrap(), @"
    ────────────────────────────────────────────────────────────────────────────────
     Policy           Performance isolation  Resource              Scalability
                                             reallocation
    ════════════════════════════════════════════════════════════════════════════════
     a policy with a  inconclusive           broken                no limit known
     long name        critical: loss ratio   −68.25 kbit/s of      256 classes in a
                      0 % → 0.04 %           5.25 Mbit/s, −1.3 %   policy
                      (+0.04 points) in 6,   of the unused
                      within +0.1 points in  capacity, at most
                      34 of 34 runs          5 % in 34 of 34 runs
     unjudged         not tested             not tested            2 slices
                      no slice states an     no unused capacity    256 classes in a
                      objective, and there                         policy
                      is no guaranteed
                      slice, no reference
                      scenario, or no other
                      scenario
    ────────────────────────────────────────────────────────────────────────────────
    ");
}

#[test]
fn a_terminal_that_is_too_narrow_for_whole_words_gets_the_verdicts_one_below_the_other() {
    let mut verdicts = table();
    verdicts.policies.truncate(2);
    insta::assert_snapshot!(verdict_table_text(&verdicts, 40, Colours::None).unwrap(), @"
    ────────────────────────────────────────
     Policy        bandwidth
    ════════════════════════════════════════
     Performance   broken
     isolation     critical: mean delay
                   200 µs → 408 µs (+104 %)
                   in 6, within +25 % in 0
                   of 34 runs
     Resource      holds
     reallocation  5.208 Mbit/s of
                   5.25 Mbit/s, 99.2 % of
                   the unused capacity, at
                   least 95 % in 0 of 34
                   runs
     Scalability   256 slices
                   256 classes in a policy
     Published     no (latency) / yes / 256
                   = agrees
    ────────────────────────────────────────
     Policy        priority
    ════════════════════════════════════════
     Performance   holds
     isolation     critical: throughput
                   17.5 Mbit/s →
                   17.5 Mbit/s (−0.01 %) in
                   6, within −1 % in 34 of
                   34 runs
     Resource      partial
     reallocation  2.205 Mbit/s of
                   5.25 Mbit/s, 42 % of the
                   unused capacity, a part
                   below 95 % in 34 of 34
                   runs
     Scalability   1 slice
                   256 classes in a policy
     Published     no / yes / 256
                   ≠ differs: isolation
    ────────────────────────────────────────
    ");
}

#[test]
fn is_never_wider_than_the_terminal_nor_than_120_columns() {
    for (asked, widest) in [
        (40, 40),
        (60, 60),
        (80, 80),
        (100, 100),
        (120, 120),
        (u16::MAX, 120),
    ] {
        let text = verdict_table_text(&table(), asked, Colours::None).unwrap();
        let width = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(
            width <= widest,
            "{width} columns where {asked} were asked for:\n{text}"
        );
        assert!(text.lines().all(|line| !line.ends_with(' ')));
    }
}

#[test]
fn a_proved_bound_stands_beside_the_tests_and_decides_where_it_is_broken() {
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
        let text = verdict_table_text(verdicts, 120, Colours::None).unwrap();
        let missing = words.iter().find(|word| !text.contains(**word));
        assert_eq!(missing, None, "{text}");
        text
    };
    has(&verdicts, &["throughput", "500", "bound", "540"]);
    verdicts.policies[0].isolation.bounds[0].way_unbounded = Some("source `x` is Poisson".into());
    has(&verdicts, &["500", "scheduler", "because", "Poisson"]);
    verdicts.policies[0].isolation.bounds = vec![check(2_100_000, Outcome::Broken)];
    let text = has(&verdicts, &["largest", "2.1", "above", "540"]);
    assert!(!text.contains("throughput"), "{text}");
}

#[test]
fn a_quick_look_says_what_its_holds_excludes() {
    let mut study = support::study(support::Size::SMALL);
    study.margins.rare_runs = 0.55;
    assert_eq!(quick_note(&study, &table()), None);
    study.is_quick = true;
    assert_eq!(
        quick_note(&study, &table()).unwrap(),
        "A quick look: \"holds\" excludes only effects in 55 % of runs or more."
    );
    let mut broken = table();
    for policy in &mut broken.policies {
        policy.isolation.outcome = Outcome::Broken;
        policy.reallocation.outcome = Outcome::Broken;
    }
    assert_eq!(quick_note(&study, &broken), None);
}

/// A slice may state its objective in a phase alone, so that the study does not say which tests decide.
#[test]
fn influence_that_does_not_decide_has_no_column() {
    let mut verdicts = table();
    verdicts.policies.truncate(1);
    let isolation = &mut verdicts.policies[0].isolation;
    let test = InfluenceTest {
        outcome: Outcome::Broken,
        numbers: numbers(Quantity::DelayMean, 1.04, Scale::Relative, 0.25),
        repetitions_needed: None,
        growing_per_second: None,
    };
    isolation.influence.tests = vec![test];
    let has_column = |verdicts: &VerdictTable| {
        let text = matrix(verdicts, 120, Colours::None);
        text.contains("mean delay")
    };
    isolation.deciding_influence = Some(isolation.influence.clone());
    assert!(has_column(&verdicts));
    verdicts.policies[0].isolation.deciding_influence = None;
    assert!(!has_column(&verdicts));
}

/// Isolation is shown beside the same bound as its own column.
#[test]
fn the_column_of_bounds_shows_the_one_that_isolation_names() {
    let mut verdicts = table();
    verdicts.policies.truncate(1);
    // By 5 ms, a tenth of it; and by 2 ms, twice the bound.
    let check = |slice: &str, scheduler_ns, largest_ns| BoundCheck {
        slice: slice.to_owned(),
        bound: DelayBound {
            scheduler_ns,
            outside_ns: 0,
        },
        largest_ns,
        scenario: "6".to_owned(),
        repetition: 0,
        runs: 34,
        outcome: Outcome::Broken,
        way_unbounded: None,
    };
    verdicts.policies[0].isolation.bounds = vec![
        check("slow", 50_000_000, 55_000_000),
        check("fast", 1_000_000, 3_000_000),
    ];
    let text = matrix(&verdicts, 120, Colours::None);
    assert_eq!(text.matches("✗ 110 %").count(), 2, "{text}");
}
