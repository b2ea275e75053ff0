//! What the slices of a policy have in common: its name, links, largest frame, delay classes and tenants.

use super::{Changing, SliceChangeError, on_slices};
use crate::pipeline::Pipeline;
use slicewise_model::{AdmissionParams, GuaranteedParams, PolicyParams, TenantParams};
use slicewise_units::{Duration, Instant};
use std::sync::Arc;

/// The number of a tenant, which is added if there is none of its name, and has this weight from now on.
pub(crate) fn tenant(
    pipeline: &mut Pipeline,
    tenant: &TenantParams,
    now: Instant,
) -> Result<u32, SliceChangeError> {
    on_slices(pipeline, now, |changing| changing.tenant(tenant))
}

/// The slices have in common what those of `policy` have, but for the tenants.
pub(crate) fn common(
    pipeline: &mut Pipeline,
    policy: &PolicyParams,
    now: Instant,
) -> Result<(), SliceChangeError> {
    on_slices(pipeline, now, |changing| {
        changing.settle();
        changing.common(policy)
    })
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

    fn common(&mut self, policy: &PolicyParams) -> Result<(), SliceChangeError> {
        let before = &self.pipeline.params.policy;
        let (Some(old), Some(new)) = (&before.guaranteed, &policy.guaranteed) else {
            let policy = policy.name.clone();
            return Err(SliceChangeError::NotGuaranteed { policy });
        };
        let is_smaller = new.largest_frame < old.largest_frame;
        self.check_common(old, new)?;
        let times = before.links.iter().map(AdmissionParams::frame_time);
        let frame_time = times.max().unwrap_or(Duration::ZERO);
        self.links(&policy.links)?;
        if is_smaller {
            self.ledger.larger_until = self.now.saturating_add(frame_time);
        }
        let (scheduler, _) = self.scheduler("")?;
        scheduler.set_common(new);
        let params = Arc::make_mut(&mut self.pipeline.params);
        params.policy.name.clone_from(&policy.name);
        if let Some(common) = &mut params.policy.guaranteed {
            common.largest_frame = new.largest_frame;
            common.delays = new.delays;
        }
        self.pipeline.version += 1;
        Ok(())
    }

    /// Refuse smaller frames while frames wait, and delays of another resolution.
    fn check_common(
        &self,
        old: &GuaranteedParams,
        new: &GuaranteedParams,
    ) -> Result<(), SliceChangeError> {
        if old.delays.bucket_width() != new.delays.bucket_width() {
            return Err(SliceChangeError::OtherResolution);
        }
        let frames = self.pipeline.backlog();
        if new.largest_frame < old.largest_frame && frames > 0 {
            return Err(SliceChangeError::FramesWait { frames });
        }
        Ok(())
    }

    /// Other links admit the guarantees.
    fn links(&mut self, links: &[AdmissionParams]) -> Result<(), SliceChangeError> {
        let before = &self.pipeline.params.policy.links;
        if before == links {
            return Ok(());
        }
        let mut pairs = before.iter().zip(links);
        let is_raise = |(before, after): (&AdmissionParams, &AdmissionParams)| {
            let has_less = |size| before.buffer.is_none_or(|before| before > size);
            before.differs_in_capacity_only(after)
                && before.link.rate <= after.link.rate
                && !after.buffer.is_some_and(has_less)
        };
        let is_raise = pairs.clone().all(is_raise);
        // One of the larger frames may still be on the wire.
        let is_early = self.now < self.ledger.larger_until
            && pairs.any(|(before, after)| after.largest_frame < before.largest_frame);
        let busy_period = self.busy_period();
        let reserved = &mut self.ledger.reserved;
        match busy_period {
            Some(busy_period) if is_raise => reserved.raise_links(links, busy_period),
            None if !is_early => reserved.change_links(links).map_err(|problem| {
                let still_reserved = reserved.has_ended();
                SliceChangeError::Link {
                    problem,
                    still_reserved,
                }
            })?,
            _ => return Err(SliceChangeError::LinkLowered),
        }
        let params = Arc::make_mut(&mut self.pipeline.params);
        params.policy.links = links.to_vec();
        Ok(())
    }
}
