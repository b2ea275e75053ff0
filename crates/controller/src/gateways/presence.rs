//! Which gateways are there.

use super::acknowledge::finish;
use crate::refusal::Refusal;
use crate::sql::{EventNote, Failed, RowExt, Sql, Tx, values};
use slicewise_api::{EventKind, GatewayRecord};
use sqlx::AnyConnection;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A gateway that was not heard of for this long is gone.
pub(crate) const CONNECTED: Duration = Duration::from_secs(10);
/// How often somebody has to look, so that it is known for how long a gateway was not heard of.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// When a gateway was seen, as the store has it, and since when it has just this.
#[derive(Debug, Clone, Copy)]
struct Heard {
    seen_at_ms: u64,
    since: Duration,
}

/// For how long gateways have not been heard of.
///
/// Counts how long the store has had the same moment for a gateway, whatever that moment is: clocks of controllers
/// differ, and jump. Where nobody could look (the store was away, the machine was suspended), gateways could not say
/// that they are there: it begins anew.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    heard: HashMap<String, Heard>,
    looked: Duration,
}

impl Presence {
    /// Returns those of the `connected` gateways, with the moments when they were seen, that are gone at `now`, which
    /// only grows.
    fn absent(&mut self, now: Duration, connected: Vec<(String, u64)>) -> Vec<String> {
        if now.saturating_sub(self.looked) > LOOK_WITHIN {
            self.heard.clear();
        }
        self.looked = now;
        let before = std::mem::take(&mut self.heard);
        let mut absent = Vec::new();
        for (name, seen_at_ms) in connected {
            let known = before.get(&name);
            let known = known.filter(|known| known.seen_at_ms == seen_at_ms);
            let since = known.map_or(now, |known| known.since);
            if now.saturating_sub(since) >= CONNECTED {
                absent.push(name);
            } else {
                self.heard.insert(name, Heard { seen_at_ms, since });
            }
        }
        absent
    }
}

/// Every gateway, by name.
pub(crate) async fn gateways(
    connection: &mut AnyConnection,
) -> Result<Vec<GatewayRecord>, sqlx::Error> {
    let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let select = "SELECT name, gateway FROM links ORDER BY name";
    for row in connection.rows(select, []).await? {
        links
            .entry(row.text("gateway")?)
            .or_default()
            .push(row.text("name")?);
    }
    let select = "SELECT * FROM gateways ORDER BY name";
    let rows = connection.rows(select, []).await?;
    let record = |row: &crate::sql::Row| {
        let name = row.text("name")?;
        Ok(GatewayRecord {
            links: links.remove(&name).unwrap_or_default(),
            name,
            acknowledged: row.natural("acknowledged")?,
            seen_at_ms: row.natural("seen_at_ms")?,
            connected: row.integer("connected")? != 0,
            problem: row.maybe_text("problem")?,
        })
    };
    rows.iter().map(record).collect()
}

/// The gateway was heard of.
pub(crate) async fn touch(tx: &mut Tx, gateway: &str) -> Result<(), Failed> {
    let select = "SELECT connected FROM gateways WHERE name = $1";
    let row = tx.row(select, values![gateway]).await?;
    let Some(row) = row else { return Ok(()) };
    let update = "UPDATE gateways SET seen_at_ms = $1, connected = 1 WHERE name = $2";
    tx.change(update, values![tx.now_ms, gateway]).await?;
    if row.integer("connected")? == 0 {
        tx.note(EventKind::GatewayCame, EventNote::of_gateway(gateway));
    }
    Ok(())
}

/// Note gateways that have not been heard of at `now`, which only grows. Of several controllers, one does.
pub(crate) async fn mark_absent(
    tx: &mut Tx,
    presence: &Mutex<Presence>,
    now: Duration,
) -> Result<(), Failed> {
    let select = "SELECT name, seen_at_ms FROM gateways WHERE connected = 1";
    let rows = tx.rows(select, []).await?;
    let connected = rows
        .iter()
        .map(|row| Ok((row.text("name")?, row.natural("seen_at_ms")?)))
        .collect::<Result<_, sqlx::Error>>()?;
    let absent = presence
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .absent(now, connected);
    for name in absent {
        let update = "UPDATE gateways SET connected = 0 WHERE name = $1";
        tx.change(update, values![name]).await?;
        tx.note(EventKind::GatewayWent, EventNote::of_gateway(&name));
    }
    Ok(())
}

/// Forget a gateway that never comes back: its slices must have been removed, and count as gone from it.
pub(crate) async fn forget_gateway(tx: &mut Tx, gateway: &str) -> Result<(), Failed> {
    let select = "SELECT connected FROM gateways WHERE name = $1";
    let known = tx.row(select, values![gateway]).await?;
    let Some(known) = known else {
        return Err(Refusal::not_found("gateway", gateway).into());
    };
    let select = "SELECT slice, draining FROM slice_hops WHERE gateway = $1 ORDER BY slice";
    let rows = tx.rows(select, values![gateway]).await?;
    for row in &rows {
        if row.integer("draining")? == 0 {
            let slice = row.text("slice")?;
            let detail =
                format!("slice `{slice}` passes gateway `{gateway}`: remove its slices first");
            return Err(Refusal::conflict(detail).into());
        }
    }
    if known.integer("connected")? != 0 {
        let detail = format!(
            "gateway `{gateway}` is connected, so frames of slices may wait in it: stop it, and forget it when it was not heard of for 10 s"
        );
        return Err(Refusal::conflict(detail).into());
    }
    // Slices that drain in other gateways, too, have nothing here any more.
    for delete in [
        "DELETE FROM slice_matches WHERE link IN (SELECT name FROM links WHERE gateway = $1)",
        "DELETE FROM slice_hops WHERE gateway = $1",
        "DELETE FROM class_sums WHERE link IN (SELECT name FROM links WHERE gateway = $1)",
        "DELETE FROM links WHERE gateway = $1",
        "DELETE FROM gateway_changes WHERE gateway = $1",
        "DELETE FROM counters WHERE gateway = $1",
        "DELETE FROM gateways WHERE name = $1",
    ] {
        tx.change(delete, values![gateway]).await?;
    }
    let drained = rows.iter().map(|row| row.text("slice"));
    let drained: Vec<String> = drained.collect::<Result<_, _>>()?;
    finish(tx, &drained).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(presence: &mut Presence, second: u64, seen_at_ms: u64) -> bool {
        let connected = vec![("gw".to_owned(), seen_at_ms)];
        let absent = presence.absent(Duration::from_secs(second), connected);
        !absent.is_empty()
    }

    #[test]
    fn a_gateway_is_gone_ten_seconds_after_it_was_heard_of_whatever_the_clock_says() {
        const HOUR: u64 = 3_600_000;
        let mut presence = Presence::default();
        // It is heard of every two seconds; the clock jumps forward, and back further.
        for (second, seen) in [(100, HOUR), (102, 9 * HOUR), (104, 10), (106, 2_010)] {
            assert!(!at(&mut presence, second, seen), "{second}");
        }
        for second in [108, 110, 112, 114] {
            assert!(!at(&mut presence, second, 2_010), "{second}");
        }
        assert!(at(&mut presence, 116, 2_010));
    }

    #[test]
    fn gateways_are_not_gone_because_nobody_looked() {
        let mut presence = Presence::default();
        for second in [100, 102, 104] {
            assert!(!at(&mut presence, second, 5));
        }
        // The store was away for a minute. Then it is heard of again, or not.
        for second in [164, 166, 168, 170, 172] {
            assert!(!at(&mut presence, second, 5), "{second}");
        }
        assert!(at(&mut presence, 174, 5));
    }
}
