//! The profile of minutes.

use super::{Checker, StudySpec, Table};
use crate::file::Placed;
use crate::params::ScenarioParams;
use crate::quick::QuickParams;
use crate::spec::{At, OneOrMany, Positive, Reference, Repetitions};
use crate::{problem, settings};
use slicewise_units::Duration;

settings! {
    /// A quick profile: what it leaves out is as in the study.
    struct QuickSpec as "QuickSpec" {
        /// Only these scenarios. Default: the reference, and those that isolation and reallocation are judged
        /// in: the heaviest load of best effort while guaranteed slices keep to their shares.
        scenarios: OneOrMany<At<Reference>>,
        /// How often each policy runs under each of them.
        repetitions: Option<Repetitions>,
        /// How long traffic is offered in a run: a whole number of bins.
        duration: Option<Positive>,
    }
}

impl Checker<'_> {
    pub(super) fn quick(
        &mut self,
        spec: &StudySpec,
        duration: Duration,
        bin: Duration,
        scenarios: &[ScenarioParams],
        usual: impl FnOnce() -> Vec<usize>,
    ) -> Option<QuickParams> {
        let quick = spec.quick.as_ref()?;
        let repetitions = quick.value.repetitions.or(spec.repetitions);
        let Repetitions(repetitions) = repetitions.unwrap_or(Repetitions(1));
        self.check_quick_duration(quick, duration, bin);
        Some(QuickParams {
            scenarios: match quick.place("scenarios") {
                Some(at) => {
                    let wanted = &quick.value.scenarios.0;
                    if wanted.is_empty() {
                        problem!(self.problems, at => "without a scenario there is nothing to run");
                    }
                    let known: Vec<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
                    let wanted = wanted.iter();
                    wanted
                        .filter_map(|name| self.index_of(Table::SCENARIOS, name, &known))
                        .collect()
                }
                None => usual(),
            },
            repetitions,
            duration: quick.value.duration.map_or(duration, |quick| quick.0),
        })
    }

    fn check_quick_duration(&mut self, quick: &Placed<QuickSpec>, whole: Duration, bin: Duration) {
        let (Some(at), Some(Positive(duration))) = (quick.place("duration"), quick.value.duration)
        else {
            return;
        };
        if duration > whole {
            problem!(self.problems, at => "this is longer than the whole study's {whole}");
        }
        self.is_whole_bins(at, duration, bin);
    }
}
