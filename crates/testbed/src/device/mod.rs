//! Devices under test, between generator and sink.

mod dpdk;
mod features;
mod gateway;
mod tc;

pub use dpdk::DpdkProgram;
pub(crate) use dpdk::{LIBRARY_PACKAGE, LibraryProblem, supported_library};
pub use features::missing_features;
pub(crate) use features::try_feature;

use crate::acceptance::Thresholds;
use crate::error::AttemptError;
use crate::hosts::Hosts;
use crate::lab::{self, LabSession};
use crate::suitability::UnsupportedSetting;
use dpdk::DpdkDevice;
use gateway::GatewayDevice;
use slicewise_formats::tc::Feature;
use slicewise_model::Rate;
use slicewise_stats::backend::{BackendInfo, DPDK, GATEWAY, LAB, TC};
use slicewise_stats::phase::ChangeRecord;
use slicewise_stats::record::DropCount;
use slicewise_stats::testbed::DepartureRecord;
use slicewise_study::{Pacing, Study, StudyPolicy};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tc::TcDevice;

/// Which device.
#[derive(Debug, Clone)]
pub enum DeviceKind {
    /// The gateway of this program, as a separate process.
    Gateway {
        /// This program.
        program: PathBuf,
        /// The study file, from which the gateway reads its policy.
        study: PathBuf,
        /// The case of that file.
        case: Option<String>,
        /// Its digest: if it changes meanwhile, the gateway rejects it.
        digest: String,
    },
    /// The kernel, with queueing disciplines on the egress interfaces.
    Tc,
    /// DPDK's scheduler, in the threads of its sample application.
    Dpdk(DpdkProgram),
    /// Device of a lab, between hosts that are reached over SSH.
    Lab(Arc<LabSession>),
}

impl DeviceKind {
    /// The back end that it is.
    #[must_use]
    pub const fn info(&self) -> BackendInfo {
        match self {
            Self::Gateway { .. } => GATEWAY,
            Self::Tc => TC,
            Self::Dpdk(_) => DPDK,
            Self::Lab(_) => LAB,
        }
    }

    /// Features of the kernel that it may need.
    #[must_use]
    pub const fn features(&self) -> &'static [Feature] {
        match self {
            Self::Gateway { .. } | Self::Dpdk(_) | Self::Lab(_) => &[],
            Self::Tc => &Feature::ALL,
        }
    }

    /// Returns true if a person puts each policy in force.
    #[must_use]
    pub fn is_set_by_hand(&self) -> bool {
        match self {
            Self::Lab(session) => session.is_set_by_hand(),
            Self::Gateway { .. } | Self::Tc | Self::Dpdk(_) => false,
        }
    }

    /// Limits of an accepted run.
    pub(crate) fn thresholds(&self) -> Thresholds {
        match self {
            Self::Lab(_) => Thresholds::in_lab(),
            Self::Gateway { .. } | Self::Tc | Self::Dpdk(_) => Thresholds::default(),
        }
    }

    /// The device in one line, on a link of this rate.
    #[must_use]
    pub fn describe(&self, link: Rate) -> String {
        let what = match self {
            Self::Gateway { .. } => "Slicewise gateway",
            Self::Tc => "Linux tc",
            Self::Dpdk(_) => "DPDK qos_sched",
            Self::Lab(_) => "device of a lab",
        };
        format!("{what}, link of {} {}", link.rate, link.accounting)
    }

    /// Why this device cannot run a policy, if it cannot: [`supports`].
    ///
    /// # Errors
    /// All that it cannot do.
    pub fn supports(
        &self,
        policy: &StudyPolicy,
        study: &Study,
        missing: &[Feature],
    ) -> Result<(), Vec<UnsupportedSetting>> {
        let pacing = match self {
            Self::Gateway { .. } => Pacing::Departures,
            Self::Tc => Pacing::TokenBucket,
            Self::Dpdk(_) => Pacing::Bursts,
            Self::Lab(session) => return lab::supports(session.lab(), policy, study),
        };
        supports(pacing, policy, study, missing)
    }

    /// Start it between `hosts`. What it needs of files is put into `folder`, which outlives it.
    pub(crate) fn start(
        &self,
        (hosts, folder): (&Hosts, &Path),
        study: &Study,
        policy: &StudyPolicy,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Device, AttemptError> {
        let lateness = study.measure.lateness;
        match self {
            Self::Gateway {
                program,
                study,
                case,
                digest,
            } => {
                let mut command = Command::new(program);
                command.args(["gateway", "--policy", &policy.name]);
                if let Some(case) = case {
                    command.args(["--case", case]);
                }
                command
                    .args(["--phases", "--study-digest", digest, "--study"])
                    .arg(study);
                GatewayDevice::start(hosts, command, lateness, is_interrupted).map(Device::Gateway)
            }
            Self::Tc => {
                TcDevice::start(hosts, &policy.params, study.capacity_of(policy)).map(Device::Tc)
            }
            Self::Dpdk(program) => {
                DpdkDevice::start(program, (hosts, folder), (study, policy), is_interrupted)
                    .map(Device::Dpdk)
            }
            Self::Lab(_) => Err(AttemptError::Unsupported(
                "the device of a lab between namespaces".to_owned(),
            )),
        }
    }
}

/// Checks that the device with this pacing can run a policy of a study [for a testbed](Study::into_testbed), in a
/// kernel without the features `missing`.
///
/// # Errors
/// All that it cannot do.
pub fn supports(
    pacing: Pacing,
    policy: &StudyPolicy,
    study: &Study,
    missing: &[Feature],
) -> Result<(), Vec<UnsupportedSetting>> {
    let of_policy = |setting, why| {
        vec![UnsupportedSetting {
            class: None,
            setting,
            why,
        }]
    };
    let link = study.capacity_of(policy);
    match pacing {
        Pacing::Departures => {
            let is_polled = policy.reallocation.as_ref().map(|it| it.check_gateway());
            if let Some(Err(error)) = is_polled {
                return Err(of_policy("reallocate", error.to_string()));
            }
            gateway::supports(&policy.params, link).map_err(|why| of_policy("classes", why))
        }
        Pacing::TokenBucket => tc::supports(&policy.params, link, missing),
        Pacing::Bursts => dpdk::supports(policy, study).map_err(|why| of_policy("dpdk", why)),
    }
}

/// A running device.
#[derive(Debug)]
pub(crate) enum Device {
    Gateway(GatewayDevice),
    Tc(TcDevice),
    Dpdk(DpdkDevice),
}

/// Device facts about a run.
#[derive(Debug, Default)]
pub(crate) struct DeviceFacts {
    /// One line.
    pub(crate) description: String,
    /// Punctuality of departures, if known.
    pub(crate) departures: Option<DepartureRecord>,
    /// Frames dropped, by class and reason.
    pub(crate) drops: Vec<DropCount>,
    /// Frames that it missed because it was too late.
    pub(crate) missed_frames: u64,
}

impl DeviceFacts {
    /// The difference to `earlier`.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for drop in &mut self.drops {
            let is_same =
                |other: &&DropCount| other.class == drop.class && other.reason == drop.reason;
            let before = earlier.drops.iter().find(is_same).map_or(0, |d| d.frames);
            drop.frames = drop.frames.saturating_sub(before);
        }
        self.drops.retain(|drop| drop.frames > 0);
        self.missed_frames = self.missed_frames.saturating_sub(earlier.missed_frames);
        if let (Some(now), Some(then)) = (&mut self.departures, &earlier.departures) {
            now.frames = now.frames.saturating_sub(then.frames);
            now.late_frames = now.late_frames.saturating_sub(then.late_frames);
            let before = then.lost_link_time_ns;
            now.lost_link_time_ns = now.lost_link_time_ns.saturating_sub(before);
        }
        self
    }
}

impl Device {
    /// An error if it no longer works.
    pub(crate) fn check(&mut self) -> Result<(), AttemptError> {
        match self {
            Self::Gateway(gateway) => gateway.check(),
            Self::Tc(_) => Ok(()),
            Self::Dpdk(dpdk) => dpdk.check(),
        }
    }

    /// The load begins: from now on a device that hands frames on in whole bursts waits for them. Before, it must not: the
    /// idle baseline is of the machine.
    pub(crate) fn load_begins(&mut self) -> Result<(), AttemptError> {
        match self {
            Self::Gateway(_) | Self::Tc(_) => Ok(()),
            Self::Dpdk(dpdk) => dpdk.wait_for_bursts(true),
        }
    }

    /// The load has ended: nobody completes a burst any more, and what waits for one leaves.
    pub(crate) fn load_ended(&mut self) -> Result<(), AttemptError> {
        match self {
            Self::Gateway(_) | Self::Tc(_) => Ok(()),
            Self::Dpdk(dpdk) => dpdk.wait_for_bursts(false),
        }
    }

    /// Put the policy of phase number `phase` in force, the one after that in force now.
    pub(crate) fn change_to(
        &mut self,
        phase: usize,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<ChangeRecord, AttemptError> {
        match self {
            Self::Gateway(gateway) => gateway.change_to(phase, is_interrupted),
            Self::Tc(_) => Err(AttemptError::Unsupported(
                "a change of a policy under traffic control".to_owned(),
            )),
            Self::Dpdk(_) => Err(AttemptError::Unsupported(
                "a change of a policy: DPDK's scheduler is configured when it starts".to_owned(),
            )),
        }
    }

    /// How punctual it is, where that is known.
    pub(crate) fn departures(
        &mut self,
        hosts: &Hosts,
    ) -> Result<Option<DepartureRecord>, AttemptError> {
        match self {
            Self::Gateway(gateway) => Ok(gateway.facts(hosts)?.departures),
            Self::Tc(_) | Self::Dpdk(_) => Ok(None),
        }
    }

    /// Its current facts.
    pub(crate) fn facts(&mut self, hosts: &Hosts) -> Result<DeviceFacts, AttemptError> {
        match self {
            Self::Gateway(gateway) => gateway.facts(hosts),
            Self::Tc(tc) => tc.facts(hosts),
            Self::Dpdk(dpdk) => dpdk.facts(),
        }
    }
}
