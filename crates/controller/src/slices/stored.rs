//! Slices and tenants as the store has them.

use super::delay_choice::{HopDelays, delay_choices};
use crate::sql::{Row, RowExt, Sql, values};
use slicewise_api::{Bounds, LinkAnnouncement, Slice, SliceProblem, SliceRecord, SliceState};
use slicewise_model::DelayRange;
use slicewise_units::{BothWays, Duration};
use sqlx::AnyConnection;
use std::collections::{BTreeMap, BTreeSet};

/// A slice of the store.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) slice: Slice,
    pub(crate) state: SliceState,
    pub(crate) generation: u64,
    pub(crate) bounds: Bounds,
    pub(crate) created_by: String,
    pub(crate) created_at_ms: u64,
    pub(crate) changed_at_ms: u64,
}

/// A link that a slice passes.
#[derive(Debug, Clone)]
pub(crate) struct Hop {
    pub(crate) slice: String,
    pub(crate) link: String,
    pub(crate) gateway: String,
    pub(crate) delays: HopDelays,
    pub(crate) acknowledged: bool,
    pub(crate) problem: Option<String>,
}

pub(crate) fn state_of(text: &str) -> SliceState {
    match text {
        "installed" => SliceState::Installed,
        "draining" => SliceState::Draining,
        _ => SliceState::Admitted,
    }
}

impl Stored {
    pub(crate) fn of(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            slice: row.json("body")?,
            state: state_of(&row.text("state")?),
            generation: row.natural("generation")?,
            bounds: Bounds {
                forward: row.maybe_natural("bound_forward_ns")?,
                backward: row.maybe_natural("bound_backward_ns")?,
            },
            created_by: row.text("created_by")?,
            created_at_ms: row.natural("created_at_ms")?,
            changed_at_ms: row.natural("changed_at_ms")?,
        })
    }

    /// The slice of this name.
    pub(crate) async fn load(
        connection: &mut AnyConnection,
        name: &str,
    ) -> Result<Option<Self>, sqlx::Error> {
        let select = "SELECT * FROM slices WHERE name = $1";
        let row = connection.row(select, values![name]).await?;
        row.as_ref().map(Self::of).transpose()
    }

    /// Returns those slices of these names that exist, by name.
    pub(crate) async fn load_several(
        connection: &mut AnyConnection,
        names: &[&str],
    ) -> Result<BTreeMap<String, Self>, sqlx::Error> {
        let select = ("SELECT * FROM slices WHERE name", "");
        let rows = connection.named(select, [], names).await?;
        let stored = rows.iter().map(|row| {
            let stored = Self::of(row)?;
            Ok((stored.slice.name.clone(), stored))
        });
        stored.collect()
    }

    /// As clients see it; `hops` are its own.
    pub(crate) fn record(self, hops: &[Hop]) -> SliceRecord {
        let open = hops.iter().filter(|hop| !hop.acknowledged);
        let unacknowledged = open.map(|hop| hop.gateway.clone()).collect();
        let problem = |hop: &Hop| {
            let reason = hop.problem.clone()?;
            let gateway = hop.gateway.clone();
            Some(SliceProblem { gateway, reason })
        };
        SliceRecord {
            slice: self.slice,
            state: self.state,
            version: self.generation,
            generation: self.generation,
            bound_ns: self.bounds,
            delay_choice: None,
            created_by: self.created_by,
            created_at_ms: self.created_at_ms,
            changed_at_ms: self.changed_at_ms,
            unacknowledged,
            problems: hops.iter().filter_map(problem).collect(),
        }
    }
}

impl Hop {
    pub(crate) fn of(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            slice: row.text("slice")?,
            link: row.text("link")?,
            gateway: row.text("gateway")?,
            delays: Self::delays(row)?,
            acknowledged: row.integer("acknowledged")? != 0,
            problem: row.maybe_text("problem")?,
        })
    }

    /// The delays of a row that has those of a hop.
    pub(crate) fn delays(row: &Row) -> Result<HopDelays, sqlx::Error> {
        let delay = |column: &str| -> Result<Option<Duration>, sqlx::Error> {
            Ok(row.maybe_natural(column)?.map(Duration::from_nanos))
        };
        Ok(HopDelays {
            forward: delay("delay_forward_ns")?,
            backward: delay("delay_backward_ns")?,
        })
    }

    /// The hops of a slice, in the order of its path.
    pub(crate) async fn load(
        connection: &mut AnyConnection,
        slice: &str,
    ) -> Result<Vec<Self>, sqlx::Error> {
        let select = "SELECT * FROM slice_hops WHERE slice = $1 ORDER BY hop";
        let rows = connection.rows(select, values![slice]).await?;
        rows.iter().map(Self::of).collect()
    }

    /// The hops of several slices by slice, each in the order of its path.
    pub(crate) async fn load_several(
        connection: &mut AnyConnection,
        slices: &[&str],
        which: Hops,
    ) -> Result<BTreeMap<String, Vec<Self>>, sqlx::Error> {
        let select = match which {
            Hops::All => "SELECT * FROM slice_hops WHERE slice",
            Hops::Open => "SELECT * FROM slice_hops WHERE acknowledged = 0 AND slice",
        };
        let rows = connection.named((select, ""), [], slices).await?;
        let mut hops = Vec::with_capacity(rows.len());
        for row in &rows {
            hops.push((row.integer("hop")?, Self::of(row)?));
        }
        hops.sort_by_key(|&(position, _)| position);
        let mut found: BTreeMap<String, Vec<Self>> = BTreeMap::new();
        for (_, hop) in hops {
            found.entry(hop.slice.clone()).or_default().push(hop);
        }
        Ok(found)
    }
}

/// Which hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hops {
    All,
    /// Those that are not acknowledged.
    Open,
}

/// Slices as clients see them, with why they have their delays, in the order of `names`; those that do not exist are left out.
pub(crate) async fn records(
    connection: &mut AnyConnection,
    names: &[&str],
) -> Result<Vec<SliceRecord>, sqlx::Error> {
    let mut slices = Stored::load_several(&mut *connection, names).await?;
    let mut hops = Hop::load_several(&mut *connection, names, Hops::All).await?;
    let mut ranges: BTreeMap<String, BothWays<DelayRange>> = BTreeMap::new();
    for hop in hops.values().flatten() {
        if !ranges.contains_key(&hop.link) {
            let range = delay_ranges(&mut *connection, &hop.link).await?;
            ranges.insert(hop.link.clone(), range);
        }
    }
    let records = names.iter().filter_map(|&name| {
        let stored = slices.remove(name)?;
        let hops = hops.remove(name).unwrap_or_default();
        let delays: Vec<_> = hops.iter().map(|hop| hop.delays).collect();
        let passed = hops.iter().filter_map(|hop| ranges.get(&hop.link).copied());
        let choices = delay_choices(&stored.slice, &delays, &Vec::from_iter(passed));
        let mut record = stored.record(&hops);
        record.delay_choice = Some(choices);
        Some(record)
    });
    Ok(records.collect())
}

/// A slice as clients see it.
pub(crate) async fn record(
    connection: &mut AnyConnection,
    name: &str,
) -> Result<Option<SliceRecord>, sqlx::Error> {
    Ok(records(connection, &[name]).await?.pop())
}

/// The delays that a link can promise.
async fn delay_ranges(
    connection: &mut AnyConnection,
    link: &str,
) -> Result<BothWays<DelayRange>, sqlx::Error> {
    let select = "SELECT announcement FROM links WHERE name = $1";
    let row = connection.one_row(select, values![link]).await?;
    let link: LinkAnnouncement = row.json("announcement")?;
    link.ways().try_map(|direction| {
        let params = direction.admission();
        let params = params.map_err(|invalid| sqlx::Error::Decode(Box::new(invalid)))?;
        Ok(params.delays)
    })
}

/// Names `slice-1`, `slice-2`, … that no slice has, and that are not `taken`.
pub(crate) async fn free_names(
    connection: &mut AnyConnection,
    mut taken: BTreeSet<String>,
) -> Result<impl Iterator<Item = String>, sqlx::Error> {
    // Those that begin with `slice-`: a dot follows the hyphen.
    let select = "SELECT name FROM slices WHERE name > 'slice-' AND name < 'slice.'";
    for row in connection.rows(select, []).await? {
        taken.insert(row.text("name")?);
    }
    let names = (1u64..).map(|number| format!("slice-{number}"));
    Ok(names.filter(move |name| !taken.contains(name)))
}

/// A tenant and what it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TenantState {
    pub(crate) name: String,
    pub(crate) weight: u32,
    pub(crate) most_slices: Option<u64>,
    pub(crate) most_rate_bps: Option<u64>,
    pub(crate) slices: u64,
    pub(crate) rate_bps: u64,
}

impl TenantState {
    pub(crate) fn of(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            name: row.text("name")?,
            weight: u32::try_from(row.natural("weight")?).unwrap_or(1),
            most_slices: row.maybe_natural("most_slices")?,
            most_rate_bps: row.maybe_natural("most_rate_bps")?,
            slices: row.natural("slices")?,
            rate_bps: row.natural("rate_bps")?,
        })
    }

    pub(crate) async fn load(
        connection: &mut AnyConnection,
        name: &str,
    ) -> Result<Option<Self>, sqlx::Error> {
        let select = "SELECT * FROM tenants WHERE name = $1";
        let row = connection.row(select, values![name]).await?;
        row.as_ref().map(Self::of).transpose()
    }

    /// Save what it uses.
    pub(crate) async fn save_use(&self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        let update = "UPDATE tenants SET slices = $1, rate_bps = $2 WHERE name = $3";
        let values = values![self.slices, self.rate_bps, self.name];
        connection.change(update, values).await.map(drop)
    }

    pub(crate) fn add(&mut self, slice: &Slice) {
        self.slices += 1;
        self.rate_bps = self.rate_bps.saturating_add(guaranteed(slice));
    }

    /// # Errors
    /// If it uses less than that.
    pub(crate) fn subtract(&mut self, slice: &Slice) -> Result<(), sqlx::Error> {
        let wrong = || wrong_sums("tenant", &self.name, &slice.name);
        let slices = self.slices.checked_sub(1).ok_or_else(wrong)?;
        let rate_bps = self.rate_bps.checked_sub(guaranteed(slice));
        self.rate_bps = rate_bps.ok_or_else(wrong)?;
        self.slices = slices;
        Ok(())
    }
}

/// Sum of the guaranteed rates of both directions, bit/s.
pub(crate) fn guaranteed(slice: &Slice) -> u64 {
    let terms = slice.ways().into_iter();
    let guarantees = terms.filter_map(|(_, terms)| terms.as_ref()?.guarantee);
    guarantees
        .map(|guarantee| guarantee.rate_bps)
        .fold(0, u64::saturating_add)
}

/// The store has less than what is to be given back.
pub(super) fn wrong_sums(what: &str, name: &str, slice: &str) -> sqlx::Error {
    sqlx::Error::Protocol(format!(
        "the sums of {what} `{name}` are less than what slice `{slice}` has of them: the store was changed by something else; \
         restore a backup"
    ))
}
