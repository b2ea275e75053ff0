//! `slicewise export`: a policy of a study as a device's configuration.

use crate::Failure;
use crate::arguments::{ExportOptions, Language};
use crate::exit::Exit;
use crate::load::{load_study, policy_named};
use crate::noteln;
use crate::output;
use slicewise_formats::{dpdk, ios, ovs, p4_tins, tc};
use slicewise_model::PolicySpec;
use slicewise_study::{Study, StudyPolicy};

/// The interface configured where none is named.
const INTERFACE: &str = "eth0";

pub fn export(options: &ExportOptions) -> Result<Exit, Failure> {
    let whole = load_study(&options.study, options.case.as_deref())?;
    let (study, policy) = chosen(&whole, &options.policy)?;
    if policy.reallocation.is_some() {
        noteln!(
            "note: a loop sets rates of this policy (`reallocate`), and a configuration has those before its first decision"
        );
    }
    let needs_rate = matches!(options.to, Language::P4Tins | Language::Ovs | Language::Tc);
    if needs_rate && study.port_series.is_some() {
        return Err(Failure::mistake(
            "a configuration of this kind states one rate of the link, and that of this study changes during a run \
             (`dut.port_rate`): give it one rate in a study that extends this one",
        ));
    }
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

/// The policy `wanted`, or as it is in one phase, `POLICY/PHASE`, with the study as it is then.
fn chosen<'s>(study: &'s Study, wanted: &str) -> Result<(&'s Study, &'s StudyPolicy), Failure> {
    let Some((name, phase)) = wanted.split_once('/') else {
        let policy = policy_named(study, wanted)?;
        note_other_phases(study, policy);
        return Ok((study, policy));
    };
    let names: Vec<&str> = study.phases.iter().map(|it| it.name.as_str()).collect();
    if names.is_empty() {
        return Err(Failure::mistake(format!(
            "the study has no timeline, so its policies have no phases: leave out `/{phase}`"
        )));
    }
    let Some(phase) = study.phases.iter().find(|it| it.name == phase) else {
        return Err(Failure::mistake(format!(
            "the study has no phase `{phase}`: it has {}",
            names.join(", ")
        )));
    };
    Ok((&phase.study, policy_named(&phase.study, name)?))
}

/// Say which phase is printed, where the policy is another one in a later phase.
fn note_other_phases(study: &Study, policy: &StudyPolicy) {
    let of_phase = |study: &Study| {
        let mut policies = study.policies.iter();
        policies.find(|it| it.name == policy.name).cloned()
    };
    let mut phases = study.phases.iter();
    let first = phases.next();
    let other = phases
        .find(|phase| of_phase(&phase.study).is_some_and(|later| later.params != policy.params));
    if let (Some(first), Some(other)) = (first, other) {
        let name = &policy.name;
        noteln!(
            "note: the timeline changes this policy, and this is `{name}/{}`: name another phase as `--policy {name}/{}`",
            first.name,
            other.name
        );
    }
}
