//! Features of the kernel's traffic control, and what each is needed for.

use super::Untried;
use super::finding::{Check, Finding, Fix, Group, Purpose};
use crate::command::Tool;
use crate::device::try_feature;
use crate::scratch::Scratch;
use slicewise_formats::tc::Feature;

/// Returns the user of a feature; `None` if nothing uses it.
const fn needed_for(feature: Feature) -> Option<&'static str> {
    match feature {
        Feature::Tbf => Some("the link, under every policy on tc"),
        Feature::Htb => Some("policies of several classes on tc"),
        Feature::Fifo => Some("queues on tc that are neither `wred` nor `flow_queue`"),
        Feature::ClsBpf => Some("class maps and the device on tc, and VLAN tags"),
        Feature::Clsact => Some("the device on tc, and VLAN tags"),
        Feature::ActPolice => Some("policies with `police` on tc"),
        Feature::Red => Some("policies with `wred` on tc"),
        Feature::Codel => Some("policies with `flow_queue` of a single queue on tc"),
        Feature::FqCodel => Some("policies with `flow_queue` on tc"),
        Feature::Prio => None,
    }
}

fn check(feature: Feature) -> Option<Check> {
    let stops: &[Purpose] = match feature {
        Feature::Tbf | Feature::ClsBpf | Feature::Clsact => &[Purpose::RunOnTc],
        _ => &[],
    };
    Some(Check {
        group: Group::TrafficControl,
        name: feature.name(),
        needed_for: needed_for(feature)?,
        stops,
    })
}

pub(super) fn checks() -> impl Iterator<Item = Check> {
    Feature::ALL.into_iter().filter_map(check)
}

pub(super) fn examine(scratch: &Scratch, has_interfaces: bool) -> Vec<Finding> {
    if Tool::Tc.find().is_none() {
        let install = Fix::Install(Tool::Tc.package());
        return Untried::new("cannot run `tc`", Some(install)).findings(checks());
    }
    if !has_interfaces {
        return Untried::new("no interface to try it on", None).findings(checks());
    }
    let found = Feature::ALL.into_iter().filter_map(|feature| {
        let check = check(feature)?;
        Some(match try_feature(scratch, feature) {
            Ok(()) => check.ready("works"),
            Err(_) => {
                let symbol = feature.kernel_symbol();
                let fix = Fix::advice(format!("a kernel with {symbol}"));
                check.missing("not in this kernel").with_fix(fix)
            }
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_link_or_device_features_block_tc_and_others_block_some_policies() {
        let stops: Vec<&str> = checks()
            .filter(|check| !check.stops.is_empty())
            .map(|check| check.name)
            .collect();
        assert_eq!(stops, ["sch_tbf", "cls_bpf", "sch_ingress"]);
        assert!(checks().all(|check| check.group == Group::TrafficControl));
    }
}
