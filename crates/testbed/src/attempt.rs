//! One attempt at a run, from empty namespaces to a record.
//!
//! ```text
//! hosts, device, captures, iperf3 servers          ready
//! idle baseline, 1 s                               a few packets of each slice, far apart
//! iperf3 clients connect and send; 0.3 s           until their start is over
//! time zero … the study's duration                 measured; on/off and random senders start here
//! senders stop, the device empties, captures end   analysed: what was sent in the measured time
//! ```

use crate::acceptance::{Thresholds, stolen};
use crate::applications::{Applications, Observed};
use crate::baseline::{self, Baseline};
use crate::device::{Device, DeviceFacts, DeviceKind};
use crate::drain::drain;
use crate::error::AttemptError;
use crate::hosts::{Hosts, INTERFACE};
use crate::iperf3::Iperf3;
use crate::lab::{self, LabSession, Load};
use crate::lease::Lease;
use crate::machine::ProcessorTime;
use crate::offered::Offered;
use crate::send_times::SendTimes;
use crate::sender::{Sender, SendingFlow, TimeZero};
use crate::suitability::{Offering, sending_flow};
use crate::tcpdump::{Captured, Capturing, Way};
use crate::udp_sink::UdpSink;
use crate::workspace::{CAPTURE_NAMES, Workspace};
use slicewise_analysis::{
    AnalysisError, AnalysisParams, MatchedSlice, PacketSink, RunLength, SliceRule, Watch, analyse,
};
use slicewise_live::awake::Awake;
use slicewise_stats::phase::ChangeRecord;
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_stats::testbed::{ClockOffset, DepartureRecord, SenderRecord, TestbedRecord};
use slicewise_study::{Phase, RunSpec, ScenarioParams, SourceParams, Study, StudyPolicy};
use slicewise_traffic::{Sources, Timeline};
use slicewise_units::{Duration as Span, Instant};
use slicewise_wire::Headers;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

/// From the last client's connection to time zero, for start-up to finish.
const SETTLING: Span = Span::from_millis(300);
/// Clients continue this long after the measured time, so that none ends within it.
const MARGIN: Span = Span::from_secs(2);
/// Interval between checks during a run.
const WATCH: Duration = Duration::from_millis(50);
/// So long before the end, the punctuality of departures is read: applications close all their connections at the end,
/// in a burst that is not part of what is measured.
const LAST_LOOK: Span = Span::from_millis(100);
/// A packet that has not arrived after this time is lost (RFC 7680).
const LOSS_TIMEOUT: Span = Span::from_secs(12);

/// Attempt at a run, and the means for it.
pub(crate) struct Attempt<'a> {
    pub(crate) study: &'a Study,
    pub(crate) run: &'a RunSpec,
    pub(crate) policy: &'a StudyPolicy,
    pub(crate) scenario: &'a ScenarioParams,
    pub(crate) key: &'a RunKey,
    pub(crate) device: &'a DeviceKind,
    /// Lease of this machine, if the run is carried out on it.
    pub(crate) lease: Option<&'a Lease>,
    pub(crate) sources: &'a Sources,
    pub(crate) workspace: &'a Workspace,
    /// Steal at which the attempt is abandoned; `None` if noise is tolerated.
    pub(crate) most: Option<&'a Thresholds>,
    pub(crate) is_interrupted: &'a dyn Fn() -> bool,
}

/// A record, and the facts on which it is accepted or rejected.
pub(crate) struct Attempted {
    pub(crate) record: RunRecord,
    pub(crate) testbed: TestbedRecord,
    /// When each source sent its packets, if times describe all of them.
    pub(crate) send_times: Option<BTreeMap<String, Timeline>>,
    /// Frames that a capture or the device never saw.
    pub(crate) missed_frames: u64,
}

/// Result of the traffic phase, before analysis.
pub(crate) struct Executed {
    pub(crate) zero: TimeZero,
    pub(crate) baseline: Baseline,
    pub(crate) captures: [Captured; 2],
    pub(crate) facts: DeviceFacts,
    /// Effect of the change with which each phase began.
    pub(crate) changes: Vec<Option<ChangeRecord>>,
    pub(crate) senders: Vec<SenderRecord>,
    /// Observations of applications, if there can be any.
    pub(crate) observed: Option<Observed>,
    pub(crate) steal_ratio: f64,
    pub(crate) idle_ratio: f64,
    /// Offset of the receiver's clock, if it is another one than the sender's.
    pub(crate) clocks: Option<ClockOffset>,
}

/// Observations while traffic flowed.
struct Watched {
    changes: Vec<Option<ChangeRecord>>,
    departures: Option<DepartureRecord>,
}

impl Attempt<'_> {
    pub(crate) fn carry_out(&self) -> Result<Attempted, AttemptError> {
        let executed = match self.device {
            DeviceKind::Lab(session) => self.execute_in_lab(session),
            _ => self.execute(),
        };
        let mut executed = executed.map_err(|error| match error {
            // A full disk causes many different errors.
            AttemptError::Retryable(_) | AttemptError::Failed(_) => {
                self.workspace.check_room().err().unwrap_or(error)
            }
            AttemptError::Interrupted | AttemptError::Unsupported(_) => error,
        })?;
        let [sent, received] = executed.captures.each_ref().map(|capture| &capture.file);
        let sent_since = |start_ns, duration, phases| AnalysisParams {
            sent: vec![sent.clone()],
            via: Vec::new(),
            received: vec![received.clone()],
            slices: self.slices(),
            bin: self.study.measure.bin,
            run: Some(RunLength {
                start_ns: Some(start_ns),
                duration,
                cycle: self.study.cycle(self.run.scenario),
            }),
            phases,
            medians: self.study.measure.medians,
            loss_timeout: LOSS_TIMEOUT,
            accept_clock_estimate: false,
            innermost: false,
        };
        let analysed = |params: &AnalysisParams, sink: Option<&mut dyn PacketSink>| {
            analyse(params, self.key.clone(), self, sink).map_err(failed)
        };
        let phases = self.study.measured_phases();
        let measured = sent_since(executed.zero.unix_ns, self.study.duration, phases);
        let before_load = sent_since(
            executed.baseline.zero.unix_ns,
            baseline::duration(self.study.measure.bin),
            Vec::new(),
        );
        let missed = |capture: &Captured| capture.missed;
        let missed_frames = executed.captures.iter().map(missed).sum::<u64>();
        let analyse_all = || -> Result<_, AttemptError> {
            let mut send_times = SendTimes::of(self.scenario);
            let record = analysed(&measured, Some(&mut send_times))
                .map_err(|error| with_gaps(error, missed_frames))?;
            are_whole(&record, &executed.captures)?;
            Ok((record, send_times, analysed(&before_load, None)?))
        };
        let (mut record, mut send_times, mut idle) = analyse_all()?;
        if let Some(clocks) = &mut executed.clocks {
            if let Some(early_ns) = lab::early_within([&record, &idle], clocks) {
                lab::make_later(received, early_ns)?;
                clocks.offset_ns = clocks.offset_ns.saturating_sub_unsigned(early_ns);
                (record, send_times, idle) = analyse_all()?;
            }
            [&record, &idle]
                .into_iter()
                .try_for_each(|record| lab::agree(record, clocks))?;
        }
        let baseline = executed.baseline.figures(&idle);
        record.drops = executed.facts.drops;
        for (phase, change) in record.phases.iter_mut().zip(executed.changes) {
            phase.change = change;
        }
        if let Some(observed) = &executed.observed {
            observed.report(&mut record, self.study, self.scenario);
        }
        let sent = Offering::of(self.study, self.run.scenario);
        let offered = Offered::of(&sent, self.study, &record);
        Ok(Attempted {
            send_times: send_times.timelines(&record),
            record,
            missed_frames: missed_frames + executed.facts.missed_frames,
            testbed: TestbedRecord {
                device: executed.facts.description,
                began_ns: executed.zero.unix_ns,
                rejected: Vec::new(),
                tolerated: Vec::new(),
                baseline,
                steal_ratio: executed.steal_ratio,
                idle_ratio: executed.idle_ratio,
                longest_pause_ns: offered.longest_pause_ns,
                least_offered_ratio: offered.least_ratio,
                senders: executed.senders,
                clocks: executed.clocks,
                departures: executed.facts.departures,
                versions: Vec::new(),
            },
        })
    }

    /// Build everything, send, and tear it down.
    fn execute(&self) -> Result<Executed, AttemptError> {
        let mtu = self.study.link.mtu_bytes;
        let lease = self.lease.ok_or_else(|| {
            AttemptError::Failed("this machine is not reserved as a testbed".to_owned())
        })?;
        let hosts = Hosts::new(lease, self.scenario, mtu)?;
        let interrupted = self.is_interrupted;
        let place = (&hosts, self.workspace.temporary());
        let mut device = (self.device).start(place, self.study, self.policy, interrupted)?;
        let [sent, received] = CAPTURE_NAMES.map(|name| self.workspace.captures().join(name));
        let mut captures = [
            Capturing::start(
                (Some(hosts.generator()), INTERFACE),
                (Way::Out, ""),
                &sent,
                interrupted,
            )?,
            Capturing::start(
                (Some(hosts.sink()), INTERFACE),
                (Way::In, ""),
                &received,
                interrupted,
            )?,
        ];
        let awake = Awake::keep();
        let began = ProcessorTime::now();
        let baseline =
            Baseline::measure(&hosts, self.study, self.scenario, self.sources, interrupted)?;
        self.check_steal(began, 1.0)?;
        let sent = Offering::of(self.study, self.run.scenario);
        let (udp_sink, sender) = self.own_sender(&hosts, &sent.own)?;
        // Before time zero: reading device counters can be slow on a busy machine.
        let earlier = device.facts(&hosts)?;
        let mut clients = match self.clients(&hosts, &sent.constant) {
            Ok(clients) => clients,
            Err(error) => {
                // If the device has ended, clients cannot connect.
                device.check()?;
                return Err(error);
            }
        };
        let mut applications = Applications::listen(
            &hosts,
            self.workspace,
            (self.scenario, self.run),
            interrupted,
        )?;
        device.load_begins()?;
        let zero = TimeZero::after(SETTLING);
        sender.start_at(zero);
        applications.start(&hosts, zero, self.study)?;
        let before = ProcessorTime::now();
        let mut running = Running {
            hosts: &hosts,
            device: &mut device,
            captures: &mut captures,
            clients: &mut clients,
            applications: &mut applications,
        };
        let Watched {
            changes,
            departures,
        } = self.watch(zero, before, &mut running)?;
        let (steal_ratio, idle_ratio) = ProcessorTime::now().since(before);
        sender.stop();
        let senders = sender
            .join()
            .map_err(|error| AttemptError::Retryable(error.to_string()))?;
        drop(clients);
        device.load_ended()?;
        let observed = applications.finish(zero)?;
        drain(|| hosts.arrived(), interrupted)?;
        drop(awake);
        drop(udp_sink);
        device.check()?;
        let facts = DeviceFacts {
            departures,
            ..device.facts(&hosts)?
        };
        let facts = facts.since(&earlier);
        let [sent, received] = captures;
        let captures = [sent.stop(interrupted)?, received.stop(interrupted)?];
        self.workspace.check_room()?;
        Ok(Executed {
            zero,
            baseline,
            captures,
            facts,
            changes,
            senders,
            observed: Some(observed),
            steal_ratio,
            idle_ratio,
            clocks: None,
        })
    }

    /// Send between the hosts of a lab.
    fn execute_in_lab(&self, session: &LabSession) -> Result<Executed, AttemptError> {
        let probes = baseline::flows(self.study, self.scenario, self.sources)?;
        let load = Load {
            probes: (probes, baseline::duration(self.study.measure.bin)),
            flows: (self.all_flows()?, self.study.duration),
        };
        let of = (self.study, self.policy);
        let run = lab::execute(session, of, load, self.workspace, self.is_interrupted)?;
        let [idle_zero, zero] = run.zeros;
        Ok(Executed {
            zero,
            baseline: Baseline { zero: idle_zero },
            captures: run.captures,
            facts: DeviceFacts {
                description: run.device,
                ..DeviceFacts::default()
            },
            changes: Vec::new(),
            senders: run.senders,
            observed: None,
            steal_ratio: run.steal_ratio,
            idle_ratio: run.idle_ratio,
            clocks: Some(run.clocks),
        })
    }

    /// Flows of the sources for our own sender.
    fn flows(&self, own: &[Vec<SourceParams>]) -> Result<Vec<SendingFlow>, AttemptError> {
        let flows = own.iter().filter_map(|sent| {
            let seed = self.run.source_seed(&sent.first()?.name);
            sending_flow(self.study, self.sources, sent, seed).transpose()
        });
        flows.collect()
    }

    /// All sources as flows for our own sender.
    fn all_flows(&self) -> Result<Vec<SendingFlow>, AttemptError> {
        let Offering { constant, mut own } = Offering::of(self.study, self.run.scenario);
        own.extend(constant.into_iter().map(|source| vec![source]));
        self.flows(&own)
    }

    /// A ready sender for sources iperf3 cannot send, and the ports it sends to.
    fn own_sender(
        &self,
        hosts: &Hosts,
        own: &[Vec<SourceParams>],
    ) -> Result<(UdpSink, Sender), AttemptError> {
        let flows = self.flows(own)?;
        let remotes: Vec<SocketAddr> = flows.iter().map(|flow| flow.remote).collect();
        let udp_sink = UdpSink::bind(Some(hosts.sink()), &remotes)
            .map_err(AttemptError::failed("the sink"))?;
        let sender = Sender::start(Some(hosts.generator()), flows)
            .map_err(AttemptError::failed("the sender"))?;
        Ok((udp_sink, sender))
    }

    /// A sending iperf3 client for each constant source.
    fn clients(
        &self,
        hosts: &Hosts,
        constant: &[SourceParams],
    ) -> Result<Vec<Iperf3>, AttemptError> {
        let lasts = Span::from_nanos(
            self.study
                .duration
                .nanos()
                .saturating_add(SETTLING.nanos())
                .saturating_add(MARGIN.nanos()),
        );
        let mut clients = Vec::with_capacity(constant.len());
        for source in constant {
            clients.push(Iperf3::listen(
                hosts,
                self.workspace.temporary(),
                source,
                self.study.hosts.timer_of(source.machine),
                lasts,
                self.is_interrupted,
            )?);
        }
        for client in &mut clients {
            client.connect(hosts)?;
        }
        for client in &mut clients {
            client.wait_until_connected(self.is_interrupted)?;
        }
        Ok(clients)
    }

    /// Abandon the attempt if steal since `before` already exceeds the limit for the whole run, of which
    /// the share `done` has passed.
    fn check_steal(&self, before: ProcessorTime, done: f64) -> Result<(), AttemptError> {
        let Some(most) = self.most else {
            return Ok(());
        };
        let ratio = ProcessorTime::now().stolen_since(before);
        if ratio * done > most.steal_ratio {
            return Err(AttemptError::Retryable(stolen(ratio, most)));
        }
        Ok(())
    }

    /// Wait until the measured time is over; `before` is the processor time at its start.
    fn watch(
        &self,
        zero: TimeZero,
        before: ProcessorTime,
        running: &mut Running<'_, '_>,
    ) -> Result<Watched, AttemptError> {
        let end = zero.monotonic.saturating_add(self.study.duration);
        let whole = (self.study.duration.nanos() as f64) + SETTLING.nanos() as f64;
        let mut changes = Vec::new();
        let (mut departures, mut has_looked) = (None, false);
        loop {
            let now = slicewise_live::sys::time::now();
            let next = self.study.phases.get(changes.len());
            let begins = next.map(|phase| zero.monotonic.saturating_add(phase.begins));
            if begins.is_some_and(|begins| begins <= now) {
                changes.push(self.begin_phase(changes.len(), running.device)?);
                let late = |phase: &Phase| {
                    let measured_from = zero.monotonic.saturating_add(phase.measured_from);
                    slicewise_live::sys::time::now() > measured_from
                };
                if matches!(changes.last(), Some(Some(_))) && next.is_some_and(late) {
                    return Err(AttemptError::Retryable(
                        "the gateway changed its policy after the settling time of a phase"
                            .to_owned(),
                    ));
                }
                continue;
            }
            let left = end.saturating_since(now);
            if left <= LAST_LOOK && !has_looked {
                departures = running.device.departures(running.hosts)?;
                has_looked = true;
                continue;
            }
            if left == Span::ZERO {
                return Ok(Watched {
                    changes,
                    departures,
                });
            }
            let next = running.proceed(zero, now)?;
            let next = begins.into_iter().chain(next).min();
            let wait = next.map_or(left, |next| left.min(next.saturating_since(now)));
            thread::sleep(Duration::from_nanos(wait.nanos()).min(WATCH));
            if (self.is_interrupted)() {
                return Err(AttemptError::Interrupted);
            }
            running.check()?;
            let done = 1.0 - left.nanos() as f64 / whole;
            self.check_steal(before, done)?;
        }
    }

    /// Put the policy of a phase in force, where it is another one than before.
    fn begin_phase(
        &self,
        index: usize,
        device: &mut Device,
    ) -> Result<Option<ChangeRecord>, AttemptError> {
        let policy = |index: usize| {
            let phase = self.study.phases.get(index)?;
            let policy = phase.study.policies.get(self.run.policy)?;
            Some(&policy.params)
        };
        let before = index.checked_sub(1).and_then(policy);
        if before.is_none() || policy(index) == before {
            return Ok(None);
        }
        device.change_to(index, self.is_interrupted).map(Some)
    }

    /// Class maps and first sources of the slices.
    fn slices(&self) -> SliceRule {
        let slices = self.study.slices.iter().enumerate();
        let matched = slices.map(|(index, slice)| {
            let first = self.scenario.sources.iter().find(|s| s.slice == index);
            MatchedSlice {
                name: slice.name.clone(),
                matches: slice.matches.clone(),
                first_source: first.map(|source| Headers::from(&source.headers)),
                objective: slice.objective,
            }
        });
        SliceRule::Matched(matched.collect())
    }
}

/// Processes that run during the measured time.
struct Running<'a, 'b> {
    hosts: &'a Hosts,
    device: &'a mut Device,
    captures: &'a mut [Capturing; 2],
    clients: &'a mut [Iperf3],
    applications: &'a mut Applications<'b>,
}

impl Running<'_, '_> {
    /// Begin and stop applications; returns when the next is due.
    fn proceed(&mut self, zero: TimeZero, now: Instant) -> Result<Option<Instant>, AttemptError> {
        if now < zero.monotonic {
            return Ok(Some(zero.monotonic));
        }
        let passed = now.saturating_since(zero.monotonic);
        let next = self.applications.proceed(self.hosts, passed)?;
        Ok(next.map(|next| zero.monotonic.saturating_add(next)))
    }

    fn check(&mut self) -> Result<(), AttemptError> {
        self.device.check()?;
        self.captures.iter_mut().try_for_each(Capturing::check)?;
        self.clients.iter_mut().try_for_each(Iperf3::check)?;
        self.applications.check()
    }
}

impl Watch for Attempt<'_> {
    fn on_progress(&self, _read_bytes: u64, _total_bytes: u64) {}

    fn is_interrupted(&self) -> bool {
        (self.is_interrupted)()
    }
}

/// Check that everything tcpdump captured is in the files and was read.
fn are_whole(record: &RunRecord, captures: &[Captured; 2]) -> Result<(), AttemptError> {
    let points = record.capture.iter().flat_map(|capture| &capture.points);
    for (point, captured) in points.zip(captures) {
        if !point.incomplete.is_empty() || point.packets != captured.packets {
            return Err(AttemptError::Retryable(format!(
                "{} has {} packets, but tcpdump captured {}",
                captured.file.display(),
                point.packets,
                captured.packets
            )));
        }
    }
    Ok(())
}

/// Captures with gaps look like many things, which would be said of them instead.
fn with_gaps(error: AttemptError, missed_frames: u64) -> AttemptError {
    match error {
        AttemptError::Retryable(_) if missed_frames > 0 => AttemptError::Retryable(format!(
            "{missed_frames} frames were missed by a capture, which cannot be analysed"
        )),
        other => other,
    }
}

fn failed(error: AnalysisError) -> AttemptError {
    match error {
        AnalysisError::Interrupted => AttemptError::Interrupted,
        // Analysing the same captures again would fail again; another attempt makes new ones.
        other => AttemptError::Retryable(format!("cannot analyse the captures: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn what_cannot_be_analysed_for_gaps_is_reported_as_gaps() {
        let odd = || AttemptError::Retryable("packets have different lengths".to_owned());
        let said = |missed| with_gaps(odd(), missed).to_string();
        assert_eq!(said(0), "packets have different lengths");
        assert_eq!(
            said(7),
            "7 frames were missed by a capture, which cannot be analysed"
        );
        let interrupted = with_gaps(AttemptError::Interrupted, 7);
        assert!(matches!(interrupted, AttemptError::Interrupted));
    }
}
