//! A lab: the hosts and the device on which a study runs with real packets.

use std::net::IpAddr;
use std::path::PathBuf;

/// How the offset between two clocks is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ClockCheck {
    #[default]
    TwoWay,
}

/// Hosts reached over SSH, and the device between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lab {
    /// Host that sends.
    pub sender: LabHost,
    /// Host that receives.
    pub receiver: LabHost,
    /// Device under test.
    pub device: LabDevice,
    /// Knowledge of the offset between the clocks of the two hosts.
    pub clocks: LabClocks,
    /// Configuration file of the SSH client; `None` for the user's own.
    pub ssh_config: Option<PathBuf>,
}

/// A host of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabHost {
    /// Destination, as `ssh` takes it.
    pub ssh: String,
    /// Interface towards the device.
    pub interface: String,
    /// Address of that interface.
    pub address: IpAddr,
    /// Command that starts this program on the host.
    pub program: String,
}

/// How the device gets a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabDevice {
    /// How the policy is put in force.
    pub configured_by: ConfiguredBy,
    /// Configuration that is written of each policy, if one is.
    pub export: Option<ConfigurationLanguage>,
    /// Interface of the device named in that configuration.
    pub interface: Option<String>,
}

/// Who puts a policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfiguredBy {
    /// A person, and the message to show.
    Operator(String),
    /// A command for the shell, on this machine or over SSH on another one.
    Command {
        /// Command line with `{policy}`, and on this machine `{file}`, as placeholders.
        line: String,
        /// Host that runs it.
        ssh: Option<String>,
    },
}

/// A language of device configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigurationLanguage {
    /// IOS commands.
    Ios,
    /// Registers of the P4-TINS data plane.
    P4Tins,
    /// Commands for Open vSwitch.
    Ovs,
    /// Profile file of DPDK's `qos_sched`.
    Dpdk,
    /// Commands of Linux traffic control.
    Tc,
}

/// Knowledge of the offset between two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabClocks {
    /// Measured before and after each run; one whose bound exceeds the limit is rejected.
    TwoWay {
        /// Largest bound of the error that is accepted, ns.
        limit_ns: u64,
    },
    /// Synchronised by other means.
    Synchronised {
        /// Largest offset, ns, as stated by the user.
        within_ns: u64,
    },
}
