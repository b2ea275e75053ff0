//! How one source is carried out, and by which programs.

use super::exchange::{Ended, Exchange, Exchanging, Places};
use super::nginx;
use crate::command::Tool;
use crate::congestion;
use crate::ends::Ends;
use crate::error::AttemptError;
use crate::hosts::Hosts;
use crate::iperf3::{Iperf3, MOST_FLOWS};
use crate::process::Process;
use crate::sender::TimeZero;
use crate::workspace::Workspace;
use slicewise_applications::Start;
use slicewise_live::sys::tcp::TcpOptions;
use slicewise_traffic::application::{
    ApplicationParams, ApplicationSourceParams, BulkParams, FlowArrivals, ServerParams,
};
use slicewise_traffic::transport::CongestionControl;
use slicewise_units::Duration as Span;

/// A source that is carried out.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    source: &'a ApplicationSourceParams,
    by: By,
}

/// Who does it.
#[derive(Debug)]
enum By {
    Iperf3 {
        /// `None` once it has stopped.
        iperf3: Option<Iperf3>,
        has_begun: bool,
    },
    Ours {
        seed: u64,
        /// Where the server is not ours.
        nginx: Option<Process>,
        exchanging: Option<Exchanging>,
    },
}

/// Returns true if iperf3 can make these transfers: all at once, and without an end.
fn is_for_iperf3(bulk: &BulkParams) -> bool {
    let at_once = FlowArrivals::Staggered(Span::ZERO);
    bulk.bytes.is_none() && bulk.arrivals == at_once && bulk.flows <= MOST_FLOWS
}

fn server_of(application: &ApplicationParams) -> Option<ServerParams> {
    match application {
        ApplicationParams::Bulk(_) => None,
        ApplicationParams::Requests(requests) => Some(requests.server),
        ApplicationParams::ShortFlows(flows) => Some(flows.server),
        ApplicationParams::Video(video) => Some(video.server),
    }
}

/// Returns true if nginx can answer: at once, all requests, over connections as the host makes them.
fn is_for_nginx(source: &ApplicationSourceParams) -> bool {
    server_of(&source.application) == Some(ServerParams::default())
        && source.headers.dscp == 0
        && !source.transport.pacing
        && source.transport.congestion == CongestionControl::Cubic
        && Tool::Nginx.find().is_some()
}

impl<'a> Operation<'a> {
    /// Start the server, if it is a program.
    pub(super) fn listen(
        hosts: &Hosts,
        workspace: &Workspace,
        (source, seed): (&'a ApplicationSourceParams, u64),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let by = match &source.application {
            ApplicationParams::Bulk(bulk) if is_for_iperf3(bulk) => {
                let folder = workspace.temporary();
                let iperf3 = Iperf3::listen_for_bulk(hosts, folder, source, bulk, is_interrupted)?;
                By::Iperf3 {
                    iperf3: Some(iperf3),
                    has_begun: false,
                }
            }
            application => {
                let nginx = is_for_nginx(source).then(|| {
                    let listening = Ends::of(source).listening;
                    // Names of sources need not be names of files.
                    let folder = format!("nginx-{}-{}", listening.ip(), listening.port());
                    nginx::start(
                        hosts.generator(),
                        &source.name,
                        &workspace.temporary().join(folder.replace(':', "-")),
                        listening,
                        application.connections(),
                        is_interrupted,
                    )
                });
                By::Ours {
                    seed,
                    nginx: nginx.transpose()?,
                    exchanging: None,
                }
            }
        };
        Ok(Self { source, by })
    }

    pub(super) fn name(&self) -> &str {
        &self.source.name
    }

    /// Time zero is known: ours begin by themselves.
    pub(super) fn start(&mut self, hosts: &Hosts, zero: TimeZero) -> Result<(), AttemptError> {
        let By::Ours {
            seed,
            nginx,
            exchanging,
        } = &mut self.by
        else {
            return Ok(());
        };
        let source = self.source;
        let ends = Ends::of(source);
        let (opening, listening) = if source.application.sender_opens() {
            (hosts.generator(), hosts.sink())
        } else {
            (hosts.sink(), hosts.generator())
        };
        let exchange = Exchange {
            params: source.application.clone(),
            start: Start {
                at: zero.monotonic.saturating_add(source.start),
                spread: source.start_spread,
            },
            stop: zero.monotonic.saturating_add(source.stop),
            seed: *seed,
            local: ends.opening,
            remote: ends.listening,
            options: TcpOptions {
                congestion: congestion::name(source.transport.congestion),
                dscp: source.headers.dscp,
                is_paced: source.transport.pacing,
            },
            server: server_of(&source.application),
        };
        let places = Places {
            opening: Some(opening),
            listening: nginx.is_none().then_some(Some(listening)),
        };
        let name = format!("application {}", source.name);
        let started = Exchanging::start(exchange, places).map_err(AttemptError::failed(&name))?;
        *exchanging = Some(started);
        Ok(())
    }

    /// When it begins and stops.
    pub(super) fn times(&self) -> [Span; 2] {
        [self.source.start, self.source.stop]
    }

    /// Begin or stop a program that is due so long after time zero.
    pub(super) fn proceed(&mut self, hosts: &Hosts, now: Span) -> Result<(), AttemptError> {
        let By::Iperf3 { iperf3, has_begun } = &mut self.by else {
            return Ok(());
        };
        if now >= self.source.stop {
            *iperf3 = None;
        } else if now >= self.source.start && !*has_begun {
            *has_begun = true;
            if let Some(iperf3) = iperf3 {
                iperf3.connect(hosts)?;
            }
        }
        Ok(())
    }

    /// An error if it has ended.
    pub(super) fn check(&mut self) -> Result<(), AttemptError> {
        match &mut self.by {
            By::Iperf3 { iperf3, .. } => iperf3.as_mut().map_or(Ok(()), Iperf3::check),
            By::Ours {
                nginx, exchanging, ..
            } => {
                let has_failed = exchanging.as_ref().is_some_and(Exchanging::is_finished);
                if has_failed && let Some(failed) = exchanging.take() {
                    finished(&self.source.name, failed)?;
                }
                nginx.as_mut().map_or(Ok(()), Process::check)
            }
        }
    }

    /// Stop it; what became of it, if it is ours.
    pub(super) fn finish(self) -> Result<Option<Ended>, AttemptError> {
        match self.by {
            By::Iperf3 { .. } => Ok(None),
            By::Ours { exchanging, .. } => exchanging
                .map(|exchanging| finished(&self.source.name, exchanging))
                .transpose()
                .map(Option::flatten),
        }
    }
}

fn finished(name: &str, exchanging: Exchanging) -> Result<Option<Ended>, AttemptError> {
    let failed = |error| AttemptError::Retryable(format!("application {name}: {error}"));
    exchanging.finish().map_err(failed)
}
