//! Commands of the controller, for callers without an asynchronous runtime.

use crate::administration;
use crate::gateways::adopt;
use crate::http::{ServeError, ServeParams, serve};
use crate::refusal::Refusal;
use crate::sql::Answer;
use crate::store::{
    BackupError, Location, Request, Restored, Store, StoreError, backup, carry_out, check,
    check_at_start, restore,
};
use slicewise_api::{NewToken, TokenCreated, TokenRecord};
use std::io;
use std::path::Path;
use tokio::runtime::Runtime;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The API cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A backup was not written or read.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The request is refused.
    #[error("{0}")]
    Refused(String),
    /// The system failed.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl ControllerError {
    /// Returns true if the user can fix it.
    #[must_use]
    pub const fn is_mistake(&self) -> bool {
        match self {
            Self::Store(
                StoreError::Newer { .. }
                | StoreError::NotADatabase { .. }
                | StoreError::Empty { .. }
                | StoreError::Foreign { .. },
            )
            | Self::Refused(_) => true,
            Self::Serve(error) => error.is_mistake(),
            Self::Backup(error) => !matches!(error, BackupError::Store(_)),
            Self::Store(_) | Self::System(_) => false,
        }
    }
}

fn refused(refusal: &Refusal) -> ControllerError {
    ControllerError::Refused(refusal.problem.to_string())
}

/// Serve the API until SIGINT or SIGTERM.
///
/// # Errors
/// If the store cannot be opened, or the API cannot be served.
pub fn run(location: &Location, params: &ServeParams) -> Result<(), ControllerError> {
    Runtime::new()?.block_on(async {
        let store = Store::open(location).await?;
        let checking = tokio::spawn(check_at_start(store.clone()));
        let served = serve(store, params).await;
        checking.abort();
        Ok(served?)
    })
}

/// Do something with a store, and close it.
fn with_store<T>(
    location: &Location,
    action: impl AsyncFnOnce(&Store) -> Result<T, ControllerError>,
) -> Result<T, ControllerError> {
    Runtime::new()?.block_on(async {
        let store = Store::open(location).await?;
        let done = action(&store).await;
        store.close().await;
        done
    })
}

/// Write a backup. The number of rows in it.
///
/// # Errors
/// If the file exists or cannot be written, or the store fails.
pub fn run_backup(location: &Location, file: &Path) -> Result<u64, ControllerError> {
    with_store(location, async |store| Ok(backup(store, file).await?))
}

/// Restore a backup into an empty store.
///
/// # Errors
/// If the store is not empty, or the file is no whole backup, or is damaged.
pub fn run_restore(location: &Location, file: &Path) -> Result<Restored, ControllerError> {
    with_store(location, async |store| Ok(restore(store, file).await?))
}

/// Look for contradictions in a store. They are returned in words.
///
/// # Errors
/// If the store fails.
pub fn run_check(location: &Location) -> Result<Vec<String>, ControllerError> {
    with_store(location, async |store| Ok(check(store).await?))
}

/// Let gateways follow this store from their next announcement on, whatever they followed before.
///
/// # Errors
/// If the store has never heard of one of them, or fails. Then nothing is changed.
pub fn run_adopt(location: &Location, gateways: Vec<String>) -> Result<(), ControllerError> {
    let request = asked("adopt");
    with_store(location, async |store| {
        let answer = carry_out!(store, request, |tx| {
            for gateway in &gateways {
                adopt(tx, gateway, BY).await?;
            }
            Ok(Answer::empty())
        });
        answer.map(drop).map_err(|refusal| refused(&refusal))
    })
}

/// Make a token.
///
/// # Errors
/// If there is one of that name, or the store fails.
pub fn run_token_add(location: &Location, new: NewToken) -> Result<TokenCreated, ControllerError> {
    let request = asked("token add");
    with_store(location, async |store| {
        let answer = carry_out!(store, request, |tx| {
            let created = administration::add_token(tx, BY, &new).await?;
            Answer::json(201, &created)
        });
        let answer = answer.map_err(|refusal| refused(&refusal))?;
        let created = serde_json::from_str(&answer.body);
        created.map_err(|error| ControllerError::System(error.into()))
    })
}

/// Every token, without its secret.
///
/// # Errors
/// If the store fails.
pub fn run_token_list(location: &Location) -> Result<Vec<TokenRecord>, ControllerError> {
    with_store(location, async |store| {
        let failed = |source| StoreError::Statement {
            location: location.to_string(),
            source,
        };
        let mut connection = store.pool().acquire().await.map_err(failed)?;
        Ok(administration::tokens(&mut connection)
            .await
            .map_err(failed)?)
    })
}

/// Revoke a token.
///
/// # Errors
/// If there is none of that name, or the store fails.
pub fn run_token_remove(location: &Location, name: String) -> Result<(), ControllerError> {
    let request = asked("token remove");
    with_store(location, async |store| {
        let answer = carry_out!(store, request, |tx| {
            administration::remove_token(tx, &name).await?;
            Ok(Answer::empty())
        });
        answer.map(drop).map_err(|refusal| refused(&refusal))
    })
}

/// Who asks on the command line.
const BY: &str = "command-line";

fn asked(what: &str) -> Request {
    Request {
        actor: BY.to_owned(),
        line: format!("slicewise controller {what}"),
        ..Request::default()
    }
}
