//! `slicewise export`: a policy of a study as a device's configuration.

use crate::Failure;
use crate::arguments::{ExportOptions, Language};
use crate::exit::Exit;
use crate::load::{load_study, policy_named};
use crate::noteln;
use crate::output;
use slicewise_study::{ConfigurationLanguage, Study, StudyPolicy};

pub fn export(options: &ExportOptions) -> Result<Exit, Failure> {
    let whole = load_study(&options.study, options.case.as_deref())?;
    let (study, policy) = chosen(&whole, &options.policy)?;
    if policy.reallocation.is_some() {
        noteln!(
            "note: a loop sets rates of this policy (`reallocate`), and a configuration has those before its first decision"
        );
    }
    let language = match options.to {
        Language::Ios => ConfigurationLanguage::Ios,
        Language::P4Tins => ConfigurationLanguage::P4Tins,
        Language::Dpdk => ConfigurationLanguage::Dpdk,
        Language::Ovs => ConfigurationLanguage::Ovs,
        Language::Tc => ConfigurationLanguage::Tc,
    };
    let interface = options.interface.as_deref();
    if interface.is_some() && !language.names_interface() {
        return Err(Failure::mistake(
            "`--interface` requires `--to tc` or `--to ovs`: the others define a policy without its interface",
        ));
    }
    let text = language.write(study, policy, interface);
    let text = text.map_err(Failure::mistake)?;
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
