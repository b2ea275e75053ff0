//! Runs of a study: translates the study into the simulator's terms.

mod path;

use crate::capture::{CaptureObserver, CaptureParams};
use crate::device::{DeviceParams, Plane};
use crate::elephants::{self, elephants};
use crate::endpoint::EndpointParams;
use crate::impairment::Impairments;
use crate::link::{Handover, LinkParams};
use crate::losses::{dropped, dropped_by_queue, losses_on_links};
use crate::measurement::Measurement;
use crate::network::{self, Network};
use crate::observer::{FlowId, Observer};
use crate::population;
use crate::port::{Node, PortId};
use crate::queue_lengths::{QueueLengthRecords, QueueLengths};
use crate::reallocation;
use crate::run::{collector, failed, unsupported};
use crate::scheduler_delay::SchedulerDelays;
use crate::timeline::{self, Begun};
use crate::topology::{FlowParams, Topology};
use crate::transport::{ApplicationFlows, SeriesParams, Transports, directions};
use path::{back, egress_link, flow_control, forwarding, is_as_fast, way_back};
use slicewise_capture::store::make_folders;
use slicewise_stats::application::SourceTransactions;
use slicewise_stats::backend::{BackendInfo, SIMULATOR};
use slicewise_stats::collect::CollectorMemory;
use slicewise_stats::path::run_components;
use slicewise_stats::queues::ElephantRecord;
use slicewise_stats::record::{DropCount, LinkLoss, RunKey, RunRecord};
use slicewise_study::{
    Backend, DutModel, ImpairmentParams, LinkImpairments, RunError, RunSpec, ScenarioParams, Study,
};
use slicewise_traffic::{Random, Sources};
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long after the hosts have stopped the network may take to drain. Queues are finite, so
/// only a class shaped to almost nothing needs longer, and then the run fails with an error.
const DRAIN: Duration = Duration::from_secs(3_600);

/// The simulator as a back end of studies. One serves all threads.
#[derive(Debug, Default)]
pub struct Simulator {
    sources: Sources,
    /// Where runs are captured, if they are.
    captures: Option<Captures>,
    /// Memory of collectors whose runs are over, for others.
    memories: Mutex<Vec<CollectorMemory>>,
}

#[derive(Debug)]
struct Captures {
    root: PathBuf,
    snap_bytes: u32,
}

impl Backend for Simulator {
    fn info(&self) -> BackendInfo {
        SIMULATOR
    }

    fn run(&self, study: &Study, run: &RunSpec) -> Result<RunRecord, RunError> {
        if !study.populations.is_empty() {
            if self.captures.is_some() {
                return Err(unsupported(
                    "captures of populations, which have no headers",
                ));
            }
            return population::run(study, run);
        }
        let key = run.key(study).ok_or(RunError::UnknownRun(*run))?;
        let Some(captures) = &self.captures else {
            let (measurement, outcome) = self.simulate(study, run, |_, m| Ok(m))?;
            return Ok(self.record(outcome, measurement, key));
        };
        if has_applications(study, run) {
            return Err(unsupported("captures of simulated connections"));
        }
        let params = captures.params(study, run, &key)?;
        let ((measurement, capture), outcome) =
            self.simulate(study, run, |flows, measurement| {
                let capture = CaptureObserver::create(&params, flows).map_err(failed)?;
                Ok((measurement, capture))
            })?;
        capture.finish().map_err(failed)?;
        Ok(self.record(outcome, measurement, key))
    }

    fn run_with_transactions(
        &self,
        study: &Study,
        run: &RunSpec,
    ) -> Result<(RunRecord, Vec<SourceTransactions>), RunError> {
        if self.captures.is_some() || !has_applications(study, run) {
            return Ok((self.run(study, run)?, Vec::new()));
        }
        let key = run.key(study).ok_or(RunError::UnknownRun(*run))?;
        let (measurement, outcome) = self.simulate(study, run, |_, m| Ok(m))?;
        let transactions = outcome.transports.transactions();
        Ok((self.record(outcome, measurement, key), transactions))
    }
}

impl Captures {
    fn params(
        &self,
        study: &Study,
        run: &RunSpec,
        key: &RunKey,
    ) -> Result<CaptureParams, RunError> {
        let folder = make_folders(&self.root, &run_components(key)).map_err(|error| {
            RunError::Failed(format!(
                "cannot make folders for captures in `{}`: {error}",
                self.root.display()
            ))
        })?;
        Ok(CaptureParams {
            folder,
            snap_bytes: self.snap_bytes,
            duration: study.duration,
            cycle: study.cycle(run.scenario),
        })
    }
}

/// Longest time from an interrupt until a host's TCP has answered: an idle Linux host forwards a packet in 1 to 9 us.
const RECEIVE_PROCESSING: Duration = Duration::from_micros(10);
/// The seed of hosts is that of a source of this name, which no study can have.
const HOSTS: &str = "";
/// Streams of a source's seed that connections have on impaired links.
const CONNECTIONS_STREAM: u64 = 1 << 32;

/// Outcome of a run beside its observer's: losses, their places, and the effects of changes.
struct Outcome {
    drops: Vec<DropCount>,
    lost_on_links: Vec<LinkLoss>,
    phases: Vec<Begun>,
    transports: Transports,
    queues: QueueLengthRecords,
    elephants: Vec<ElephantRecord>,
}

impl Simulator {
    /// With these sources instead of those that a study describes: [`Sources::as_sent`].
    #[must_use]
    pub fn offering(sources: Sources) -> Self {
        Self {
            sources,
            ..Self::default()
        }
    }

    /// Capture every run from now on, keeping `snap_bytes` bytes of each frame: run 7 of policy `p`
    /// under scenario `s` into `<root>/p/s/rep-007`, with names as
    /// [`path_component`] makes them of those of the study.
    #[must_use]
    pub fn with_captures(self, root: PathBuf, snap_bytes: u32) -> Self {
        Self {
            captures: Some(Captures { root, snap_bytes }),
            ..self
        }
    }

    /// The record of a run.
    fn record(&self, outcome: Outcome, measurement: Measurement, key: RunKey) -> RunRecord {
        let (mut record, collector) = measurement.finish(key, outcome.drops);
        self.memories().push(collector.into_memory());
        timeline::complete(&mut record.phases, outcome.phases, &record.drops);
        let records = |from_ns, to_ns, with_series| {
            let (from, to) = (Instant::from_nanos(from_ns), Instant::from_nanos(to_ns));
            outcome.transports.records(from, to, with_series)
        };
        for phase in &mut record.phases {
            phase.applications = records(phase.measured_from_ns, phase.ends_ns, false);
        }
        for (phase, queues) in record.phases.iter_mut().zip(outcome.queues.of_phases) {
            phase.queues = queues;
        }
        RunRecord {
            // All of the run: the transient found in one run is not that of another, which it is compared with.
            applications: records(0, record.duration_ns, true),
            link_losses: outcome.lost_on_links,
            queues: outcome.queues.of_run,
            elephants: outcome.elephants,
            ..record
        }
    }
    /// Locked for a moment.
    fn memories(&self) -> MutexGuard<'_, Vec<CollectorMemory>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Simulate a run to its end; returns the observer created by `observe`, and the losses.
    fn simulate<O: Observer>(
        &self,
        study: &Study,
        run: &RunSpec,
        observe: impl FnOnce(&[FlowParams], Measurement) -> Result<O, RunError>,
    ) -> Result<(O, Outcome), RunError> {
        let Built {
            mut network,
            links,
            egress,
            names,
        } = self.network(study, run, observe)?;
        let mut lengths = QueueLengths::new(study, &egress);
        let (phases, gone) = timeline::run(&mut network, study, run.policy, &egress, &mut lengths);
        let stopped = Instant::ZERO.saturating_add(study.duration);
        let port = egress.first().copied();
        reallocation::run(&mut network, study, run, port, &mut lengths)?;
        network.stop_hosts(stopped);
        let mut devices = study.hops(run.policy).map(|(device, _)| device.model);
        if devices.any(|model| matches!(model, DutModel::QosSched(_))) {
            for port in names.keys() {
                network.change(*port, stopped, |plane| plane.stop_waiting(stopped));
            }
        }
        let network::Outcome {
            in_flight,
            storm,
            ended_at,
            ..
        } = network.run_until(stopped.saturating_add(DRAIN));
        if let Some(ports) = storm {
            let names = ports.map(|port| names.get(&port).map_or("a port", String::as_str));
            let message = format!(
                "pause storm at {ended_at}: {} pause each other for good",
                names.join(" and ")
            );
            return Err(RunError::Failed(message));
        }
        if in_flight > 0 {
            return Err(RunError::Failed(format!(
                "{in_flight} packets were still queued {DRAIN} after the hosts had stopped: a class is \
                 shaped to almost nothing"
            )));
        }
        // A change of policy may end one hierarchy and begin another.
        let drops = match study.phases.is_empty() {
            true => dropped_by_queue(&network, &egress),
            false => [dropped(&network, &egress), gone.drops].concat(),
        };
        let elephants =
            elephants::by_class([elephants(&network, &egress), gone.elephants].concat());
        let lost_on_links = losses_on_links(study, run, &network, &links);
        let (observer, transports) = network.into_parts();
        let outcome = Outcome {
            drops,
            lost_on_links,
            phases,
            transports,
            queues: lengths.records(),
            elephants,
        };
        Ok((observer, outcome))
    }

    /// The network of one run: the hosts that send, the devices, a receiver.
    fn network<O: Observer>(
        &self,
        study: &Study,
        run: &RunSpec,
        observe: impl FnOnce(&[FlowParams], Measurement) -> Result<O, RunError>,
    ) -> Result<Built<O>, RunError> {
        let scenario = study
            .scenarios
            .get(run.scenario)
            .ok_or(RunError::UnknownRun(*run))?;
        let mut topology = Topology::default();
        let answers = !scenario.applications.is_empty();
        let hops: Vec<_> = study.hops(run.policy).collect();
        let first = hops.first().map(|(device, _)| *device);
        let control = first.and_then(flow_control);
        let endpoint = EndpointParams {
            interrupt_interval: study.hosts.interrupt_moderation,
            transmit_ring_frames: None,
            source_limit_frames: control.map(|control| control.host_queue),
            per_priority: control.is_some_and(|control| control.per_priority),
            processing: RECEIVE_PROCESSING,
            seed: run.source_seed(HOSTS),
        };
        let hosts = Hosts::new(&mut topology, scenario, endpoint);
        let senders = hosts.senders.values();
        let adapters: Vec<PortId> = senders.map(|host| topology.port(*host)).collect();
        // The ports behind which the rest of the path is built, each with the link on which it sends.
        let links = hosts.senders.keys().map(|host| LinkParams {
            rate: study.link.rate,
            propagation: study.propagation_from(*host),
            handover: Handover::LastBit,
        });
        let mut from: Vec<(PortId, LinkParams)> = adapters.iter().copied().zip(links).collect();
        let is_controlled = hops
            .iter()
            .any(|(device, _)| flow_control(device).is_some());
        let mut egress = Vec::with_capacity(hops.len());
        let senders = hosts
            .senders
            .keys()
            .map(|name| name.unwrap_or("the sender"));
        let mut names: BTreeMap<PortId, String> = adapters
            .iter()
            .copied()
            .zip(senders.map(str::to_owned))
            .collect();
        for (place, (device, policy)) in (1..).zip(&hops) {
            let node = topology.device(DeviceParams {
                processing: device.processing_delay,
                flow_control: flow_control(device),
            });
            let behind = egress_link(study, device);
            let is_plain = |on| {
                !is_controlled
                    && !matches!(device.model, DutModel::QosSched(_))
                    && is_as_fast(back(on, study).rate, back(behind, study).rate)
            };
            for (from, on) in from {
                let ingress = if answers && !is_plain(on) {
                    topology.egress(node, way_back(study, device, run.seed)?)
                } else {
                    topology.port(node)
                };
                topology.unequal_link((from, on), (ingress, back(on, study)));
                names.insert(ingress, format!("device {place}"));
            }
            let port = topology.egress(node, forwarding(device, policy, run.seed)?);
            if let Some(series) = &study.port_series {
                topology.vary(port, Arc::clone(series));
            }
            from = vec![(port, behind)];
            egress.push(port);
            names.insert(port, format!("device {place}"));
        }
        for (last, on) in &from {
            let sink = topology.port(hosts.receiver);
            topology.unequal_link((*last, *on), (sink, back(*on, study)));
        }
        let links = [adapters, from.into_iter().map(|(port, _)| port).collect()];
        impair(&mut topology, study, run, scenario, &links);
        let applications = applications(study, run, scenario, &hosts)?;
        let flows = self.flows(study, run, scenario, &hosts)?;
        let directions = directions(&applications);
        let headers = flows.iter().map(|flow| &flow.headers);
        let headers = headers.chain(directions.iter().map(|direction| &direction.headers));
        let scheduler = match hops.as_slice() {
            [] => return Err(RunError::UnknownRun(*run)),
            [(_, policy)] if study.phases.is_empty() => Some(SchedulerDelays::new(policy, headers)),
            // A frame passes several schedulers, or one whose guarantees change.
            _ => None,
        };
        let mut collector = collector(study, run.scenario)?;
        if let Some(memory) = self.memories().pop() {
            collector = collector.with_memory(memory);
        }
        let measurement = Measurement::new(collector, scheduler);
        let observer = observe(&flows, measurement)?;
        let series = SeriesParams::new(study.duration, study.measure.bin);
        let transports = Transports::new(&applications, series);
        let network = topology.build_with(flows, &applications, transports, observer);
        let network = network.map_err(failed)?;
        Ok(Built {
            network,
            links,
            egress,
            names,
        })
    }

    /// A flow for each source of the scenario.
    fn flows(
        &self,
        study: &Study,
        run: &RunSpec,
        scenario: &ScenarioParams,
        hosts: &Hosts<'_>,
    ) -> Result<Vec<FlowParams>, RunError> {
        let mut sources_of_slice = vec![0u16; study.slices.len()];
        let mut flows = Vec::with_capacity(scenario.sources.len());
        for (index, params) in scenario.sources.iter().enumerate() {
            let count = sources_of_slice.get_mut(params.slice).ok_or_else(|| {
                RunError::Failed(format!("source `{}` is of no slice", params.name))
            })?;
            let slice = u16::try_from(params.slice).map_err(failed)?;
            let id = FlowId {
                slice,
                source: *count,
            };
            *count = count.saturating_add(1);
            let seed = run.source_seed(&params.name);
            let sends = study.sends(run.scenario, index);
            let source = self.sources.sequence(&sends, &study.hosts, seed)?;
            let source = source.ok_or(RunError::UnknownRun(*run))?;
            let headers = Headers::from(&params.headers);
            let tunnel = params.headers.tunnel;
            flows.push(FlowParams {
                id,
                sender: hosts.sender(params.host.as_deref())?,
                receiver: hosts.receiver,
                headers,
                outer: tunnel.map(|_| Headers::from(&params.headers.outermost())),
                source,
            });
        }
        Ok(flows)
    }
}

/// A network that was built.
struct Built<O> {
    network: Network<Plane, O>,
    /// The ports that send on [`LINKS`](crate::losses::LINKS): one of each host on the first.
    links: [Vec<PortId>; 2],
    /// The ports by which frames leave the devices, in the order of the path.
    egress: Vec<PortId>,
    /// Whose the ports are, to name them.
    names: BTreeMap<PortId, String>,
}

/// The hosts of a run.
struct Hosts<'a> {
    /// Those that send, in the order of their adapters' ports.
    senders: BTreeMap<Option<&'a str>, Node>,
    receiver: Node,
}

impl<'a> Hosts<'a> {
    fn new(
        topology: &mut Topology<Plane>,
        scenario: &'a ScenarioParams,
        endpoint: EndpointParams,
    ) -> Self {
        let mut names = scenario.hosts().into_iter();
        let first = names.next().flatten();
        let mut senders = BTreeMap::from([(first, topology.endpoint(endpoint))]);
        let receiver = topology.endpoint(endpoint);
        senders.extend(names.map(|name| (name, topology.endpoint(endpoint))));
        Self { senders, receiver }
    }

    fn sender(&self, host: Option<&str>) -> Result<Node, RunError> {
        let sender = self.senders.get(&host).copied();
        sender.ok_or_else(|| RunError::Failed("a source is on no host".to_owned()))
    }
}

/// Let links lose and delay frames as the study says; `links` are the ports that send on [`LINKS`](crate::losses::LINKS).
fn impair(
    topology: &mut Topology<Plane>,
    study: &Study,
    run: &RunSpec,
    scenario: &ScenarioParams,
    links: &[Vec<PortId>; 2],
) {
    let LinkImpairments { ingress, egress } = study.link.impairments;
    for ((link, ports), params) in (0..).zip(links).zip([ingress, egress]) {
        if params == ImpairmentParams::default() {
            continue;
        }
        for port in ports {
            let seeds = scenario.sources.iter().map(|s| run.source_seed(&s.name));
            let seeds = seeds.chain(seeds_of_connections(run, scenario));
            topology.impair(*port, Impairments::new(params, seeds, link));
        }
    }
}

/// The applications of a scenario.
fn applications<'a>(
    study: &'a Study,
    run: &RunSpec,
    scenario: &'a ScenarioParams,
    hosts: &Hosts<'_>,
) -> Result<Vec<ApplicationFlows<'a>>, RunError> {
    let flows = scenario.applications.iter().map(|params| {
        let slice = study
            .slices
            .get(params.slice)
            .ok_or_else(|| RunError::Failed(format!("source `{}` is of no slice", params.name)))?;
        Ok(ApplicationFlows {
            params,
            slice_name: &slice.name,
            slice: u16::try_from(params.slice).map_err(failed)?,
            seed: run.source_seed(&params.name),
            host_seed: run.source_seed(params.host.as_deref().unwrap_or_default()),
            sender: hosts.sender(params.host.as_deref())?,
            receiver: hosts.receiver,
        })
    });
    flows.collect()
}

fn has_applications(study: &Study, run: &RunSpec) -> bool {
    let scenario = study.scenarios.get(run.scenario);
    scenario.is_some_and(|scenario| !scenario.applications.is_empty())
}

/// A seed for each flow of connections.
fn seeds_of_connections<'a>(
    run: &'a RunSpec,
    scenario: &'a ScenarioParams,
) -> impl Iterator<Item = u64> + use<'a> {
    scenario.applications.iter().flat_map(|params| {
        let seed = run.source_seed(&params.name);
        let flows = u64::from(params.application.connections()) * 2;
        (0..flows).map(move |flow| Random::stream(seed, CONNECTIONS_STREAM + flow).below(u64::MAX))
    })
}
