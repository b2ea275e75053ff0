//! How often decisions are wrong, by Monte Carlo: samples whose true mean lies exactly at the margin, so
//! that every decision is an error of one kind or the other.

use super::Indicator;
use super::Outcome;
use super::influence::{Draft, test};
use super::objectives::{Asked, ObjectiveIndicator, draft};
use super::repetitions::Rules;
use super::samples::Samples;
use crate::description::Margins;
use crate::estimate::Sample;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Most wrong decisions of a kind.
const LEVEL: f64 = 0.06;
const STUDIES: u32 = 4000;
const REPETITIONS: [u32; 9] = [5, 6, 8, 10, 15, 20, 30, 32, 40];

struct Draws(Xoshiro256PlusPlus);

impl Draws {
    fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        // Box and Muller 1958.
        let (a, b) = (self.unit(), self.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// A distribution of mean 1 of values that are not negative.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Normal,
    /// Of a normal variable of deviation σ.
    Lognormal(f64),
    /// The same value in a share of runs, 0 in the others.
    TwoPoint(f64),
    /// With exponent α.
    Pareto(f64),
    /// 0, but in a share of runs exponential.
    MostlyZero(f64),
}

const SHAPES: [Shape; 12] = [
    Shape::Normal,
    Shape::Lognormal(0.5),
    Shape::Lognormal(1.0),
    Shape::Lognormal(2.0),
    Shape::TwoPoint(0.1),
    Shape::TwoPoint(0.2),
    Shape::TwoPoint(0.5),
    Shape::TwoPoint(0.9),
    Shape::Pareto(1.5),
    Shape::Pareto(3.0),
    Shape::MostlyZero(0.1),
    Shape::MostlyZero(0.3),
];

impl Shape {
    fn draw(self, draws: &mut Draws) -> f64 {
        match self {
            Self::Normal => 1.0 + 0.2 * draws.normal(),
            Self::Lognormal(sigma) => (sigma * draws.normal() - sigma * sigma / 2.0).exp(),
            Self::TwoPoint(share) => f64::from(u8::from(draws.unit() < share)) / share,
            Self::Pareto(alpha) => draws.unit().powf(-1.0 / alpha) * (alpha - 1.0) / alpha,
            Self::MostlyZero(share) if draws.unit() < share => -draws.unit().ln() / share,
            Self::MostlyZero(_) => 0.0,
        }
    }
}

/// Shares of wrong "holds" and wrong "broken" of decisions by `decide`, which draws a sample of `n` runs.
fn errors(mut decide: impl FnMut(&mut Draws) -> (f64, f64)) -> [f64; 2] {
    let mut draws = Draws(Xoshiro256PlusPlus::seed_from_u64(11));
    let mut wrong = [0u32; 2];
    let alpha = Rules::of(&Margins::default()).alpha();
    for _ in 0..STUDIES {
        let (p_holds, p_broken) = decide(&mut draws);
        wrong[0] += u32::from(p_holds <= alpha);
        wrong[1] += u32::from(p_holds > alpha && p_broken <= alpha);
    }
    wrong.map(|count| f64::from(count) / f64::from(STUDIES))
}

fn check(what: &str, decide: impl Fn(Shape, u32, &mut Draws) -> (f64, f64)) {
    let mut table = Vec::new();
    for shape in SHAPES {
        for n in REPETITIONS {
            let wrong = errors(|draws| decide(shape, n, draws));
            table.push((shape, n, wrong));
        }
    }
    let failed: Vec<_> = (table.iter())
        .filter(|(.., wrong)| wrong.iter().any(|&share| share > LEVEL))
        .collect();
    assert!(failed.is_empty(), "{what}: {failed:?}");
}

fn p_values(draft: &Draft) -> (f64, f64) {
    (draft.p_holds, draft.p_broken)
}

fn influence(indicator: Indicator, pairs: &[(f64, f64)]) -> (f64, f64) {
    let margins = Margins::default();
    let (treatment, reference): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let means = (
        Sample::of(&treatment).unwrap(),
        Sample::of(&reference).unwrap(),
    );
    p_values(&test(
        indicator,
        Samples::Pairs(pairs),
        &means,
        &margins,
        Rules::of(&margins),
    ))
}

#[test]
fn loss_at_the_margin_is_decided_wrongly_in_at_most_six_of_a_hundred_studies() {
    check("loss", |shape, n, draws| {
        let pairs: Vec<_> = (0..n).map(|_| (0.001 * shape.draw(draws), 0.0)).collect();
        influence(Indicator::LossRatio, &pairs)
    });
}

#[test]
fn delay_at_the_margin_of_a_reference_that_scatters_is_decided_wrongly_as_rarely() {
    check("delay", |shape, n, draws| {
        let pairs: Vec<_> = (0..n)
            .map(|_| {
                let reference = 1e6 * (1.0 + 0.05 * draws.normal());
                (1e6 + 0.25e6 * shape.draw(draws), reference)
            })
            .collect();
        influence(Indicator::DelayMean, &pairs)
    });
}

#[test]
fn an_objective_at_its_limit_is_decided_wrongly_as_rarely() {
    let rules = Rules::of(&Margins::default());
    check("objective", |shape, n, draws| {
        let values: Vec<f64> = (0..n).map(|_| 0.001 * shape.draw(draws)).collect();
        let asked = Asked::of(ObjectiveIndicator::LossRatio, 0.001);
        let test = draft(asked, &values, rules).unwrap().test;
        assert_eq!(
            test.outcome,
            Outcome::Inconclusive,
            "not decided before the correction"
        );
        (test.p_met, test.p_missed)
    });
}

/// What Student's bounds alone would do, so that the tests above are known to be able to fail.
#[test]
fn student_alone_would_be_wrong_several_times_as_often() {
    let t_only = |shape: Shape, n| {
        errors(|draws| {
            let values: Vec<f64> = (0..n).map(|_| shape.draw(draws)).collect();
            let bounds = Sample::of(&values).unwrap().one_sided_bounds(0.95);
            let holds = bounds.high.is_some_and(|high| high <= 1.0);
            (f64::from(u8::from(!holds)), 1.0)
        })[0]
    };
    assert!(t_only(Shape::MostlyZero(0.1), 10) > 0.3);
    assert!(t_only(Shape::TwoPoint(0.1), 6) > 0.3);
    assert!(t_only(Shape::Lognormal(1.0), 10) > 0.15);
}
