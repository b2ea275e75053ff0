//! Plans: every setting read, every contradiction reported at its place.

use super::classes::{Delays, ShortGuarantee, ShortMaximum, Tenants};
use super::network::ShortLink;
use super::policies::common_place;
use super::{Checker, Table};
use crate::file::{Placed, Span};
use crate::plan::{Plan, PlannedSlice};
use crate::settings;
use crate::spec::{At, AtLeastOne, Named, Reference};
use slicewise_model::{AdmissionParams, DelayRange, GuaranteedSpec, Rate};

/// A plan as it is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanSpec {
    link: Option<ShortLink>,
    common: GuaranteedSpec,
    slices: Named<Placed<PlanSliceSpec>>,
}

settings! {
    /// A plan: what slices ask of one link.
    impl PlanSpec as "PlanFileSpec" = Self::default(); {
        /// The link: its rate, or its rate and what it counts.
        [expected] link,
        /// How much can wait in all slices together, where that is limited.
        buffer => common.buffer,
        /// The largest frame there can be. Default 1522 B of L2.
        largest_frame => common.largest_frame,
        /// Which bytes of a frame rates, bursts, largest frame and buffer count. Default L2.
        counts => common.accounting,
        /// The range of delay classes. Default 10 µs to 100 ms.
        delays: Delays = |plan, delays| delays.apply(&mut plan.common),
        /// Tenants, who share the excess first, and the weight of each.
        tenants: Tenants = |plan, tenants| plan.common.tenants = tenants.0,
        /// The slices, by name, in the order in which they are tested.
        slices,
    }
}

settings! {
    /// A slice of a plan, or some equal ones.
    struct PlanSliceSpec as "PlanSliceSpec", strict {
        /// Guaranteed rate of each, and its delay bound. Default: best effort.
        guarantee: Option<ShortGuarantee>,
        /// Rate each gets at most. Default: no limit.
        maximum: Option<ShortMaximum>,
        /// Part of each of the excess relative to the other slices of its tenant. Default 1.
        weight: Option<AtLeastOne<u32>>,
        /// The tenant whose part of the excess they share.
        tenant: Option<At<Reference>>,
        /// How many there are. Default 1.
        count: Option<AtLeastOne<u64>>,
    }
}

impl Checker<'_> {
    /// The plan, unless something was found wrong.
    pub(crate) fn plan(&mut self, spec: &PlanSpec, name: &str) -> Option<Plan> {
        self.names(&spec.slices);
        self.needs_one("slices");
        let common = &spec.common;
        if let Err((field, problem)) = common.check() {
            let at = common_place(self.root, field).unwrap_or(self.root.span);
            self.problems.add(at, format!("{field}: {problem}"));
            return None;
        }
        let link = spec.link?.value.0;
        let slices: Vec<PlannedSlice> = spec
            .slices
            .iter()
            .filter_map(|(name, slice)| self.planned(name, slice, link, common))
            .collect();
        (slices.len() == spec.slices.len()).then(|| Plan {
            name: name.to_owned(),
            scenario: None,
            phase: None,
            device: None,
            end_to_end: Vec::new(),
            link: AdmissionParams {
                link,
                accounting: common.accounting,
                largest_frame: common.largest_frame(),
                buffer: common.buffer,
                delays: DelayRange::new(common.shortest_delay, common.longest_delay),
            },
            tenants: common.tenants.clone(),
            slices,
        })
    }

    fn planned(
        &mut self,
        name: &At<String>,
        slice: &Placed<PlanSliceSpec>,
        link: Rate,
        common: &GuaranteedSpec,
    ) -> Option<PlannedSlice> {
        let spec = &slice.value;
        let weight = spec.weight.map_or(1, |weight| weight.0);
        let count = spec.count.map_or(1, |count| count.0);
        let mut is_whole = true;
        for (key, is_none, what) in [
            (
                "weight",
                weight == 0,
                "a slice needs a weight of at least 1",
            ),
            (
                "count",
                count == 0,
                "there must be a number of slices of at least 1",
            ),
        ] {
            if let (true, Some(at)) = (is_none, slice.place(key)) {
                self.problems.add(at, what);
                is_whole = false;
            }
        }
        if let Some(tenant) = &spec.tenant {
            let tenants = common.tenants.iter();
            let known: Vec<&str> = tenants.map(|(name, _)| name.as_str()).collect();
            is_whole &= self.index_of(Table::TENANTS, tenant, &known).is_some();
        }
        let frame = common.largest_frame();
        let request = match &spec.guarantee {
            Some(it) => {
                Some(self.reported(slice, "guarantee", it.value.request(link.rate, frame))?)
            }
            None => None,
        };
        let maximum = match &spec.maximum {
            Some(it) => {
                let maximum = it.value.resolve(request.as_ref(), link.rate, frame);
                Some(self.reported(slice, "maximum", maximum)?)
            }
            None => None,
        };
        is_whole.then(|| PlannedSlice {
            name: name.value.clone(),
            count,
            request,
            given: None,
            maximum,
            weight,
            tenant: spec.tenant.as_ref().map(|tenant| tenant.value.0.0.clone()),
        })
    }

    /// The value; what is wrong with it, at its place.
    fn reported<T>(
        &mut self,
        slice: &Placed<PlanSliceSpec>,
        key: &str,
        value: Result<T, String>,
    ) -> Option<T> {
        let at: Span = slice.place(key).unwrap_or(slice.span);
        value
            .map_err(|problem| self.problems.add(at, format!("`{key}` {problem}")))
            .ok()
    }
}
