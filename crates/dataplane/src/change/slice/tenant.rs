//! Tenants of slices, which come and get other weights.

use super::{Changing, SliceChangeError, on_slices};
use crate::pipeline::Pipeline;
use slicewise_model::TenantParams;
use slicewise_units::Instant;
use std::sync::Arc;

/// The number of a tenant, which is added if there is none of its name, and has this weight from now on.
pub(crate) fn tenant(
    pipeline: &mut Pipeline,
    tenant: &TenantParams,
    now: Instant,
) -> Result<u32, SliceChangeError> {
    on_slices(pipeline, now, |changing| changing.tenant(tenant))
}

impl Changing<'_> {
    fn tenant(&mut self, tenant: &TenantParams) -> Result<u32, SliceChangeError> {
        let TenantParams { name, weight } = tenant;
        let known = self.ledger.tenants.get(name).copied();
        let common = self.pipeline.params.policy.guaranteed.as_ref();
        let before = known.and_then(|number| common?.tenants.get(number as usize));
        if let (Some(number), true) = (known, before == Some(tenant)) {
            return Ok(number);
        }
        let (scheduler, _) = self.scheduler("")?;
        let number = if let Some(number) = known {
            scheduler.set_tenant_weight(number, *weight);
            number
        } else {
            let added = scheduler.add_tenant(*weight);
            added.map_err(|error| SliceChangeError::from((name, error)))?
        };
        self.ledger.tenants.insert(name.clone(), number);
        let params = Arc::make_mut(&mut self.pipeline.params);
        if let Some(common) = &mut params.policy.guaranteed {
            match common.tenants.get_mut(number as usize) {
                Some(place) => *place = tenant.clone(),
                None => common.tenants.push(tenant.clone()),
            }
        }
        self.pipeline.version += 1;
        Ok(number)
    }
}
