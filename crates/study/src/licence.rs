//! Priority that borrows from a licence: what it sends is charged, and nothing holds it back before it owes much.

use crate::params::{DutParams, ScenarioParams};
use crate::study::Study;
use slicewise_model::PolicyParams;
use slicewise_units::{BitRate, Rounded};

/// Of a policy, the priority that may exceed a licence: for each device of the path, the scenario that offers most.
pub(crate) fn notes(study: &Study, policy: usize) -> Vec<String> {
    let name = study.policies.get(policy).map_or("", |it| &it.name);
    let hops = study.hops(policy).filter_map(|(device, params)| {
        let licence = device.licence.filter(|licence| licence.priority_borrows)?;
        let loads = study.scenarios.iter();
        let loads = loads.map(|scenario| (offered(scenario, params, device), scenario));
        let (most, scenario) = loads.max_by_key(|(load, _)| *load)?;
        (most > u128::from(licence.rate.rate.bits_per_second())).then(|| {
            let most = BitRate::new(u64::try_from(most).unwrap_or(u64::MAX));
            format!(
                "policy `{name}`: in scenario {}, priority without a policer is offered up to {}, more than the licence of \
                 {} that it borrows from: once it owes 200 ms of that it waits, too, and other classes get nothing (`police` the \
                 class to leave them something)",
                scenario.name,
                most.rounded_up(),
                licence.rate.rate
            )
        })
    });
    hops.collect()
}

/// Returns the highest rate that sources with their own pace send to priority classes without a policer, as the licence
/// of `device` counts.
fn offered(scenario: &ScenarioParams, policy: &PolicyParams, device: &DutParams) -> u128 {
    let accounting = device.capacity().accounting;
    let sources = scenario.sources.iter().filter(|source| {
        let mut classes = policy.classes.iter();
        let headers = (&source.headers).into();
        let class = classes.find(|class| {
            let map = class.matches.as_ref();
            map.is_none_or(|map| map.matches(&headers))
        });
        class.is_some_and(|class| {
            let priority = class.priority;
            class.police.is_none() && priority.is_some_and(|it| it.police.is_none())
        })
    });
    sources.map(|source| source.offered(accounting)).sum()
}
