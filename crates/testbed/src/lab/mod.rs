//! A lab of real hosts: sender and receiver are reached over SSH, and the device between them is the user's.
//!
//! On each host runs this program, as the command `lab-host` ([`serve`]), for as long as one attempt at a run. It carries
//! out [`protocol`] orders with the same sender, sink and captures as the testbed in namespaces.

mod clocks;
mod device;
mod host;
mod orders;
mod protocol;
mod remote;
mod run;
mod ssh;

pub(crate) use clocks::{agree, early_within, make_later};
pub use device::supports;
pub use host::serve;
pub(crate) use run::{Load, execute};

use crate::error::AttemptError;
use crate::suitability::Unsendable;
use protocol::{Answer, Order};
use remote::Remote;
use slicewise_study::{ConfiguredBy, Lab, LabHost, ScenarioParams, Study, StudyPolicy};
use slicewise_wire::PROTOCOL_UDP;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A lab whose hosts have been reached once.
pub struct LabSession {
    lab: Lab,
    /// Version of this program.
    version: String,
    say: Box<dyn Fn(&str) + Send + Sync>,
    /// Programs of both hosts, by name.
    versions: Vec<(String, String)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Policy in force.
    policy: Option<String>,
    /// Why a host could not be reached: it is not tried again by this command.
    unreachable: Option<String>,
}

/// Part of a host in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Sender,
    Receiver,
}

impl LabSession {
    /// Check that both hosts can carry out these scenarios: the program in the same `version`, its tools and privileges,
    /// interfaces and addresses. `say` receives messages for a person who configures the device.
    ///
    /// # Errors
    /// The first thing that is wrong, with the host, and what to do.
    pub fn open(
        lab: Lab,
        version: &str,
        scenarios: &[&ScenarioParams],
        say: Box<dyn Fn(&str) + Send + Sync>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let mut session = Self {
            lab,
            version: version.to_owned(),
            say,
            versions: Vec::new(),
            state: Mutex::default(),
        };
        for role in [Role::Sender, Role::Receiver] {
            let wanted = scenarios.iter().flat_map(|scenario| &scenario.sources);
            let wanted = wanted.map(|source| match role {
                Role::Sender => source.headers.source,
                Role::Receiver => source.headers.destination,
            });
            let wanted: BTreeSet<IpAddr> = wanted.collect();
            let (_, versions) = session.prepared(role, &wanted, is_interrupted)?;
            let of_role = versions.into_iter();
            let of_role =
                of_role.map(|(name, version)| (format!("{name}, {}", role.name()), version));
            session.versions.extend(of_role);
        }
        Ok(session)
    }

    /// The lab as it is written.
    #[must_use]
    pub const fn lab(&self) -> &Lab {
        &self.lab
    }

    pub(crate) const fn is_set_by_hand(&self) -> bool {
        matches!(self.lab.device.configured_by, ConfiguredBy::Operator(_))
    }

    pub(crate) fn versions(&self) -> Vec<(String, String)> {
        self.versions.clone()
    }

    fn host(&self, role: Role) -> &LabHost {
        match role {
            Role::Sender => &self.lab.sender,
            Role::Receiver => &self.lab.receiver,
        }
    }

    /// A connection to a host that is reserved, and its programs. It must have the address of the lab and these.
    fn prepared(
        &self,
        role: Role,
        wanted: &BTreeSet<IpAddr>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(Remote, Vec<(String, String)>), AttemptError> {
        let host = self.host(role);
        let described = (&self.lab, role.name(), host);
        let mut remote = Remote::connect(described, &self.version, is_interrupted)?;
        let prepare = Order::Prepare {
            interface: host.interface.clone(),
        };
        match remote.ask(&prepare, is_interrupted)? {
            Answer::Host {
                addresses,
                versions,
            } => {
                let mut needed = wanted.iter().chain([&host.address]);
                match needed.find(|address| !addresses.contains(address)) {
                    Some(missing) => Err(without_address(role, host, *missing)),
                    None => Ok((remote, versions)),
                }
            }
            other => Err(remote.unexpected(&other)),
        }
    }

    /// Connect for an attempt at a run. A host that cannot be reached once is not waited for again.
    fn connect(
        &self,
        role: Role,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Remote, AttemptError> {
        if let Some(why) = &self.state().unreachable {
            return Err(AttemptError::Failed(why.clone()));
        }
        let connected = self.prepared(role, &BTreeSet::new(), is_interrupted);
        if let Err(AttemptError::Failed(why)) = &connected {
            self.state().unreachable = Some(why.clone());
        }
        connected.map(|(remote, _)| remote)
    }

    /// Put a policy in force unless it is.
    fn put_in_force(
        &self,
        (study, policy): (&Study, &StudyPolicy),
        folder: &Path,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), AttemptError> {
        if self.state().policy.as_deref() == Some(policy.name.as_str()) {
            return Ok(());
        }
        self.forget_policy();
        device::put_in_force(
            &self.lab,
            (study, policy),
            folder,
            &self.say,
            is_interrupted,
        )?;
        self.state().policy = Some(policy.name.clone());
        Ok(())
    }

    /// Put a policy in force again before the next run: the device may have lost it.
    fn forget_policy(&self) {
        self.state().policy = None;
    }

    /// How the device gets a policy, in one line.
    fn describe_device(&self) -> String {
        match &self.lab.device.configured_by {
            ConfiguredBy::Operator(_) => "device of a lab, configured by hand".to_owned(),
            ConfiguredBy::Command { ssh: Some(ssh), .. } => format!("device of a lab, {ssh}"),
            ConfiguredBy::Command { .. } => "device of a lab, configured by a command".to_owned(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for LabSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LabSession")
            .field("lab", &self.lab)
            .finish_non_exhaustive()
    }
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

fn without_address(role: Role, host: &LabHost, address: IpAddr) -> AttemptError {
    let (name, ssh, interface) = (role.name(), &host.ssh, &host.interface);
    let bits = if address.is_ipv4() { 32 } else { 128 };
    AttemptError::Failed(format!(
        "{name} {ssh}: interface `{interface}` does not have the address {address}, which the study or the lab uses: name \
         another interface or address, or add it (`ip address add {address}/{bits} dev {interface}`)"
    ))
}

/// Checks that the hosts of a lab can send the sources of a scenario.
///
/// # Errors
/// The first reason why not.
pub fn check_sources(scenario: &ScenarioParams) -> Result<(), Unsendable> {
    let unsendable = |source: &str, why: &str| Unsendable {
        scenario: scenario.name.clone(),
        source_name: Some(source.to_owned()),
        why: format!(
            "source {source} {why}: the hosts of a lab send UDP without VLAN tags and tunnels"
        ),
    };
    if let Some(source) = scenario.applications.first() {
        return Err(unsendable(&source.name, "has an application"));
    }
    for source in &scenario.sources {
        let headers = &source.headers;
        let why = if headers.protocol != PROTOCOL_UDP {
            "is not UDP"
        } else if headers.vlan.is_some() {
            "has a VLAN tag"
        } else if headers.tunnel.is_some() {
            "is in a tunnel"
        } else {
            continue;
        };
        return Err(unsendable(&source.name, why));
    }
    Ok(())
}
