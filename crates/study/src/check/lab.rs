//! Labs: every setting read, every contradiction reported at its place.

use super::Checker;
use crate::file::Placed;
use crate::lab::{
    ClockCheck, ConfigurationLanguage, ConfiguredBy, Lab, LabClocks, LabDevice, LabHost,
};
use crate::spec::At;
use crate::{problem, settings};
use slicewise_units::Duration;
use std::net::IpAddr;

/// Largest error of measured clocks that is accepted unless it is said.
const DEFAULT_LIMIT: Duration = Duration::from_millis(1);
/// Name of the program on a host unless it is said.
const DEFAULT_PROGRAM: &str = "slicewise";

settings! {
    /// A lab: hosts reached over SSH that send and receive, and the device between them.
    struct LabSpec as "LabFileSpec" {
        /// The host that sends.
        [expected] sender: Option<Placed<LabHostSpec>>,
        /// The host that receives.
        [expected] receiver: Option<Placed<LabHostSpec>>,
        /// The device under test, and how it gets a policy.
        [expected] device: Option<Placed<LabDeviceSpec>>,
        /// Knowledge of the offset between the clocks of both hosts. Default: measured, within 1 ms.
        clocks: Option<Placed<LabClocksSpec>>,
        /// The configuration file of the SSH client. Default: the user's own.
        ssh_config: Option<At<String>>,
    }
}

settings! {
    /// A host of a lab.
    struct LabHostSpec as "LabHostSpec", strict {
        /// The destination, as `ssh` takes it: `user@host`, or a name of the SSH configuration.
        [required] ssh: Option<At<String>>,
        /// The interface towards the device.
        [required] interface: Option<At<String>>,
        /// The address of that interface.
        [required] address: Option<IpAddr>,
        /// The command that starts this program there. Default `slicewise`.
        program: Option<At<String>>,
    }
}

settings! {
    /// The device under test, and how it gets a policy.
    struct LabDeviceSpec as "LabDeviceSpec", strict {
        /// Message to a person who configures the device.
        operator: Option<At<String>>,
        /// The command that puts a policy in force. `{policy}` is its name, `{file}` the file with the exported
        /// configuration, which is also the standard input of the command.
        apply: Option<At<String>>,
        /// The host that runs the command. Default: this machine.
        ssh: Option<At<String>>,
        /// The language in which each policy is exported. Default: policies are not exported.
        export: Option<ConfigurationLanguage>,
        /// The interface of the device that an exported configuration of `tc` or `ovs` names.
        interface: Option<At<String>>,
    }
}

settings! {
    /// Knowledge of the offset between the clocks of both hosts.
    struct LabClocksSpec as "LabClocksSpec", strict {
        /// How the offset is measured before and after each run. Default `two-way`.
        check: Option<At<ClockCheck>>,
        /// The largest error of the measured offset with which a run is accepted. Default 1 ms.
        limit: Option<At<Duration>>,
        /// The largest offset, where other means keep the clocks synchronised; it is not measured then.
        synchronised: Option<At<Duration>>,
    }
}

impl Checker<'_> {
    /// The lab, unless something was found wrong.
    pub(crate) fn lab(&mut self, spec: &LabSpec) -> Option<Lab> {
        let sender = spec.sender.as_ref().and_then(|host| self.lab_host(host));
        let receiver = spec.receiver.as_ref().and_then(|host| self.lab_host(host));
        let device = (spec.device.as_ref()).and_then(|device| self.lab_device(device));
        let clocks = match &spec.clocks {
            Some(clocks) => self.lab_clocks(clocks),
            None => Some(measured(DEFAULT_LIMIT)),
        };
        let (sender, receiver) = (sender?, receiver?);
        if sender.address.is_ipv4() != receiver.address.is_ipv4()
            || sender.address == receiver.address
        {
            let at = spec.receiver.as_ref()?.place("address")?;
            problem!(self.problems, at => "sender and receiver need two addresses of one IP version, and they have {} and {}",
                sender.address, receiver.address);
            return None;
        }
        if let (Some(one), Some(other)) = (&spec.sender, &spec.receiver)
            && one.value.ssh.as_ref().map(|at| &at.value)
                == other.value.ssh.as_ref().map(|at| &at.value)
        {
            let at = spec.receiver.as_ref()?.place("ssh")?;
            problem!(self.problems, at => "sender and receiver are one host: one host can take part only once";
                "name a second host, or measure between namespaces of one: `--on tc` or `--on gateway`");
            return None;
        }
        for (host, address) in [
            (&spec.sender, sender.address),
            (&spec.receiver, receiver.address),
        ] {
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
                let at = host.as_ref()?.place("address")?;
                problem!(self.problems, at => "{address} is no address of an interface towards a device");
                return None;
            }
        }
        let ssh_config = spec.ssh_config.as_ref().map(|path| {
            let beside = self.sources.beside(path.span.file, &path.value);
            self.files.locate(&beside)
        });
        Some(Lab {
            sender,
            receiver,
            device: device?,
            clocks: clocks?,
            ssh_config,
        })
    }

    fn lab_host(&mut self, spec: &Placed<LabHostSpec>) -> Option<LabHost> {
        let host = &spec.value;
        let ssh = host.ssh.as_ref().and_then(|ssh| self.destination(ssh));
        let interface = (host.interface.as_ref()).and_then(|name| self.interface(name));
        if let Some(program) = &host.program {
            self.check_text(program, "the command that starts this program")?;
        }
        let program = (host.program.as_ref()).map_or(DEFAULT_PROGRAM, |at| at.value.as_str());
        Some(LabHost {
            ssh: ssh?,
            interface: interface?,
            address: host.address?,
            program: program.to_owned(),
        })
    }

    fn lab_device(&mut self, spec: &Placed<LabDeviceSpec>) -> Option<LabDevice> {
        let device = &spec.value;
        let ssh = match &device.ssh {
            Some(ssh) => Some(self.destination(ssh)?),
            None => None,
        };
        let configured_by = match (&device.operator, &device.apply) {
            (Some(text), None) => {
                if let Some(at) = &device.ssh {
                    problem!(self.problems, at.span => "`ssh` is the host of `apply`, and a person configures this device";
                        "leave out `ssh` or `operator`");
                    return None;
                }
                self.check_text(text, "what a person has to do")?;
                ConfiguredBy::Operator(text.value.clone())
            }
            (None, Some(line)) => {
                self.check_line(line, device)?;
                ConfiguredBy::Command {
                    line: line.value.clone(),
                    ssh,
                }
            }
            _ => {
                problem!(self.problems, spec.span => "a policy is put in force either by a command, `apply`, or by a person, \
                    `operator`: expected one of them");
                return None;
            }
        };
        let interface = match &device.interface {
            Some(name) => Some((self.interface(name)?, name.span)),
            None => None,
        };
        let takes_interface = device
            .export
            .is_some_and(ConfigurationLanguage::names_interface);
        match &interface {
            Some((_, at)) if !takes_interface => {
                problem!(self.problems, *at => "only configurations of `tc` and `ovs` name an interface"; "leave it out");
                return None;
            }
            None if takes_interface => {
                problem!(self.problems, spec.span => "this configuration names the interface to the receiver: expected \
                    `interface: NAME`");
                return None;
            }
            _ => {}
        }
        Some(LabDevice {
            configured_by,
            export: device.export,
            interface: interface.map(|(name, _)| name),
        })
    }

    /// Check the placeholders of a command.
    fn check_line(&mut self, line: &At<String>, device: &LabDeviceSpec) -> Option<()> {
        self.check_text(line, "the command that puts a policy in force")?;
        if device.export.is_none() && !line.value.contains("{policy}") {
            problem!(self.problems, line.span => "this command is the same for every policy";
                "give it the name, `{{policy}}`, or the configuration: `export: tc`, `ios`, `ovs`, `dpdk` or `p4-tins`");
            return None;
        }
        let is_quoted = |name: &str| {
            ["'", "\""]
                .iter()
                .any(|quote| line.value.contains(&format!("{quote}{{{name}}}{quote}")))
        };
        if is_quoted("policy") || is_quoted("file") {
            problem!(self.problems, line.span => "`{{policy}}` and `{{file}}` are filled in as quoted words of a shell";
                "leave out the quotes around them");
            return None;
        }
        if !line.value.contains("{file}") {
            return Some(());
        }
        if device.export.is_none() {
            problem!(self.problems, line.span => "`{{file}}` is the exported configuration, and policies are not exported";
                "say in which language: `export: tc`, `ios`, `ovs`, `dpdk` or `p4-tins`");
            return None;
        }
        if device.ssh.is_some() {
            problem!(self.problems, line.span => "`{{file}}` is on this machine, and the command runs on another one";
                "read the configuration from standard input");
            return None;
        }
        Some(())
    }

    /// Refuse an empty text.
    fn check_text(&mut self, text: &At<String>, what: &str) -> Option<()> {
        if text.value.trim().is_empty() {
            problem!(self.problems, text.span => "this is empty: expected {what}");
            return None;
        }
        Some(())
    }

    fn lab_clocks(&mut self, spec: &Placed<LabClocksSpec>) -> Option<LabClocks> {
        let clocks = &spec.value;
        let Some(synchronised) = &clocks.synchronised else {
            if let Some(limit) = clocks
                .limit
                .as_ref()
                .filter(|at| at.value == Duration::ZERO)
            {
                problem!(self.problems, limit.span => "no offset is known exactly: expected a limit above zero, such as `1 ms`");
                return None;
            }
            let limit = clocks.limit.as_ref().map_or(DEFAULT_LIMIT, |at| at.value);
            return Some(measured(limit));
        };
        if clocks.check.is_some() || clocks.limit.is_some() {
            problem!(self.problems, synchronised.span => "clocks are either measured (`check`, `limit`) or stated to be \
                `synchronised`"; "leave out one of them");
            return None;
        }
        Some(LabClocks::Synchronised {
            within_ns: synchronised.value.nanos(),
        })
    }

    /// A destination that `ssh` takes for none of its options.
    fn destination(&mut self, ssh: &At<String>) -> Option<String> {
        let text = ssh.value.as_str();
        let is_possible = !text.is_empty()
            && !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_possible {
            problem!(self.problems, ssh.span => "`{text}` is no destination of SSH: expected `user@host`, or a name of the \
                SSH configuration");
            return None;
        }
        Some(text.to_owned())
    }
}

const fn measured(limit: Duration) -> LabClocks {
    LabClocks::TwoWay {
        limit_ns: limit.nanos(),
    }
}
