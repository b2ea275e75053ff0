//! The profile of minutes.

use super::{Checker, MAX_REPETITIONS, Table};
use crate::live::QuickParams;
use crate::params::{MeasureParams, ScenarioParams};
use crate::spec::{QuickSpec, StudySpec};
use slicewise_units::Duration;

impl Checker<'_> {
    pub(super) fn quick(
        &mut self,
        spec: &StudySpec,
        duration: Duration,
        measure: MeasureParams,
        scenarios: &[ScenarioParams],
    ) -> Option<QuickParams> {
        let quick = &spec.quick.as_ref()?.value;
        let repetitions = self.quick_repetitions(quick).or_else(|| {
            let whole = spec.repetitions.as_ref()?;
            whole.text().parse().ok()
        });
        Some(QuickParams {
            scenarios: self.quick_scenarios(quick, scenarios),
            repetitions: repetitions.unwrap_or(1),
            duration: self
                .quick_duration(quick, duration, measure)
                .unwrap_or(duration),
        })
    }

    fn quick_scenarios(&mut self, quick: &QuickSpec, scenarios: &[ScenarioParams]) -> Vec<usize> {
        let Some(wanted) = &quick.scenarios else {
            return QuickParams::usual_scenarios(scenarios);
        };
        let known: Vec<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
        let mut found = Vec::new();
        for name in &wanted.value.0 {
            found.extend(self.index_of(Table::Scenarios, name, &known));
        }
        if wanted.value.0.is_empty() {
            self.problems
                .add(wanted.span, "without a scenario there is nothing to run");
        }
        found
    }

    fn quick_repetitions(&mut self, quick: &QuickSpec) -> Option<u32> {
        let text = quick.repetitions.as_ref()?;
        let repetitions = text.read(self.problems)?;
        if repetitions == 0 || repetitions > MAX_REPETITIONS {
            let message = format!("there must be 1 to {MAX_REPETITIONS} repetitions");
            self.problems.add(text.span(), message);
            return None;
        }
        Some(repetitions)
    }

    fn quick_duration(
        &mut self,
        quick: &QuickSpec,
        whole: Duration,
        measure: MeasureParams,
    ) -> Option<Duration> {
        let duration = self.nonzero_duration(quick.duration.as_ref())?;
        let text = quick.duration.as_ref()?;
        if duration > whole {
            let message = format!("this is longer than the whole study's {whole}");
            self.problems.add(text.span(), message);
        }
        if !duration.nanos().is_multiple_of(measure.bin.nanos().max(1)) {
            let message = format!(
                "the run of {duration} is not a whole number of bins of {}",
                measure.bin
            );
            self.problems.add(text.span(), message);
        }
        Some(duration)
    }
}
