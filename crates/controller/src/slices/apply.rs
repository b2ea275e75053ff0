//! A batch of changes: admitted whole or not at all, and written down.

use super::capacity::{Capacity, bounds};
use super::overlap;
use super::stored::{Hop, Hops, Stored, TenantState, guaranteed};
use super::write::{Planned, Writing, write};
use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::sql::{Failed, RowExt, Sql, Tx, values};
use slicewise_api::{Bounds, Change, Slice, SliceState, check_name};
use slicewise_units::BitRate;
use sqlx::AnyConnection;
use std::collections::{BTreeMap, BTreeSet};

/// Most changes of one batch.
const CHANGES_MAX: usize = 1_000;
/// Most matches of one batch, each counted once for every link of its slice: others wait while each is compared with those of the link.
const COMPARED_MAX: usize = 4_096;

/// Preconditions of a request on a slice before it is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Guard {
    /// It has one of these versions: `If-Match`.
    pub(crate) versions: Option<Vec<u64>>,
    /// It exists: `If-Match: *`.
    pub(crate) exists: bool,
    /// It does not exist: `If-None-Match: *`.
    pub(crate) absent: bool,
}

impl Guard {
    pub(super) fn check(&self, name: &str, before: Option<&Stored>) -> Result<(), Refusal> {
        let version = before.map(|stored| stored.generation);
        if self.absent && before.is_some() {
            let detail = format!("slice `{name}` exists already");
            return Err(Refusal::precondition(detail));
        }
        if (self.exists || self.versions.is_some()) && before.is_none() {
            let detail = format!("slice `{name}` does not exist");
            return Err(Refusal::precondition(detail));
        }
        match (&self.versions, version) {
            (Some(expected), Some(version)) if !expected.contains(&version) => {
                let detail = format!(
                    "slice `{name}` has version {version} by now: read it again, and repeat the change if it still makes sense"
                );
                Err(Refusal::precondition(detail))
            }
            _ => Ok(()),
        }
    }
}

/// Result of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The generation of the batch; the current one if nothing differed.
    pub(crate) generation: u64,
    /// Slices that were added, changed or removed.
    pub(crate) changed: u64,
    /// Slices that did not exist before.
    pub(crate) created: BTreeSet<String>,
    /// Slices that are removed, whose rules end.
    pub(crate) removed: Vec<String>,
}

impl Applied {
    /// Nothing differed.
    pub(crate) const fn nothing(generation: u64) -> Self {
        Self {
            generation,
            changed: 0,
            created: BTreeSet::new(),
            removed: Vec::new(),
        }
    }
}

/// Carry out `changes`, all or none.
///
/// # Errors
/// If one of them is refused, or the store fails.
pub(crate) async fn apply(
    tx: &mut Tx,
    actor: &Actor,
    changes: Vec<Change>,
    reason: Option<&str>,
    guard: Option<&Guard>,
) -> Result<Applied, Failed> {
    if changes.is_empty() || changes.len() > CHANGES_MAX {
        let detail = format!("{} changes: expected 1 to {CHANGES_MAX}", changes.len());
        return Err(Refusal::invalid_at("/changes", detail).into());
    }
    let compared = compared(&changes);
    if compared > COMPARED_MAX {
        let detail = format!(
            "{compared} matches on links: expected at most {COMPARED_MAX}, where a match counts once for each link of its slice; send smaller batches"
        );
        return Err(Refusal::invalid_at("/changes", detail).into());
    }
    let mut candidates = overlap::CANDIDATES_MAX;
    apply_any(tx, actor, changes, reason, guard, &mut candidates).await
}

/// Matches of all changes, each once for every link of its slice.
fn compared(changes: &[Change]) -> usize {
    let matches = |change: &Change| match change {
        Change::Put(slice) => slice.matches.len().saturating_mul(slice.path.len().max(1)),
        Change::Remove(_) => 0,
    };
    changes.iter().map(matches).fold(0, usize::saturating_add)
}

/// As [`apply`], for any number of changes, whose matches are compared with at most `candidates` others.
pub(crate) async fn apply_any(
    tx: &mut Tx,
    actor: &Actor,
    changes: Vec<Change>,
    reason: Option<&str>,
    guard: Option<&Guard>,
    candidates: &mut u64,
) -> Result<Applied, Failed> {
    check(&changes, reason, guard.is_some())?;
    let mut known = Known::load(tx.connection(), &changes).await?;
    let mut planned = Vec::with_capacity(changes.len());
    for (index, change) in changes.into_iter().enumerate() {
        let place = place(index, &change, guard.is_some());
        let guard = guard.cloned().unwrap_or_default();
        planned.extend(plan(&mut known, tx.connection(), actor, change, &place, &guard).await?);
    }
    if planned.is_empty() {
        return Ok(Applied::nothing(tx.generation()));
    }
    let weights = account(tx.connection(), actor, &planned).await?;
    let capacity = admit(tx.connection(), actor, &mut planned, candidates).await?;
    capacity.save(tx.connection()).await?;
    let generation = tx.next_generation(&actor.name, reason).await?;
    planned.sort_by_key(Planned::order);
    let writing = Writing {
        actor: &actor.name,
        generation,
        capacity: &capacity,
        weights: &weights,
    };
    write(tx, &writing, &planned).await?;
    let removed = planned.iter().filter(|one| one.after.is_none());
    let removed = removed.map(|one| one.name().to_owned()).collect();
    let created = planned.iter().filter(|one| one.before.is_none());
    Ok(Applied {
        generation,
        changed: u64::try_from(planned.len()).unwrap_or(u64::MAX),
        created: created.map(|one| one.name().to_owned()).collect(),
        removed,
    })
}

/// Where a change is in the document, which is the slice itself (`is_slice`) or a batch.
fn place(index: usize, change: &Change, is_slice: bool) -> String {
    match (is_slice, change) {
        (true, _) => String::new(),
        (false, Change::Put(_)) => format!("/changes/{index}/put"),
        (false, Change::Remove(_)) => format!("/changes/{index}/remove"),
    }
}

fn check(changes: &[Change], reason: Option<&str>, is_slice: bool) -> Result<(), Refusal> {
    if reason.is_some_and(|reason| reason.chars().count() > 1000) {
        return Err(Refusal::invalid_at("/reason", "more than 1000 characters"));
    }
    // PostgreSQL has no text with it.
    if reason.is_some_and(|reason| reason.contains('\0')) {
        return Err(Refusal::invalid_at("/reason", "has a NUL character"));
    }
    let mut names = BTreeSet::new();
    for (index, change) in changes.iter().enumerate() {
        let mut at = place(index, change, is_slice);
        if matches!(change, Change::Put(_)) {
            at.push_str("/name");
        }
        check_name(change.name(), &at)?;
        if !names.insert(change.name()) {
            let detail = format!("slice `{}` occurs twice in the batch", change.name());
            return Err(Refusal::invalid_at(&format!("/changes/{index}"), detail));
        }
    }
    Ok(())
}

/// State before the changes.
struct Known {
    slices: BTreeMap<String, Stored>,
    hops: BTreeMap<String, Vec<Hop>>,
    /// Paths that were found to exist; the empty one means the only link.
    paths: BTreeMap<Vec<String>, Vec<String>>,
}

impl Known {
    async fn load(connection: &mut AnyConnection, changes: &[Change]) -> Result<Self, sqlx::Error> {
        let names: Vec<&str> = changes.iter().map(Change::name).collect();
        let slices = Stored::load_several(&mut *connection, &names).await?;
        let names: Vec<&str> = slices.keys().map(String::as_str).collect();
        let hops = Hop::load_several(connection, &names, Hops::All).await?;
        Ok(Self {
            slices,
            hops,
            paths: BTreeMap::new(),
        })
    }

    /// As [`resolve_path`].
    async fn resolve_path(
        &mut self,
        connection: &mut AnyConnection,
        slice: &mut Slice,
    ) -> Result<(), Failed> {
        if let Some(path) = self.paths.get(&slice.path) {
            slice.path.clone_from(path);
            return Ok(());
        }
        let asked = slice.path.clone();
        resolve_path(connection, slice).await?;
        self.paths.insert(asked, slice.path.clone());
        Ok(())
    }
}

/// Plans one change; `None` if nothing differs.
async fn plan(
    known: &mut Known,
    connection: &mut AnyConnection,
    actor: &Actor,
    change: Change,
    place: &str,
    guard: &Guard,
) -> Result<Option<Planned>, Failed> {
    let name = change.name().to_owned();
    let before = known.slices.remove(&name);
    let is_foreign = before
        .as_ref()
        .is_some_and(|stored| !actor.sees(&stored.slice));
    let after = match change {
        Change::Remove(_) if is_foreign => return Err(Refusal::not_found("slice", &name).into()),
        Change::Remove(_) => {
            guard.check(&name, before.as_ref())?;
            match &before {
                None => return Err(Refusal::not_found("slice", &name).into()),
                Some(stored) if stored.state == SliceState::Draining => return Ok(None),
                Some(_) => None,
            }
        }
        Change::Put(mut slice) => {
            let at_place =
                |invalid: slicewise_api::Invalid| Refusal::invalid(invalid.within(place));
            slice.check().map_err(at_place)?;
            settle(&mut slice, actor, before.as_ref(), "change")?;
            guard.check(&name, before.as_ref())?;
            known.resolve_path(connection, &mut slice).await?;
            if let Some(stored) = &before {
                check_change(stored, &slice)?;
                if stored.slice == slice {
                    return Ok(None);
                }
            }
            Some(slice)
        }
    };
    Ok(Some(Planned {
        before,
        hops: known.hops.remove(&name).unwrap_or_default(),
        after,
        delays: Vec::new(),
        bounds: Bounds::default(),
    }))
}

/// Where no tenant is stated, it is that of the slice there is, of who asks, or `default`; where no path is stated, it is that of the slice.
/// Refuses slices of other tenants, where `actor` wants to `act`.
pub(super) fn settle(
    slice: &mut Slice,
    actor: &Actor,
    before: Option<&Stored>,
    act: &str,
) -> Result<(), Refusal> {
    let before = before.map(|stored| &stored.slice);
    if slice.tenant.is_empty() {
        let known = before.map(|before| before.tenant.as_str());
        let tenant = actor.tenant().or(known).unwrap_or("default");
        slice.tenant = tenant.to_owned();
    }
    if !actor.sees(slice) {
        let detail = format!("`{}` may {act} slices of its own tenant only", actor.name);
        return Err(Refusal::forbidden(detail));
    }
    let Some(before) = before else { return Ok(()) };
    if !actor.sees(before) {
        let detail = format!("the name `{}` is taken: choose another one", slice.name);
        return Err(Refusal::conflict(detail));
    }
    if slice.path.is_empty() {
        slice.path.clone_from(&before.path);
    }
    Ok(())
}

/// Refuses changes of a slice that are not possible.
pub(super) fn check_change(before: &Stored, after: &Slice) -> Result<(), Refusal> {
    let name = &after.name;
    let refused = |detail: String| Err(Refusal::conflict(detail));
    if before.state == SliceState::Draining {
        return refused(format!(
            "slice `{name}` is being removed: its name is free as soon as its gateways have sent its last frames"
        ));
    }
    if before.slice.path != after.path {
        return refused(format!(
            "slice `{name}` passes {}, and a path cannot be changed: remove the slice and add it with another name",
            before.slice.path.join(", ")
        ));
    }
    if before.slice.tenant != after.tenant {
        return refused(format!(
            "slice `{name}` belongs to tenant `{}`, and that cannot be changed: remove the slice and add it with another name",
            before.slice.tenant
        ));
    }
    Ok(())
}

/// An empty path means the only link; every link exists, and each gateway is passed once.
pub(super) async fn resolve_path(
    connection: &mut AnyConnection,
    slice: &mut Slice,
) -> Result<(), Failed> {
    if slice.path.is_empty() {
        let select = "SELECT name FROM links ORDER BY name LIMIT 2";
        let rows = connection.rows(select, []).await?;
        match rows.as_slice() {
            [only] => slice.path.push(only.text("name")?),
            [] => {
                let detail = "there is no link yet: start a gateway that announces one";
                return Err(Refusal::conflict(detail).into());
            }
            _ => {
                let detail = "there are several links: state which ones the slice passes";
                return Err(Refusal::invalid_at("/path", detail).into());
            }
        }
        return Ok(());
    }
    let mut gateways: BTreeMap<String, String> = BTreeMap::new();
    for link in &slice.path {
        let select = "SELECT gateway FROM links WHERE name = $1";
        let row = connection.row(select, values![link]).await?;
        let Some(row) = row else {
            return Err(unknown_link(connection, link).await?.into());
        };
        let gateway = row.text("gateway")?;
        if let Some(before) = gateways.insert(gateway.clone(), link.clone()) {
            let detail = format!(
                "links `{before}` and `{link}` are both of gateway `{gateway}`: a slice passes a gateway once"
            );
            return Err(Refusal::conflict(detail).into());
        }
    }
    Ok(())
}

/// Why a path with `link` is refused, and which links there are.
async fn unknown_link(connection: &mut AnyConnection, link: &str) -> Result<Refusal, Failed> {
    let select = "SELECT name FROM links ORDER BY name LIMIT 11";
    let rows = connection.rows(select, []).await?;
    let names = rows.iter().map(|row| row.text("name"));
    let names = names.map(|name| name.map(|name| format!("`{name}`")));
    let mut names = names.collect::<Result<Vec<_>, _>>()?;
    if let Some(eleventh) = names.get_mut(10) {
        *eleventh = "…".to_owned();
    }
    let known = match names.as_slice() {
        [] => "start a gateway that announces one".to_owned(),
        names => format!("known are {}", names.join(", ")),
    };
    let detail = format!("there is no link `{link}`: {known}");
    Ok(Refusal::invalid_at("/path", detail))
}

/// Quotas of tenants. The weights of those whose slices change.
async fn account(
    connection: &mut AnyConnection,
    actor: &Actor,
    planned: &[Planned],
) -> Result<BTreeMap<String, u32>, Failed> {
    let mut tenants: BTreeMap<String, TenantState> = BTreeMap::new();
    for one in planned {
        // What is removed counts until it is gone.
        let Some(after) = &one.after else { continue };
        if !tenants.contains_key(&after.tenant) {
            let tenant = tenant_of(&mut *connection, after).await?;
            tenants.insert(after.tenant.clone(), tenant);
        }
        if let Some(tenant) = tenants.get_mut(&after.tenant) {
            if let Some(before) = &one.before {
                tenant.subtract(&before.slice)?;
            }
            tenant.add(after);
        }
    }
    for one in planned {
        let Some(after) = &one.after else { continue };
        if let Some(tenant) = tenants.get(&after.tenant) {
            let before = one.before.as_ref().map(|stored| &stored.slice);
            check_quota(tenant, before, after)
                .map_err(|refusal| refusal.noted(&after.name, &after.tenant, &actor.name))?;
        }
    }
    for tenant in tenants.values() {
        tenant.save_use(&mut *connection).await?;
    }
    Ok(tenants
        .into_iter()
        .map(|(name, tenant)| (name, tenant.weight))
        .collect())
}

pub(super) async fn tenant_of(
    connection: &mut AnyConnection,
    slice: &Slice,
) -> Result<TenantState, Failed> {
    let found = TenantState::load(connection, &slice.tenant).await?;
    found.ok_or_else(|| {
        let name = &slice.tenant;
        let detail = format!("there is no tenant `{name}`: add it with `PUT /v1/tenants/{name}`");
        Refusal::invalid_at("/tenant", detail).into()
    })
}

/// `tenant` has the use after the change. What is not raised is never refused.
pub(super) fn check_quota(
    tenant: &TenantState,
    before: Option<&Slice>,
    after: &Slice,
) -> Result<(), Refusal> {
    let name = &tenant.name;
    if let Some(most) = tenant.most_slices
        && tenant.slices > most
        && before.is_none()
    {
        let detail = format!(
            "tenant `{name}` may have {most} slices, and would have {}",
            tenant.slices
        );
        return Err(Refusal::quota(detail));
    }
    if let Some(most) = tenant.most_rate_bps
        && tenant.rate_bps > most
        && guaranteed(after) > before.map_or(0, guaranteed)
    {
        let detail = format!(
            "tenant `{name}` may be guaranteed {} in all, and would be guaranteed {}",
            BitRate::new(most),
            BitRate::new(tenant.rate_bps)
        );
        return Err(Refusal::quota(detail));
    }
    Ok(())
}

/// Matches and guarantees of all slices that are added or changed.
async fn admit(
    connection: &mut AnyConnection,
    actor: &Actor,
    planned: &mut [Planned],
    candidates: &mut u64,
) -> Result<Capacity, Failed> {
    let mut links = BTreeSet::new();
    for one in planned.iter() {
        links.extend(
            one.after
                .iter()
                .flat_map(|slice| slice.path.iter().cloned()),
        );
    }
    let mut capacity = Capacity::load(&mut *connection, &links).await?;
    // What changes is given back first: the order within a batch does not matter.
    let mut changed = Vec::new();
    for one in planned.iter() {
        if let (Some(before), Some(after)) = (&one.before, &one.after) {
            capacity.release(&before.slice, &one.hops)?;
            changed.push(after.name.clone());
        }
    }
    overlap::forget(&mut *connection, &changed).await?;
    for one in planned.iter() {
        let Some(after) = &one.after else { continue };
        let noted = |refusal: Refusal| refusal.noted(&after.name, &after.tenant, &actor.name);
        if let Some(refusal) = overlapping(&mut *connection, actor, after, candidates).await? {
            return Err(refusal.into());
        }
        overlap::save(&mut *connection, after).await?;
        check_gateways(&capacity, after, one.before.as_ref()).map_err(noted)?;
    }
    let after: Vec<&Slice> = planned
        .iter()
        .filter_map(|one| one.after.as_ref())
        .collect();
    let admitted = capacity.try_admit(&after).map_err(|(index, offer)| {
        let Slice { name, tenant, .. } = after[index];
        Refusal::admission(*offer).noted(name, tenant, &actor.name)
    })?;
    let with_guarantees = planned.iter_mut().filter(|one| one.after.is_some());
    for (one, delays) in with_guarantees.zip(admitted) {
        one.bounds = bounds(&delays);
        one.delays = delays;
    }
    Ok(capacity)
}

/// Refuses what gateways on the path would refuse for good.
pub(super) fn check_gateways(
    capacity: &Capacity,
    slice: &Slice,
    before: Option<&Stored>,
) -> Result<(), Refusal> {
    let before = before.map(|stored| &stored.slice);
    let checked = capacity.check_terms(slice, before);
    checked.map_err(Refusal::invalid)?;
    let Some(gateway) = capacity.with_class_of(slice) else {
        return Ok(());
    };
    let name = &slice.name;
    let detail =
        format!("gateway `{gateway}` has a class `{name}` of its own: choose another name");
    Err(Refusal::conflict(detail))
}

/// The refusal of a slice that has packets in common with another one. The event that it leaves is read by the tenant of `slice`, whoever asked:
/// it does not name slices of others.
pub(super) async fn overlapping(
    connection: &mut AnyConnection,
    actor: &Actor,
    slice: &Slice,
    candidates: &mut u64,
) -> Result<Option<Refusal>, Failed> {
    let found = overlap::overlapping(connection, slice, candidates).await?;
    Ok(found.map(|(other, tenant)| {
        let detail = |reader: Option<&str>| {
            let other = match reader {
                Some(own) if own != tenant => "a slice of another tenant".to_owned(),
                _ => format!("slice `{other}`"),
            };
            format!(
                "some packets that match slice `{}` belong to {other}: state header fields that tell them apart",
                slice.name
            )
        };
        let refusal = Refusal::overlap(detail(actor.tenant()));
        let mut refusal = refusal.noted(&slice.name, &slice.tenant, &actor.name);
        if let Some(note) = &mut refusal.note {
            note.reason = detail(Some(&slice.tenant));
        }
        refusal
    }))
}
