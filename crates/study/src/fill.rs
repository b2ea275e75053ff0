//! Checks that some scenario offers what the device can carry: policies differ only where something has to wait.

use crate::params::ScenarioParams;
use crate::study::Study;
use slicewise_model::PolicyParams;
use slicewise_units::{BitRate, Rounded};

/// Returns the rate that a policy itself lets pass, bit/s: the sum of its shapers, where each class has one.
fn ceiling(policy: &PolicyParams) -> u64 {
    let classes = policy.classes.iter();
    let rates = classes.map(|class| class.shape.map(|shape| shape.rate.rate.bits_per_second()));
    let sum = rates.sum::<Option<u64>>();
    sum.unwrap_or(u64::MAX)
}

/// The device that no scenario fills, under a policy that holds nothing back before.
pub(crate) fn notes(study: &Study) -> Option<String> {
    let adapts = |scenario: &ScenarioParams| !scenario.applications.is_empty();
    // What applications and populations offer depends on what they get.
    if !study.populations.is_empty() || study.scenarios.iter().any(adapts) {
        return None;
    }
    // A port whose rate changes is filled by another load at each moment.
    if study.port_series.is_some() {
        return None;
    }
    let capacity = study.dut.capacity();
    let loads = study.scenarios.iter().map(|scenario| {
        let sources = scenario.sources.iter();
        let load: u128 = sources
            .map(|source| source.offered(capacity.accounting))
            .sum();
        (load, scenario)
    });
    let (load, scenario) = loads.max_by_key(|(load, _)| *load)?;
    let rate = capacity.rate.bits_per_second();
    let mut policies = study.policies.iter();
    let waits_never = policies.any(|policy| load < u128::from(rate.min(ceiling(&policy.params))));
    waits_never.then(|| {
        let load = BitRate::new(u64::try_from(load).unwrap_or(u64::MAX));
        format!(
            "no scenario fills the device, which carries {}: the most that is offered is {} (scenario {}), so packets wait \
             only where a policy itself holds them back (`shape`)",
            capacity.rate,
            load.rounded_up(),
            scenario.name
        )
    })
}
