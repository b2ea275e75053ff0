//! A policy as a profile file.

use super::section::RED_KEYS;
use crate::export::{ExportError, Inexpressible};
use slicewise_model::hqos::{
    HqosPipeProfile, HqosRates, HqosRed, HqosRedCurve, HqosSubport, TRAFFIC_CLASSES,
};
use slicewise_model::{ClassSpec, HqosSpec, PolicySpec};
use std::fmt;

/// A profile file, as the sample application takes it with `--cfg`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DpdkConfig<'p>(&'p HqosSpec);

/// Write `policy` as a profile file.
///
/// # Errors
/// Where it is something else than the hierarchical scheduler.
pub fn write(policy: &PolicySpec) -> Result<DpdkConfig<'_>, ExportError> {
    let fail = |class: Option<&ClassSpec>, what, why: &str| {
        Err(ExportError {
            policy: policy.name.clone(),
            language: "a profile of DPDK's scheduler",
            problems: vec![Inexpressible {
                class: class.map(|class| class.name.clone()),
                what,
                why: why.to_owned(),
            }],
        })
    };
    let [class] = policy.classes.as_slice() else {
        let why = "a profile has no classes: VLANs choose the pipe, and the destination address its queue";
        return fail(None, "classes", why);
    };
    let Some(hqos) = class.hqos.as_deref() else {
        let why = "only policies that were written as a profile (`dpdk`) are one";
        return fail(Some(class), "hqos", why);
    };
    let alone = ClassSpec {
        hqos: Some(Box::new(hqos.clone())),
        ..ClassSpec::class_default()
    };
    if *class != alone {
        let why = "a profile has nothing beside the scheduler: no other setting, and no match";
        return fail(Some(class), "classes", why);
    }
    Ok(DpdkConfig(hqos))
}

impl fmt::Display for DpdkConfig<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hqos = self.0;
        writeln!(
            f,
            "; Rates in byte/s, sizes in bytes, periods in ms, queue sizes in packets."
        )?;
        writeln!(f, "[port]")?;
        writeln!(f, "frame overhead = {}", hqos.frame_overhead)?;
        writeln!(f, "number of subports per port = {}", hqos.subports.len())?;
        for (number, subport) in hqos.subports.iter().enumerate() {
            if subport.profile > 0 {
                writeln!(f, "subport {number} = {}", subport.profile)?;
            }
        }
        for (number, subport) in hqos.subports.iter().enumerate() {
            writeln!(f, "\n[subport {number}]")?;
            write_subport(f, subport)?;
        }
        for (number, rates) in hqos.subport_profiles.iter().enumerate() {
            writeln!(f, "\n[subport profile {number}]")?;
            write_rates(f, rates)?;
        }
        for (number, profile) in hqos.pipe_profiles.iter().enumerate() {
            writeln!(f, "\n[pipe profile {number}]")?;
            write_pipe_profile(f, profile)?;
        }
        hqos.red.as_ref().map_or(Ok(()), |red| write_red(f, red))
    }
}

fn write_subport(f: &mut fmt::Formatter<'_>, subport: &HqosSubport) -> fmt::Result {
    writeln!(f, "number of pipes per subport = {}", subport.pipes)?;
    writeln!(f, "queue sizes = {}", listed(subport.queue_sizes))?;
    for range in &subport.assigned {
        let (first, last, profile) = (range.first, range.last, range.profile);
        if first == last {
            writeln!(f, "pipe {first} = {profile}")?;
        } else {
            writeln!(f, "pipe {first}-{last} = {profile}")?;
        }
    }
    Ok(())
}

fn write_rates(f: &mut fmt::Formatter<'_>, rates: &HqosRates) -> fmt::Result {
    writeln!(f, "tb rate = {}", rates.tb_rate)?;
    writeln!(f, "tb size = {}", rates.tb_size)?;
    for (class, rate) in rates.tc_rates.iter().enumerate() {
        writeln!(f, "tc {class} rate = {rate}")?;
    }
    writeln!(f, "tc period = {}", rates.tc_period)
}

fn write_pipe_profile(f: &mut fmt::Formatter<'_>, profile: &HqosPipeProfile) -> fmt::Result {
    write_rates(f, &profile.rates)?;
    let best_effort = TRAFFIC_CLASSES - 1;
    let weight = profile.oversubscription_weight;
    writeln!(f, "tc {best_effort} oversubscription weight = {weight}")?;
    writeln!(
        f,
        "tc {best_effort} wrr weights = {}",
        listed(profile.wrr_weights)
    )
}

fn write_red(f: &mut fmt::Formatter<'_>, red: &HqosRed) -> fmt::Result {
    writeln!(f, "\n[red]")?;
    for (class, curves) in red.iter().enumerate() {
        if curves.iter().all(Option::is_none) {
            continue;
        }
        // A colour without a curve has thresholds of zero.
        let values: [fn(&HqosRedCurve) -> u16; 4] = [
            |curve| curve.min_packets,
            |curve| curve.max_packets,
            |curve| curve.inverse_probability,
            |curve| curve.weight,
        ];
        for (key, value) in RED_KEYS.iter().zip(values) {
            let values = curves.map(|curve| curve.as_ref().map_or(0, value));
            writeln!(f, "tc {class} red {key} = {}", listed(values))?;
        }
    }
    Ok(())
}

fn listed(values: impl IntoIterator<Item = impl ToString>) -> String {
    let values = values.into_iter().map(|value| value.to_string());
    values.collect::<Vec<_>>().join(" ")
}
