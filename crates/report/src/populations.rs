//! Results of populations: for the page, the tables, the figures and the terminal.

use slicewise_results::host::HostFacts;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::{PopulationRecord, RunRecord};
use std::collections::BTreeMap;

/// One population under a policy in a scenario, over all repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct PopulationFinding {
    /// Policy name.
    pub policy: String,
    /// Scenario name.
    pub scenario: String,
    /// The slice of the study that the population is measured as.
    pub slice: String,
    /// Its place in the study.
    pub(crate) slice_index: usize,
    /// Slices of the population.
    pub slices: u32,
    /// Slices of all populations of the scenario.
    pub all_slices: u64,
    /// Repetitions it was measured in.
    pub repetitions: u32,
    /// Its slices had frames waiting all the time.
    pub backlogged: bool,
    /// The largest delay of any frame in any repetition, ns; `None` where nothing arrived.
    pub delay_max_ns: Option<u64>,
    /// Bound that the policy proves for that delay, ns, where it does: not for a backlog, whose frames wait for one
    /// another.
    pub delay_bound_ns: Option<u64>,
    /// Of the repetition where they differ most: the least and most bytes that a slice sent for
    /// each unit of weight. `None` for slices that send less than they may.
    pub bytes_per_weight: Option<(u64, u64)>,
    /// Bytes of one turn of a slice of weight 1.
    pub turn_bytes: u64,
    /// Bytes the scheduler keeps for a slice.
    pub state_bytes: u64,
    /// Wall-clock time a frame of the runs of this policy and scenario, ns, where the host's facts
    /// hold it: a fact about the host.
    pub ns_a_frame: Option<f64>,
}

impl PopulationFinding {
    /// The largest delay as a part of its bound.
    #[must_use]
    pub fn part_of_bound(&self) -> Option<f64> {
        let (largest, bound) = (self.delay_max_ns?, self.delay_bound_ns?);
        (bound > 0).then(|| largest as f64 / bound as f64)
    }

    /// By how many turns the slice that got most is ahead of the one that got least.
    #[must_use]
    pub fn turns_apart(&self) -> Option<f64> {
        let (least, most) = self.bytes_per_weight?;
        (self.turn_bytes > 0).then(|| most.saturating_sub(least) as f64 / self.turn_bytes as f64)
    }

    /// Bytes the scheduler keeps for all slices of the scenario.
    #[must_use]
    pub fn state_bytes_in_all(&self) -> u64 {
        self.state_bytes.saturating_mul(self.all_slices)
    }
}

/// Gathers what records hold of populations, run by run.
#[derive(Debug, Default)]
pub(crate) struct Populations {
    /// By policy, scenario and slice, given by their places in the study.
    found: BTreeMap<(usize, usize, usize), PopulationFinding>,
}

impl Populations {
    /// Take what one run holds.
    pub(crate) fn on_run(&mut self, record: &RunRecord, study: &StudyDescription) {
        let key = &record.key;
        let policy = study.policy_place(&key.policy);
        let Some((policy, scenario)) = policy.zip(study.scenario_place(&key.scenario)) else {
            return;
        };
        let all_slices = record.populations.iter().map(|p| u64::from(p.slices)).sum();
        for population in &record.populations {
            let Some(slice) = study.slice_place(&population.slice) else {
                continue;
            };
            let finding = self
                .found
                .entry((policy, scenario, slice))
                .or_insert_with(|| PopulationFinding {
                    policy: key.policy.clone(),
                    scenario: key.scenario.clone(),
                    slice: population.slice.clone(),
                    slice_index: slice,
                    slices: population.slices,
                    all_slices,
                    repetitions: 0,
                    backlogged: population.backlogged,
                    delay_max_ns: None,
                    delay_bound_ns: bound(study, policy, population),
                    bytes_per_weight: None,
                    turn_bytes: population.turn_bytes,
                    state_bytes: population.state_bytes,
                    ns_a_frame: None,
                });
            finding.repetitions += 1;
            let delay = record.slices.get(slice).map(|slice| &slice.whole.delay);
            let delay = delay.filter(|delay| delay.samples > 0);
            finding.delay_max_ns = finding.delay_max_ns.max(delay.map(|delay| delay.max_ns));
            finding.take_shares(population);
        }
    }

    /// In the order of the study, with the times that `host` knows.
    pub(crate) fn findings(self, host: Option<&HostFacts>) -> Vec<PopulationFinding> {
        let with_time = |finding: PopulationFinding| {
            let time = host.and_then(|host| host.run_time(&finding.policy, &finding.scenario));
            PopulationFinding {
                ns_a_frame: time.and_then(|time| time.ns_a_frame()),
                ..finding
            }
        };
        self.found.into_values().map(with_time).collect()
    }
}

impl PopulationFinding {
    fn take_shares(&mut self, population: &PopulationRecord) {
        let own = (
            population.least_bytes_per_weight,
            population.most_bytes_per_weight,
        );
        let apart = |(least, most): (u64, u64)| most.saturating_sub(least);
        if population.backlogged
            && self
                .bytes_per_weight
                .is_none_or(|found| apart(own) > apart(found))
        {
            self.bytes_per_weight = Some(own);
        }
    }
}

fn bound(study: &StudyDescription, policy: usize, population: &PopulationRecord) -> Option<u64> {
    let bounds = &study.policies.get(policy)?.delay_bounds;
    let bound = bounds.get(&population.slice)?;
    (!population.backlogged).then(|| bound.end_to_end_ns())
}

/// Summarises the populations: which keep to a bound however many slices there are, and which do not. Empty where there
/// is nothing to compare.
pub(crate) fn finding(study: &StudyDescription, populations: &[PopulationFinding]) -> Vec<String> {
    let mut sentences = Vec::new();
    for (slice, description) in study.slices.iter().enumerate() {
        let of_slice = || {
            let all = populations.iter();
            all.filter(move |finding| finding.slice_index == slice && !finding.backlogged)
        };
        if of_slice().next().is_none() {
            continue;
        }
        let policies = study.policies.iter().filter_map(|policy| {
            let own = || of_slice().filter(|finding| finding.policy == policy.name);
            let fewest = own().min_by_key(|finding| finding.all_slices)?;
            let most = own().max_by_key(|finding| finding.all_slices)?;
            Some(growth(&policy.name, fewest, most))
        });
        let policies: Vec<String> = policies.flatten().collect();
        if !policies.is_empty() {
            sentences.push(format!(
                "Largest delay of {}: {}.",
                description.name,
                policies.join("; ")
            ));
        }
    }
    sentences
}

fn growth(policy: &str, fewest: &PopulationFinding, most: &PopulationFinding) -> Option<String> {
    let time = |ns: u64| slicewise_stats::words::time(ns as f64);
    let (low, high) = (fewest.delay_max_ns?, most.delay_max_ns?);
    let proved = most.delay_bound_ns.map_or_else(String::new, |bound| {
        format!(" (proved: at most {})", time(bound))
    });
    Some(if fewest.all_slices == most.all_slices {
        format!("under {policy} {}{proved}", time(high))
    } else {
        format!(
            "under {policy} {} among {} slices, {} among {}{proved}",
            time(low),
            grouped(fewest.all_slices),
            time(high),
            grouped(most.all_slices)
        )
    })
}

/// A count with its thousands set apart: "1 000 000"; four digits stay together.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Wall-clock time a frame, ns.
pub(crate) fn time_a_frame(ns: f64) -> String {
    format!("{} ns", slicewise_stats::words::digits(ns, 3))
}

/// A size in memory: "136 B", "136 MB".
pub(crate) fn memory(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let fits = units.into_iter().find(|(_, factor)| bytes >= *factor);
    let (symbol, factor) = fits.unwrap_or(("B", 1));
    let value = bytes as f64 / factor as f64;
    format!("{} {symbol}", slicewise_stats::words::digits(value, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes_are_told_in_few_digits() {
        assert_eq!(grouped(1_000), "1000");
        assert_eq!(grouped(10_000), "10\u{202f}000");
        assert_eq!(grouped(1_000_000), "1\u{202f}000\u{202f}000");
        assert_eq!(memory(136), "136 B");
        assert_eq!(memory(136_000_000), "136 MB");
        assert_eq!(memory(1_360_500), "1.36 MB");
    }
}
