//! A whole policy beside slices that were added one by one.

use crate::build::BuildError;
use slicewise_model::{
    ClassParams, DelayRange, GuaranteeParams, PolicyParams, Reservations, SliceParams,
};
use std::collections::{HashMap, HashSet};

/// `policy`, with the slices `added` to another one, `before`, tested after its own classes.
pub(super) fn policy_with(
    mut policy: PolicyParams,
    mut added: Vec<ClassParams>,
    before: &PolicyParams,
) -> Result<PolicyParams, BuildError> {
    let Some(first) = added.first() else {
        return Ok(policy);
    };
    let (Some(common), Some(old)) = (&mut policy.guaranteed, &before.guaranteed) else {
        let problem = "the new policy has no slices: its discipline is not `guaranteed`";
        return Err(not_kept(&first.name, problem));
    };
    let own = policy.classes.iter();
    let own = own.filter_map(|class| class.slice.as_ref()?.guarantee);
    let mut reservations = Reservations::new(&policy.links);
    own.for_each(|guarantee| reservations.restore(guarantee));
    let own = policy.classes.iter().map(|class| class.name.as_str());
    let own: HashSet<&str> = own.collect();
    let tenants = common.tenants.iter().map(|tenant| tenant.name.clone());
    let mut tenants: HashMap<String, usize> = tenants.zip(0..).collect();
    for class in &mut added {
        let name = &class.name;
        if own.contains(name.as_str()) {
            return Err(not_kept(name, "the new policy has a class of this name"));
        }
        let Some(slice) = &mut class.slice else {
            continue;
        };
        let tenant = old.tenants.get(slice.tenant as usize);
        let position = tenant.and_then(|tenant| {
            let next = tenants.len();
            let position = *tenants.entry(tenant.name.clone()).or_insert(next);
            if position == next {
                common.tenants.push(tenant.clone());
            }
            u16::try_from(position).ok().map(u32::from)
        });
        let Some(position) = position else {
            return Err(not_kept(name, "there are too many tenants"));
        };
        let guarantee = slice.guarantee.map(|guarantee| {
            let guarantee = with_delay_within(guarantee, common.delays)?;
            let reserved = reservations.try_reserve(guarantee);
            reserved.map_err(|refusal| refusal.to_string())?;
            Ok(guarantee)
        });
        *slice = SliceParams {
            tenant: position,
            guarantee: guarantee
                .transpose()
                .map_err(|problem: String| not_kept(name, &problem))?,
            ..*slice
        };
    }
    let default = policy.classes.len().saturating_sub(1);
    policy.classes.splice(default..default, added);
    Ok(policy)
}

/// The guarantee with a delay that the new policy has, at most its own.
fn with_delay_within(
    guarantee: GuaranteeParams,
    delays: DelayRange,
) -> Result<GuaranteeParams, String> {
    let (delay, shortest) = (guarantee.delay, delays.shortest());
    if delay < shortest {
        return Err(format!(
            "its delay is {delay}, below {shortest}, the shortest of the new policy"
        ));
    }
    let delay = delay.min(delays.latest());
    Ok(GuaranteeParams { delay, ..guarantee })
}

fn not_kept(slice: &str, problem: &str) -> BuildError {
    BuildError::NotKept {
        slice: slice.to_owned(),
        problem: problem.to_owned(),
    }
}
