//! Traffic and measurement of a study with a timeline, phase by phase.

use crate::params::{ScenarioParams, SourceParams};
use crate::study::Study;
use slicewise_stats::collect::MeasuredPhase;
use slicewise_units::Duration;

impl Study {
    /// Returns the traffic of a source of a scenario in order of time, each entry until the next one starts: several
    /// where the timeline changes it.
    #[must_use]
    pub fn sends(&self, scenario: usize, source: usize) -> Vec<SourceParams> {
        let of = |study: &Self| {
            let scenario = study.scenarios.get(scenario)?;
            scenario.sources.get(source).cloned()
        };
        let mut sent: Vec<SourceParams> = of(self).into_iter().collect();
        let mut before = of(self);
        for phase in self.phases.iter().skip(1) {
            let now = of(&phase.study);
            if let (Some(now), Some(last), Some(until)) = (&now, &before, sent.last_mut())
                && now != last
            {
                until.stop = until.stop.min(phase.begins);
                sent.push(SourceParams {
                    start: now.start.max(phase.begins),
                    ..now.clone()
                });
            }
            before = now;
        }
        let first = sent.first().cloned();
        sent.retain(|params| params.start < params.stop);
        sent.extend(first.filter(|_| sent.is_empty()));
        sent
    }

    /// The phases as they are measured.
    #[must_use]
    pub fn measured_phases(&self) -> Vec<MeasuredPhase> {
        let phases = self.phases.iter().map(|phase| {
            let slices = phase.study.slices.iter();
            MeasuredPhase {
                name: phase.name.clone(),
                begins: phase.begins,
                measured_from: phase.measured_from,
                ends: phase.ends,
                delays: slices
                    .map(|slice| slice.objective.and_then(|objective| objective.delay))
                    .collect(),
            }
        });
        phases.collect()
    }

    /// The longest on/off cycle of a scenario's sources in any phase; the whole run where a source ends within it: such a load
    /// does not become steady, and what comes after its end is no steady state of it.
    #[must_use]
    pub fn cycle(&self, scenario: usize) -> Duration {
        let ends_early = |scenario: &ScenarioParams| {
            let sources = scenario.sources.iter().map(|source| source.stop);
            let applications = scenario.applications.iter().map(|source| source.stop);
            let mut ends = sources.chain(applications);
            ends.any(|stop| stop < self.duration)
        };
        if self.phases.is_empty() && self.scenarios.get(scenario).is_some_and(ends_early) {
            return self.duration;
        }
        let studies = self.phases.iter().map(|phase| &phase.study).chain([self]);
        let cycles = studies.filter_map(|study| study.scenarios.get(scenario));
        let longest = cycles.map(ScenarioParams::cycle).max();
        longest.unwrap_or(Duration::ZERO)
    }
}
