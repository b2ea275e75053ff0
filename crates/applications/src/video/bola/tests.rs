use super::*;
use proptest::prelude::*;
use slicewise_units::BitRate;

/// Big Buck Bunny as Sabre has it, the simulator of BOLA's authors, kbit/s.
const BUNNY: [f64; 10] = [
    230.0, 331.0, 477.0, 688.0, 991.0, 1_427.0, 2_056.0, 2_962.0, 5_027.0, 6_000.0,
];

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Utilities 0, 1, 2; with V = 1 and γ = 5 the scores are (5 − Q) / 1, (6 − Q) / e, (7 − Q) / e².
#[test]
fn the_quality_changes_where_two_scores_are_equal() {
    let e = std::f64::consts::E;
    let objective = Objective::new(&[1.0, e, e * e], 1.0, 5.0);
    // e (5 − Q) = 6 − Q; the next pair the same one later.
    let equal = 5.0 - 1.0 / (e - 1.0);
    let levels = [
        0.0,
        equal - 1e-6,
        equal + 1e-6,
        equal + 1.0 - 1e-6,
        equal + 1.0 + 1e-6,
        9.0,
    ];
    assert_eq!(
        levels.map(|level| objective.best(level)),
        [0, 0, 1, 1, 2, 2]
    );
}

/// γp = 5 as in the paper, V so that a buffer of 25 s has room for a segment of 3 s at the top quality: Sabre's defaults.
/// V = 22 s / (ln(6000 / 230) + 5) = 2.663 s. Between neighbours n − 1 and n the quality
/// changes at V (γ + (r_n υ_(n−1) − r_(n−1) υ_n) / (r_n − r_(n−1))).
#[test]
fn with_the_parameters_of_the_paper_qualities_change_at_the_computed_levels() {
    let objective = Objective::new(&BUNNY, 22.0 / ((6_000.0_f64 / 230.0).ln() + 5.0), 5.0);
    let changes = [
        11.107, 12.078, 13.052, 14.026, 14.998, 15.969, 16.942, 18.100, 19.094,
    ];
    for (quality, level) in (1..).zip(changes) {
        assert_eq!(objective.best(level - 0.002), quality - 1, "below {level}");
        assert_eq!(objective.best(level + 0.002), quality, "above {level}");
    }
}

/// Ladder 0.4, 1, 2.5, 5 Mbit/s and 18 s: γ = ln(12.5) / (18 / 10 − 1) = 3.157, V = 10 / γ = 3.167 s.
#[test]
fn v_and_gamma_follow_from_ladder_and_buffer() {
    let ladder = [0.4e6, 1e6, 2.5e6, 5e6];
    let objective = Objective::of_buffer(&ladder, 18.0).unwrap();
    assert!((objective.gamma - 3.157_161).abs() < 1e-6, "{objective:?}");
    assert!((objective.v - 3.167_403).abs() < 1e-6, "{objective:?}");
    // A buffer too short for the ladder counts as 10 s and 2 s a quality.
    let short = Objective::of_buffer(&ladder, 6.0).unwrap();
    assert_eq!(short.v, objective.v);
    assert!(Objective::of_buffer(&ladder[..1], 18.0).is_none());
    assert!(Objective::of_buffer(&[], 18.0).is_none());
    // V more than where the scores are equal, and than where the score becomes 0.
    let least = [0, 1, 2, 3].map(|quality| objective.least(quality));
    let most = [0, 1, 2, 3].map(|quality| objective.most(quality));
    for quality in 0..4 {
        assert!((least[quality] - LEAST[quality]).abs() < 1e-3, "{least:?}");
        assert!((most[quality] - MOST[quality]).abs() < 1e-3, "{most:?}");
    }
}

/// With 18 s to play at most: V (γ + (r_n (υ_m + 1) − r_m (υ_n + 1)) / (r_n − r_m)) with the next lower quality m.
const LEAST: [f64; 4] = [0.0, 11.232_6, 14.134_8, 16.776_5];
/// V (υ + 1 + γ).
const MOST: [f64; 4] = [13.167_4, 16.069_7, 18.971_9, 21.167_4];

fn ladder() -> Ladder {
    let rates = [400, 1_000, 2_500, 5_000].map(|kbit| BitRate::new(kbit * 1_000));
    Ladder::new(&rates, Duration::from_secs(4))
}

fn steady(placeholder: f64) -> Bola {
    Bola {
        is_steady: true,
        placeholder,
        idle_since: None,
        has_segment: true,
    }
}

fn situation(level: f64, sustainable: usize, current: usize) -> Situation {
    Situation {
        now: at(100),
        level,
        sustainable,
        current,
    }
}

fn choice(bola: &mut Bola, at: Situation) -> (usize, f64) {
    let ladder = ladder();
    let objective = Objective::of_buffer(&ladder.bit_rates, 18.0).unwrap();
    let choice = bola.choose(&objective, &ladder, at);
    (choice.quality, choice.wait.as_secs_f64())
}

#[test]
fn at_first_the_throughput_decides_and_the_placeholder_keeps_its_quality() {
    let mut bola = Bola::default();
    assert_eq!(choice(&mut bola, situation(0.0, 2, 0)), (2, 0.0));
    assert!((bola.placeholder - LEAST[2]).abs() < 1e-3);
    assert!(!bola.is_steady, "there was no segment");
    bola.has_segment = true;
    assert_eq!(choice(&mut bola, situation(3.9, 2, 2)), (2, 0.0));
    assert!(!bola.is_steady, "less than a segment to play");
    assert_eq!(choice(&mut bola, situation(4.0, 2, 2)), (2, 0.0));
    assert!(bola.is_steady && (bola.placeholder + 4.0 - LEAST[2]).abs() < 1e-3);
}

#[test]
fn a_higher_quality_needs_the_throughput_a_lower_one_does_not() {
    // 17 s to play would be for the top quality.
    assert_eq!(choice(&mut steady(0.0), situation(17.0, 3, 1)).0, 3);
    assert_eq!(choice(&mut steady(0.0), situation(17.0, 2, 1)).0, 2);
    assert_eq!(choice(&mut steady(0.0), situation(17.0, 0, 1)).0, 1);
    assert_eq!(choice(&mut steady(0.0), situation(3.0, 3, 3)).0, 0);
    // 9 s to play are for the second: neither throughput nor the last quality makes more of it.
    assert_eq!(choice(&mut steady(0.0), situation(9.0, 3, 0)).0, 1);
    assert_eq!(choice(&mut steady(0.0), situation(9.0, 0, 3)).0, 1);
}

#[test]
fn rather_than_too_much_of_a_low_quality_nothing_is_asked_for() {
    let most = MOST[0];
    let low = |level: f64, bola: &mut Bola| choice(bola, situation(level, 0, 0));
    assert_eq!(low(most - 0.5, &mut steady(0.0)), (0, 0.0));
    let (quality, wait) = low(most + 2.0, &mut steady(0.0));
    assert_eq!(quality, 0);
    assert!((wait - 2.0).abs() < 1e-3, "{wait}");
    // The placeholder goes first.
    let mut bola = steady(3.0);
    assert_eq!(low(most - 1.0, &mut bola).1, 0.0);
    assert!((bola.placeholder - 1.0).abs() < 1e-3);
    let mut bola = steady(0.5);
    assert!((low(most + 2.0, &mut bola).1 - 2.0).abs() < 1e-3);
    assert_eq!(bola.placeholder, 0.0);
    // At the top quality the buffer is filled.
    assert_eq!(choice(&mut steady(0.0), situation(40.0, 3, 3)), (3, 0.0));
}

#[test]
fn after_a_wait_the_segment_is_asked_for() {
    let level = MOST[0] + 2.0;
    let mut bola = steady(0.0);
    bola.idle_since = Some(at(100));
    let (_, wait) = choice(&mut bola, situation(level, 0, 0));
    assert!((wait - 2.0).abs() < 1e-3);
    let later = Situation {
        now: at(100) + Duration::from_millis(2_000),
        ..situation(level - 2.0, 0, 0)
    };
    assert!(choice(&mut bola, later).1 < 1e-3);
}

#[test]
fn time_in_which_nothing_was_asked_for_does_not_count_against_the_quality() {
    let mut bola = steady(0.0);
    bola.idle_since = Some(at(97));
    // 3 s ago there were 12 s to play.
    let (quality, _) = choice(&mut bola, situation(9.0, 3, 3));
    assert_eq!(quality, choice(&mut steady(0.0), situation(12.0, 3, 3)).0);
    assert_ne!(quality, choice(&mut steady(0.0), situation(9.0, 3, 3)).0);
}

#[test]
fn the_placeholder_decays_and_stays_below_what_the_quality_is_worth() {
    let ladder = ladder();
    let objective = Objective::of_buffer(&ladder.bit_rates, 18.0).unwrap();
    let mut bola = steady(4.0);
    bola.on_segment(&objective, 1, 2.0, 1.0, at(5));
    assert!((bola.placeholder - 3.96).abs() < 1e-9);
    assert_eq!(bola.idle_since, Some(at(5)));
    bola.on_segment(&objective, 1, MOST[1] - 2.0, 1.0, at(6));
    assert!((bola.placeholder - 1.0).abs() < 1e-3);
    bola.on_segment(&objective, 1, MOST[1], 1.0, at(7));
    assert_eq!(bola.placeholder, 0.0);
    bola.placeholder = 1.0;
    bola.on_empty();
    assert_eq!(bola.placeholder, 0.0);
}

proptest! {
    #[test]
    fn with_more_to_play_the_quality_is_never_lower(
        mut bit_rates in prop::collection::vec(1e5..1e8, 2..10),
        buffer in 4.0..60.0,
        levels in (0.0..80.0, 0.0..80.0),
    ) {
        bit_rates.sort_by(f64::total_cmp);
        let objective = Objective::of_buffer(&bit_rates, buffer).unwrap();
        let (less, more) = if levels.0 < levels.1 { levels } else { (levels.1, levels.0) };
        prop_assert!(objective.best(less) <= objective.best(more));
    }

    #[test]
    fn as_much_as_a_quality_needs_is_enough_for_it(
        mut bit_rates in prop::collection::vec(1e5..1e8, 2..10),
        buffer in 4.0..60.0,
    ) {
        bit_rates.sort_by(f64::total_cmp);
        let objective = Objective::of_buffer(&bit_rates, buffer).unwrap();
        for quality in 0..bit_rates.len() {
            prop_assert!(objective.best(objective.least(quality)) >= quality);
            // dash.js's terms are V above the objective's.
            if objective.least(quality) > 0.0 {
                prop_assert!(objective.best(objective.least(quality) - objective.v - 1e-6) < quality);
            }
        }
    }
}
