//! The sums of all links and tenants, counted anew from the slices.

use super::capacity::{Capacity, Sums};
use super::delay_choice::{HopDelays, requests};
use super::stored::{Hop, Stored, TenantState, guaranteed};
use crate::sql::{RowExt, Sql, values};
use futures_util::TryStreamExt;
use slicewise_model::DelayRange;
use slicewise_units::{Duration, Way};
use sqlx::AnyConnection;
use std::collections::{BTreeMap, BTreeSet};

/// Slices and guaranteed rate of a tenant.
type TenantUse = (u64, u64);

/// Sums of links and tenants, counted from the slices of a store.
#[derive(Debug)]
pub(crate) struct Recount {
    capacity: Capacity,
    tenants: BTreeMap<String, TenantUse>,
    /// Hops of which the position of a delay class became a delay: slice, link, delays.
    converted: Vec<(String, String, HopDelays)>,
    /// Contradictions found on the way.
    findings: Vec<String>,
}

impl Recount {
    /// Counts. Where hops have `positions` of delay classes, as version 5 of the schema had, these become delays.
    pub(crate) async fn of(
        connection: &mut AnyConnection,
        positions: bool,
    ) -> Result<Self, sqlx::Error> {
        let mut new = Self {
            capacity: Capacity::default(),
            tenants: BTreeMap::new(),
            converted: Vec::new(),
            findings: Vec::new(),
        };
        let select = "SELECT gateway, announcement FROM links";
        for row in connection.rows(select, []).await? {
            let gateway = row.text("gateway")?;
            new.capacity.insert(&row.json("announcement")?, &gateway)?;
        }
        new.count_hops(connection, positions).await?;
        let mut slices = sqlx::query("SELECT * FROM slices").fetch(connection);
        while let Some(row) = slices.try_next().await? {
            let slice = Stored::of(&row)?.slice;
            let (slices, rate) = new.tenants.entry(slice.tenant.clone()).or_default();
            *slices += 1;
            *rate = rate.saturating_add(guaranteed(&slice));
        }
        Ok(new)
    }

    async fn count_hops(
        &mut self,
        connection: &mut AnyConnection,
        positions: bool,
    ) -> Result<(), sqlx::Error> {
        let hops = "SELECT s.*, h.* FROM slice_hops h JOIN slices s ON s.name = h.slice";
        // Not kept prepared: a migration counts with fewer columns than the tables have after it, and the driver fails beyond those that it knows.
        let mut rows = sqlx::query(hops).persistent(false).fetch(connection);
        while let Some(row) = rows.try_next().await? {
            let (slice, mut hop) = (Stored::of(&row)?.slice, Hop::of(&row)?);
            let Some(link) = self.capacity.link_mut(&hop.link) else {
                let (slice, link) = (&hop.slice, &hop.link);
                let finding = format!("slice `{slice}` passes link `{link}`, which does not exist");
                self.findings.push(finding);
                continue;
            };
            let requests = requests(&slice);
            for (way, direction) in link.directions.iter_mut() {
                let (Some(delay), Some(request)) = (&mut hop.delays[way], &requests[way]) else {
                    continue;
                };
                if positions {
                    let range = direction.admission().params().delays;
                    *delay = delay_of_position(range, delay.nanos());
                }
                direction.restore(request, *delay);
            }
            if positions {
                self.converted.push((hop.slice, hop.link, hop.delays));
            }
        }
        Ok(())
    }

    /// Replaces the sums of the store.
    pub(crate) async fn save(&self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        connection.change("DELETE FROM class_sums", []).await?;
        self.capacity.save(connection).await?;
        for tenant in tenants(connection).await? {
            let (slices, rate_bps) = self.used_by(&tenant.name);
            let tenant = TenantState {
                slices,
                rate_bps,
                ..tenant
            };
            tenant.save_use(connection).await?;
        }
        for (slice, link, delays) in &self.converted {
            let update = "UPDATE slice_hops SET delay_forward_ns = $1, delay_backward_ns = $2 WHERE slice = $3 AND link = $4";
            let values = values![delays.forward, delays.backward, slice, link];
            connection.change(update, values).await?;
        }
        Ok(())
    }

    fn used_by(&self, tenant: &str) -> TenantUse {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    /// Where the store contradicts its slices: sums of links and tenants that are wrong, and links that cannot hold what is promised of them.
    pub(crate) async fn findings(
        &self,
        connection: &mut AnyConnection,
    ) -> Result<Vec<String>, sqlx::Error> {
        let mut found = self.findings.clone();
        let mut unknown: BTreeSet<&String> = self.tenants.keys().collect();
        for tenant in tenants(connection).await? {
            let text = |(slices, rate): TenantUse| format!("{slices} slices and {rate} bit/s");
            let stored = text((tenant.slices, tenant.rate_bps));
            let what = format!("tenant `{}`", tenant.name);
            found.extend(difference(
                &what,
                &stored,
                &text(self.used_by(&tenant.name)),
            ));
            unknown.remove(&tenant.name);
        }
        found.extend(
            unknown
                .into_iter()
                .map(|tenant| format!("tenant `{tenant}` has slices, and does not exist")),
        );
        let (mut stored, mut counted) = (Sums::new(), self.capacity.sums());
        for row in connection.rows("SELECT * FROM class_sums", []).await? {
            let way = match row.integer("direction")? {
                0 => Way::Forward,
                _ => Way::Backward,
            };
            let key = (row.text("link")?, way, row.natural("delay_ns")?);
            let sums = [
                "slices",
                "rate_bps",
                "burst_bytes",
                "link_rate_bps",
                "link_burst_bytes",
            ];
            let mut own = [0; 5];
            for (sum, column) in own.iter_mut().zip(sums) {
                *sum = row.natural(column)?;
            }
            stored.insert(key, own);
        }
        let keys: Vec<_> = stored.keys().chain(counted.keys()).cloned().collect();
        for key in keys {
            let (stored, counted) = (stored.remove(&key), counted.remove(&key));
            let (link, way, delay_ns) = key;
            let delay = Duration::from_nanos(delay_ns);
            let what = format!("link `{link}`, {way}, delay of {delay}");
            let text = |sums: Option<[u64; 5]>| {
                let [slices, rate, burst, link_rate, link_burst] = sums.unwrap_or_default();
                format!(
                    "{slices} slices, {rate} bit/s and {burst} B (as the link counts: {link_rate} bit/s and {link_burst} B)"
                )
            };
            found.extend(difference(&what, &text(stored), &text(counted)));
        }
        found.extend(self.capacity.overcommitted());
        Ok(found)
    }
}

fn difference(what: &str, stored: &str, counted: &str) -> Option<String> {
    let text = || format!("{what}: the store has {stored}, and its slices need {counted}");
    (stored != counted).then(text)
}

async fn tenants(connection: &mut AnyConnection) -> Result<Vec<TenantState>, sqlx::Error> {
    let select = "SELECT * FROM tenants ORDER BY name";
    let rows = connection.rows(select, []).await?;
    rows.iter().map(TenantState::of).collect()
}

/// Delay that the class at a position promised: the position among the steps gave the time until the deadline.
fn delay_of_position(range: DelayRange, position: u64) -> Duration {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let until_deadline = range.steps().take(position.saturating_add(1)).last();
    until_deadline.unwrap_or(range.shortest()) + range.bucket_width()
}
