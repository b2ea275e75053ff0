//! One slice: what is wanted of it, what is in force, and the step between.

use crate::terms;
use slicewise_api::{FlowTerms, GatewaySlice, GatewayTerms, Match};
use slicewise_dataplane::SliceChange;
use slicewise_live::DirectionParams;
use slicewise_live::engine::DirectedChange;
use slicewise_model::{SliceParams, TenantParams};
use slicewise_units::{BothWays, Instant, Way};

/// The state of a slice.
#[derive(Debug, Default)]
pub(super) struct SliceState {
    /// Terms that the controller wants; `None`: it was removed.
    pub(super) wanted: Option<GatewaySlice>,
    /// The generation that wants it.
    pub(super) wanted_in: u64,
    /// The generation since which it has packets that it is not to have, if it has.
    pub(super) gives_since: Option<u64>,
    /// Slice in force in each direction.
    pub(super) here: BothWays<Option<InForce>>,
    /// The tenant of that, and its weight.
    tenant: (String, u32),
    /// Frames of a slice of this name that was removed wait.
    pub(super) draining: BothWays<bool>,
    /// It was purged: directions in which its frames are still to be dropped.
    pub(super) to_purge: Option<BothWays<bool>>,
    /// The generation of its oldest change that is not finished.
    pub(super) open: Option<u64>,
    /// The generation that removed it, if nothing is wanted of it.
    pub(super) removed: u64,
    pub(super) is_asked: bool,
    pub(super) is_queued: bool,
    /// Directions in which it has to go and come again for its packets to change.
    pub(super) not_in_place: BothWays<bool>,
    /// Refusals since the last success, and when the first was.
    pub(super) tries: u32,
    pub(super) since: Option<Instant>,
}

/// A slice in force in a direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InForce {
    params: SliceParams,
    matches: Vec<Match>,
    /// Terms for its flows.
    pub(super) flows: FlowTerms,
}

/// Effect of a change on a direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// The slice has this, and belongs to the tenant that is asked for.
    Has(InForce),
    /// The slice has other packets or flows.
    Keeps(InForce),
    /// It is removed.
    Removed,
    /// Its waiting frames are dropped.
    Purged,
}

/// Next action for a slice.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it lives for a call"
)]
pub(super) enum Next {
    /// Ask for a change.
    Ask(Box<DirectedChange>, BothWays<Option<Effect>>),
    /// It is as wanted.
    Nothing,
    /// Frames have to leave first.
    Wait,
    /// It cannot be put in force.
    Refuse(String),
}

impl InForce {
    /// Packets that it has and keeps under other terms.
    fn kept(&self, terms: &GatewayTerms) -> Vec<Match> {
        let matches = self.matches.iter();
        let kept = matches.filter(|packets| terms.matches.contains(packets));
        kept.cloned().collect()
    }

    /// Returns the change to other packets.
    fn with_matches(&self, name: &str, packets: &[Match]) -> Result<(SliceChange, Effect), String> {
        let after = Self {
            matches: packets.to_vec(),
            ..self.clone()
        };
        let change = SliceChange::Matches {
            name: name.to_owned(),
            matches: Box::new(terms::matches_or_none(name, packets)?),
        };
        Ok((change, Effect::Keeps(after)))
    }

    /// Returns the next change to other terms with the same packets.
    fn change_to(
        &self,
        name: &str,
        terms: &GatewayTerms,
        params: &DirectionParams,
        is_other_tenant: bool,
    ) -> Result<Option<(SliceChange, Effect)>, String> {
        let wanted = terms::slice_params(terms, params)?;
        let changes = SliceChange::between(name, &self.params, &wanted);
        let of_tenant = is_other_tenant.then(|| SliceChange::Change {
            name: name.to_owned(),
            params: wanted,
        });
        let mut after = self.clone();
        if let Some(change) = changes.into_iter().flatten().next().or(of_tenant) {
            if let SliceChange::Change { params, .. } = &change {
                after.params = *params;
            }
            return Ok(Some((change, Effect::Has(after))));
        }
        if self.flows == terms.flows {
            return Ok(None);
        }
        // In a step of its own: it may have to wait for frames, and the others do not.
        after.flows = terms.flows;
        let change = SliceChange::Flows {
            name: name.to_owned(),
            flows: Box::new(terms::flows_params(&terms.flows, params)?),
        };
        Ok(Some((change, Effect::Keeps(after))))
    }
}

/// Returns the change that adds a slice; its flows are told apart later.
fn add(
    name: &str,
    terms: &GatewayTerms,
    params: &DirectionParams,
) -> Result<(SliceChange, Effect), String> {
    let slice = terms::new_slice(name, terms, params)?;
    let after = InForce {
        params: slice.params,
        matches: terms.matches.clone(),
        flows: FlowTerms::default(),
    };
    Ok((SliceChange::Add(Box::new(slice)), Effect::Has(after)))
}

fn removal(name: &str) -> (SliceChange, Effect) {
    let name = name.to_owned();
    (SliceChange::Remove { name }, Effect::Removed)
}

impl SliceState {
    /// Returns the terms that are wanted in each direction.
    fn terms(&self) -> BothWays<Option<&GatewayTerms>> {
        let wanted = self.wanted.as_ref();
        wanted.map_or_else(BothWays::default, |wanted| {
            wanted.ways().map(Option::as_ref)
        })
    }

    /// Returns what is in force in each direction, and the terms that are wanted there.
    fn both(&self) -> impl Iterator<Item = (Option<&InForce>, Option<&GatewayTerms>)> {
        let both = self.here.as_ref().map(Option::as_ref).zip(self.terms());
        both.into_iter().map(|(_, both)| both)
    }

    pub(super) fn tenant_wanted(&self) -> (String, u32) {
        let wanted = self.wanted.as_ref();
        wanted.map_or_else(
            || self.tenant.clone(),
            |wanted| (wanted.tenant.clone(), wanted.tenant_weight.max(1)),
        )
    }

    /// Returns whether it has packets that it is not to have, or not as the slice of this tenant.
    pub(super) fn gives(&self) -> bool {
        let is_other_tenant = self.tenant_wanted().0 != self.tenant.0;
        self.both().any(|(here, terms)| {
            here.is_some_and(|here| {
                let terms = terms.filter(|_| !is_other_tenant);
                terms.is_none_or(|terms| here.kept(terms).len() < here.matches.len())
            })
        })
    }

    /// Returns the change by which it gives up the packets in a direction that it is not to have, if it has such.
    fn give(&self, name: &str, way: Way) -> Result<Option<(SliceChange, Effect)>, String> {
        let here = self.here[way].as_ref();
        let given = here.zip(self.terms()[way]).and_then(|(here, terms)| {
            let kept = here.kept(terms);
            (kept.len() < here.matches.len()).then(|| here.with_matches(name, &kept))
        });
        given.transpose()
    }

    /// Returns whether it is to have packets that it does not have.
    pub(super) fn takes(&self) -> bool {
        self.both().any(|(here, terms)| {
            terms.is_some_and(|terms| {
                here.is_none_or(|here| here.kept(terms).len() < terms.matches.len())
            })
        })
    }

    /// Returns what is to be done next; while others have to `give` packets first that it may be to have, it gives only, too.
    pub(super) fn next(
        &mut self,
        name: &str,
        link: &str,
        directions: &[DirectionParams; 2],
        give: bool,
    ) -> Next {
        if let Some(wanted) = &self.wanted
            && wanted.link != link
        {
            let other = &wanted.link;
            return Next::Refuse(format!(
                "this gateway has link `{link}`, and no link `{other}`"
            ));
        }
        match self.step(name, directions, give) {
            Ok(next) => next,
            Err(problem) => Next::Refuse(problem),
        }
    }

    fn step(
        &self,
        name: &str,
        directions: &[DirectionParams; 2],
        give: bool,
    ) -> Result<Next, String> {
        let tenant = self.tenant_wanted();
        let is_other_tenant = tenant.0 != self.tenant.0;
        let mut changes: BothWays<Option<(SliceChange, Effect)>> = BothWays::default();
        let mut must_wait = false;
        for (way, (change, params)) in changes.as_mut().zip(directions.each_ref().into()) {
            let is_draining = self.draining[way];
            *change = match (self.here[way].as_ref(), self.terms()[way]) {
                (None, None) => {
                    let is_purged = self.to_purge.is_some_and(|to_purge| to_purge[way]);
                    (is_draining && is_purged).then(|| {
                        let name = name.to_owned();
                        (SliceChange::Purge { name }, Effect::Purged)
                    })
                }
                (Some(_), None) => Some(removal(name)),
                (None, Some(_)) if is_draining => {
                    must_wait = true;
                    None
                }
                (None, Some(_)) if give => None,
                (None, Some(terms)) => Some(add(name, terms, params)?),
                // A slice of another tenant begins anew, with counters of its own, and packets that no table finds cannot change: it
                // goes, and comes again.
                (Some(here), Some(terms))
                    if is_other_tenant
                        || here.matches != terms.matches && self.not_in_place[way] =>
                {
                    must_wait = true;
                    Some(removal(name))
                }
                (Some(_), Some(_)) if give => self.give(name, way)?,
                (Some(here), Some(terms)) if here.matches != terms.matches => {
                    Some(here.with_matches(name, &terms.matches)?)
                }
                (Some(here), Some(terms)) => {
                    here.change_to(name, terms, params, tenant != self.tenant)?
                }
            };
        }
        if must_wait {
            // The others wait, too: all directions change together. What others may wait for is given up now.
            for (way, change) in changes.iter_mut() {
                if !matches!(change, Some((_, Effect::Removed))) {
                    *change = self.give(name, way)?;
                }
            }
        }
        if changes.iter().all(|(_, change)| change.is_none()) {
            return Ok(if must_wait { Next::Wait } else { Next::Nothing });
        }
        let BothWays { forward, backward } = changes.map(Option::unzip);
        let tenant = self.wanted.is_some().then_some(TenantParams {
            name: tenant.0,
            weight: tenant.1,
        });
        let change = DirectedChange {
            directions: [forward.0, backward.0].into(),
            tenant,
        };
        Ok(Next::Ask(Box::new(change), [forward.1, backward.1].into()))
    }

    /// A change was carried out.
    pub(super) fn on_done(&mut self, effects: BothWays<Option<Effect>>, tenant: (String, u32)) {
        let has_terms = |effect: &Option<Effect>| matches!(effect, Some(Effect::Has(_)));
        if effects.iter().any(|(_, effect)| has_terms(effect)) {
            self.tenant = tenant;
        }
        self.not_in_place = BothWays::default();
        for (way, effect) in effects {
            match effect {
                Some(Effect::Purged) => self.is_purged(way),
                Some(Effect::Has(after) | Effect::Keeps(after)) => self.here[way] = Some(after),
                Some(Effect::Removed) => {
                    self.here[way] = None;
                    self.draining[way] = true;
                }
                None => {}
            }
        }
    }

    fn is_purged(&mut self, way: Way) {
        if let Some(to_purge) = &mut self.to_purge {
            to_purge[way] = false;
        }
    }

    /// The data plane knows no slice of this name in a direction.
    pub(super) fn on_unknown(&mut self, way: Way) {
        self.here[way] = None;
        self.is_purged(way);
    }

    /// Returns whether it is in force in a direction.
    pub(super) fn is_here(&self) -> bool {
        self.here.iter().any(|(_, here)| here.is_some())
    }

    /// Returns whether it was removed, and no frame of it waits.
    pub(super) fn is_gone(&self) -> bool {
        let drains = self.draining.iter().any(|(_, draining)| *draining);
        self.wanted.is_none() && !self.is_here() && !drains
    }
}
