//! The newest counters: in memory where this controller got them, and in the store for the others.

use super::bins::CounterBins;
use crate::actor::Actor;
use crate::slices::{Hop, Stored};
use crate::sql::{EventNote, Failed, RowExt, Sql, Tx, values};
use crate::store::Store;
use slicewise_api::{
    CounterAnswer, CounterReport, DirectionCounters, EventKind, GatewayEvent, HopCounters,
    LinkCounters, LinkCountersRecord, SliceCountersRecord, check_name,
};
use sqlx::AnyConnection;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Own reports younger than this are used; otherwise the gateway may report to another controller by now.
const OWN: Duration = Duration::from_secs(3);
/// How long flows of a slice are reported after somebody asked for them.
const FLOWS_FOR: Duration = Duration::from_secs(15);
/// Most slices whose flows are asked for at a time.
const FLOWS_MAX: i64 = 8;
/// Longest reason of an event.
const REASON_CHARS_MAX: usize = 500;
/// Most events of one report.
const EVENTS_MAX: usize = 100;

/// A report and when it came.
#[derive(Debug)]
pub(crate) struct Reported {
    at_ms: u64,
    report: CounterReport,
    /// Positions of slices.
    slices: HashMap<String, usize>,
}

impl Reported {
    fn new(at_ms: u64, report: CounterReport) -> Self {
        let numbered = report.slices.iter().enumerate();
        let slices = numbered
            .map(|(index, slice)| (slice.name.clone(), index))
            .collect();
        Self {
            at_ms,
            report,
            slices,
        }
    }
}

/// Reports that came to this process, and the slices whose flows were asked for here; times are those of the clock that does not jump.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    reports: RwLock<HashMap<String, (Duration, Arc<Reported>)>>,
    interests: Mutex<HashMap<String, Interest>>,
    pub(crate) bins: CounterBins,
}

/// Somebody looks at the flows of a slice.
#[derive(Debug)]
struct Interest {
    /// Those that it passes.
    gateways: Vec<String>,
    until: Duration,
    /// Until when the other controllers know.
    told_until: Option<Duration>,
}

impl Counters {
    /// A report came `now`, at `at_ms` of day. Returns true if it is the first of a bin, which needs the rates of links.
    pub(crate) fn keep(
        &self,
        now: Duration,
        at_ms: u64,
        gateway: &str,
        report: CounterReport,
    ) -> bool {
        let is_first = self.bins.add(at_ms, gateway, &report);
        let reported = Arc::new(Reported::new(at_ms, report));
        let mut reports = self.reports.write().unwrap_or_else(PoisonError::into_inner);
        reports.insert(gateway.to_owned(), (now, reported));
        is_first
    }

    /// Somebody looks at the flows of a slice with these hops. Whether other controllers must be told so: where a gateway reports to one of them,
    /// half of the time that they know is over.
    pub(crate) fn want_flows(&self, slice: &str, hops: &[Hop], now: Duration) -> bool {
        let gateways: Vec<String> = hops.iter().map(|hop| hop.gateway.clone()).collect();
        let is_heard = gateways
            .iter()
            .all(|gateway| self.own(gateway, now).is_some());
        let mut interests = self
            .interests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        interests.retain(|_, interest| interest.until > now);
        let before = interests.get(slice).and_then(|one| one.told_until);
        let is_known = before.is_some_and(|until| until > now + FLOWS_FOR / 2);
        let tells = !is_heard && !is_known;
        let interest = Interest {
            gateways,
            until: now + FLOWS_FOR,
            told_until: if tells { Some(now + FLOWS_FOR) } else { before },
        };
        interests.insert(slice.to_owned(), interest);
        tells
    }

    /// Slices of a gateway whose flows were asked for here.
    fn wanted(&self, gateway: &str, now: Duration) -> Vec<String> {
        let interests = self
            .interests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let wanted = interests.iter().filter(|(_, interest)| {
            interest.until > now && interest.gateways.iter().any(|one| one == gateway)
        });
        wanted.map(|(slice, _)| slice.clone()).collect()
    }

    fn own(&self, gateway: &str, now: Duration) -> Option<Arc<Reported>> {
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        let (at, found) = reports.get(gateway)?;
        (now.saturating_sub(*at) < OWN).then(|| Arc::clone(found))
    }
}

/// Keep a report for other controllers, note its events, and say whose flows are wanted: those that were asked for at other controllers, and
/// those of `counters`.
pub(crate) async fn save_counters(
    tx: &mut Tx,
    (counters, now): (&Counters, Duration),
    gateway: &str,
    body: String,
    events: &[GatewayEvent],
) -> Result<CounterAnswer, Failed> {
    let insert = "INSERT INTO counters (gateway, at_ms, body) VALUES ($1, $2, $3) \
                  ON CONFLICT (gateway) DO UPDATE SET at_ms = excluded.at_ms, body = excluded.body";
    tx.change(insert, values![gateway, tx.now_ms, body]).await?;
    for event in events.iter().take(EVENTS_MAX) {
        let slice = event.slice.clone().unwrap_or_default();
        let is_name = check_name(&slice, "").is_ok();
        let slice = if is_name { slice } else { String::new() };
        // A gateway says nothing of slices that do not pass it: the event would be read by another tenant.
        let hops = Hop::load(tx.connection(), &slice).await?;
        if !slice.is_empty() && hops.iter().all(|hop| hop.gateway != gateway) {
            continue;
        }
        let stored = Stored::load(tx.connection(), &slice).await?;
        let note = EventNote {
            slice,
            tenant: stored.map(|stored| stored.slice.tenant).unwrap_or_default(),
            gateway: gateway.to_owned(),
            reason: event.reason.chars().take(REASON_CHARS_MAX).collect(),
            ..EventNote::default()
        };
        tx.note(EventKind::Decision, note);
    }
    let values = values![gateway, tx.age_ms, FLOWS_MAX];
    let rows = tx.rows(FLOWS_WANTED, values).await?;
    let mut wanted = counters.wanted(gateway, now);
    for row in &rows {
        wanted.push(row.text("slice")?);
    }
    wanted.sort_unstable();
    wanted.dedup();
    wanted.truncate(FLOWS_MAX.try_into().unwrap_or(usize::MAX));
    Ok(CounterAnswer {
        flows_wanted: wanted,
    })
}

/// From the few that are wanted to their gateways, and by no index of gateways: it would find every slice of the gateway.
const FLOWS_WANTED: &str = "SELECT f.slice AS slice FROM flow_interests f WHERE f.until_age_ms > $2 AND EXISTS \
                            (SELECT 1 FROM slice_hops h WHERE h.slice = f.slice AND h.gateway || '' = $1) \
                            ORDER BY f.until_age_ms DESC LIMIT $3";

/// Tell other controllers that somebody looks at the flows of a slice.
pub(crate) async fn tell_interest(tx: &mut Tx, slice: &str) -> Result<(), Failed> {
    let delete = "DELETE FROM flow_interests WHERE until_age_ms < $1";
    tx.change(delete, values![tx.age_ms]).await?;
    let insert = "INSERT INTO flow_interests (slice, until_age_ms) VALUES ($1, $2) \
                  ON CONFLICT (slice) DO UPDATE SET until_age_ms = excluded.until_age_ms";
    let flows_ms = u64::try_from(FLOWS_FOR.as_millis()).unwrap_or_default();
    tx.change(insert, values![slice, tx.age_ms + flows_ms])
        .await?;
    Ok(())
}

/// The newest report of a gateway.
pub(crate) async fn read_counters(
    store: &Store,
    counters: &Counters,
    gateway: &str,
) -> Result<Option<Arc<Reported>>, sqlx::Error> {
    if let Some(own) = counters.own(gateway, store.clock().elapsed()) {
        return Ok(Some(own));
    }
    let select = "SELECT at_ms, body FROM counters WHERE gateway = $1";
    let mut connection = store.pool().acquire().await?;
    let row = connection.row(select, values![gateway]).await?;
    let Some(row) = row else { return Ok(None) };
    let reported = Reported::new(row.natural("at_ms")?, row.json("body")?);
    Ok(Some(Arc::new(reported)))
}

/// The newest report of each gateway.
type Reports = HashMap<String, Arc<Reported>>;

/// Reports of the gateways of `hops`, beside those that are in `reports` already.
async fn read_reports(
    store: &Store,
    counters: &Counters,
    hops: &[Hop],
    reports: &mut Reports,
) -> Result<(), sqlx::Error> {
    for hop in hops {
        if !reports.contains_key(&hop.gateway)
            && let Some(reported) = read_counters(store, counters, &hop.gateway).await?
        {
            reports.insert(hop.gateway.clone(), reported);
        }
    }
    Ok(())
}

/// The newest counters of a slice with these hops.
pub(crate) async fn slice_counters(
    store: &Store,
    counters: &Counters,
    name: &str,
    hops: &[Hop],
    flows: bool,
) -> Result<SliceCountersRecord, sqlx::Error> {
    let mut reports = Reports::new();
    read_reports(store, counters, hops, &mut reports).await?;
    Ok(counters_of(name, hops, &reports, flows))
}

/// The newest counters of several slices; those that the actor may not see, or that do not exist, are left out.
pub(crate) async fn counters_of_several(
    store: &Store,
    counters: &Counters,
    actor: &Actor,
    names: &[&str],
) -> Result<Vec<SliceCountersRecord>, sqlx::Error> {
    let (mut found, mut reports) = (Vec::new(), Reports::new());
    for &name in names {
        let mut connection = store.pool().acquire().await?;
        let select = "SELECT tenant FROM slices WHERE name = $1";
        let Some(row) = connection.row(select, values![name]).await? else {
            continue;
        };
        let tenant = row.text("tenant")?;
        if actor.tenant().is_some_and(|own| own != tenant) {
            continue;
        }
        let hops = Hop::load(&mut connection, name).await?;
        // Reports of others are read with a connection of their own.
        drop(connection);
        read_reports(store, counters, &hops, &mut reports).await?;
        found.push(counters_of(name, &hops, &reports, false));
    }
    Ok(found)
}

/// Every slice that the actor may see, with its newest counters, in the order of their names.
pub(crate) async fn counters_of_all(
    store: &Store,
    counters: &Counters,
    actor: &Actor,
) -> Result<Vec<(Stored, SliceCountersRecord)>, sqlx::Error> {
    let mut transaction = store.read().await?;
    let select = "SELECT * FROM slices WHERE tenant = $1 OR $1 = '' ORDER BY name";
    let tenant = actor.tenant().unwrap_or_default();
    let slices = transaction.rows(select, values![tenant]).await?;
    let select = "SELECT * FROM slice_hops ORDER BY slice, hop";
    let hops = transaction.rows(select, []).await?;
    drop(transaction);
    let hops: Vec<Hop> = hops.iter().map(Hop::of).collect::<Result<_, _>>()?;
    let mut reports = Reports::new();
    read_reports(store, counters, &hops, &mut reports).await?;
    let mut of_slice: HashMap<String, Vec<Hop>> = HashMap::new();
    for hop in hops {
        of_slice.entry(hop.slice.clone()).or_default().push(hop);
    }
    let with_counters = slices.iter().map(|row| {
        let stored = Stored::of(row)?;
        let hops = of_slice.remove(&stored.slice.name).unwrap_or_default();
        let counted = counters_of(&stored.slice.name, &hops, &reports, false);
        Ok((stored, counted))
    });
    with_counters.collect()
}

fn counters_of(name: &str, hops: &[Hop], reports: &Reports, flows: bool) -> SliceCountersRecord {
    let mut found = Vec::new();
    for hop in hops {
        let Some(reported) = reports.get(&hop.gateway) else {
            continue;
        };
        let own = reported
            .slices
            .get(name)
            .and_then(|&index| reported.report.slices.get(index));
        let Some(own) = own else { continue };
        let mut own_flows = reported
            .report
            .flows
            .iter()
            .filter(|one| flows && one.slice == name);
        found.push(HopCounters {
            gateway: hop.gateway.clone(),
            at_ms: reported.at_ms,
            interval_ns: reported.report.interval_ns,
            forward: own.forward.clone(),
            backward: own.backward.clone(),
            flows: own_flows
                .next()
                .map(|one| one.flows.clone())
                .unwrap_or_default(),
        });
    }
    SliceCountersRecord {
        name: name.to_owned(),
        hops: found,
    }
}

/// The newest counters of a link and of its slices that the actor may see; `None` if there is no such link.
pub(crate) async fn link_counters(
    store: &Store,
    counters: &Counters,
    actor: &Actor,
    link: &str,
) -> Result<Option<LinkCountersRecord>, sqlx::Error> {
    let mut connection = store.pool().acquire().await?;
    let select = "SELECT gateway FROM links WHERE name = $1";
    let row = connection.row(select, values![link]).await?;
    let Some(row) = row else { return Ok(None) };
    let gateway = row.text("gateway")?;
    let names = visible(&mut connection, actor, link).await?;
    drop(connection);
    let mut record = LinkCountersRecord {
        name: link.to_owned(),
        gateway: gateway.clone(),
        at_ms: None,
        interval_ns: 0,
        forward: DirectionCounters::default(),
        backward: DirectionCounters::default(),
        slices: Vec::new(),
    };
    if let Some(reported) = read_counters(store, counters, &gateway).await? {
        let Reported {
            at_ms,
            report,
            slices,
        } = &*reported;
        record.at_ms = Some(*at_ms);
        record.interval_ns = report.interval_ns;
        if let Some(own) = report
            .links
            .iter()
            .find(|one: &&LinkCounters| one.name == link)
        {
            record.forward = own.forward.clone();
            record.backward = own.backward.clone();
        }
        let own = names
            .iter()
            .filter_map(|name| report.slices.get(*slices.get(name)?));
        record.slices = own.cloned().collect();
    }
    Ok(Some(record))
}

async fn visible(
    connection: &mut AnyConnection,
    actor: &Actor,
    link: &str,
) -> Result<Vec<String>, sqlx::Error> {
    let all = "SELECT slice FROM slice_hops WHERE link = $1 ORDER BY slice";
    let own = "SELECT h.slice AS slice FROM slice_hops h JOIN slices s ON s.name = h.slice \
               WHERE h.link = $1 AND s.tenant = $2 ORDER BY h.slice";
    let rows = match actor.tenant() {
        None => connection.rows(all, values![link]).await?,
        Some(tenant) => connection.rows(own, values![link, tenant]).await?,
    };
    rows.iter().map(|row| row.text("slice")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::HopDelays;
    use crate::store::testing::{plan, with_store};

    fn hop(gateway: &str) -> Hop {
        Hop {
            slice: "gold".to_owned(),
            link: "uplink".to_owned(),
            gateway: gateway.to_owned(),
            delays: HopDelays::default(),
            acknowledged: true,
            problem: None,
        }
    }

    /// Returns for each of 60 views, one a second, whether it writes, where `heard` reports each second.
    fn written(counters: &Counters, heard: &str, hops: &[Hop]) -> Vec<bool> {
        let views = (0..60).map(|second| {
            let now = Duration::from_secs(second);
            counters.keep(now, 0, heard, CounterReport::default());
            counters.want_flows("gold", hops, now)
        });
        views.collect()
    }

    #[test]
    fn a_view_of_flows_writes_nothing_where_the_gateway_reports_here() {
        let counters = Counters::default();
        assert_eq!(written(&counters, "gw", &[hop("gw")]), [false; 60]);
        let wanted = |gateway: &str, second| counters.wanted(gateway, Duration::from_secs(second));
        assert_eq!(wanted("gw", 59 + 14), ["gold"]);
        assert_eq!(wanted("gw", 59 + 15).len(), 0);
        assert_eq!(wanted("other", 59).len(), 0);
    }

    #[test]
    fn a_view_of_flows_is_written_a_few_times_where_the_gateway_reports_elsewhere() {
        let hops = [hop("near"), hop("far")];
        let written = written(&Counters::default(), "near", &hops);
        // Others know for 15 s: nobody looks in vain, and one of eight views writes.
        let at = (0..60).filter(|&second| written[second]);
        assert_eq!(at.collect::<Vec<_>>(), [0, 8, 16, 24, 32, 40, 48, 56]);
    }

    #[test]
    fn whose_flows_are_wanted_is_found_without_reading_the_slices_of_a_gateway() {
        with_store(async |store| {
            insta::assert_snapshot!(plan(store, FLOWS_WANTED).await, @r#"
SCAN f
SEARCH h EXISTS USING INDEX sqlite_autoindex_slice_hops_1 (slice=?)
USE TEMP B-TREE FOR ORDER BY
"#);
        });
    }
}
