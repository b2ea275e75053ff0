//! One run in a lab: the same steps as between namespaces, carried out by hosts.

use super::clocks::{Comparison, Offsets};
use super::host::append_packet;
use super::protocol::{Answer, FlowPlan, Order};
use super::remote::Remote;
use super::{LabSession, Role};
use crate::drain::drain;
use crate::error::AttemptError;
use crate::sender::{SendingFlow, TimeZero};
use crate::tcpdump::Captured;
use crate::workspace::{CAPTURE_NAMES, Workspace};
use slicewise_live::sys::time;
use slicewise_stats::testbed::{ClockOffset, SenderRecord};
use slicewise_study::{LabClocks, Study, StudyPolicy};
use slicewise_units::{Duration as Span, Instant};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// From the order to send to time zero.
const WAIT: Span = Span::from_millis(300);
/// Interval between checks.
const WATCH: Duration = Duration::from_millis(50);
/// Most packets of a run.
const MAX_PACKETS: usize = 50_000_000;
/// Most addresses in the filter of a capture.
const MAX_FILTERED: usize = 50;

/// Both hosts, and what watches them.
struct Hosts<'a> {
    session: &'a LabSession,
    sender: Remote,
    receiver: Remote,
    is_interrupted: &'a dyn Fn() -> bool,
}

/// Flows to send, each with the time for which they are sent.
pub(crate) struct Load {
    /// Far apart, through the idle device.
    pub(crate) probes: (Vec<SendingFlow>, Span),
    pub(crate) flows: (Vec<SendingFlow>, Span),
}

/// Result of a run, before analysis.
pub(crate) struct LabRun {
    /// Time zero of the probes, and of the flows, on the sender's clock.
    pub(crate) zeros: [TimeZero; 2],
    pub(crate) captures: [Captured; 2],
    /// The device in one line.
    pub(crate) device: String,
    pub(crate) senders: Vec<SenderRecord>,
    pub(crate) steal_ratio: f64,
    pub(crate) idle_ratio: f64,
    pub(crate) clocks: ClockOffset,
}

/// Carry out a run, up to its captures.
pub(crate) fn execute(
    session: &LabSession,
    of: (&Study, &StudyPolicy),
    load: Load,
    workspace: &Workspace,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<LabRun, AttemptError> {
    let carried_out = carry_out(session, of, load, workspace, is_interrupted);
    // After a failure the device may not be what it was.
    carried_out.inspect_err(|_| session.forget_policy())
}

fn carry_out(
    session: &LabSession,
    of: (&Study, &StudyPolicy),
    Load { probes, flows }: Load,
    workspace: &Workspace,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<LabRun, AttemptError> {
    // A person may take hours: hosts are not kept waiting.
    session.put_in_force(of, workspace.temporary(), is_interrupted)?;
    let mut hosts = Hosts {
        session,
        sender: session.connect(Role::Sender, is_interrupted)?,
        receiver: session.connect(Role::Receiver, is_interrupted)?,
        is_interrupted,
    };
    let before = hosts.compare_clocks()?;
    hosts.start_captures(&flows.0)?;
    let (idle_zero, _) = hosts.send(probes)?;
    hosts.processors()?;
    let (zero, senders) = hosts.send(flows)?;
    let (steal_ratio, idle_ratio) = hosts.processors()?;
    drain(|| hosts.arrived(), is_interrupted)?;
    let captures = hosts.fetch_captures(workspace)?;
    let clocks = hosts.correct(before, &captures)?;
    workspace.check_room()?;
    Ok(LabRun {
        zeros: [idle_zero, zero].map(at),
        captures,
        device: session.describe_device(),
        senders,
        steal_ratio,
        idle_ratio,
        clocks,
    })
}

/// Time zero on the sender's clock, whose other clock is not known here.
fn at(unix_ns: u64) -> TimeZero {
    TimeZero {
        monotonic: Instant::ZERO,
        unix_ns,
    }
}

impl Hosts<'_> {
    /// Offset of the receiver's clock; `None` if the user says that clocks are synchronised.
    fn compare_clocks(&mut self) -> Result<Option<Comparison>, AttemptError> {
        let lab = self.session.lab();
        let LabClocks::TwoWay { limit_ns } = lab.clocks else {
            return Ok(None);
        };
        let receiver = lab.receiver.address;
        let answer = Order::AnswerClocks { address: receiver };
        let port = match self.receiver.ask(&answer, self.is_interrupted)? {
            Answer::AnsweringClocks { port } => port,
            other => return Err(self.receiver.unexpected(&other)),
        };
        let compare = Order::CompareClocks {
            address: lab.sender.address,
            with: SocketAddr::new(receiver, port),
        };
        let comparison = match self.sender.ask(&compare, self.is_interrupted)? {
            Answer::ClocksCompared { comparison } => comparison,
            other => return Err(self.sender.unexpected(&other)),
        };
        if comparison.bound_ns > limit_ns {
            return Err(AttemptError::Retryable(format!(
                "the offset of both clocks is known only within {} µs, half of the shortest round trip through the idle \
                 device (limit {} µs): synchronise them by PTP and let the lab say `clocks: {{synchronised: TIME}}`, or \
                 raise `limit`",
                comparison.bound_ns / 1_000,
                limit_ns / 1_000
            )));
        }
        Ok(Some(comparison))
    }

    fn start_captures(&mut self, flows: &[SendingFlow]) -> Result<(), AttemptError> {
        let filter = filter(flows);
        let capture = |sends| Order::Capture {
            sends,
            filter: filter.clone(),
        };
        self.receiver.tell(&capture(false), self.is_interrupted)?;
        self.sender.tell(&capture(true), self.is_interrupted)
    }

    /// Have flows sent for so long; returns time zero on the sender's clock, ns, and what was sent.
    fn send(
        &mut self,
        (flows, lasts): (Vec<SendingFlow>, Span),
    ) -> Result<(u64, Vec<SenderRecord>), AttemptError> {
        let remotes: BTreeSet<SocketAddr> = flows.iter().map(|flow| flow.remote).collect();
        let listen = Order::Listen {
            addresses: remotes.into_iter().collect(),
        };
        self.receiver.tell(&listen, self.is_interrupted)?;
        let (load, data) = load(flows)?;
        self.sender.tell_with(&load, &data, self.is_interrupted)?;
        let send = Order::Send {
            wait_ns: WAIT.nanos(),
        };
        let zero_ns = match self.sender.ask(&send, self.is_interrupted)? {
            Answer::Sending { zero_ns } => zero_ns,
            other => return Err(self.sender.unexpected(&other)),
        };
        // The answer came after the host had begun to wait.
        let end = time::now().saturating_add(WAIT).saturating_add(lasts);
        while time::now() < end {
            if (self.is_interrupted)() {
                return Err(AttemptError::Interrupted);
            }
            self.sender.check()?;
            self.receiver.check()?;
            let left = end.saturating_since(time::now());
            thread::sleep(Duration::from_nanos(left.nanos()).min(WATCH));
        }
        match self.sender.ask(&Order::StopSending, self.is_interrupted)? {
            Answer::Sent { senders } => Ok((zero_ns, senders)),
            other => Err(self.sender.unexpected(&other)),
        }
    }

    /// Largest steal and least idle share of processor time of both hosts since this was last asked.
    fn processors(&mut self) -> Result<(f64, f64), AttemptError> {
        let (mut steal, mut idle) = (0.0_f64, 1.0_f64);
        for host in [&mut self.sender, &mut self.receiver] {
            match host.ask(&Order::ReadProcessors, self.is_interrupted)? {
                Answer::Processors {
                    steal_ratio,
                    idle_ratio,
                } => (steal, idle) = (steal.max(steal_ratio), idle.min(idle_ratio)),
                other => return Err(host.unexpected(&other)),
            }
        }
        Ok((steal, idle))
    }

    fn arrived(&mut self) -> Result<u64, AttemptError> {
        let asked = self.receiver.ask(&Order::CountArrived, self.is_interrupted);
        match asked? {
            Answer::Arrived { datagrams } => Ok(datagrams),
            other => Err(self.receiver.unexpected(&other)),
        }
    }

    fn fetch_captures(&mut self, workspace: &Workspace) -> Result<[Captured; 2], AttemptError> {
        let [sent, received] = CAPTURE_NAMES.map(|name| workspace.captures().join(name));
        let is_interrupted = self.is_interrupted;
        Ok([
            fetch_capture(&mut self.sender, &sent, is_interrupted)?,
            fetch_capture(&mut self.receiver, &received, is_interrupted)?,
        ])
    }

    /// Put the times of the receiver on the sender's clock.
    fn correct(
        &mut self,
        before: Option<Comparison>,
        captures: &[Captured; 2],
    ) -> Result<ClockOffset, AttemptError> {
        let Some((before, after)) = before.zip(self.compare_clocks()?) else {
            let within = match self.session.lab().clocks {
                LabClocks::Synchronised { within_ns } => within_ns,
                LabClocks::TwoWay { limit_ns } => limit_ns,
            };
            return Ok(ClockOffset::stated(within));
        };
        let offsets = Offsets { before, after };
        let [_, received] = captures;
        offsets.correct(&received.file)?;
        Ok(offsets.record())
    }
}

fn fetch_capture(
    host: &mut Remote,
    file: &Path,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Captured, AttemptError> {
    match host.ask(&Order::StopCapture, is_interrupted)? {
        Answer::Captured { packets, missed } => {
            host.fetch_capture(file, is_interrupted)?;
            Ok(Captured {
                file: file.to_owned(),
                packets,
                missed,
            })
        }
        other => Err(host.unexpected(&other)),
    }
}

/// Only packets of these flows, as far as their addresses say so.
fn filter(flows: &[SendingFlow]) -> String {
    let hosts: BTreeSet<IpAddr> = flows.iter().map(|flow| flow.local.ip()).collect();
    if hosts.is_empty() || hosts.len() > MAX_FILTERED {
        return "udp".to_owned();
    }
    let hosts = hosts.iter().map(|host| format!("src host {host}"));
    let hosts: Vec<String> = hosts.collect();
    format!("udp and ({})", hosts.join(" or "))
}

/// The order to send flows, and its data.
fn load(flows: Vec<SendingFlow>) -> Result<(Order, Vec<u8>), AttemptError> {
    let mut data = Vec::new();
    let mut plans = Vec::with_capacity(flows.len());
    let mut all: usize = 0;
    for mut flow in flows {
        let before = all;
        while let Some(departure) = flow.source.next_departure() {
            append_packet(&mut data, departure.at, departure.l2_bytes);
            all += 1;
            if all > MAX_PACKETS {
                return Err(AttemptError::Unsupported(format!(
                    "more than {MAX_PACKETS} packets in a run: shorten it (`duration`)"
                )));
            }
        }
        plans.push(FlowPlan {
            name: flow.name,
            local: flow.local,
            remote: flow.remote,
            dscp: flow.dscp,
            header_bytes: flow.header_bytes,
            payload_bytes: flow.payload_bytes,
            packets: (all - before) as u64,
        });
    }
    Ok((Order::Load { flows: plans }, data))
}
