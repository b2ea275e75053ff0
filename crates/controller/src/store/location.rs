//! Where a store is.

use super::{StoreError, wal};
use crate::sql::Dialect;
use crate::sql::hexadecimal;
use sqlx::{AnyConnection, Connection, Executor};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Writes the header of a file of SQLite: the identifier (`slic`) tells what the file is of.
const HEADER: &str = "PRAGMA application_id = 0x736c6963";
/// Name of the file of a store whose place is not given.
const FILE: &str = "controller.sqlite";

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, by its URL.
    Postgres(String),
}

/// A text that is no location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Neither of the two forms.
    #[error("expected `sqlite:PATH` or `postgres://USER@HOST/DATABASE`")]
    Unknown,
    /// There is no folder for data.
    #[error(
        "neither $STATE_DIRECTORY nor $XDG_DATA_HOME nor $HOME is set: state the store with `--store sqlite:PATH`"
    )]
    NoFolder,
}

impl Location {
    /// The store of this machine: in `$STATE_DIRECTORY` (set by systemd), else in the folder for data of the current user.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn default_place() -> Result<Self, LocationError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = if let Some(folder) = variable("STATE_DIRECTORY") {
            PathBuf::from(folder)
        } else if let Some(folder) = variable("XDG_DATA_HOME") {
            PathBuf::from(folder).join("slicewise")
        } else if let Some(home) = variable("HOME") {
            PathBuf::from(home).join(".local/share/slicewise")
        } else {
            return Err(LocationError::NoFolder);
        };
        Ok(Self::Sqlite(folder.join(FILE)))
    }

    /// Returns true if there is a store, as far as files say.
    #[must_use]
    pub fn exists(&self) -> bool {
        match self {
            Self::Sqlite(path) => path.exists(),
            Self::Postgres(_) => true,
        }
    }

    pub(super) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// As the driver takes it.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}?mode=rwc", encoded(path)),
            Self::Postgres(url) => url.clone(),
        }
    }

    /// Makes the folder and the file of SQLite, which only their owner may read, if there is none.
    ///
    /// # Errors
    /// If they cannot be made, the write-ahead log is damaged, or the file is there and empty: a store that was in use would begin anew, open to
    /// everybody.
    pub(super) async fn prepare(&self) -> Result<(), StoreError> {
        let Self::Sqlite(path) = self else {
            return Ok(());
        };
        match fs::metadata(path) {
            Ok(found) if found.is_file() && found.len() == 0 => {
                let location = self.to_string();
                return Err(StoreError::Empty { location });
            }
            Ok(_) => {
                // What cannot be read is said where it is opened.
                return match wal::is_damaged(path) {
                    Ok(true) => Err(StoreError::DamagedLog {
                        location: self.to_string(),
                    }),
                    _ => Ok(()),
                };
            }
            // What else is wrong is said where it is made.
            Err(_) => {}
        }
        let made = Self::make(path).await;
        made.map_err(|reason| StoreError::Open {
            location: self.to_string(),
            reason,
        })
    }

    /// Makes a file that has a header from the moment when it has its name, so that an empty one is never a new one.
    async fn make(path: &Path) -> Result<(), String> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            let mut builder = fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(folder);
            made.map_err(|error| format!("the folder {}: {error}", folder.display()))?;
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}.new", hexadecimal(&random)));
        let new = PathBuf::from(new);
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        options.open(&new).map_err(|error| error.to_string())?;
        let made = async {
            let url = Self::Sqlite(new.clone()).url();
            let mut connection = AnyConnection::connect(&url).await.map_err(text)?;
            connection.execute(HEADER).await.map_err(text)?;
            connection.close().await.map_err(text)?;
            match fs::hard_link(&new, path) {
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked.map_err(|error| error.to_string()),
            }
        };
        let made = made.await;
        // It has its name, or is of no use.
        let _ = fs::remove_file(&new);
        made
    }
}

fn text(error: sqlx::Error) -> String {
    error.to_string()
}

fn encoded(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        match is_plain {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(LocationError::Unknown),
                path => Ok(Self::Sqlite(PathBuf::from(path))),
            };
        }
        match text.starts_with("postgres://") || text.starts_with("postgresql://") {
            true => Ok(Self::Postgres(text.to_owned())),
            false => Err(LocationError::Unknown),
        }
    }
}

impl fmt::Display for Location {
    /// Without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => {
                let url = url.split('?').next().unwrap_or_default();
                let Some((start, host)) = url.rsplit_once('@') else {
                    return f.write_str(url);
                };
                let (scheme, user) = start.split_once("://").unwrap_or(("postgres", start));
                let user = user.split(':').next().unwrap_or_default();
                write!(f, "{scheme}://{user}@{host}")
            }
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_shown_without_its_password() {
        let shown = |text: &str| {
            text.parse::<Location>()
                .map(|location| location.to_string())
        };
        let url = "postgres://slicewise:secret@db.example:5432/slices?sslmode=require";
        assert_eq!(
            shown(url).unwrap(),
            "postgres://slicewise@db.example:5432/slices"
        );
        assert_eq!(
            shown("sqlite:/var/a b.sqlite").unwrap(),
            "sqlite:/var/a b.sqlite"
        );
        assert_eq!(shown("sqlite:"), Err(LocationError::Unknown));
        assert_eq!(shown("mysql://a"), Err(LocationError::Unknown));
        let spaced = Location::Sqlite("/var/a b?.sqlite".into());
        assert_eq!(spaced.url(), "sqlite:///var/a%20b%3F.sqlite?mode=rwc");
    }
}
