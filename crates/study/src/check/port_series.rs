//! Checks of a port whose rate changes during a run.

use super::network::DutSpec;
use super::port_rate::{PortRateSpec, PortSeries, TraceSpec};
use super::traffic::Network;
use super::{Checker, StudySpec};
use crate::file::{Placed, Span};
use crate::params::{DutModel, DutParams, StudyLink};
use crate::problem;
use crate::spec::At;
use crate::study::StudyPolicy;
use slicewise_model::Discipline;
use slicewise_traffic::{RateSeries, RateStep};
use slicewise_units::BitRate;
use std::sync::Arc;

impl Checker<'_> {
    /// A device of a path, which has one rate.
    pub(super) fn dut_of_path(
        &mut self,
        device: &Placed<DutSpec>,
        link: Option<&StudyLink>,
    ) -> Option<DutParams> {
        if let Some(rate) = &device.value.port_rate
            && rate.value.constant().is_none()
        {
            problem!(self.problems, rate.span => "the rate of a device of a `path` cannot change during a run: bounds and the \
                device that limits a path follow from constant rates";
                "give it one rate, or study it alone as `dut`");
        }
        self.dut(Some(device), link, None)
    }

    /// The rates of the port of `dut`, where they change.
    pub(super) fn port_series(&mut self, spec: &StudySpec) -> Option<PortSeries> {
        let rate = spec.dut.as_ref()?.value.port_rate.as_ref()?;
        let rates = match &rate.value {
            PortRateSpec::Constant(_) => return None,
            PortRateSpec::Steps(steps) => {
                let steps = steps.iter().map(|step| {
                    let at = step.at;
                    step.rate.map(|rate| RateStep { at, rate })
                });
                let steps: Option<Vec<RateStep>> = steps.collect();
                let series = RateSeries::of_steps(steps?);
                let series =
                    series.map_err(|error| self.problems.add(rate.span, error.to_string()));
                Arc::new(series.ok()?)
            }
            PortRateSpec::Trace(TraceSpec { trace }) => self.trace(trace)?,
        };
        let duration = spec.duration.as_ref()?.value.0;
        let mean = rates.mean(duration);
        if mean == BitRate::ZERO {
            problem!(self.problems, rate.span => "nothing passes the port during the run, which takes {duration}");
            return None;
        }
        Some(PortSeries { rates, mean })
    }

    /// The rates of a trace.
    fn trace(&mut self, written: &At<String>) -> Option<Arc<RateSeries>> {
        let path = self.sources.beside(written.span.file, &written.value);
        if let Some(known) = self.sources.trace(&path) {
            return Some(known);
        }
        let text = match self.files.read(&path) {
            Ok(text) => text,
            Err(error) => {
                self.unreadable(written.span, &path, &error);
                return None;
            }
        };
        let series = RateSeries::of_mahimahi(&text).map(Arc::new);
        if self.sources.find(&path).is_none() {
            self.sources.add(&path, text);
        }
        match series {
            Ok(series) => {
                self.sources.add_trace(&path, Arc::clone(&series));
                Some(series)
            }
            Err(error) => {
                let shown = self.sources.shown(&path);
                problem!(self.problems, written.span => "`{shown}`: {error}");
                None
            }
        }
    }

    /// Refuses what follows from a constant rate, where that of the port changes.
    pub(super) fn check_port_series(
        &mut self,
        spec: &StudySpec,
        network: &Network,
        policies: &[StudyPolicy],
    ) {
        if network.port_series.is_none() {
            return;
        }
        let rate = spec
            .dut
            .as_ref()
            .and_then(|dut| dut.value.port_rate.as_ref());
        let Some(at) = rate.map(|rate| rate.span) else {
            return;
        };
        if network.dut.model != DutModel::Port {
            problem!(self.problems, at => "only the port of the model `port` has a rate that changes during a run";
                "give the port one rate, or use the model `port`");
        }
        for (key, why) in [
            (
                "timeline",
                "each phase would be judged by the rate of all of them",
            ),
            (
                "populations",
                "a population is judged by its share of a constant rate",
            ),
        ] {
            if let Some(at) = self.key_at(&[key]) {
                problem!(self.problems, at => "`{key}` and a `dut.port_rate` that changes exclude each other: {why}";
                    "leave one of them out");
            }
        }
        for policy in policies {
            self.check_policy_of_series(policy, at);
        }
    }

    fn check_policy_of_series(&mut self, policy: &StudyPolicy, at: Span) {
        let name = &policy.name;
        let has_hqos = |class: &slicewise_model::ClassSpec| class.hqos.is_some();
        let reason = if policy.spec.discipline == Discipline::Guaranteed {
            "its guarantees are admitted, and its bounds derived, for a constant rate".to_owned()
        } else if policy.reallocation.is_some() {
            "`reallocate` divides a constant rate".to_owned()
        } else if policy.spec.classes.iter().any(has_hqos) {
            "its rates are parts of a constant port rate".to_owned()
        } else if policy.device.is_some() {
            "it has a device of its own, with a rate of its own".to_owned()
        } else if let Some(class) = policy.spec.has_part_of_port() {
            format!(
                "`{class}` has a rate in percent, and a percentage of a rate that changes is not one rate"
            )
        } else {
            return;
        };
        let at = self.place_of(&["policies", name]).unwrap_or(at);
        problem!(self.problems, at => "policy `{name}` does not go with a `dut.port_rate` that changes: {reason}";
            "give `dut.port_rate` one rate, or write the policy with absolute rates and without guarantees");
    }
}
