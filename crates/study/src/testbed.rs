//! A study made ready for real packets: a shorter profile, and a device that a testbed can be.

use crate::device;
use crate::params::{DutModel, DutParams, HostTiming, QosSchedParams, StudyLink};
use crate::quick::{QuickParams, usual_scenarios};
use crate::study::Study;
use slicewise_formats::tc;
use slicewise_model::{PolicyError, Rate};
use slicewise_stats::mser::MIN_CYCLES;
use slicewise_stats::verdict::rare_share_excluded;
use slicewise_traffic::scenario::Ecn;
use slicewise_units::{BitRate, Duration, FrameLengths};

/// The links to and from a device under test in namespaces: nothing waits on them.
const VIRTUAL_LINK: BitRate = BitRate::new(100_000_000_000);

/// Links of a testbed take no time. What is beyond this is more than the noise of a machine that others use.
const UNNOTICED_PROPAGATION: Duration = Duration::from_micros(500);

/// The IP protocol of UDP.
const UDP: u8 = 17;

/// How a device that forwards real packets keeps to the rate of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// By the departure of each frame.
    Departures,
    /// By a token bucket, which takes a frame from the queues below it ahead of time.
    TokenBucket,
    /// By handing frames on in bursts, as the threads of DPDK's `qos_sched` do.
    Bursts,
}

impl Pacing {
    /// The device with which `study` is simulated beside it, for a link of `rate`.
    fn model(self, study: &Study, rate: Rate) -> DutModel {
        let policies = study.policies.iter();
        let bucket = policies
            .map(|policy| tc::link_bucket(&policy.params, rate))
            .max();
        match (self, bucket) {
            (Self::TokenBucket, Some(burst)) => DutModel::Tc { burst },
            (Self::Departures, _) | (Self::TokenBucket, None) => DutModel::Gateway,
            (Self::Bursts, _) => study.dut.model.threads_or_sample(),
        }
    }
}

/// Why a study cannot be run on real packets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TestbedError {
    /// Its slices have no headers.
    #[error(
        "the slices of this study are populations, whose frames have no headers: they can be simulated only"
    )]
    Populations,
    /// Its links lose or delay frames, and those of a testbed do not.
    #[error(
        "the links of this study are impaired (`link.impairments`), and those of a testbed carry every frame: simulate \
         it, or leave the impairments out in a study that extends this one (`without: [link.impairments]`)"
    )]
    Impairments,
    /// The rate of its port changes, and that of a testbed does not.
    #[error(
        "the rate of the port changes during a run (`dut.port_rate`), and that of a testbed is constant: simulate the study, or \
         give one rate in a study that extends this one"
    )]
    VaryingRate,
    /// Its links take time, and those of a testbed take none.
    #[error(
        "the links of this study take {0} (`link.propagation`), and those of a testbed take no time: simulate it, or give at \
         most {UNNOTICED_PROPAGATION} in a study that extends this one"
    )]
    Propagation(Duration),
    /// A host has a link of its own length, and a testbed has one host that sends.
    #[error(
        "host `{0}` has a link of its own length (`hosts.propagation`), and on a testbed one host sends everything: simulate the \
         study, or leave it out in a study that extends this one (`without: [hosts.propagation]`)"
    )]
    HostPropagation(String),
    /// A source sends ECN-capable packets, and those of a testbed do not.
    #[error(
        "source `{0}` is ECN-capable (`headers: {{ecn: ..}}`), and senders of a testbed are not: simulate the study, or leave \
         `ecn` out in a study that extends this one"
    )]
    Ecn(String),
    /// A source sends in a tunnel what a testbed does not send there, or to a device that does not look into it.
    #[error(
        "source `{0}` is in a tunnel (`headers: {{teid: ..}}`): senders of a testbed put UDP alone into tunnels, and the gateway \
         alone looks into them (`--on gateway`): simulate the study, or leave `teid` out in a study that extends this one"
    )]
    Tunnel(String),
    /// A loop sets rates of a policy, which traffic control and DPDK do not.
    #[error(
        "a loop sets the rates of policy `{0}` (`reallocate`), which only the gateway (`--on gateway`) and the simulator carry \
         out: leave the policy out in a study that extends this one (`without: [policies.{0}]`)"
    )]
    Reallocation(String),
    /// There is more than one device on its path.
    #[error(
        "this study has a path of several devices, and a testbed has one: simulate it, or give `dut` in a study that \
         extends this one (`without: [path, devices]`)"
    )]
    Path,
    /// Its timeline changes a policy, which queues of a kernel and of DPDK do not survive.
    #[error(
        "phase `{0}` changes a policy: traffic control replaces queues with what waits in them, and DPDK's scheduler is \
         configured when it starts, so only the gateway (`--on gateway`) and the simulator carry that out"
    )]
    PolicyChange(String),
    /// A policy does not fit the emulated link.
    #[error("policy {policy} does not fit a link of {rate}: {problem}", problem = error.problem)]
    Policy {
        /// The policy.
        policy: String,
        /// The link.
        rate: BitRate,
        /// Why.
        error: Box<PolicyError>,
    },
}

impl Study {
    /// The study's profile for a first look: its own (`quick:`), or else the scenarios that both verdicts
    /// need, at most 4 repetitions of 8 s, or of four cycles where that is more.
    #[must_use]
    pub fn into_quick(mut self) -> Self {
        let quick = self.quick.take().unwrap_or_else(|| self.default_quick());
        let phases = self
            .phases
            .iter_mut()
            .map(|phase| &mut phase.study.scenarios);
        for scenarios in phases.chain([&mut self.scenarios]) {
            let mut index = 0;
            scenarios.retain(|_| {
                index += 1;
                quick.scenarios.contains(&(index - 1))
            });
        }
        self.is_quick = true;
        self.repetitions = quick.repetitions;
        // A first look finds what its repetitions can show.
        let margins = &mut self.margins;
        let excluded = rare_share_excluded(quick.repetitions, margins.confidence);
        margins.rare_runs = margins.rare_runs.max(excluded);
        self.duration = quick.duration;
        for scenario in &mut self.scenarios {
            let of_sources = scenario.sources.iter_mut().map(|s| &mut s.stop);
            let of_applications = scenario.applications.iter_mut().map(|s| &mut s.stop);
            for stop in of_sources.chain(of_applications) {
                *stop = (*stop).min(quick.duration);
            }
        }
        self
    }

    fn default_quick(&self) -> QuickParams {
        let bin = self.measure.bin.nanos().max(1);
        let cycle = self.scenarios.iter().map(|s| s.cycle().nanos()).max();
        let whole = Duration::from_secs(8)
            .nanos()
            .max(cycle.unwrap_or(0).saturating_mul(MIN_CYCLES as u64))
            .next_multiple_of(bin);
        QuickParams {
            scenarios: usual_scenarios(
                &self.scenarios,
                &self.slices,
                &self.populations,
                self.dut.port_rate.rate,
            ),
            repetitions: self.repetitions.min(4),
            // Phases take as long as they take.
            duration: if self.phases.is_empty() {
                self.duration.min(Duration::from_nanos(whole))
            } else {
                self.duration
            },
        }
    }

    /// The study on a testbed: policies resolved for a link of the rate that slices share, hosts that
    /// stamp frames as they arrive, and nothing of the device that it models otherwise.
    ///
    /// The senders of one machine have one clock: iperf3's are made to drift by their timers, which it takes
    /// in whole microseconds only, and the study says then by how much.
    ///
    /// Published figures are left out: they are of another device. Published verdicts stay. A delay is
    /// taken to have worsened only beyond the time of one largest frame on the link, too: which of two
    /// packets that meet goes first decides as much, and phases of real senders are not ours to repeat.
    ///
    /// # Errors
    /// Where the study cannot be run on real packets.
    pub fn into_testbed(mut self, pacing: Pacing) -> Result<Self, TestbedError> {
        if let Some(error) = self.unfit_for_testbed(pacing).into_iter().next() {
            return Err(error);
        }
        for phase in &mut self.phases {
            phase.study = phase.study.clone().into_testbed(pacing)?;
        }
        for scenario in &mut self.scenarios {
            let of_sources = scenario.sources.iter_mut().map(|s| &mut s.host);
            let of_applications = scenario.applications.iter_mut().map(|s| &mut s.host);
            // The link to the device carries whatever its one host sends.
            of_sources
                .chain(of_applications)
                .for_each(|host| *host = None);
        }
        let capacity = self.dut.capacity();
        for policy in &mut self.policies {
            let own = policy.device.as_ref();
            let port = own.map_or(capacity, DutParams::capacity);
            let resolved = policy.spec.resolve_for(port.into());
            let error = |error| TestbedError::Policy {
                policy: policy.name.clone(),
                rate: port.rate,
                error: Box::new(error),
            };
            policy.params = resolved.map_err(error)?;
            policy.device = policy.device.map(|device| match pacing {
                Pacing::Bursts => DutParams {
                    model: device.model.threads_or_sample(),
                    ..device
                },
                Pacing::Departures => on_testbed(DutModel::Gateway, port),
                Pacing::TokenBucket => {
                    let burst = tc::link_bucket(&policy.params, port);
                    on_testbed(DutModel::Tc { burst }, port)
                }
            });
            if policy.scalability_is_of_device {
                policy.scalability = device::scalability(DutModel::Gateway, &policy.params);
            }
        }
        let largest = FrameLengths {
            l2_bytes: self.link.mtu_bytes.saturating_add(14),
            l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
        };
        let frame = device::frame_time(capacity, largest).nanos();
        self.margins.delay_resolution_ns = self.margins.delay_resolution_ns.max(frame);
        self.dut = on_testbed(pacing.model(&self, capacity), capacity);
        self.link = StudyLink {
            rate: Rate {
                rate: VIRTUAL_LINK,
                ..self.link.rate
            },
            propagation: Duration::ZERO,
            ..self.link
        };
        self.hosts = HostTiming {
            clock_drift_ppb: whole_microseconds(self.hosts),
            interrupt_moderation: Duration::ZERO,
            ..self.hosts
        };
        self.measure.medians = true;
        (self.policies.iter_mut()).for_each(|policy| policy.rests_on.clear());
        self.assumptions.clear();
        self.limits.clear();
        self.published.clear();
        Ok(self)
    }

    /// Returns the reasons why the study cannot run on a testbed, except policies that do not fit its link.
    pub(crate) fn unfit_for_testbed(&self, pacing: Pacing) -> Vec<TestbedError> {
        let mut sources = self.scenarios.iter().flat_map(|s| &s.sources);
        let marked = sources.find(|source| source.headers.ecn != Ecn::NotEct);
        let tunnelled = self.scenarios.iter().find_map(|scenario| {
            let fits = pacing == Pacing::Departures;
            let of_sources = scenario.sources.iter();
            let of_sources =
                of_sources.map(|s| (&s.name, s.headers, fits && s.headers.protocol == UDP));
            let of_applications = scenario.applications.iter();
            let of_applications = of_applications.map(|s| (&s.name, s.headers, false));
            let mut all = of_sources.chain(of_applications);
            all.find(|(_, headers, fits)| headers.tunnel.is_some() && !fits)
        });
        let propagation = self.link.propagation;
        let mut phases = self.phases.iter();
        let changed = phases
            .find(|phase| phase.study.policies != self.policies)
            .filter(|_| pacing != Pacing::Departures);
        let mut policies = self.policies.iter();
        let reallocated = policies
            .find(|policy| policy.reallocation.is_some())
            .filter(|_| pacing != Pacing::Departures);
        let errors = [
            (!self.populations.is_empty()).then_some(TestbedError::Populations),
            (!self.link.impairments.is_none()).then_some(TestbedError::Impairments),
            (self.port_series.is_some()).then_some(TestbedError::VaryingRate),
            (propagation > UNNOTICED_PROPAGATION).then_some(TestbedError::Propagation(propagation)),
            self.host_propagation
                .keys()
                .next()
                .cloned()
                .map(TestbedError::HostPropagation),
            (!self.path.is_empty()).then_some(TestbedError::Path),
            marked.map(|source| TestbedError::Ecn(source.name.clone())),
            tunnelled.map(|(name, ..)| TestbedError::Tunnel(name.clone())),
            reallocated.map(|policy| TestbedError::Reallocation(policy.name.clone())),
            changed.map(|phase| TestbedError::PolicyChange(phase.name.clone())),
        ];
        errors.into_iter().flatten().collect()
    }

    /// On a testbed: where descriptors of a card are described, a sentence that says that its interfaces have their own.
    #[must_use]
    pub fn descriptors_without_effect(&self) -> Option<String> {
        let own = self
            .policies
            .iter()
            .filter_map(|policy| policy.device.as_ref());
        let mut models = own.chain([&self.dut]).map(|device| device.model);
        let sample = QosSchedParams::SAMPLE.ring.transmit;
        let differs =
            |model| matches!(model, DutModel::QosSched(threads) if threads.ring.transmit != sample);
        models.any(differs).then(|| {
            "`ring.transmit` has no effect on real packets: the rings of virtual interfaces have a size of their own, and \
             nothing waits there for a link"
                .to_owned()
        })
    }
}

/// A device of a testbed that keeps to `rate`: nothing else of it is modelled.
pub(crate) const fn on_testbed(model: DutModel, rate: Rate) -> DutParams {
    DutParams {
        model,
        port_rate: rate,
        processing_delay: Duration::ZERO,
        licence: None,
    }
}

/// The drift at which the timers of machines are whole microseconds apart, one at least where they are to
/// drift at all; parts per billion, rounded up.
fn whole_microseconds(hosts: HostTiming) -> u32 {
    if hosts.clock_drift_ppb == 0 {
        return 0;
    }
    let timer = u128::from(hosts.timer.nanos().max(1));
    let step = timer * u128::from(hosts.clock_drift_ppb);
    let micros = ((step + 500_000_000_000) / 1_000_000_000_000).max(1);
    u32::try_from((micros * 1_000_000_000_000).div_ceil(timer)).unwrap_or(u32::MAX)
}
