//! The schema goes forward on its own: numbered files, each carried out once.

use super::{Location, StoreError};
use crate::slices::Recount;
use crate::sql::hexadecimal;
use crate::sql::{Dialect, RowExt, Sql, values};
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Executor};

/// One step of the schema.
struct Migration {
    version: i64,
    sqlite: &'static str,
    postgres: &'static str,
}

impl Migration {
    const fn same(version: i64, sql: &'static str) -> Self {
        let (sqlite, postgres) = (sql, sql);
        Self {
            version,
            sqlite,
            postgres,
        }
    }

    fn sql(&self, dialect: Dialect) -> String {
        match dialect {
            Dialect::Sqlite => self.sqlite.replace("TEXT_C", "TEXT"),
            // The order of a locale would be another in each store.
            Dialect::Postgres => self.postgres.replace("TEXT_C", "TEXT COLLATE \"C\""),
        }
    }
}

/// In order. A file that was released never changes: to alter the schema, add one.
const MIGRATIONS: [Migration; 9] = [
    Migration::same(1, include_str!("../../migrations/0001_first.sql")),
    Migration {
        version: 2,
        sqlite: include_str!("../../migrations/0002_audit_only_grows.sqlite.sql"),
        postgres: include_str!("../../migrations/0002_audit_only_grows.postgres.sql"),
    },
    Migration::same(3, include_str!("../../migrations/0003_rules.sql")),
    Migration::same(4, include_str!("../../migrations/0004_age.sql")),
    Migration::same(5, include_str!("../../migrations/0005_gateways.sql")),
    Migration::same(RECOUNTED, include_str!("../../migrations/0006_delays.sql")),
    Migration::same(
        IDENTIFIED,
        include_str!("../../migrations/0007_identity.sql"),
    ),
    Migration::same(8, include_str!("../../migrations/0008_ports.sql")),
    Migration::same(9, include_str!("../../migrations/0009_purge.sql")),
];

/// The version whose sums are counted anew.
const RECOUNTED: i64 = 6;

/// The version since which a store has an identity.
const IDENTIFIED: i64 = 7;

/// The version that this program writes.
pub(super) const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Only one process migrates at a time.
const ADVISORY_LOCK: &str = "SELECT pg_advisory_xact_lock(7235911530042)";

pub(super) async fn migrate(
    pool: &AnyPool,
    dialect: Dialect,
    location: &Location,
) -> Result<(), StoreError> {
    migrate_to(pool, dialect, location, NEWEST).await
}

async fn migrate_to(
    pool: &AnyPool,
    dialect: Dialect,
    location: &Location,
    target: i64,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::Statement {
        location: location.to_string(),
        source,
    };
    let begin = match dialect {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        Dialect::Postgres => "BEGIN",
    };
    let mut transaction = pool.begin_with(begin).await.map_err(failed)?;
    if dialect == Dialect::Postgres {
        transaction.execute(ADVISORY_LOCK).await.map_err(failed)?;
    }
    let found = version(&mut transaction).await.map_err(failed)?;
    if found > NEWEST {
        return Err(StoreError::Newer {
            location: location.to_string(),
            found,
            known: NEWEST,
        });
    }
    let due = MIGRATIONS
        .iter()
        .filter(|one| one.version > found && one.version <= target);
    for migration in due {
        let sql = AssertSqlSafe(migration.sql(dialect));
        transaction
            .execute(sqlx::raw_sql(sql))
            .await
            .map_err(failed)?;
        if migration.version == RECOUNTED {
            let counted = Recount::of(&mut transaction, true).await;
            let saved = counted.map_err(failed)?;
            saved.save(&mut transaction).await.map_err(failed)?;
        }
        if migration.version == IDENTIFIED {
            identify(&mut transaction).await.map_err(failed)?;
        }
        let update = "UPDATE schema_version SET version = $1";
        let set = transaction.change(update, values![migration.version]);
        set.await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Give the store its identity.
async fn identify(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| sqlx::Error::Io(error.into()))?;
    let identity = hexadecimal(&random);
    let update = "UPDATE state SET store = $1";
    connection.change(update, values![identity]).await.map(drop)
}

/// 0 for a store without anything.
async fn version(connection: &mut AnyConnection) -> Result<i64, sqlx::Error> {
    let table = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)";
    connection.execute(table).await?;
    let select = "SELECT version FROM schema_version";
    match connection.row(select, []).await? {
        Some(row) => row.integer("version"),
        None => {
            let insert = "INSERT INTO schema_version (version) VALUES (0)";
            connection.execute(insert).await?;
            Ok(0)
        }
    }
}
