//! How runs on real packets went: what the machine did meanwhile, and how punctual everybody was.

use crate::populations::grouped;
use slicewise_stats::flow::CaptureRecord;
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_stats::testbed::{IdleBaseline, TestbedRecord};
use std::collections::BTreeMap;

/// How one run went.
#[derive(Debug, Clone, PartialEq)]
pub struct TestbedRun {
    /// Which run.
    pub run: RunKey,
    /// How it went.
    pub testbed: TestbedRecord,
    /// Packets that the capturing host lost at all measuring points; `None` where none tells.
    pub capture_drops: Option<u64>,
}

/// How the runs of a results folder went, in the order of the study.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Testbed {
    /// The runs on real packets.
    pub runs: Vec<TestbedRun>,
}

/// Several runs together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TestbedSummary {
    pub(crate) runs: u64,
    /// Median of the medians of the idle baselines, the largest of their 99th percentiles, and the
    /// largest delay, ns; `None` where no probe arrived.
    pub(crate) baseline_ns: Option<[u64; 3]>,
    /// Mean and largest share of time taken by others.
    pub(crate) steal_ratio: [f64; 2],
    /// Mean and smallest share of time in which nothing ran.
    pub(crate) idle_ratio: [f64; 2],
    /// Largest 99th percentile of a sender's lateness, and the largest lateness, ns; `None` where no
    /// sender was ours.
    pub(crate) lateness_ns: Option<[u64; 2]>,
    /// Late departures from the device, and all of them.
    pub(crate) departures: Option<[u64; 2]>,
    /// Attempts that were thrown away.
    pub(crate) rejected: u64,
    /// Packets that captures lost.
    pub(crate) capture_drops: Option<u64>,
}

impl Testbed {
    /// Take a run; one that was not on real packets is none of it.
    pub(crate) fn on_run(&mut self, record: &RunRecord) {
        let Some(live) = &record.testbed else {
            return;
        };
        self.runs.push(TestbedRun {
            run: record.key.clone(),
            testbed: live.clone(),
            capture_drops: record.capture.as_ref().and_then(capture_drops),
        });
    }

    /// True where no run was on real packets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// When the first and the last run began, ns since 1970.
    pub(crate) fn began_ns(&self) -> Option<(u64, u64)> {
        let began = || self.runs.iter().map(|run| run.testbed.began_ns);
        began().min().zip(began().max())
    }

    /// The runs of `policy`, or all of them.
    pub(crate) fn summary(&self, policy: Option<&str>) -> TestbedSummary {
        let mine = |run: &&TestbedRun| policy.is_none_or(|policy| run.run.policy == policy);
        let runs: Vec<&TestbedRun> = self.runs.iter().filter(mine).collect();
        let ratios = |of: fn(&TestbedRecord) -> f64| -> Vec<f64> {
            runs.iter().map(|run| of(&run.testbed)).collect()
        };
        let (steal, idle) = (ratios(|l| l.steal_ratio), ratios(|l| l.idle_ratio));
        let senders = || runs.iter().flat_map(|run| &run.testbed.senders);
        TestbedSummary {
            runs: runs.len() as u64,
            baseline_ns: baseline(&runs),
            steal_ratio: [mean(&steal), steal.iter().copied().fold(0.0, f64::max)],
            idle_ratio: [mean(&idle), idle.iter().copied().fold(1.0, f64::min)],
            lateness_ns: senders()
                .map(|s| [s.lateness_p99_ns, s.lateness_max_ns])
                .reduce(|[a, b], [c, d]| [a.max(c), b.max(d)]),
            departures: runs
                .iter()
                .filter_map(|run| run.testbed.departures)
                .map(|d| [d.late_frames, d.frames])
                .reduce(|[a, b], [c, d]| [a.saturating_add(c), b.saturating_add(d)]),
            rejected: runs
                .iter()
                .map(|run| run.testbed.rejected.len() as u64)
                .sum(),
            capture_drops: runs
                .iter()
                .filter_map(|run| run.capture_drops)
                .reduce(u64::saturating_add),
        }
    }

    /// Runs that were taken although the machine was noisy: which, and what was wrong with them.
    pub(crate) fn tolerated(&self) -> Vec<String> {
        let described = |run: &TestbedRun| {
            let what = run.testbed.tolerated.join("; ");
            (!what.is_empty()).then(|| format!("{}: {what}", run_name(&run.run)))
        };
        self.runs.iter().filter_map(described).collect()
    }

    /// Attempts that were thrown away: which run, and why.
    pub(crate) fn rejected(&self) -> Vec<String> {
        let described = |run: &TestbedRun| {
            let name = run_name(&run.run);
            let reasons = run.testbed.rejected.iter().enumerate();
            reasons
                .map(|(attempt, why)| format!("{name}, attempt {}: {why}", attempt + 1))
                .collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(described).collect()
    }

    /// Devices under test, and kernel and tools, each with the number of runs where not all have it.
    pub(crate) fn versions(&self) -> Vec<String> {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for run in &self.runs {
            let versions = run.testbed.versions.iter();
            let texts = versions.map(|(name, version)| format!("{name} {version}"));
            for text in texts.chain([run.testbed.device.clone()]) {
                *found.entry(text).or_default() += 1;
            }
        }
        let all = self.runs.len();
        found
            .into_iter()
            .filter(|(text, _)| !text.trim().is_empty())
            .map(|(text, runs)| match runs {
                runs if runs >= all => text,
                runs => format!("{text} (in {runs} of {all} runs)"),
            })
            .collect()
    }

    /// The runs in the order in which they were carried out.
    pub(crate) fn in_order(&self) -> Vec<&TestbedRun> {
        let mut runs: Vec<&TestbedRun> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.testbed.began_ns);
        runs
    }
}

/// "priority, scenario 6, repetition 0".
pub(crate) fn run_name(run: &RunKey) -> String {
    format!(
        "{}, scenario {}, repetition {}",
        run.policy, run.scenario, run.repetition
    )
}

/// "2026-11-22 05:38 UTC" (Gregorian: H. Hinnant, chrono-compatible low-level date algorithms).
pub(crate) fn utc(ns_since_1970: u64) -> String {
    let minutes = ns_since_1970 / 60_000_000_000;
    let (days, minute_of_day) = (minutes / 1440, minutes % 1440);
    // Years begin in March here: the leap day is the last one.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02} UTC",
        minute_of_day / 60,
        minute_of_day % 60
    )
}

/// "0 of 12 345".
pub(crate) fn part_of([part, all]: [u64; 2]) -> String {
    format!("{} of {}", grouped(part), grouped(all))
}

fn capture_drops(capture: &CaptureRecord) -> Option<u64> {
    let drops = capture
        .points
        .iter()
        .filter_map(|point| point.capture_drops);
    drops.reduce(u64::saturating_add)
}

fn baseline(runs: &[&TestbedRun]) -> Option<[u64; 3]> {
    let heard: Vec<IdleBaseline> = runs
        .iter()
        .map(|run| run.testbed.baseline)
        .filter(|baseline| baseline.samples > 0)
        .collect();
    let mut medians: Vec<u64> = heard.iter().map(|b| b.p50_ns).collect();
    medians.sort_unstable();
    let median = *medians.get(medians.len() / 2)?;
    let p99 = heard.iter().map(|b| b.p99_ns).max()?;
    Some([median, p99, heard.iter().map(|b| b.max_ns).max()?])
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds: u64| utc(seconds * 1_000_000_000);
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(at(1_795_325_910), "2026-11-22 05:38 UTC");
        assert_eq!(utc(u64::MAX), "2554-07-21 23:34 UTC");
    }
}
