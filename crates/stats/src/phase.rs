//! Phases: the parts of a run between the changes of a study's timeline, each measured and judged on its own.
//!
//! A record has figures for each phase from the end of its settling time. [`RunRecord::by_phase`] makes of them the
//! record of a run that was nothing but this phase, and [`StudyDescription::by_phase`] makes a policy of each policy and
//! phase. So whatever judges and draws policies judges and draws phases, and a slice in a phase is compared with the
//! same phase of the reference.

use crate::application::{ApplicationRecord, ApplicationSeries};
use crate::description::{Cell, PolicyDescription, PublishedFigure, StudyDescription};
pub use crate::description::{PhaseDescription, PhasePolicy};
pub use crate::record::{ChangeRecord, PhaseRecord, PhaseSliceRecord};
use crate::record::{RunKey, RunRecord, Series, SliceRecord, Transient};
use std::borrow::Cow;
use std::iter::repeat_n;

impl RunRecord {
    /// The records that are judged: one for each phase, measured from the end of its settling time, but for phases whose
    /// change was refused; this one where there are no phases.
    #[must_use]
    pub fn by_phase(&self) -> Vec<Cow<'_, Self>> {
        if self.phases.is_empty() {
            return vec![Cow::Borrowed(self)];
        }
        let is_in_force = |phase: &&PhaseRecord| {
            let change = phase.change.as_ref();
            change.is_none_or(|change| change.refused.is_none())
        };
        let phases = self.phases.iter().filter(is_in_force);
        phases
            .map(|phase| Cow::Owned(self.in_phase(phase)))
            .collect()
    }

    fn in_phase(&self, phase: &PhaseRecord) -> Self {
        let bin = |at_ns: u64| usize::try_from(at_ns / self.bin_ns.max(1)).unwrap_or(usize::MAX);
        let bins = bin(phase.measured_from_ns)..bin(phase.ends_ns);
        let slices = self.slices.iter().zip(&phase.slices);
        let slices = slices.map(|(run, phase)| SliceRecord {
            slice: run.slice.clone(),
            whole: phase.figures,
            steady: phase.figures,
            delay_of_sent: phase.delay_of_sent,
            delay_cdf: phase.delay_cdf.clone(),
            series: run.series.between(&bins),
            withheld_frames: run.withheld_frames,
            ..SliceRecord::default()
        });
        Self {
            applications: self.applications_in(phase, &bins),
            duration_ns: phase.ends_ns.saturating_sub(phase.measured_from_ns),
            transient: Transient {
                steady_state_reached: true,
                throughput_after_bits_per_second: phase.aggregate.throughput_bits_per_second,
                ..Transient::default()
            },
            slices: slices.collect(),
            aggregate: phase.aggregate,
            phases: Vec::new(),
            drops: phase.drops.clone(),
            link_losses: Vec::new(),
            queues: phase.queues.clone(),
            elephants: Vec::new(),
            key: RunKey {
                policy: policy_in_phase(&self.key.policy, &phase.phase),
                ..self.key.clone()
            },
            capture: self.capture.clone(),
            flows: self.flows.clone(),
            hops: self.hops.clone(),
            testbed: self.testbed.clone(),
            populations: Vec::new(),
            ..*self
        }
    }
}

impl RunRecord {
    /// Returns the results of applications in a phase, with their series of it.
    fn applications_in(
        &self,
        phase: &PhaseRecord,
        bins: &std::ops::Range<usize>,
    ) -> Vec<ApplicationRecord> {
        let in_phase = |of_phase: &ApplicationRecord| {
            let mut of_run = self.applications.iter();
            let of_run = of_run.find(|of_run| of_run.source == of_phase.source);
            ApplicationRecord {
                series: of_run
                    .map(|of_run| of_run.series.between(bins))
                    .unwrap_or_default(),
                ..of_phase.clone()
            }
        };
        phase.applications.iter().map(in_phase).collect()
    }
}

fn cut<T: Copy>(values: &[T], range: &std::ops::Range<usize>) -> Vec<T> {
    let end = range.end.min(values.len());
    values[range.start.min(end)..end].to_vec()
}

impl ApplicationSeries {
    /// The bins in `range`, as far as there are any.
    fn between(&self, range: &std::ops::Range<usize>) -> Self {
        Self {
            goodput_bytes: cut(&self.goodput_bytes, range),
            retransmitted_segments: cut(&self.retransmitted_segments, range),
            rtt_mean_ns: cut(&self.rtt_mean_ns, range),
            first_window_bytes: cut(&self.first_window_bytes, range),
            first_rtt_ns: cut(&self.first_rtt_ns, range),
        }
    }
}

impl Series {
    /// The bins in `range`, as far as there are any.
    fn between(&self, range: &std::ops::Range<usize>) -> Self {
        Self {
            sent_bytes: cut(&self.sent_bytes, range),
            received_bytes: cut(&self.received_bytes, range),
            served_bytes: cut(&self.served_bytes, range),
            lost_bytes: cut(&self.lost_bytes, range),
            sent_frames: cut(&self.sent_frames, range),
            lost_frames: cut(&self.lost_frames, range),
            delay_mean_ns: cut(&self.delay_mean_ns, range),
            delay_max_ns: cut(&self.delay_max_ns, range),
            late_frames: cut(&self.late_frames, range),
        }
    }
}

impl StudyDescription {
    /// The study as it is judged: each policy in each phase is a policy of its own, named by [`policy_in_phase`], and a
    /// share that a phase changes is 0. The study itself where it has no timeline.
    #[must_use]
    pub fn by_phase(&self) -> Self {
        if self.phases.is_empty() {
            return self.clone();
        }
        let policies = self.policies.iter().enumerate();
        let policies = policies.flat_map(|(index, policy)| {
            let phases = self.phases.iter();
            phases.map(move |phase| policy.in_phase(phase, phase.policies.get(index)))
        });
        let inputs = self.inputs.iter();
        let inputs = inputs.flat_map(|of_policy| repeat_n(of_policy, self.phases.len()));
        let published = self.published.iter().flat_map(|figure| {
            let phases = self.phases.iter();
            let phases =
                phases.filter(|phase| figure.phase.as_ref().is_none_or(|p| *p == phase.name));
            phases.map(|phase| figure.in_phase(&phase.name, &self.policies))
        });
        let mut study = Self {
            policies: policies.collect(),
            inputs: inputs.cloned().collect(),
            published: published.collect(),
            ..self.clone()
        };
        for (index, slice) in study.slices.iter_mut().enumerate() {
            let mut phases = self
                .phases
                .iter()
                .filter_map(|phase| phase.slices.get(index));
            let share = slice.share_bits_per_second;
            if phases.any(|phase| phase.share_bits_per_second != share) {
                slice.share_bits_per_second = 0;
            }
        }
        study
    }

    /// The policy that runs name, of one that is judged.
    #[must_use]
    pub fn policy_of_runs<'a>(&self, judged: &'a str) -> &'a str {
        match judged.rsplit_once('/') {
            Some((policy, _)) if !self.phases.is_empty() => policy,
            _ => judged,
        }
    }

    /// The study under policy number `policy`, with the slices that are there in its phase.
    pub(crate) fn under(&self, policy: usize) -> Cow<'_, Self> {
        let phase = self.policies.get(policy).and_then(|p| p.phase.as_ref());
        let Some(phase) = phase else {
            return Cow::Borrowed(self);
        };
        let mut study = Self {
            slices: phase.slices.clone(),
            ..self.clone()
        };
        for (scenario, cycle_ns) in study.scenarios.iter_mut().zip(&phase.cycles_ns) {
            scenario.cycle_ns = *cycle_ns;
        }
        Cow::Owned(study)
    }
}

impl PolicyDescription {
    fn in_phase(&self, phase: &PhaseDescription, proved: Option<&PhasePolicy>) -> Self {
        let PhasePolicy {
            configuration,
            scalability,
            delay_bounds,
            unbounded,
        } = proved.cloned().unwrap_or_default();
        let title = match (self.title.as_str(), phase.title.as_str()) {
            ("", title) | (title, "") => title.to_owned(),
            (policy, phase) => format!("{policy}; {phase}"),
        };
        Self {
            name: policy_in_phase(&self.name, &phase.name),
            title,
            configuration,
            scalability: scalability.unwrap_or_else(|| self.scalability.clone()),
            delay_bounds,
            unbounded,
            phase: Some(Box::new(phase.clone())),
            ..self.clone()
        }
    }
}

impl PublishedFigure {
    fn in_phase(&self, phase: &str, all: &[PolicyDescription]) -> Self {
        let in_phase = |policy: &String| policy_in_phase(policy, phase);
        let policies = match self.policies.as_slice() {
            [] => all.iter().map(|policy| in_phase(&policy.name)).collect(),
            some => some.iter().map(in_phase).collect(),
        };
        let relative_to = self.relative_to.as_ref().map(|cell| Cell {
            policy: cell.policy.as_ref().map(in_phase),
            scenario: cell.scenario.clone(),
        });
        Self {
            policies,
            relative_to,
            ..self.clone()
        }
    }
}

/// Returns the name of a policy in one phase of a study.
#[must_use]
pub fn policy_in_phase(policy: &str, phase: &str) -> String {
    format!("{policy}/{phase}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{CollectorParams, RunCollector};
    use crate::record::{CdfPoint, DelayFigures, Figures};
    use slicewise_units::Duration;

    fn series(bins: u64) -> Series {
        let values: Vec<u64> = (0..bins).collect();
        let small: Vec<u32> = (0..).take(values.len()).collect();
        let delays: Vec<Option<u64>> = values.iter().copied().map(Some).collect();
        Series {
            sent_bytes: values.clone(),
            received_bytes: values.clone(),
            served_bytes: values.clone(),
            lost_bytes: values,
            sent_frames: small.clone(),
            lost_frames: small,
            delay_mean_ns: delays.clone(),
            delay_max_ns: delays,
            late_frames: Vec::new(),
        }
    }

    #[test]
    fn a_series_is_cut_to_the_bins_of_a_phase() {
        let cut = series(10).between(&(3..6));
        assert_eq!(cut.sent_bytes, [3, 4, 5]);
        assert_eq!(cut.received_bytes, [3, 4, 5]);
        assert_eq!(cut.served_bytes, [3, 4, 5]);
        assert_eq!(cut.lost_bytes, [3, 4, 5]);
        assert_eq!(
            (cut.sent_frames, cut.lost_frames),
            (vec![3, 4, 5], vec![3, 4, 5])
        );
        assert_eq!(cut.delay_mean_ns, [Some(3), Some(4), Some(5)]);
        assert_eq!(cut.delay_max_ns, [Some(3), Some(4), Some(5)]);
        assert!(cut.late_frames.is_empty());
        let behind = series(10).between(&(8..20));
        assert_eq!(behind.sent_bytes, [8, 9]);
        assert!(series(3).between(&(8..20)).sent_bytes.is_empty());
    }

    /// 100 ns of policy `p` in scenario `s`.
    fn run_of_ten_bins() -> RunRecord {
        let params = CollectorParams {
            slices: vec!["slice".into()],
            duration: Duration::from_nanos(100),
            bin: Duration::from_nanos(10),
            cycle: Duration::ZERO,
        };
        let key = RunKey {
            policy: "p".to_owned(),
            scenario: "s".to_owned(),
            repetition: 0,
            ..RunKey::default()
        };
        let mut collector = RunCollector::new(params).unwrap();
        collector.finish(key, Vec::new())
    }

    #[test]
    fn a_phase_of_a_run_is_a_run_of_the_policy_in_that_phase() {
        let figures = |samples| Figures {
            delay: DelayFigures {
                samples,
                ..DelayFigures::default()
            },
            ..Figures::default()
        };
        let mut run = run_of_ten_bins();
        run.slices[0].series = series(10);
        run.slices[0].marked_frames = 4;
        assert_eq!(run.by_phase().len(), 1);
        assert_eq!(*run.by_phase()[0], run);
        let phase = |name: &str, from_ns, ends_ns, samples| PhaseRecord {
            phase: name.to_owned(),
            measured_from_ns: from_ns,
            ends_ns,
            slices: vec![PhaseSliceRecord {
                figures: figures(samples),
                delay_cdf: vec![CdfPoint(samples, 1.0)],
                ..PhaseSliceRecord::default()
            }],
            aggregate: figures(samples),
            ..PhaseRecord::default()
        };
        run.phases = vec![phase("a", 10, 50, 3), phase("b", 60, 100, 5)];
        let views = run.by_phase();
        let names: Vec<&str> = views.iter().map(|v| v.key.policy.as_str()).collect();
        assert_eq!(names, ["p/a", "p/b"]);
        let second = &views[1];
        assert_eq!(second.duration_ns, 40);
        assert_eq!(second.slices[0].series.sent_bytes, [6, 7, 8, 9]);
        assert_eq!(second.slices[0].whole.delay.samples, 5);
        assert_eq!(second.slices[0].steady, second.slices[0].whole);
        assert_eq!(second.slices[0].delay_cdf, [CdfPoint(5, 1.0)]);
        assert_eq!(second.slices[0].marked_frames, 0);
        assert_eq!((second.transient.end_ns, second.phases.len()), (0, 0));
        assert_eq!(second.steady_from(), 0);
        run.phases[0].change = Some(ChangeRecord::default());
        assert_eq!(run.by_phase().len(), 2);
        // A phase that did not begin is not judged.
        run.phases[0].change = Some(ChangeRecord {
            refused: Some("why".to_owned()),
            ..ChangeRecord::default()
        });
        assert_eq!(run.by_phase()[0].key.policy, "p/b");
    }

    #[test]
    fn two_devices_that_change_at_once_lose_what_both_lose() {
        let change = |waiting_frames, lost_frames, refused: Option<&str>| ChangeRecord {
            waiting_frames,
            lost_frames,
            refused: refused.map(str::to_owned),
        };
        let both = change(3, 1, None).and(change(4, 2, Some("why")));
        assert_eq!(both, change(7, 3, Some("why")));
        let first = change(0, 0, Some("first")).and(change(0, 0, Some("second")));
        assert_eq!(first.refused.as_deref(), Some("first"));
    }
}
