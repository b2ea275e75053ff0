//! Tenants, tokens, and the audit log.

use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::slices::{Hop, Stored, TenantState, gateway_slice};
use crate::sql::{EventNote, Failed, Row, RowExt, Sql, Tx, cut, hexadecimal, values};
use sha2::{Digest, Sha256};
use slicewise_api::{
    AuditEntry, AuditPage, EventKind, Invalid, NewToken, Scope, Tenant, TenantRecord, TokenCreated,
    TokenRecord, check_name,
};
use sqlx::AnyConnection;

/// Entries of one part of the audit log.
const AUDIT_PAGE: u32 = 500;
/// Prefix of every token, so that one that leaked is recognized.
const TOKEN_PREFIX: &str = "slicewise_";
/// Random bytes of a token: 256 bits.
const TOKEN_BYTES: usize = 32;

fn tenant_record(state: TenantState) -> TenantRecord {
    TenantRecord {
        name: state.name,
        weight: state.weight,
        most_slices: state.most_slices,
        most_rate_bps: state.most_rate_bps,
        slices: state.slices,
        rate_bps: state.rate_bps,
    }
}

/// The tenants that the actor may see.
pub(crate) async fn tenants(
    connection: &mut AnyConnection,
    actor: &Actor,
) -> Result<Vec<TenantRecord>, sqlx::Error> {
    let select = "SELECT * FROM tenants ORDER BY name";
    let rows = connection.rows(select, []).await?;
    let states: Vec<TenantState> = rows.iter().map(TenantState::of).collect::<Result<_, _>>()?;
    let seen = states.into_iter();
    let seen = seen.filter(|state| actor.tenant().is_none_or(|own| own == state.name));
    Ok(seen.map(tenant_record).collect())
}

/// One tenant, if the actor may see it.
pub(crate) async fn tenant(
    connection: &mut AnyConnection,
    actor: &Actor,
    name: &str,
) -> Result<Option<TenantRecord>, sqlx::Error> {
    if actor.tenant().is_some_and(|own| own != name) {
        return Ok(None);
    }
    let state = TenantState::load(connection, name).await?;
    Ok(state.map(tenant_record))
}

/// Add or change a tenant; another weight is a generation for the gateways of its slices. Whether it was added, and how it is
/// now.
pub(crate) async fn put_tenant(
    tx: &mut Tx,
    actor: &str,
    name: &str,
    tenant: &Tenant,
) -> Result<(bool, TenantRecord), Failed> {
    check_name(name, "").map_err(Refusal::invalid)?;
    tenant.check().map_err(Refusal::invalid)?;
    let before = TenantState::load(tx.connection(), name).await?;
    let insert = "INSERT INTO tenants (name, weight, most_slices, most_rate_bps, slices, rate_bps) VALUES ($1, $2, $3, $4, 0, 0) \
                  ON CONFLICT (name) DO UPDATE SET weight = excluded.weight, most_slices = excluded.most_slices, \
                  most_rate_bps = excluded.most_rate_bps";
    tx.change(
        insert,
        values![
            name,
            tenant.weight,
            tenant.most_slices,
            tenant.most_rate_bps
        ],
    )
    .await?;
    let after = TenantState::load(tx.connection(), name).await?;
    let after = after.ok_or(sqlx::Error::RowNotFound)?;
    let weight_before = before.as_ref().map_or(after.weight, |before| before.weight);
    if weight_before != after.weight {
        let reason = format!("tenant `{name}`: weight {weight_before} → {}", after.weight);
        reweigh(tx, actor, &after, &reason).await?;
    }
    Ok((before.is_none(), tenant_record(after)))
}

/// Let the gateways of a tenant's slices know its weight. The slices themselves stay as they are.
async fn reweigh(
    tx: &mut Tx,
    actor: &str,
    tenant: &TenantState,
    reason: &str,
) -> Result<(), Failed> {
    let select = "SELECT s.*, h.link AS hop_link, h.gateway AS hop_gateway, \
                  h.delay_forward_ns, h.delay_backward_ns FROM slices s JOIN slice_hops h ON h.slice = s.name \
                  WHERE s.tenant = $1 AND s.state <> 'draining' ORDER BY s.name, h.hop";
    let rows = tx.rows(select, values![tenant.name]).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let generation = tx.next_generation(actor, Some(reason)).await?;
    for (position, row) in (0i64..).zip(&rows) {
        let stored = Stored::of(row)?;
        let body = gateway_slice(
            &stored.slice,
            &row.text("hop_link")?,
            Hop::delays(row)?,
            stored.generation,
            tenant.weight,
        );
        let insert = "INSERT INTO gateway_changes (gateway, generation, position, slice, body) VALUES ($1, $2, $3, $4, $5)";
        tx.change(
            insert,
            values![
                row.text("hop_gateway")?,
                generation,
                position,
                stored.slice.name,
                serde_json::to_string(&body).map_err(Failed::encoding)?
            ],
        )
        .await?;
    }
    let note = EventNote {
        tenant: tenant.name.clone(),
        generation: Some(generation),
        actor: actor.to_owned(),
        reason: reason.to_owned(),
        ..EventNote::default()
    };
    tx.note(EventKind::Decision, note);
    Ok(())
}

/// Remove a tenant without slices.
pub(crate) async fn remove_tenant(tx: &mut Tx, name: &str) -> Result<(), Failed> {
    let Some(state) = TenantState::load(tx.connection(), name).await? else {
        return Err(Refusal::not_found("tenant", name).into());
    };
    if state.slices > 0 {
        let detail = format!(
            "tenant `{name}` still has slices ({}): remove them first",
            state.slices
        );
        return Err(Refusal::conflict(detail).into());
    }
    let scope = Scope::Tenant(name.to_owned()).to_string();
    let select = "SELECT name FROM tokens WHERE scope = $1 LIMIT 1";
    if let Some(row) = tx.row(select, values![scope]).await? {
        let detail = format!(
            "token `{}` is for tenant `{name}`: revoke it first",
            row.text("name")?
        );
        return Err(Refusal::conflict(detail).into());
    }
    let delete = "DELETE FROM tenants WHERE name = $1";
    tx.change(delete, values![name]).await?;
    Ok(())
}

/// Every token, without its secret.
pub(crate) async fn tokens(
    connection: &mut AnyConnection,
) -> Result<Vec<TokenRecord>, sqlx::Error> {
    let select = "SELECT name, scope, created_at_ms, created_by FROM tokens ORDER BY name";
    let rows = connection.rows(select, []).await?;
    let record = |row: &Row| {
        Ok(TokenRecord {
            name: row.text("name")?,
            scope: scope(row)?,
            created_at_ms: row.natural("created_at_ms")?,
            created_by: row.text("created_by")?,
        })
    };
    rows.iter().map(record).collect()
}

fn scope(row: &Row) -> Result<Scope, sqlx::Error> {
    let scope = row.text("scope")?.parse();
    scope.map_err(|invalid: Invalid| sqlx::Error::Decode(Box::new(invalid)))
}

/// Make a token.
pub(crate) async fn add_token(
    tx: &mut Tx,
    actor: &str,
    new: &NewToken,
) -> Result<TokenCreated, Failed> {
    check_name(&new.name, "/name").map_err(Refusal::invalid)?;
    if let Scope::Tenant(tenant) = &new.scope
        && TenantState::load(tx.connection(), tenant).await?.is_none()
    {
        let detail = format!("there is no tenant `{tenant}`: add it first");
        return Err(Refusal::conflict(detail).into());
    }
    let select = "SELECT name FROM tokens WHERE name = $1";
    let found = tx.row(select, values![new.name]).await?;
    if found.is_some() {
        let detail = format!(
            "there is a token `{}` already: choose another name, or revoke it first",
            new.name
        );
        return Err(Refusal::conflict(detail).into());
    }
    let mut random = [0; TOKEN_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| sqlx::Error::Io(std::io::Error::other(error.to_string())))?;
    let token = format!("{TOKEN_PREFIX}{}", hexadecimal(&random));
    let insert = "INSERT INTO tokens (name, hash, scope, created_at_ms, created_by) VALUES ($1, $2, $3, $4, $5)";
    tx.change(
        insert,
        values![
            new.name,
            hash(token.as_bytes()),
            new.scope.to_string(),
            tx.now_ms,
            actor
        ],
    )
    .await?;
    Ok(TokenCreated {
        name: new.name.clone(),
        scope: new.scope.clone(),
        token,
    })
}

/// Revoke a token.
pub(crate) async fn remove_token(tx: &mut Tx, name: &str) -> Result<(), Failed> {
    let delete = "DELETE FROM tokens WHERE name = $1";
    match tx.change(delete, values![name]).await? {
        0 => Err(Refusal::not_found("token", name).into()),
        _ => Ok(()),
    }
}

/// Who has this token.
pub(crate) async fn holder(
    connection: &mut AnyConnection,
    token: &str,
) -> Result<Option<Actor>, sqlx::Error> {
    // The hash is looked up, so the time that takes says nothing about tokens.
    let select = "SELECT name, scope FROM tokens WHERE hash = $1";
    let row = connection
        .row(select, values![hash(token.as_bytes())])
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Actor {
        name: row.text("name")?,
        scope: scope(&row)?,
    }))
}

/// Returns true if there is any token.
pub(crate) async fn has_tokens(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    let select = "SELECT name FROM tokens LIMIT 1";
    Ok(connection.row(select, []).await?.is_some())
}

/// The audit log after number `after`.
pub(crate) async fn audit(
    connection: &mut AnyConnection,
    after: u64,
) -> Result<AuditPage, sqlx::Error> {
    let select = "SELECT * FROM audit WHERE number > $1 ORDER BY number LIMIT $2";
    let values = values![after, AUDIT_PAGE + 1];
    let mut rows = connection.rows(select, values).await?;
    let entry = |row: &Row| {
        Ok::<_, sqlx::Error>(AuditEntry {
            number: row.natural("number")?,
            at_ms: row.natural("at_ms")?,
            by: row.text("actor")?,
            request: row.text("request")?,
            status: u16::try_from(row.natural("status")?).unwrap_or(0),
            detail: row.maybe_text("detail")?,
        })
    };
    let has_more = cut(&mut rows, AUDIT_PAGE);
    let items: Vec<AuditEntry> = rows.iter().map(entry).collect::<Result<_, _>>()?;
    let last = items.last().filter(|_| has_more);
    let next = last.map(|last| last.number);
    Ok(AuditPage { items, next })
}

/// SHA-256, in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}
