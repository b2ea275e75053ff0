//! The profile of minutes.

use super::{Checker, Table};
use crate::file::At;
use crate::params::ScenarioParams;
use crate::quick::QuickParams;
use crate::spec::{Name, OneOrMany, QuickSpec, Repetitions, StudySpec, Text};
use slicewise_units::Duration;

impl Checker<'_> {
    pub(super) fn quick(
        &mut self,
        spec: &StudySpec,
        duration: Duration,
        bin: Duration,
        scenarios: &[ScenarioParams],
        usual: impl FnOnce() -> Vec<usize>,
    ) -> Option<QuickParams> {
        let quick = &spec.quick.as_ref()?.value;
        let repetitions = quick.repetitions.as_ref().or(spec.repetitions.as_ref());
        let Repetitions(repetitions) = self.read_or(repetitions, Repetitions(1));
        Some(QuickParams {
            scenarios: match &quick.scenarios {
                Some(wanted) => self.quick_scenarios(wanted, scenarios),
                None => usual(),
            },
            repetitions,
            duration: self
                .quick_duration(quick, duration, bin)
                .unwrap_or(duration),
        })
    }

    fn quick_scenarios(
        &mut self,
        wanted: &At<OneOrMany<Text<Name>>>,
        scenarios: &[ScenarioParams],
    ) -> Vec<usize> {
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

    fn quick_duration(
        &mut self,
        quick: &QuickSpec,
        whole: Duration,
        bin: Duration,
    ) -> Option<Duration> {
        let duration = self.nonzero_duration(quick.duration.as_ref())?;
        let text = quick.duration.as_ref()?;
        if duration > whole {
            let message = format!("this is longer than the whole study's {whole}");
            self.problems.add(text.span(), message);
        }
        if !duration.nanos().is_multiple_of(bin.nanos().max(1)) {
            let message = format!("the run of {duration} is not a whole number of bins of {bin}");
            self.problems.add(text.span(), message);
        }
        Some(duration)
    }
}
