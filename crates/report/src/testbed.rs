//! How runs on real packets went: what the machine did meanwhile, and how punctual everybody was.

use crate::markup::{Section, list, table};
use crate::populations::grouped;
use crate::text_table::{TextTable, or_dash, time_or_dash};
use maud::{Markup, html};
use slicewise_stats::flow::CaptureRecord;
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_stats::testbed::{IdleBaseline, TestbedRecord};
use slicewise_stats::words::percent;
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
struct TestbedSummary {
    runs: u64,
    /// Median of the medians of the idle baselines, the largest of their 99th percentiles, and the
    /// largest delay, ns; `None` where no probe arrived.
    baseline_ns: Option<[u64; 3]>,
    /// Mean and largest share of time taken by others.
    steal_ratio: [f64; 2],
    /// Mean and smallest share of time in which nothing ran.
    idle_ratio: [f64; 2],
    /// Largest 99th percentile of a sender's lateness, and the largest lateness, ns; `None` where no
    /// sender was ours.
    lateness_ns: Option<[u64; 2]>,
    /// Late departures from the device, and all of them.
    departures: Option<[u64; 2]>,
    /// Attempts that were thrown away.
    rejected: u64,
    /// Packets that captures lost.
    capture_drops: Option<u64>,
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
    fn summary(&self, policy: Option<&str>) -> TestbedSummary {
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
    fn tolerated(&self) -> Vec<String> {
        let described = |run: &TestbedRun| {
            let what = run.testbed.tolerated.join("; ");
            (!what.is_empty()).then(|| format!("{}: {what}", run_name(&run.run)))
        };
        self.runs.iter().filter_map(described).collect()
    }

    /// Attempts that were thrown away: which run, and why.
    fn rejected(&self) -> Vec<String> {
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
    fn versions(&self) -> Vec<String> {
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
    fn in_order(&self) -> Vec<&TestbedRun> {
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
fn part_of([part, all]: [u64; 2]) -> String {
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

/// Of back ends: their names, their policies, and how their runs went.
pub(crate) fn section<'a>(
    back_ends: impl Iterator<Item = (&'a str, Vec<&'a str>, &'a Testbed)>,
) -> Option<Section> {
    let live: Vec<_> = back_ends.filter(|(.., it)| !it.is_empty()).collect();
    if live.is_empty() {
        return None;
    }
    let body = html! {
        p.note { "Conditions on the machine that carried real packets, not results: its delay when idle, processor time taken by others, lateness of senders and departures, and rejected attempts. A delay below the idle delay, or a tail no longer than the idle tail, shows nothing about a policy." }
        div #testbed-tables { @for (name, policies, testbed) in live { (of_back_end(name, policies, testbed)) } }
    };
    Some(Section::new("testbed", "Testbed", body).headed("How the testbed performed"))
}

fn of_back_end(name: &str, policies: Vec<&str>, testbed: &Testbed) -> Markup {
    let (rejected, tolerated) = (testbed.rejected(), testbed.tolerated());
    let folded = |texts: &[String], one: &str, more: &str| {
        html! { details {
            summary { (texts.len()) " " (if texts.len() == 1 { one } else { more }) }
            (list(texts))
        } }
    };
    html! {
        h3 { (name) }
        (table(&by_policy(policies, testbed)))
        p.key { (testbed.versions().join("; ")) }
        @if rejected.is_empty() { p.key { "No attempt was rejected." } }
        @else { (folded(&rejected, "attempt was rejected and repeated", "attempts were rejected and repeated")) }
        @if !tolerated.is_empty() {
            (folded(&tolerated, "run was accepted although the machine was noisy", "runs were accepted although the machine was noisy"))
        }
        details {
            summary { "The order of runs" }
            ol { @for run in testbed.in_order() { li { (run_name(&run.run)) " (" (utc(run.testbed.began_ns)) ")" } } }
        }
    }
}

/// A row a policy, and one for all of them.
fn by_policy(policies: Vec<&str>, testbed: &Testbed) -> TextTable {
    let head = "Policy | Runs | Idle delay: median | 99 %, worst | largest | Steal: mean | largest | Processors idle: mean | smallest | Sender late: 99 %, worst | largest | Late departures | Rejected attempts | Missed by captures";
    let mut rows: Vec<Vec<String>> = policies
        .into_iter()
        .map(|policy| (policy, testbed.summary(Some(policy))))
        .filter(|(_, summary)| summary.runs > 0)
        .map(|(policy, summary)| row(policy, &summary))
        .collect();
    rows.push(row("all", &testbed.summary(None)));
    TextTable::new(head, 1, rows)
}

fn row(name: &str, summary: &TestbedSummary) -> Vec<String> {
    let mut row = vec![name.to_owned(), grouped(summary.runs)];
    let baseline = summary.baseline_ns;
    row.extend((0..3).map(|figure| time_or_dash(baseline.and_then(|b| b.get(figure).copied()))));
    row.extend(
        [summary.steal_ratio, summary.idle_ratio]
            .concat()
            .into_iter()
            .map(percent),
    );
    let lateness = summary.lateness_ns;
    row.extend((0..2).map(|figure| time_or_dash(lateness.and_then(|l| l.get(figure).copied()))));
    row.extend([
        or_dash(summary.departures, late),
        grouped(summary.rejected),
        or_dash(summary.capture_drops, grouped),
    ]);
    row
}

fn late([late, all]: [u64; 2]) -> String {
    let share = late as f64 / all.max(1) as f64;
    format!("{} ({})", percent(share), part_of([late, all]))
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
