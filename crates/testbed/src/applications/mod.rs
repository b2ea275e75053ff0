//! Applications of a scenario over the real TCP of the hosts.
//!
//! Bulk transfers are those of iperf3; what iperf3 cannot do, and all that asks, is done by clients of ours
//! ([`exchange`]), answered by nginx or a server of ours. What TCP did is not taken from the programs but from the
//! sending kernel ([`sampling`]), in the same way for all of them.

mod exchange;
mod figures;
mod hosts;
mod nginx;
mod operation;
mod sampling;

use crate::congestion;
use crate::ends::Ends;
use crate::error::AttemptError;
use crate::hosts::Hosts;
use crate::sender::TimeZero;
use crate::workspace::Workspace;
use exchange::Ended;
use operation::Operation;
use sampling::History;
use sampling::Sampling;
use slicewise_applications::Figures;
use slicewise_stats::application::{ApplicationRecord, ApplicationSeries};
use slicewise_stats::record::RunRecord;
use slicewise_study::{RunSpec, ScenarioParams, Study};
use slicewise_traffic::application::ApplicationSourceParams;
use slicewise_units::Duration as Span;
use slicewise_wire::PROTOCOL_TCP;
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;
use std::time::Duration;

/// How long the kernel is given to report connections that have ended.
const FINAL_REPORTS: Duration = Duration::from_millis(200);

/// Why a testbed cannot carry out the applications of a scenario, if it cannot.
pub(crate) fn check(scenario: &ScenarioParams) -> Result<(), AttemptError> {
    let unsupported = |why: String| Err(AttemptError::Unsupported(why));
    hosts::check(&scenario.applications)?;
    for (index, source) in scenario.applications.iter().enumerate() {
        let name = &source.name;
        if source.headers.protocol != PROTOCOL_TCP {
            return unsupported(format!("source {name} has an application and no TCP"));
        }
        let control = source.transport.congestion;
        if !congestion::is_available(control) {
            let word = congestion::name(control);
            return unsupported(format!(
                "source {name} asks for congestion control `{word}`, which this kernel does not have (`modprobe \
                 tcp_{word}`): use a kernel with it, or another congestion control"
            ));
        }
        let ends = Ends::of(source);
        for other in scenario.applications.iter().take(index) {
            if let Some(at) = ends.clash(&Ends::of(other)) {
                return unsupported(format!(
                    "sources {} and {name} both use port {} of {}: give one other ports",
                    other.name,
                    at.port(),
                    at.ip()
                ));
            }
        }
    }
    Ok(())
}

/// The applications of a run.
#[derive(Debug)]
pub(crate) struct Applications<'a> {
    operations: Vec<Operation<'a>>,
    sampling: Option<Sampling>,
}

/// Observations of the applications.
#[derive(Debug)]
pub(crate) struct Observed {
    zero: TimeZero,
    /// TCP connections of the sending host.
    connections: Vec<History>,
    /// By source: those that are ours.
    ours: BTreeMap<String, Ended>,
}

impl<'a> Applications<'a> {
    /// Set up the hosts and start servers; they listen when this returns.
    pub(crate) fn listen(
        hosts: &Hosts,
        workspace: &Workspace,
        (scenario, run): (&'a ScenarioParams, &RunSpec),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let sources = &scenario.applications;
        hosts::set(hosts, sources)?;
        let listen = |source: &'a ApplicationSourceParams| {
            let seed = run.source_seed(&source.name);
            Operation::listen(hosts, workspace, (source, seed), is_interrupted)
        };
        let operations = sources.iter().map(listen).collect::<Result<_, _>>()?;
        Ok(Self {
            operations,
            sampling: None,
        })
    }

    /// From time zero on, observe; those of ours begin on their own.
    pub(crate) fn start(
        &mut self,
        hosts: &Hosts,
        zero: TimeZero,
        study: &Study,
    ) -> Result<(), AttemptError> {
        if !self.operations.is_empty() {
            self.sampling = Some(Sampling::start(
                hosts.generator(),
                zero,
                (study.measure.bin, study.duration),
            )?);
        }
        let mut operations = self.operations.iter_mut();
        operations.try_for_each(|operation| operation.start(hosts, zero))
    }

    /// Begin and stop programs that are due so long after time zero; returns when the next is due.
    pub(crate) fn proceed(
        &mut self,
        hosts: &Hosts,
        now: Span,
    ) -> Result<Option<Span>, AttemptError> {
        for operation in &mut self.operations {
            operation.proceed(hosts, now)?;
        }
        let times = self.operations.iter().flat_map(Operation::times);
        Ok(times.filter(|time| *time > now).min())
    }

    /// An error if something has ended.
    pub(crate) fn check(&mut self) -> Result<(), AttemptError> {
        self.operations.iter_mut().try_for_each(Operation::check)
    }

    /// Stop everything, and tell what was observed.
    pub(crate) fn finish(mut self, zero: TimeZero) -> Result<Observed, AttemptError> {
        let mut ours = BTreeMap::new();
        for operation in self.operations {
            let name = operation.name().to_owned();
            if let Some(ended) = operation.finish()? {
                ours.insert(name, ended);
            }
        }
        // A busy kernel tells of connections that have ended a little later.
        thread::sleep(FINAL_REPORTS);
        let connections = self.sampling.take().map(Sampling::finish).transpose()?;
        Ok(Observed {
            zero,
            connections: connections.unwrap_or_default(),
            ours,
        })
    }
}

impl Observed {
    /// Put into a record what applications got: in all of it, and in each phase.
    pub(crate) fn report(&self, record: &mut RunRecord, study: &Study, scenario: &ScenarioParams) {
        let bin_ns = record.bin_ns.max(1);
        let bins = place(record.duration_ns, bin_ns);
        for source in &scenario.applications {
            let slice = study.slices.get(source.slice);
            let slice = slice.map_or_else(String::new, |slice| slice.name.clone());
            let ends = Ends::of(source);
            let all = self.connections.iter();
            let own: Vec<&History> = all.filter(|history| ends.has(history)).collect();
            let ours = self.ours.get(&source.name);
            let over = |span: &Range<usize>, series| {
                let got = ours.map(|ours| self.figures(ours, span, bin_ns));
                let got = got.unwrap_or_default();
                ApplicationRecord {
                    source: source.name.clone(),
                    slice: slice.clone(),
                    limit_bits_per_second: source.application.limit_bits_per_second(),
                    transport: figures::transport(&own, span, bin_ns),
                    requests: got.requests,
                    flows: got.flows,
                    video: got.video,
                    times: got.times,
                    unfinished_times: got.unfinished_times,
                    failures: ours.map_or_else(Vec::new, |ours| ours.failures.clone()),
                    series,
                }
            };
            let whole = over(&(0..bins), figures::series(&own, bins));
            record.applications.push(whole);
            for phase in &mut record.phases {
                let from = place(phase.measured_from_ns, bin_ns);
                let span = from..place(phase.ends_ns, bin_ns);
                let figures = over(&span, ApplicationSeries::default());
                phase.applications.push(figures);
            }
        }
    }

    fn figures(&self, ours: &Ended, span: &Range<usize>, bin_ns: u64) -> Figures {
        let at = |bin: usize| {
            let bins = u64::try_from(bin).unwrap_or(u64::MAX);
            let after = Span::from_nanos(bins.saturating_mul(bin_ns));
            self.zero.monotonic.saturating_add(after)
        };
        ours.application.figures(at(span.start), at(span.end))
    }
}

fn place(time_ns: u64, bin_ns: u64) -> usize {
    usize::try_from(time_ns / bin_ns).unwrap_or(usize::MAX)
}

impl Ends {
    /// Returns true if this connection of the sender of data belongs to a source of these ends.
    fn has(&self, history: &History) -> bool {
        let (opening, listening) = if self.sender_opens {
            (history.local, history.remote)
        } else {
            (history.remote, history.local)
        };
        listening == self.listening && self.opens_from(opening)
    }
}

#[cfg(test)]
mod tests;
