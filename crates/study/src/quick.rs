//! The profile of minutes: which scenarios it runs where the study does not name them.

use crate::params::{
    ApplicationParams, OnOffParams, PopulationParams, PopulationPatternParams, ScenarioParams,
    SourceParams, StudySlice,
};
use slicewise_units::{BitRate, Duration};
use std::cmp::Reverse;

/// A profile of minutes instead of hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuickParams {
    /// Which scenarios, by index.
    pub scenarios: Vec<usize>,
    /// Repetitions of each policy × scenario.
    pub repetitions: u32,
    /// How long traffic is offered in a run.
    pub duration: Duration,
}

/// Average load that the slices of a scenario offer, against their shares. Bit/s of L2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Load {
    /// By guaranteed slices, beyond their shares.
    exceeded: u128,
    /// Of the shares of guaranteed slices.
    unused: u128,
    /// By best effort.
    best_effort: u128,
    /// The shares of best effort.
    best_effort_share: u128,
}

impl Load {
    /// Returns the part of the guaranteed slices' shares that best effort could take; 0 where a guaranteed slice
    /// exceeds its share and competes for it, or where the part is below 1 % of the best-effort shares.
    fn reallocatable(&self) -> u128 {
        let overload = self.best_effort.saturating_sub(self.best_effort_share);
        let available = self.unused.min(overload);
        if self.exceeded > 0 || available < self.best_effort_share / 100 {
            return 0;
        }
        available
    }
}

/// The scenarios that both verdicts need: the reference; the heaviest load of best effort while
/// guaranteed slices keep to their shares; and, where that one leaves best effort nothing to take, the
/// one that leaves most. Where guaranteed slices never keep to their shares, or there is no best effort,
/// the heaviest load of all stands for the second.
pub(crate) fn usual_scenarios(
    scenarios: &[ScenarioParams],
    slices: &[StudySlice],
    populations: &[PopulationParams],
    port: BitRate,
) -> Vec<usize> {
    let loads: Vec<Load> = scenarios
        .iter()
        .map(|scenario| load(&offered(scenario, slices.len(), populations, port), slices))
        .collect();
    let reference = scenarios.iter().position(|scenario| scenario.reference);
    let others = || {
        let loads = loads.iter().enumerate();
        loads.filter(move |(index, _)| Some(*index) != reference)
    };
    let heaviest = others()
        .max_by_key(|(_, load)| (Reverse(load.exceeded > 0), load.best_effort, load.exceeded));
    let heaviest = heaviest.map(|(index, _)| index);
    let mut chosen: Vec<usize> = reference.into_iter().chain(heaviest).collect();
    let leaves = |index: &usize| loads.get(*index).map_or(0, Load::reallocatable) > 0;
    if !chosen.iter().any(leaves) {
        let most = others().max_by_key(|(_, load)| load.reallocatable());
        chosen.extend(most.map(|(index, _)| index).filter(leaves));
    }
    chosen.sort_unstable();
    chosen
}

fn load(offered: &[u128], slices: &[StudySlice]) -> Load {
    let mut load = Load::default();
    for (slice, &offered) in slices.iter().zip(offered) {
        let share = u128::from(slice.share.bits_per_second());
        if slice.guaranteed {
            load.exceeded += offered.saturating_sub(share);
            load.unused += share.saturating_sub(offered);
        } else {
            load.best_effort += offered;
            load.best_effort_share += share;
        }
    }
    load
}

/// Returns the average load that each slice offers, bit/s of L2; of applications, their demand. The load of a replayed
/// capture is not known and counts as 0.
fn offered(
    scenario: &ScenarioParams,
    slices: usize,
    populations: &[PopulationParams],
    port: BitRate,
) -> Vec<u128> {
    let mut offered = vec![0u128; slices];
    let of_sources = scenario.sources.iter().map(|s| (s.slice, mean_rate(s)));
    let counts = populations.iter().zip(&scenario.populations);
    let of_populations = counts.map(|(population, &count)| {
        let each = rate_of_one(population, port);
        (population.slice, each.saturating_mul(u128::from(count)))
    });
    let of_applications = scenario.applications.iter();
    let of_applications = of_applications.map(|s| (s.slice, demand(&s.application, port)));
    for (slice, rate) in of_sources.chain(of_applications).chain(of_populations) {
        if let Some(sum) = offered.get_mut(slice) {
            *sum = sum.saturating_add(rate);
        }
    }
    offered
}

fn mean_rate(source: &SourceParams) -> u128 {
    let l2_bytes = source.weighted_sum(|size| u64::from(size.l2_bytes));
    let counted = source.weighted_sum(|size| u64::from(size.counted_bytes));
    let rate = u128::from(source.rate.bits_per_second()) * l2_bytes / counted.max(1);
    match source.on_off {
        None => rate,
        Some(OnOffParams { on, off, .. }) => {
            let cycle = u128::from(on.nanos()) + u128::from(off.nanos());
            rate * u128::from(on.nanos()) / cycle.max(1)
        }
    }
}

/// Returns the rate that an application would take on an idle network, bit/s without headers: the whole port, unless
/// its own pace limits it.
fn demand(application: &ApplicationParams, port: BitRate) -> u128 {
    let port = u128::from(port.bits_per_second());
    match application {
        ApplicationParams::Bulk(_) => application.limit_bits_per_second().map_or(port, u128::from),
        ApplicationParams::ShortFlows(_) => port,
        ApplicationParams::Requests(requests) => {
            let bits = u128::from(requests.response.mean_bytes()) * 8;
            bits * u128::from(requests.per_kilosecond) / 1_000
        }
        ApplicationParams::Video(video) => {
            let best = video.ladder.last().map_or(0, |rate| rate.bits_per_second());
            u128::from(best) * u128::from(video.clients)
        }
    }
}

/// A slice that always has a frame waiting would take the whole port.
fn rate_of_one(population: &PopulationParams, port: BitRate) -> u128 {
    match population.pattern {
        PopulationPatternParams::Backlog => u128::from(port.bits_per_second()),
        PopulationPatternParams::Bursts { frames, every } => {
            let bits = u128::from(frames) * u128::from(population.frame_bytes) * 8;
            bits * 1_000_000_000 / u128::from(every.nanos().max(1))
        }
    }
}
