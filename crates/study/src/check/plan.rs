//! Plans: every setting read, every contradiction reported at its place.

use super::{Checker, MAX_ENTRIES, excess};
use crate::file::{At, Span};
use crate::plan::{Plan, PlannedSlice};
use crate::spec::{
    Counted, GuaranteedFileSpec, Name, PlanFileSpec, PlanLinkSpec, PlanSliceSpec, Short, Text,
};
use slicewise_model::{AdmissionParams, DelayClasses, GuaranteedSpec, Rate};
use slicewise_units::{BitRate, Layer};

impl Checker<'_> {
    /// The plan, unless something was found wrong.
    pub(crate) fn plan(&mut self, spec: &PlanFileSpec, name: &str) -> Option<Plan> {
        if let Some(at) = excess(&spec.tenants) {
            let message = format!("there are more than {MAX_ENTRIES} tenants");
            self.problems.add(at, message);
            return None;
        }
        let link = self.plan_link(spec);
        let common = self.plan_common(spec);
        self.names(&spec.slices);
        if spec.slices.len() == 0 {
            let message = "`slices` is missing: at least one is required";
            self.problems.add(self.root.span, message);
        }
        let (link, common) = (link?, common?);
        let slices: Vec<PlannedSlice> = spec
            .slices
            .iter()
            .filter_map(|(name, slice)| self.planned(name, slice, link, &common))
            .collect();
        (slices.len() == spec.slices.len()).then(|| Plan {
            name: name.to_owned(),
            scenario: None,
            link: AdmissionParams {
                link,
                accounting: common.accounting,
                largest_frame: common.largest_frame,
                buffer: common.buffer,
                delay_classes: DelayClasses::geometric(common.shortest_delay, common.longest_delay),
            },
            tenants: common.tenants,
            slices,
        })
    }

    fn plan_link(&mut self, spec: &PlanFileSpec) -> Option<Rate> {
        let Some(link) = &spec.link else {
            self.problems.add(self.root.span, "`link` is missing");
            return None;
        };
        self.link_rate(link)
    }

    /// The rate of a link, and what it counts: everything on the wire, unless it is said.
    pub(super) fn link_rate(&mut self, link: &At<Short<BitRate, PlanLinkSpec>>) -> Option<Rate> {
        let (rate, counts) = match &link.value {
            Short::Value(rate) => (rate, None),
            Short::Settings(settings) => (&settings.rate, settings.counts.as_ref()),
        };
        let layer = self.read_or(counts, Layer::L1);
        Some(Rate {
            rate: self.nonzero_rate(rate)?,
            accounting: Counted::accounting(layer),
        })
    }

    fn plan_common(&mut self, spec: &PlanFileSpec) -> Option<GuaranteedSpec> {
        let written = GuaranteedFileSpec {
            counts: spec.counts.clone(),
            largest_frame: spec.largest_frame.clone(),
            delays: spec.delays.clone(),
            tenants: spec.tenants.clone(),
            buffer: spec.buffer.clone(),
        };
        let common = self.guaranteed(&written)?;
        if let Err((field, problem)) = common.check() {
            let at = written.place(field).unwrap_or(self.root.span);
            self.problems.add(at, format!("{field}: {problem}"));
            return None;
        }
        Some(common)
    }

    fn planned(
        &mut self,
        name: &Text<Name>,
        slice: &At<PlanSliceSpec>,
        link: Rate,
        common: &GuaranteedSpec,
    ) -> Option<PlannedSlice> {
        let slice = &slice.value;
        let guarantee = slice
            .guarantee
            .as_ref()
            .map(|guarantee| (self.guarantee(&guarantee.value), guarantee.span));
        let maximum = slice
            .maximum
            .as_ref()
            .map(|maximum| (self.maximum(&maximum.value), maximum.span));
        let weight = self.at_least_one(slice.weight.as_ref(), 1, "a slice needs a weight");
        let count = self.at_least_one(slice.count.as_ref(), 1, "there must be a number of slices");
        let tenant = slice
            .tenant
            .as_ref()
            .map(|tenant| self.plan_tenant(tenant, common));
        let frame = common.largest_frame;
        let request = match guarantee {
            Some((spec, at)) => {
                Some(self.reported(at, "guarantee", spec?.request(link.rate, frame))?)
            }
            None => None,
        };
        let maximum = match maximum {
            Some((spec, at)) => {
                let maximum = spec?.resolve(request.as_ref(), link.rate, frame);
                Some(self.reported(at, "maximum", maximum)?)
            }
            None => None,
        };
        Some(PlannedSlice {
            name: name.text().to_owned(),
            count: count?,
            request,
            maximum,
            weight: weight?,
            tenant: match tenant {
                Some(tenant) => Some(tenant?),
                None => None,
            },
        })
    }

    fn plan_tenant(&mut self, tenant: &Text<Name>, common: &GuaranteedSpec) -> Option<String> {
        let known: Vec<&str> = common
            .tenants
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        self.index_of(super::Table::Tenants, tenant, &known)?;
        Some(tenant.text().to_owned())
    }

    fn at_least_one<T: crate::spec::Scalar + PartialEq + From<u8>>(
        &mut self,
        text: Option<&Text<T>>,
        default: u8,
        what: &str,
    ) -> Option<T> {
        let Some(text) = text else {
            return Some(T::from(default));
        };
        let number = text.read(self.problems)?;
        if number == T::from(0) {
            let message = format!("{what} of at least 1");
            self.problems.add(text.span(), message);
            return None;
        }
        Some(number)
    }

    /// The value; what is wrong with it, at its place.
    fn reported<T>(&mut self, at: Span, field: &str, value: Result<T, String>) -> Option<T> {
        value
            .map_err(|problem| self.problems.add(at, format!("`{field}` {problem}")))
            .ok()
    }
}
