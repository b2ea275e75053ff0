//! Policies as configurations of devices.

use crate::lab::ConfigurationLanguage;
use crate::study::{Study, StudyPolicy};
use slicewise_formats::{dpdk, ios, ovs, p4_tins, tc};
use slicewise_model::PolicySpec;

/// The interface configured where none is named.
const INTERFACE: &str = "eth0";

impl ConfigurationLanguage {
    /// Returns true if a configuration names the interface that it is for.
    #[must_use]
    pub const fn names_interface(self) -> bool {
        matches!(self, Self::Ovs | Self::Tc)
    }

    /// Writes a policy of a study for the device of the study, and for this interface where that is named.
    ///
    /// # Errors
    /// Settings that the language cannot express, or a rate of the port that changes, where it states one.
    pub fn write(
        self,
        study: &Study,
        policy: &StudyPolicy,
        interface: Option<&str>,
    ) -> Result<String, String> {
        let states_rate = matches!(self, Self::P4Tins | Self::Ovs | Self::Tc);
        if states_rate && study.port_series.is_some() {
            return Err(
                "a configuration of this kind states one rate of the link, and that of this study changes during a run \
                 (`dut.port_rate`): give it one rate in a study that extends this one"
                    .to_owned(),
            );
        }
        let interface = interface.unwrap_or(INTERFACE);
        let (params, capacity) = (&policy.params, study.dut.capacity());
        match self {
            Self::Ios => {
                let name = policy.policy_map.as_ref().unwrap_or(&policy.name).clone();
                let spec = PolicySpec {
                    name,
                    ..policy.spec.clone()
                };
                ios::write(&spec).map_err(|error| error.to_string())
            }
            Self::P4Tins => {
                p4_tins::write(params, study.dut.port()).map_err(|error| error.to_string())
            }
            Self::Dpdk => dpdk::write(&policy.spec)
                .map(|profile| profile.to_string())
                .map_err(|error| error.to_string()),
            Self::Ovs => ovs::write(params, capacity, interface)
                .map(|commands| commands.to_string())
                .map_err(|error| error.to_string()),
            Self::Tc => tc::write(params, capacity, interface)
                .map(|config| config.to_string())
                .map_err(|error| error.to_string()),
        }
    }
}
