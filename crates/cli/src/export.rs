//! `slicewise export`: a policy of a study as a device's configuration.

use crate::Failure;
use crate::arguments::{ExportOptions, Language};
use crate::check::{load_study, policy_named};
use crate::exit::Exit;
use crate::output;
use slicewise_formats::{dpdk, ios, ovs, p4_tins, tc};
use slicewise_model::PolicySpec;

/// The interface configured where none is named.
const INTERFACE: &str = "eth0";

pub fn export(options: &ExportOptions) -> Result<Exit, Failure> {
    let study = load_study(&options.study, options.case.as_deref())?;
    let policy = policy_named(&study, &options.policy)?;
    let text = match options.to {
        Language::Ios | Language::P4Tins | Language::Dpdk if options.interface.is_some() => {
            return Err(Failure::mistake(
                "`--interface` requires `--to tc` or `--to ovs`: the others define a policy without its interface",
            ));
        }
        Language::Ios => {
            let name = policy.policy_map.as_ref().unwrap_or(&policy.name).clone();
            let spec = PolicySpec {
                name,
                ..policy.spec.clone()
            };
            ios::write(&spec).map_err(Failure::mistake)?
        }
        Language::P4Tins => {
            let port = study.dut.port();
            p4_tins::write(&policy.params, port).map_err(Failure::mistake)?
        }
        Language::Dpdk => dpdk::write(&policy.spec)
            .map_err(Failure::mistake)?
            .to_string(),
        Language::Ovs => {
            let interface = options.interface.as_deref().unwrap_or(INTERFACE);
            ovs::write(&policy.params, study.dut.capacity(), interface)
                .map_err(Failure::mistake)?
                .to_string()
        }
        Language::Tc => {
            let interface = options.interface.as_deref().unwrap_or(INTERFACE);
            tc::write(&policy.params, study.dut.capacity(), interface)
                .map_err(Failure::mistake)?
                .to_string()
        }
    };
    output::styled(&output::escaped(&text));
    Ok(Exit::Success)
}
