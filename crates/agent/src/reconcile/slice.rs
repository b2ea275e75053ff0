//! One slice: what is wanted of it, what is in force, and the step between.

use crate::terms;
use slicewise_api::{FlowTerms, GatewaySlice, GatewayTerms, Match};
use slicewise_dataplane::SliceChange;
use slicewise_live::DirectionParams;
use slicewise_live::engine::DirectedChange;
use slicewise_model::{SliceParams, TenantParams};
use slicewise_units::Instant;

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
    pub(super) here: [Option<InForce>; 2],
    /// The tenant of that, and its weight.
    tenant: (String, u32),
    /// Frames of a slice of this name that was removed wait.
    draining: [bool; 2],
    /// It was purged: directions in which its frames are still to be dropped.
    pub(super) to_purge: Option<[bool; 2]>,
    /// The generation of its oldest change that is not finished.
    pub(super) open: Option<u64>,
    /// The generation that removed it, if nothing is wanted of it.
    pub(super) removed: u64,
    pub(super) is_asked: bool,
    pub(super) is_queued: bool,
    /// Directions in which it has to go and come again for its packets to change.
    not_in_place: [bool; 2],
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
    Ask(Box<DirectedChange>, [Option<Effect>; 2]),
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
    fn terms(&self, direction: usize) -> Option<&GatewayTerms> {
        let wanted = self.wanted.as_ref()?;
        [&wanted.forward, &wanted.backward].get(direction)?.as_ref()
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
        (0..2).any(|direction| {
            let here = self.here.get(direction).and_then(Option::as_ref);
            here.is_some_and(|here| {
                let terms = self.terms(direction).filter(|_| !is_other_tenant);
                terms.is_none_or(|terms| here.kept(terms).len() < here.matches.len())
            })
        })
    }

    /// Returns the change by which it gives up the packets in a direction that it is not to have, if it has such.
    fn give(&self, name: &str, direction: usize) -> Result<Option<(SliceChange, Effect)>, String> {
        let here = self.here.get(direction).and_then(Option::as_ref);
        let given = here.zip(self.terms(direction)).and_then(|(here, terms)| {
            let kept = here.kept(terms);
            (kept.len() < here.matches.len()).then(|| here.with_matches(name, &kept))
        });
        given.transpose()
    }

    /// Returns whether it is to have packets that it does not have.
    pub(super) fn takes(&self) -> bool {
        (0..2).any(|direction| {
            let here = self.here.get(direction).and_then(Option::as_ref);
            self.terms(direction).is_some_and(|terms| {
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
        let mut changes = [None, None];
        let mut must_wait = false;
        for (direction, (change, params)) in changes.iter_mut().zip(directions).enumerate() {
            let here = self.here.get(direction).and_then(Option::as_ref);
            let is_draining = self.draining.get(direction) == Some(&true);
            *change = match (here, self.terms(direction)) {
                (None, None) => {
                    let to_purge = self.to_purge.as_ref().and_then(|it| it.get(direction));
                    (is_draining && to_purge == Some(&true)).then(|| {
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
                        || here.matches != terms.matches
                            && self.not_in_place.get(direction) == Some(&true) =>
                {
                    must_wait = true;
                    Some(removal(name))
                }
                (Some(_), Some(_)) if give => self.give(name, direction)?,
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
            for (direction, change) in changes.iter_mut().enumerate() {
                if !matches!(change, Some((_, Effect::Removed))) {
                    *change = self.give(name, direction)?;
                }
            }
        }
        if changes.iter().all(Option::is_none) {
            return Ok(if must_wait { Next::Wait } else { Next::Nothing });
        }
        let [forward, backward] = changes.map(Option::unzip);
        let tenant = self.wanted.is_some().then_some(TenantParams {
            name: tenant.0,
            weight: tenant.1,
        });
        let change = DirectedChange {
            directions: [forward.0, backward.0],
            tenant,
        };
        Ok(Next::Ask(Box::new(change), [forward.1, backward.1]))
    }

    /// A change was carried out.
    pub(super) fn on_done(&mut self, effects: [Option<Effect>; 2], tenant: (String, u32)) {
        let has_terms = |effect: &Option<Effect>| matches!(effect, Some(Effect::Has(_)));
        if effects.iter().any(has_terms) {
            self.tenant = tenant;
        }
        self.not_in_place = [false; 2];
        let places = self.here.iter_mut().zip(&mut self.draining);
        for (direction, ((here, draining), effect)) in places.zip(effects).enumerate() {
            match effect {
                Some(Effect::Purged) => {
                    if let Some(to_purge) = &mut self.to_purge {
                        to_purge[direction] = false;
                    }
                }
                Some(Effect::Has(after) | Effect::Keeps(after)) => *here = Some(after),
                Some(Effect::Removed) => {
                    *here = None;
                    *draining = true;
                }
                None => {}
            }
        }
    }

    /// Its packets in a direction cannot change while it is in force.
    pub(super) fn on_not_in_place(&mut self, direction: usize) {
        if let Some(not_in_place) = self.not_in_place.get_mut(direction) {
            *not_in_place = true;
        }
    }

    /// The data plane knows no slice of this name in a direction.
    pub(super) fn on_unknown(&mut self, direction: usize) {
        if let Some(here) = self.here.get_mut(direction) {
            *here = None;
        }
        if let Some(to_purge) = self.to_purge.as_mut().and_then(|it| it.get_mut(direction)) {
            *to_purge = false;
        }
    }

    pub(super) fn on_gone(&mut self, direction: usize) {
        if let Some(draining) = self.draining.get_mut(direction) {
            *draining = false;
        }
    }

    /// Returns whether it was removed, and no frame of it waits.
    pub(super) fn is_gone(&self) -> bool {
        self.wanted.is_none()
            && self.here.iter().all(Option::is_none)
            && self.draining.iter().all(|draining| !draining)
    }
}
