//! Rules: what one slice leaves unused is lent to another. Reports of gateways decide; each decision is a generation of the
//! history and an event, both with the reason.

use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::slices::{Stored, apply};
use crate::sql::{EventNote, Failed, Row, RowExt, Sql, Tx, values};
use serde::{Deserialize, Serialize};
use slicewise_api::{
    Change, CounterReport, EventKind, Rule, RuleRecord, Scope, Slice, SliceState, check_name,
};
use slicewise_units::{BitRate, Way};
use sqlx::AnyConnection;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most rules.
const RULES_MAX: usize = 1_000;

/// Terms that a borrower had before, and terms while it borrows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Loan {
    maximum_bps: Option<u64>,
    weight: u32,
    lent_maximum_bps: Option<u64>,
    lent_weight: u32,
    /// When and why it was lent; not known of one that an earlier version lent.
    #[serde(default)]
    since_ms: Option<u64>,
    #[serde(default)]
    reason: Option<String>,
}

/// A rule of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRule {
    pub(crate) name: String,
    pub(crate) rule: Rule,
    gateway: String,
    loan: Option<Loan>,
}

impl StoredRule {
    fn of(row: &Row) -> Result<Self, sqlx::Error> {
        let has_loan = !row.text("loan")?.is_empty();
        Ok(Self {
            name: row.text("name")?,
            rule: row.json("body")?,
            gateway: row.text("gateway")?,
            loan: if has_loan {
                Some(row.json("loan")?)
            } else {
                None
            },
        })
    }

    async fn load(connection: &mut AnyConnection, name: &str) -> Result<Option<Self>, sqlx::Error> {
        let select = "SELECT * FROM rules WHERE name = $1";
        let row = connection.row(select, values![name]).await?;
        row.as_ref().map(Self::of).transpose()
    }

    fn record(self) -> RuleRecord {
        let (lent, loan) = (self.loan.is_some(), self.loan.unwrap_or_default());
        RuleRecord {
            lent,
            lent_since_ms: loan.since_ms,
            reason: loan.reason,
            name: self.name,
            rule: self.rule,
            gateway: self.gateway,
        }
    }

    /// Who changes slices for it.
    fn actor(&self) -> Actor {
        Actor {
            name: format!("rule {}", self.name),
            scope: Scope::Operator,
        }
    }
}

/// Every rule.
pub(crate) async fn list(connection: &mut AnyConnection) -> Result<Vec<RuleRecord>, sqlx::Error> {
    let select = "SELECT * FROM rules ORDER BY name";
    let rows = connection.rows(select, []).await?;
    rows.iter()
        .map(|row| StoredRule::of(row).map(StoredRule::record))
        .collect()
}

/// One rule.
pub(crate) async fn get(
    connection: &mut AnyConnection,
    name: &str,
) -> Result<Option<RuleRecord>, sqlx::Error> {
    Ok(StoredRule::load(connection, name)
        .await?
        .map(StoredRule::record))
}

/// Add or change a rule; what the one of this name has lent is taken back first. Whether it is new, and how it is now.
pub(crate) async fn put(tx: &mut Tx, name: &str, rule: Rule) -> Result<(bool, RuleRecord), Failed> {
    check_name(name, "").map_err(Refusal::invalid)?;
    rule.check().map_err(Refusal::invalid)?;
    let gateway = common_gateway(tx, &rule).await?;
    let rules = list(tx.connection()).await?;
    let mut others = rules.iter().filter(|other| other.name != name);
    if let Some(other) =
        others.find(|other| other.rule.to == rule.to && other.rule.direction == rule.direction)
    {
        let detail = format!(
            "slice `{}` borrows by rule `{}` already: a slice borrows by one rule in each direction",
            rule.to, other.name
        );
        return Err(Refusal::conflict(detail).into());
    }
    let is_new = !remove(tx, name, "the rule is changed").await?;
    if is_new && rules.len() >= RULES_MAX {
        let detail = format!("there are {RULES_MAX} rules: remove one that is not needed");
        return Err(Refusal::conflict(detail).into());
    }
    let insert = "INSERT INTO rules (name, gateway, body, loan) VALUES ($1, $2, $3, '')";
    let body = serde_json::to_string(&rule).map_err(Failed::encoding)?;
    tx.change(insert, values![name, gateway, body]).await?;
    let record = RuleRecord {
        name: name.to_owned(),
        rule,
        gateway,
        lent: false,
        lent_since_ms: None,
        reason: None,
    };
    Ok((is_new, record))
}

/// The gateway of the first link that both slices pass.
///
/// # Errors
/// If the rule can have no effect, with the reason.
async fn common_gateway(tx: &mut Tx, rule: &Rule) -> Result<String, Failed> {
    let [from, to] = [&rule.from, &rule.to];
    let lender = known(tx, from).await?;
    let borrower = known(tx, to).await?;
    let lends = lender
        .terms(rule.direction)
        .is_some_and(|terms| terms.guarantee.is_some());
    if !lends {
        let detail = format!(
            "slice `{from}` has no guarantee {}: there is nothing to lend",
            rule.direction
        );
        return Err(Refusal::conflict(detail).into());
    }
    if borrower.terms(rule.direction).is_none() {
        let detail = format!("slice `{to}` does not exist {}", rule.direction);
        return Err(Refusal::conflict(detail).into());
    }
    let Some(link) = lender.path.iter().find(|link| borrower.path.contains(link)) else {
        let detail = format!("slices `{from}` and `{to}` have no link in common");
        return Err(Refusal::conflict(detail).into());
    };
    let select = "SELECT gateway FROM links WHERE name = $1";
    Ok(tx.one_row(select, values![link]).await?.text("gateway")?)
}

async fn known(tx: &mut Tx, name: &str) -> Result<Slice, Failed> {
    let found = in_use(tx, name).await?;
    found.ok_or_else(|| Refusal::conflict(format!("there is no slice `{name}`")).into())
}

/// The slice of this name, if it is not draining or gone.
async fn in_use(tx: &mut Tx, name: &str) -> Result<Option<Slice>, Failed> {
    let found = Stored::load(tx.connection(), name).await?;
    let found = found.filter(|stored| stored.state != SliceState::Draining);
    Ok(found.map(|stored| stored.slice))
}

/// Remove a rule; what it has lent is taken back. Whether there was one.
pub(crate) async fn remove(tx: &mut Tx, name: &str, why: &str) -> Result<bool, Failed> {
    let Some(rule) = StoredRule::load(tx.connection(), name).await? else {
        return Ok(false);
    };
    if rule.loan.is_some() {
        take_back(tx, &rule, why).await?;
    }
    let delete = "DELETE FROM rules WHERE name = $1";
    tx.change(delete, values![name]).await?;
    Ok(true)
}

/// Ends the rules of slices that are removed: another slice may get the name, and is none that the rule was made for.
pub(crate) async fn end_with(tx: &mut Tx, removed: &[String]) -> Result<(), Failed> {
    if removed.is_empty() {
        return Ok(());
    }
    for row in tx.rows("SELECT * FROM rules ORDER BY name", []).await? {
        let stored = StoredRule::of(&row)?;
        let [from, to] = [&stored.rule.from, &stored.rule.to].map(String::as_str);
        let Some(gone) = [to, from]
            .into_iter()
            .find(|&name| removed.iter().any(|removed| removed == name))
        else {
            continue;
        };
        let reason = format!("slice `{gone}` is removed");
        remove(tx, &stored.name, &reason).await?;
        let slice = Stored::load(tx.connection(), gone).await?;
        let note = EventNote {
            slice: gone.to_owned(),
            tenant: slice.map(|slice| slice.slice.tenant).unwrap_or_default(),
            gateway: stored.gateway.clone(),
            generation: Some(tx.generation()),
            actor: stored.actor().name,
            reason: format!("rule `{}` ends: {reason}", stored.name),
        };
        tx.note(EventKind::Decision, note);
    }
    Ok(())
}

/// Since when lenders leave enough unused. In memory: after a start, the time of each rule begins anew.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    since: Mutex<HashMap<String, Instant>>,
}

/// Decision on a rule after a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    rule: String,
    lends: bool,
    reason: String,
}

impl Idle {
    /// Returns the decisions after a report of `gateway`: rules of it whose loan begins or ends.
    pub(crate) async fn decide(
        &self,
        connection: &mut AnyConnection,
        gateway: &str,
        report: &CounterReport,
    ) -> Result<Vec<Decision>, sqlx::Error> {
        let select = "SELECT * FROM rules WHERE gateway = $1 ORDER BY name";
        let rows = connection.rows(select, values![gateway]).await?;
        let mut decisions = Vec::new();
        for row in &rows {
            let rule = StoredRule::of(row)?;
            let lender = Stored::load(&mut *connection, &rule.rule.from).await?;
            let lender = lender.map(|stored| stored.slice);
            decisions.extend(self.judge(&rule, lender.as_ref(), report, Instant::now()));
        }
        Ok(decisions)
    }

    fn judge(
        &self,
        stored: &StoredRule,
        lender: Option<&Slice>,
        report: &CounterReport,
        now: Instant,
    ) -> Option<Decision> {
        let rule = &stored.rule;
        let guarantee = |lender: &Slice| lender.terms(rule.direction)?.guarantee;
        let lends = lender.and_then(guarantee).is_some();
        let use_of = lender.and_then(|lender| Use::of(lender, rule.direction, report));
        let leaves = use_of.as_ref().map(|used| used.leaves(rule.unused_bps));
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if leaves != Some(true) {
            since.remove(&stored.name);
        }
        let decision = |lends, reason| Decision {
            rule: stored.name.clone(),
            lends,
            reason,
        };
        let (from, unused) = (&rule.from, BitRate::new(rule.unused_bps));
        match (&stored.loan, use_of) {
            (Some(_), None) if !lends => {
                let why = lender.map_or("is gone", |_| "has no guarantee any more");
                Some(decision(false, format!("slice `{from}` {why}")))
            }
            (Some(_), Some(used)) if leaves == Some(false) => Some(decision(
                false,
                format!("slice `{from}` uses its guarantee again: {used}"),
            )),
            (None, Some(used)) if leaves == Some(true) => {
                let begin = *since.entry(stored.name.clone()).or_insert(now);
                let wait = Duration::from_millis(rule.for_ms);
                if now.saturating_duration_since(begin) < wait {
                    return None;
                }
                let reason = match rule.for_ms {
                    0 => format!("slice `{from}` leaves {unused} of its guarantee unused: {used}"),
                    millis => {
                        let time =
                            slicewise_units::Duration::from_nanos(millis.saturating_mul(1_000_000));
                        format!(
                            "slice `{from}` has left {unused} of its guarantee unused for {time}: {used}"
                        )
                    }
                };
                Some(decision(true, reason))
            }
            _ => None,
        }
    }
}

/// How much of its guarantee a slice uses.
struct Use {
    sent_bps: u64,
    guarantee_bps: u64,
    drops: bool,
}

impl Use {
    /// By the report of its gateway, which leaves out what has no traffic; `None` without a guarantee.
    fn of(slice: &Slice, way: Way, report: &CounterReport) -> Option<Self> {
        let guarantee = slice.terms(way)?.guarantee?;
        let counted = report.slices.iter().find(|one| one.name == slice.name);
        let counted = counted.and_then(|counted| counted.ways()[way].clone());
        let counted = counted.unwrap_or_default();
        let bits = u128::from(counted.sent_bytes) * 8 * 1_000_000_000;
        let sent = bits.checked_div(u128::from(report.interval_ns))?;
        Some(Self {
            sent_bps: u64::try_from(sent).unwrap_or(u64::MAX),
            guarantee_bps: guarantee.rate_bps,
            drops: counted.dropped.values().any(|&frames| frames > 0),
        })
    }

    /// Returns true if so much is left. A slice that loses frames needs all that it has.
    const fn leaves(&self, unused_bps: u64) -> bool {
        !self.drops && self.sent_bps.saturating_add(unused_bps) <= self.guarantee_bps
    }
}

impl std::fmt::Display for Use {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [sent, guarantee] = [self.sent_bps, self.guarantee_bps].map(BitRate::new);
        write!(f, "{sent} of {guarantee} sent")?;
        if self.drops {
            f.write_str(", frames dropped")?;
        }
        Ok(())
    }
}

/// Carry out a decision, unless the rule has changed since.
pub(crate) async fn carry_out(tx: &mut Tx, decision: &Decision) -> Result<(), Failed> {
    let Some(rule) = StoredRule::load(tx.connection(), &decision.rule).await? else {
        return Ok(());
    };
    match (decision.lends, rule.loan.is_some()) {
        (true, false) => lend(tx, &rule, &decision.reason).await,
        (false, true) => take_back(tx, &rule, &decision.reason).await,
        _ => Ok(()),
    }
}

async fn lend(tx: &mut Tx, stored: &StoredRule, reason: &str) -> Result<(), Failed> {
    let rule = &stored.rule;
    let Some(mut slice) = in_use(tx, &rule.to).await? else {
        return Ok(());
    };
    let Some(terms) = slice.way_mut(rule.direction) else {
        return Ok(());
    };
    let before = (terms.maximum.map(|maximum| maximum.rate_bps), terms.weight);
    if let Some(maximum) = &mut terms.maximum {
        let most = BitRate::MAX.bits_per_second();
        maximum.rate_bps = maximum.rate_bps.saturating_add(rule.unused_bps).min(most);
    }
    terms.weight = rule.weight.unwrap_or(terms.weight);
    let loan = Loan {
        maximum_bps: before.0,
        weight: before.1,
        lent_maximum_bps: terms.maximum.map(|maximum| maximum.rate_bps),
        lent_weight: terms.weight,
        since_ms: Some(tx.now_ms),
        reason: Some(reason.to_owned()),
    };
    change(tx, stored, slice, &format!("lent to `{}`", rule.to), reason).await?;
    let loan = serde_json::to_string(&loan).map_err(Failed::encoding)?;
    set_loan(tx, &stored.name, loan).await
}

async fn take_back(tx: &mut Tx, stored: &StoredRule, reason: &str) -> Result<(), Failed> {
    let (rule, Some(loan)) = (&stored.rule, &stored.loan) else {
        return Ok(());
    };
    set_loan(tx, &stored.name, String::new()).await?;
    let Some(mut slice) = in_use(tx, &rule.to).await? else {
        return Ok(());
    };
    let Some(terms) = slice.way_mut(rule.direction) else {
        return Ok(());
    };
    // What somebody has changed meanwhile stays as it is.
    let now = terms.maximum.map(|maximum| maximum.rate_bps);
    if let (Some(maximum), Some(before)) = (&mut terms.maximum, loan.maximum_bps)
        && now == loan.lent_maximum_bps
    {
        maximum.rate_bps = before;
    }
    if terms.weight == loan.lent_weight {
        terms.weight = loan.weight;
    }
    let what = format!("taken back from `{}`", rule.to);
    change(tx, stored, slice, &what, reason).await
}

async fn change(
    tx: &mut Tx,
    stored: &StoredRule,
    slice: Slice,
    what: &str,
    reason: &str,
) -> Result<(), Failed> {
    let (name, tenant) = (slice.name.clone(), slice.tenant.clone());
    let actor = stored.actor();
    let whole = format!("{what}: {reason}");
    let applied = apply(tx, &actor, vec![Change::Put(slice)], Some(&whole), None).await?;
    // The tenant that borrows reads the event: what another tenant sends is not for it. The history has the whole reason.
    let lender = Stored::load(tx.connection(), &stored.rule.from).await?;
    let is_own = lender.is_some_and(|lender| lender.slice.tenant == tenant);
    let note = EventNote {
        slice: name,
        tenant,
        gateway: stored.gateway.clone(),
        generation: Some(applied.generation),
        actor: actor.name,
        reason: if is_own { whole } else { what.to_owned() },
    };
    tx.note(EventKind::Decision, note);
    Ok(())
}

async fn set_loan(tx: &mut Tx, name: &str, loan: String) -> Result<(), Failed> {
    let update = "UPDATE rules SET loan = $1 WHERE name = $2";
    tx.change(update, values![loan, name]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_api::{DirectionCounters, Guarantee, SliceCounters, Terms};

    fn rule(loan: Option<Loan>) -> StoredRule {
        StoredRule {
            name: "night".to_owned(),
            rule: Rule {
                from: "a".to_owned(),
                to: "b".to_owned(),
                direction: Way::Forward,
                unused_bps: 4_000_000,
                for_ms: 5_000,
                weight: None,
            },
            gateway: "edge".to_owned(),
            loan,
        }
    }

    fn lender() -> Slice {
        let guarantee = Guarantee {
            rate_bps: 10_000_000,
            burst_bytes: 3_000,
            ..Guarantee::default()
        };
        Slice {
            name: "a".to_owned(),
            tenant: "default".to_owned(),
            path: vec!["uplink".to_owned()],
            forward: Some(Terms {
                guarantee: Some(guarantee),
                ..Terms::default()
            }),
            ..Slice::default()
        }
    }

    fn report(sent_bps: u64, dropped: u64) -> CounterReport {
        let forward = DirectionCounters {
            sent_bytes: sent_bps / 8,
            dropped: [("queue_full".to_owned(), dropped)].into(),
            ..DirectionCounters::default()
        };
        CounterReport {
            interval_ns: 1_000_000_000,
            slices: vec![SliceCounters {
                name: "a".to_owned(),
                forward: Some(forward),
                backward: None,
            }],
            ..CounterReport::default()
        }
    }

    #[test]
    fn it_is_lent_after_the_time_and_the_time_begins_anew_with_each_use() {
        let (idle, start, slice) = (Idle::default(), Instant::now(), lender());
        let judge = |seconds, sent, dropped| {
            let now = start + Duration::from_secs(seconds);
            idle.judge(&rule(None), Some(&slice), &report(sent, dropped), now)
        };
        assert_eq!(judge(0, 6_000_000, 0), None);
        assert_eq!(judge(4, 6_000_008, 0), None, "less than asked for is left");
        assert_eq!(judge(5, 0, 0), None, "it begins anew");
        assert_eq!(judge(9, 0, 1), None, "who loses frames needs what it has");
        assert_eq!(judge(10, 0, 0), None);
        let decision = judge(15, 1_000_000, 0).unwrap();
        assert!(decision.lends);
        insta::assert_snapshot!(decision.reason, @"slice `a` has left 4 Mbit/s of its guarantee unused for 5 s: 1 Mbit/s of 10 Mbit/s sent");
    }

    #[test]
    fn it_is_taken_back_with_the_first_report_of_a_use_and_not_without_a_report() {
        let loan = Loan {
            maximum_bps: None,
            weight: 1,
            lent_weight: 4,
            ..Loan::default()
        };
        let (idle, slice) = (Idle::default(), lender());
        let judge = |slice: Option<&Slice>, report: &CounterReport| {
            idle.judge(&rule(Some(loan.clone())), slice, report, Instant::now())
        };
        assert_eq!(judge(Some(&slice), &report(0, 0)), None);
        assert_eq!(judge(Some(&slice), &CounterReport::default()), None);
        let back = judge(Some(&slice), &report(7_000_000, 0)).unwrap();
        assert!(!back.lends);
        insta::assert_snapshot!(back.reason, @"slice `a` uses its guarantee again: 7 Mbit/s of 10 Mbit/s sent");
        let gone = judge(None, &CounterReport::default()).unwrap();
        insta::assert_snapshot!(gone.reason, @"slice `a` is gone");
    }
}
