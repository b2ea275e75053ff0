//! Tenants of slices, which come and get other weights.

use super::{Changing, SliceChangeError};
use slicewise_model::TenantParams;
use std::sync::Arc;

impl Changing<'_> {
    pub(super) fn tenant(&mut self, tenant: &TenantParams) -> Result<u32, SliceChangeError> {
        let TenantParams { name, weight } = tenant;
        let known = self.ledger.tenants.get(name).copied();
        let common = self.own.params.policy.guaranteed.as_ref();
        let before = known.and_then(|number| common?.tenants.get(number as usize));
        if let (Some(number), true) = (known, before == Some(tenant)) {
            return Ok(number);
        }
        let (scheduler, _) = self.scheduler();
        let number = if let Some(number) = known {
            scheduler.set_tenant_weight(number, *weight);
            number
        } else {
            let added = scheduler.add_tenant(*weight);
            added.map_err(|error| SliceChangeError::from((name, error)))?
        };
        self.ledger.tenants.insert(name.clone(), number);
        let params = Arc::make_mut(&mut self.own.params);
        if let Some(common) = &mut params.policy.guaranteed {
            match common.tenants.get_mut(number as usize) {
                Some(place) => *place = tenant.clone(),
                None => common.tenants.push(tenant.clone()),
            }
        }
        self.own.version += 1;
        Ok(number)
    }
}
