//! Which process of a name is the gateway, and which store it follows.

use crate::log;
use crate::refusal::Refusal;
use crate::sql::{EventNote, Failed, Row, RowExt, Sql, Tx, values};
use slicewise_api::{EventKind, OTHER_STORE, Problem};
use sqlx::AnyConnection;

/// The process that a request comes from, as far as it says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Its identifier. A request without one is of no process that has one.
    pub(crate) id: Option<String>,
    /// Identity of the store that it follows; `None` if it follows none yet, or is of an earlier version.
    pub(crate) follows: Option<String>,
}

/// Kind of the refusal of a second process.
const KIND: &str = "gateway-taken";
/// Stands for the identifier of a process that states none.
const UNNAMED: &str = "-";

impl Instance {
    fn is_other(&self, known: &Row) -> Result<bool, sqlx::Error> {
        let known = known.maybe_text("instance")?;
        Ok(known.is_some() && known != self.id)
    }

    /// Refuses what another process of this name, or one that follows another store than `store`, asks and says.
    pub(super) fn check(&self, gateway: &str, known: &Row, store: &str) -> Result<(), Failed> {
        if self.is_other(known)? {
            return Err(taken(gateway).into());
        }
        match self.follows_other(store) {
            Some(other) => Err(other_store(gateway, other, store).into()),
            None => Ok(()),
        }
    }

    fn follows_other(&self, store: &str) -> Option<&str> {
        self.follows.as_deref().filter(|follows| *follows != store)
    }

    /// Refuses a gateway that has seen a generation of its store which this store does not have: it would undo what came after.
    pub(super) async fn check_history(
        &self,
        connection: &mut AnyConnection,
        gateway: &str,
        reached: u64,
    ) -> Result<(), Failed> {
        if self.follows.is_none() || reached == 0 {
            return Ok(());
        }
        let select = "SELECT generation FROM generations WHERE generation = $1";
        match connection.row(select, values![reached]).await? {
            Some(_) => Ok(()),
            None => Err(older_store(gateway, reached).into()),
        }
    }

    /// Refuses a second gateway of a name while the first is connected, and one that follows another store or has seen more of this one, unless an
    /// operator [adopted](adopt) it. Returns whether it follows this store for the first time because of that.
    pub(super) async fn may_announce(
        &self,
        tx: &mut Tx,
        gateway: &str,
        known: Option<&Row>,
        reached: u64,
    ) -> Result<bool, Failed> {
        let mut is_adopted = false;
        if let Some(known) = known {
            if self.is_other(known)? && known.integer("connected")? != 0 {
                return Err(taken(gateway).into());
            }
            is_adopted = known.integer("adopted")? != 0;
        }
        let refusal = match self.follows_other(&tx.store) {
            Some(other) => Err(other_store(gateway, other, &tx.store).into()),
            None => self.check_history(tx.connection(), gateway, reached).await,
        };
        match refusal {
            Err(Failed::Refused(_)) if is_adopted => Ok(true),
            Err(failed) => Err(failed),
            Ok(()) => Ok(false),
        }
    }

    /// Note why this process was refused, if that is because of another process or of the store, and not of its links. Whether it was.
    pub(super) async fn note_refused(
        &self,
        tx: &mut Tx,
        gateway: &str,
        problem: &Problem,
    ) -> Result<bool, Failed> {
        if problem.kind.ends_with(KIND) {
            let own = self.id.clone().unwrap_or_else(|| UNNAMED.to_owned());
            let update = "UPDATE gateways SET rival = $1 WHERE name = $2 AND rival <> $1";
            if tx.change(update, values![own, gateway]).await? > 0 {
                note_refusal(tx, gateway, problem);
            }
            return Ok(true);
        }
        if problem.kind.ends_with(OTHER_STORE) {
            // A store that does not know it shows it all the same.
            let insert = "INSERT INTO gateways (name, acknowledged, seen_at_ms, connected, since, problem) VALUES ($1, 0, $2, 0, $3, $4) \
                          ON CONFLICT (name) DO UPDATE SET problem = excluded.problem WHERE gateways.problem <> excluded.problem";
            let values = values![gateway, tx.now_ms, tx.generation(), problem.detail];
            if tx.change(insert, values).await? > 0 {
                note_refusal(tx, gateway, problem);
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// Note why an announcement was refused, as an event and in the log.
pub(super) fn note_refusal(tx: &mut Tx, gateway: &str, problem: &Problem) {
    let reason = &problem.detail;
    log::warn(
        "gateway_refused",
        &[("gateway", &gateway), ("reason", reason)],
    );
    let note = EventNote {
        reason: reason.clone(),
        ..EventNote::of_gateway(gateway)
    };
    tx.note(EventKind::AnnouncementRefused, note);
}

/// Let a gateway follow this store from its next announcement on, whatever it followed before. What this store does not have is then
/// removed from the gateway.
///
/// # Errors
/// If this store has never heard of the gateway.
pub(crate) async fn adopt(tx: &mut Tx, gateway: &str, actor: &str) -> Result<(), Failed> {
    let update = "UPDATE gateways SET adopted = 1 WHERE name = $1";
    if tx.change(update, values![gateway]).await? == 0 {
        let detail = format!(
            "there is no gateway `{gateway}` in this store: expected the name of one that announced itself here, even if it was refused"
        );
        return Err(Refusal::new(404, "not-found", "There is no such resource", detail).into());
    }
    let note = EventNote {
        actor: actor.to_owned(),
        reason: "the gateway is to follow this store, whatever it followed before".to_owned(),
        ..EventNote::of_gateway(gateway)
    };
    tx.note(EventKind::Decision, note);
    Ok(())
}

fn taken(gateway: &str) -> Refusal {
    let detail = format!(
        "another gateway of the name `{gateway}` is connected: give each gateway a name of its own; one that has lost its state file, or \
         replaces the other, is taken 10 s after the other was heard of last"
    );
    Refusal::new(409, KIND, "Another gateway has this name", detail)
}

fn other_store(gateway: &str, follows: &str, store: &str) -> Refusal {
    let detail = format!(
        "gateway `{gateway}` follows store {follows}, and this controller has store {store}: start the controller with the store that the \
         gateway follows (`--store`); only if this store replaces that one, `slicewise controller adopt {gateway}`, which removes from the \
         gateway every slice that this store does not have"
    );
    Refusal::new(
        409,
        OTHER_STORE,
        "The gateway follows another store",
        detail,
    )
}

fn older_store(gateway: &str, reached: u64) -> Refusal {
    let detail = format!(
        "gateway `{gateway}` has seen generation {reached}, which this store does not have: it is an older copy, or a restored backup. Start \
         the controller with the newer store; only if what came after is to be undone, `slicewise controller adopt {gateway}`"
    );
    Refusal::new(
        409,
        OTHER_STORE,
        "The gateway has seen more than this store has",
        detail,
    )
}

/// Refuses unless the gateway has announced itself, is the process that asks, and follows this store.
pub(crate) async fn require(tx: &mut Tx, gateway: &str, instance: &Instance) -> Result<(), Failed> {
    let select = "SELECT instance FROM gateways WHERE name = $1";
    let known = tx.row(select, values![gateway]).await?;
    let known = known.ok_or_else(|| Refusal::not_found("gateway", gateway))?;
    instance.check(gateway, &known, &tx.store)
}
