//! One slice: what is wanted of it, what is in force, and the step between.

use crate::terms;
use slicewise_api::{FlowTerms, GatewaySlice, GatewayTerms, Match};
use slicewise_dataplane::SliceChange;
use slicewise_live::DirectionParams;
use slicewise_live::engine::DirectedChange;
use slicewise_model::TenantParams;
use slicewise_units::Instant;

/// The state of a slice.
#[derive(Debug, Default)]
pub(super) struct SliceState {
    /// What the controller wants; `None`: it was removed.
    pub(super) wanted: Option<GatewaySlice>,
    /// The generation that wants it.
    pub(super) wanted_in: u64,
    /// The generation since which it has packets that it is not to have, if it has.
    pub(super) gives_since: Option<u64>,
    /// What is in force in each direction.
    pub(super) here: [Option<GatewayTerms>; 2],
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
    /// What is in force was derived from another configuration.
    pub(super) is_outdated: bool,
    /// Directions in which it has to go and come again for its packets to change.
    not_in_place: [bool; 2],
    /// Directions that first get the lesser of both guarantees.
    step_down: [bool; 2],
    /// Refusals since the last success, and when the first was.
    pub(super) tries: u32,
    pub(super) since: Option<Instant>,
}

/// What a change makes of a direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// These terms are in force, with what was done about flows before.
    Has(GatewayTerms),
    /// It has these packets.
    Matches(Vec<Match>),
    /// This is done about its flows.
    Flows(FlowTerms),
    /// It is removed.
    Removed,
    /// Its waiting frames are dropped.
    Purged,
}

/// What is to be done with a slice.
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

fn without_flows(terms: &GatewayTerms) -> GatewayTerms {
    GatewayTerms {
        flows: FlowTerms::default(),
        ..terms.clone()
    }
}

/// Packets that a slice with some terms has and keeps under others.
fn kept(terms: &GatewayTerms, others: &GatewayTerms) -> Vec<Match> {
    let matches = terms.matches.iter();
    let kept = matches.filter(|packets| others.matches.contains(packets));
    kept.cloned().collect()
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

    /// Whether it has packets that it is not to have, or not as the slice of this tenant.
    pub(super) fn gives(&self) -> bool {
        let is_other_tenant = self.tenant_wanted().0 != self.tenant.0;
        (0..2).any(|direction| {
            let here = self.here.get(direction).and_then(Option::as_ref);
            here.is_some_and(|here| {
                let terms = self.terms(direction).filter(|_| !is_other_tenant);
                terms.is_none_or(|terms| kept(here, terms).len() < here.matches.len())
            })
        })
    }

    /// What is left of its packets in a direction when it has given up those that it is not to have; `None` if that is all.
    fn given(&self, direction: usize) -> Option<Vec<Match>> {
        let here = self.here.get(direction)?.as_ref()?;
        let kept = kept(here, self.terms(direction)?);
        (kept.len() < here.matches.len()).then_some(kept)
    }

    /// Whether it is to have packets that it does not have.
    pub(super) fn takes(&self) -> bool {
        (0..2).any(|direction| {
            let here = self.here.get(direction).and_then(Option::as_ref);
            self.terms(direction).is_some_and(|terms| {
                here.is_none_or(|here| kept(terms, here).len() < terms.matches.len())
            })
        })
    }

    /// What is to be done next; while others have to `give` packets first that it may be to have, it gives only, too.
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
        let mut effects = [None, None];
        let mut must_wait = false;
        for (direction, effect) in effects.iter_mut().enumerate() {
            let here = self.here.get(direction).and_then(Option::as_ref);
            let is_draining = self.draining.get(direction).copied().unwrap_or_default();
            *effect = match (here, self.terms(direction)) {
                (None, None) => {
                    let is_to_purge = self
                        .to_purge
                        .is_some_and(|it| it.get(direction) == Some(&true));
                    (is_draining && is_to_purge).then_some(Effect::Purged)
                }
                (Some(_), None) => Some(Effect::Removed),
                (None, Some(_)) if is_draining => {
                    must_wait = true;
                    None
                }
                (None, Some(_)) if give => None,
                (None, Some(terms)) => Some(Effect::Has(without_flows(terms))),
                // A slice of another tenant begins anew, with counters of its own, and packets that no table finds cannot change: it
                // goes, and comes again.
                (Some(here), Some(terms))
                    if tenant.0 != self.tenant.0
                        || here.matches != terms.matches
                            && self.not_in_place.get(direction) == Some(&true) =>
                {
                    must_wait = true;
                    Some(Effect::Removed)
                }
                (Some(_), Some(_)) if give => self.given(direction).map(Effect::Matches),
                (Some(here), Some(terms)) if here.matches != terms.matches => {
                    Some(Effect::Matches(terms.matches.clone()))
                }
                (Some(here), Some(terms)) => {
                    let is_stepping = self.step_down.get(direction) == Some(&true);
                    let lesser = || terms::lesser(here, terms).filter(|_| is_stepping);
                    let flows = terms.flows;
                    let terms = lesser().unwrap_or_else(|| terms.clone());
                    // In a step of its own: it may have to wait for frames, and the others do not.
                    let terms = GatewayTerms {
                        flows: here.flows,
                        ..terms
                    };
                    let is_new = *here != terms || self.is_outdated || tenant != self.tenant;
                    let is_by_flow = here.flows != flows;
                    match is_new {
                        true => Some(Effect::Has(terms)),
                        false => is_by_flow.then_some(Effect::Flows(flows)),
                    }
                }
            };
        }
        if must_wait {
            // The others wait, too: all directions change together. What others may wait for is given up now.
            for (direction, effect) in effects.iter_mut().enumerate() {
                if *effect != Some(Effect::Removed) {
                    *effect = self.given(direction).map(Effect::Matches);
                }
            }
        }
        if effects.iter().all(Option::is_none) {
            return Ok(if must_wait { Next::Wait } else { Next::Nothing });
        }
        let mut change = DirectedChange {
            tenant: self.wanted.is_some().then_some(TenantParams {
                name: tenant.0,
                weight: tenant.1,
            }),
            ..DirectedChange::default()
        };
        let places = change.directions.iter_mut().zip(&effects);
        for ((place, effect), (params, here)) in places.zip(directions.iter().zip(&self.here)) {
            *place = match effect {
                None => None,
                Some(Effect::Removed) => Some(SliceChange::Remove {
                    name: name.to_owned(),
                }),
                Some(Effect::Purged) => Some(SliceChange::Purge {
                    name: name.to_owned(),
                }),
                Some(Effect::Matches(matches)) => Some(SliceChange::Matches {
                    name: name.to_owned(),
                    matches: Box::new(terms::matches_or_none(name, matches)?),
                }),
                Some(Effect::Flows(flows)) => Some(SliceChange::Flows {
                    name: name.to_owned(),
                    flows: Box::new(terms::flows_params(flows, params)?),
                }),
                Some(Effect::Has(terms)) if here.is_some() => Some(SliceChange::Change {
                    name: name.to_owned(),
                    params: terms::slice_params(terms, params)?,
                }),
                Some(Effect::Has(terms)) => {
                    let slice = terms::new_slice(name, terms, params)?;
                    Some(SliceChange::Add(Box::new(slice)))
                }
            };
        }
        Ok(Next::Ask(Box::new(change), effects))
    }

    /// A change was carried out.
    pub(super) fn on_done(&mut self, effects: [Option<Effect>; 2], tenant: (String, u32)) {
        let has_terms = |effect: &Option<Effect>| matches!(effect, Some(Effect::Has(_)));
        if effects.iter().any(has_terms) {
            self.tenant = tenant;
        }
        let are_matches = |effect: &Option<Effect>| matches!(effect, Some(Effect::Matches(_)));
        self.is_outdated &= effects.iter().any(are_matches);
        self.step_down = [false; 2];
        self.not_in_place = [false; 2];
        let places = self.here.iter_mut().zip(&mut self.draining);
        for (direction, ((here, draining), effect)) in places.zip(effects).enumerate() {
            match effect {
                Some(Effect::Purged) => {
                    if let Some(to_purge) = &mut self.to_purge {
                        to_purge[direction] = false;
                    }
                }
                Some(Effect::Has(terms)) => *here = Some(terms),
                Some(Effect::Matches(matches)) => {
                    if let Some(here) = here {
                        here.matches = matches;
                    }
                }
                Some(Effect::Flows(flows)) => {
                    if let Some(here) = here {
                        here.flows = flows;
                    }
                }
                Some(Effect::Removed) => {
                    *here = None;
                    *draining = true;
                }
                None => {}
            }
        }
    }

    /// Both guarantees do not fit at once: the lesser of both comes first. Returns whether that is less than what is in force.
    pub(super) fn step_down(&mut self, direction: usize) -> bool {
        let here = self.here.get(direction).and_then(Option::as_ref);
        let lesser = here.and_then(|here| {
            let lesser = terms::lesser(here, self.terms(direction)?)?;
            (lesser.guarantee != here.guarantee).then_some(lesser)
        });
        if let Some(step) = self.step_down.get_mut(direction) {
            *step = lesser.is_some();
        }
        lesser.is_some()
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

    /// Whether it was removed, and no frame of it waits.
    pub(super) fn is_gone(&self) -> bool {
        self.wanted.is_none()
            && self.here.iter().all(Option::is_none)
            && self.draining.iter().all(|draining| !draining)
    }
}
