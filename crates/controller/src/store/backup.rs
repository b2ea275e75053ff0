//! Backup and restore: a file of JSON lines that does not depend on the kind of store.

use super::migrate::NEWEST;
use super::{Store, StoreError};
use crate::administration::has_tokens;
use crate::slices::Recount;
use crate::sql::{Numbers, Row, RowExt, Sql, ToValue as _, Tx, hexadecimal, values};
use futures_util::TryStreamExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::{AnyConnection, AssertSqlSafe, Column, Row as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Format, named in the first line.
const FORMAT: &str = "slicewise controller backup";
/// Tables in the order in which they are written; `counters` and `flow_interests` are of the moment only.
const TABLES: [&str; 15] = [
    "state",
    "gateways",
    "links",
    "class_sums",
    "tenants",
    "slices",
    "slice_hops",
    "slice_matches",
    "generations",
    "changes",
    "gateway_changes",
    "events",
    "tokens",
    "rules",
    "audit",
];
/// Gateways may be further than the backup: numbers that they know must not mean something else.
const GENERATIONS_SKIPPED: u64 = 1 << 32;
/// The longest line: a slice has at most 64 matches, an event a reason.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// Removes the rows of a store that was never used, before restoring.
const OF_NEW_STORES: [&str; 2] = ["DELETE FROM state", "DELETE FROM tenants"];

/// Why a backup was not written or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file cannot be used.
    #[error("{file}: {source}")]
    File {
        /// The file.
        file: String,
        /// Why not.
        source: io::Error,
    },
    /// The file is no backup, or is damaged.
    #[error("{file}, line {line}: {problem}")]
    Content {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// Description of the problem.
        problem: String,
    },
    /// The store has something in it.
    #[error(
        "the store {0} is not empty: restore into a new one (`--store sqlite:PATH` of a file that does not exist); nothing was changed"
    )]
    NotEmpty(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Rows of the backup.
    pub rows: u64,
    /// Findings on the store that was backed up, in words; see [`check`](super::check()). Sums are right now.
    pub findings: Vec<String>,
}

/// Write everything the store has into `file`, which must not exist. Other processes may use the store meanwhile.
///
/// # Errors
/// If the file exists or cannot be written, or the store fails. Then there is no file.
pub async fn backup(store: &Store, file: &Path) -> Result<u64, BackupError> {
    let failed = |source| BackupError::File {
        file: file.display().to_string(),
        source,
    };
    if file.exists() {
        return Err(failed(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it exists: choose another name",
        )));
    }
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    let part = Path::new(&name);
    let written = write_all(store, part).await;
    let written = written.map_err(|fault| fault.of(store, part));
    let moved = written.and_then(|rows| {
        fs::hard_link(part, file).map_err(failed)?;
        sync_folder(file).map_err(failed)?;
        Ok(rows)
    });
    // It is either in its place or of no use; a failure to remove it is one of the folder's, and was reported.
    let _ = fs::remove_file(part);
    moved
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

async fn write_all(store: &Store, part: &Path) -> Result<u64, Fault> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(part);
    let mut output = Summed {
        output: BufWriter::new(file?),
        sum: Sha256::new(),
    };
    output.line(&json!({"format": FORMAT, "schema_version": NEWEST}))?;
    let mut transaction = store.read().await?;
    let mut count = 0u64;
    for table in TABLES {
        let select = sqlx::query(AssertSqlSafe(format!("SELECT * FROM {table}")));
        let mut rows = select.fetch(&mut *transaction);
        while let Some(row) = rows.try_next().await? {
            let row = row_as_json(&row)?;
            output.line(&json!({"table": table, "row": row}))?;
            count += 1;
        }
    }
    let last = last_line(count, output.sum.clone());
    output.line(&last)?;
    let output = output.output.into_inner();
    output.map_err(io::Error::from)?.sync_all()?;
    Ok(count)
}

/// Why a file or a store failed.
enum Fault {
    File(io::Error),
    Statement(sqlx::Error),
    Backup(BackupError),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Statement(error)
    }
}

impl From<BackupError> for Fault {
    fn from(error: BackupError) -> Self {
        Self::Backup(error)
    }
}

impl Fault {
    fn of(self, store: &Store, file: &Path) -> BackupError {
        match self {
            Self::File(source) => BackupError::File {
                file: file.display().to_string(),
                source,
            },
            Self::Statement(source) => BackupError::Store(StoreError::Statement {
                location: store.location().to_string(),
                source,
            }),
            Self::Backup(error) => error,
        }
    }
}

/// Lines of a file, and their checksum.
struct Summed {
    output: BufWriter<File>,
    sum: Sha256,
}

impl Summed {
    fn line(&mut self, line: &Value) -> io::Result<()> {
        let line = format!("{line}\n");
        self.sum.update(&line);
        self.output.write_all(line.as_bytes())
    }
}

/// States how many rows there are, and the SHA-256 of all lines before.
fn last_line(rows: u64, sum: Sha256) -> Value {
    json!({"rows": rows, "sha256": hexadecimal(&sum.finalize())})
}

fn row_as_json(row: &Row) -> Result<Value, sqlx::Error> {
    let mut object = serde_json::Map::new();
    for column in row.columns() {
        let name = column.name();
        let value = match row.integer(name) {
            Ok(number) => Value::from(number),
            Err(_) => Value::from(row.text(name)?),
        };
        object.insert(name.to_owned(), value);
    }
    Ok(Value::Object(object))
}

/// Read a backup into an empty store. Gateways get every slice anew, whatever they had; what they refused before is tried again.
///
/// # Errors
/// If the store is not empty, or the file is no whole backup, or is damaged. Then nothing is changed.
pub async fn restore(store: &Store, file: &Path) -> Result<Restored, BackupError> {
    let restored = read_all(store, file).await;
    restored.map_err(|fault| fault.of(store, file))
}

async fn read_all(store: &Store, file: &Path) -> Result<Restored, Fault> {
    let mut input = BufReader::new(File::open(file)?);
    let mut tx = Tx::begin(store.pool(), store.dialect(), store.clock()).await?;
    if !is_empty(tx.connection()).await? {
        return Err(BackupError::NotEmpty(store.location().to_string()).into());
    }
    for delete in OF_NEW_STORES {
        tx.change(delete, []).await?;
    }
    let mut lines = Lines {
        file: file.display().to_string(),
        line: 0,
        rows: 0,
        sum: Sha256::new(),
        is_complete: false,
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = input.by_ref().take(LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if let Some((table, row)) = lines.next(&line)? {
            let insert = insert(tx.connection(), table, &row).await;
            insert.map_err(|error| {
                lines.wrong(&format!("a row of `{table}` does not fit: {error}"))
            })?;
        }
    }
    if !lines.is_complete {
        lines.line += 1;
        let wrong = lines.wrong("the file ends too early: it is not whole");
        return Err(wrong.into());
    }
    let findings = count_anew(tx.connection()).await?;
    reissue(&mut tx).await?;
    tx.write_down().await?;
    tx.commit().await?;
    Ok(Restored {
        rows: lines.rows,
        findings,
    })
}

/// Replaces the sums of the backup by those of its slices, and returns what was wrong.
async fn count_anew(connection: &mut AnyConnection) -> Result<Vec<String>, sqlx::Error> {
    let counted = Recount::of(&mut *connection, false).await?;
    let findings = counted.findings(&mut *connection).await?;
    counted.save(connection).await?;
    Ok(findings)
}

async fn is_empty(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    let select = "SELECT generation, event, audit FROM state WHERE id = 1";
    let state = connection.one_row(select, []).await?;
    let is_new = Numbers::of(&state)? == Numbers::default();
    Ok(is_new && !has_tokens(connection).await?)
}

/// Every slice counts as not yet in force, in a generation that no gateway can have seen.
async fn reissue(tx: &mut Tx) -> Result<(), sqlx::Error> {
    let select = "SELECT generation, event, audit FROM state WHERE id = 1";
    let row = tx.one_row(select, []).await?;
    tx.numbers = Numbers::of(&row)?;
    let generation = tx.generation().saturating_add(GENERATIONS_SKIPPED);
    tx.numbers.generation = generation;
    let insert = "INSERT INTO generations (generation, at_ms, actor, reason) VALUES ($1, $2, 'restore', 'a backup was restored')";
    tx.change(insert, values![generation, tx.now_ms]).await?;
    let hops = "UPDATE slice_hops SET generation = $1, acknowledged = 0, problem = ''";
    tx.change(hops, values![generation]).await?;
    let slices = "UPDATE slices SET state = 'admitted' WHERE state = 'installed'";
    tx.change(slices, []).await?;
    let gateways = "UPDATE gateways SET acknowledged = 0, connected = 0, adopted = 0";
    tx.change(gateways, []).await?;
    Ok(())
}

/// A table, and columns of a row of it.
type TableRow = (&'static str, serde_json::Map<String, Value>);

/// Reads lines one by one.
struct Lines {
    file: String,
    line: usize,
    rows: u64,
    /// Of the lines before this one.
    sum: Sha256,
    is_complete: bool,
}

impl Lines {
    fn wrong(&self, problem: &str) -> BackupError {
        BackupError::Content {
            file: self.file.clone(),
            line: self.line,
            problem: problem.to_owned(),
        }
    }

    /// A table and a row of it.
    fn next(&mut self, line: &[u8]) -> Result<Option<TableRow>, BackupError> {
        self.line += 1;
        let before = self.sum.clone();
        self.sum.update(line);
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| self.wrong(&format!("not JSON: {error}")))?;
        if self.line == 1 {
            let version = value["schema_version"].as_i64();
            return match (value["format"] == FORMAT, version) {
                (true, Some(version)) if version == NEWEST => Ok(None),
                (true, Some(version)) => Err(self.wrong(&format!(
                    "the backup is of schema version {version}, and this program has version {NEWEST}: restore it with the version of \
                     slicewise that wrote it, and then open that store with this one"
                ))),
                _ => Err(self.wrong("this is no backup of a controller")),
            };
        }
        if self.is_complete {
            return Err(self.wrong("there is something behind the end"));
        }
        if let Some(rows) = value["rows"].as_u64() {
            self.is_complete = rows == self.rows;
            if !self.is_complete {
                return Err(self.wrong(&format!(
                    "{rows} rows were written, but {} are there",
                    self.rows
                )));
            }
            let expected = format!("{}\n", last_line(rows, before));
            return match line == expected.as_bytes() {
                true => Ok(None),
                false => Err(self.wrong(
                    "the checksum differs: the file is damaged, or was changed; nothing was restored, use another backup",
                )),
            };
        }
        let table = TABLES.into_iter().find(|table| value["table"] == *table);
        match (table, &value["row"]) {
            (Some(table), Value::Object(row)) => {
                self.rows += 1;
                Ok(Some((table, row.clone())))
            }
            _ => Err(self.wrong("expected a table and a row")),
        }
    }
}

async fn insert(
    connection: &mut AnyConnection,
    table: &str,
    row: &serde_json::Map<String, Value>,
) -> Result<(), sqlx::Error> {
    let is_column = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    if let Some(other) = row.keys().find(|name| !is_column(name)) {
        return Err(sqlx::Error::ColumnNotFound(other.clone()));
    }
    let columns: Vec<&str> = row.keys().map(String::as_str).collect();
    let places: Vec<String> = (1..=columns.len())
        .map(|place| format!("${place}"))
        .collect();
    let sql = format!(
        "INSERT INTO {table} ({}) VALUES ({})",
        columns.join(", "),
        places.join(", ")
    );
    let value = |value: &Value| match (value.as_i64(), value.as_str()) {
        (Some(number), _) => Ok(number.to_value()),
        (None, Some(text)) => Ok(text.to_value()),
        (None, None) => Err(sqlx::Error::Decode("neither a number nor a text".into())),
    };
    let values = row.values().map(value).collect::<Result<Vec<_>, _>>()?;
    connection
        .change(AssertSqlSafe(sql), values)
        .await
        .map(drop)
}
