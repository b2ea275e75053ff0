//! The objects below a prefix.

use crate::error::{Operation, failed, innermost};
use crate::transport::Connector;
use crate::{Location, MirrorError};
use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, ListResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    RetryConfig, UpdateVersion,
};
use std::collections::BTreeMap;
use std::time::Duration;
use ureq::http::Uri;

/// Files that mark results, at the top of a folder.
const MARKERS: [&str; 2] = ["study.json", "series.json"];

/// The objects below a prefix: by their paths in the folder.
#[derive(Debug)]
pub(crate) struct Objects {
    store: AmazonS3,
    location: Location,
}

impl Objects {
    /// As variables of the environment say (`AWS_…`); connects with the first request.
    pub(crate) fn new(location: Location) -> Result<Self, MirrorError> {
        let retry = RetryConfig {
            backoff: BackoffConfig {
                max_backoff: Duration::from_secs(3),
                ..BackoffConfig::default()
            },
            max_retries: 4,
            retry_timeout: Duration::from_secs(15),
        };
        let builder = AmazonS3Builder::from_env()
            .with_bucket_name(&location.bucket)
            .with_http_connector(Connector)
            .with_retry(retry);
        let wrong = |reason| MirrorError::Settings {
            location: location.to_string(),
            reason,
        };
        for key in [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint] {
            let endpoint = builder.get_config_value(&key).unwrap_or_default();
            if !endpoint.is_empty() && !is_url(&endpoint) {
                return Err(wrong(format!(
                    "AWS_ENDPOINT_URL is `{endpoint}`: expected an address such as `http://127.0.0.1:9000`"
                )));
            }
        }
        let store = builder.build().map_err(|error| wrong(innermost(&error)))?;
        Ok(Self { store, location })
    }

    pub(crate) const fn location(&self) -> &Location {
        &self.location
    }

    /// Tags of all objects (`ETag`), by the path of their file; none where nothing is there.
    pub(crate) async fn list(&self) -> Result<BTreeMap<String, String>, MirrorError> {
        let failed = |error| self.failed(Operation::List, "", &error);
        let prefix = Path::parse(&self.location.prefix).map_err(|error| failed(error.into()))?;
        // A bucket may hold millions of other objects.
        let top = self.store.list_with_delimiter(Some(&prefix)).await;
        let ListResult {
            objects,
            common_prefixes,
            ..
        } = top.map_err(failed)?;
        let is_marker =
            |found: &ObjectMeta| MARKERS.contains(&found.location.filename().unwrap_or_default());
        if objects.is_empty() && common_prefixes.is_empty() {
            return Ok(BTreeMap::new());
        }
        if !objects.iter().any(is_marker) {
            return Err(MirrorError::NoResults {
                location: self.location.to_string(),
            });
        }
        let found = self.store.list(Some(&prefix));
        let found: Vec<ObjectMeta> = found.try_collect().await.map_err(failed)?;
        let files = found.into_iter().filter_map(|found| {
            let file = file_of(found.location.as_ref(), prefix.as_ref())?;
            Some((file.to_owned(), found.e_tag.unwrap_or_default()))
        });
        Ok(files.collect())
    }

    /// Returns the bytes of an object, and their tag.
    pub(crate) async fn get(&self, file: &str) -> Result<(Vec<u8>, String), MirrorError> {
        let failed = |error| self.failed(Operation::Get, file, &error);
        let found = self.store.get(&self.path(file)?).await.map_err(failed)?;
        let tag = found.meta.e_tag.clone().unwrap_or_default();
        Ok((found.bytes().await.map_err(failed)?.into(), tag))
    }

    /// Puts an object in the place of the one with the tag `known`, or of none, and returns its tag.
    ///
    /// # Errors
    /// [`MirrorError::Changed`] where another one is there.
    pub(crate) async fn put(
        &self,
        file: &str,
        bytes: Vec<u8>,
        known: Option<&str>,
    ) -> Result<String, MirrorError> {
        let mode = known.map_or(PutMode::Create, |tag| {
            PutMode::Update(UpdateVersion {
                e_tag: Some(tag.to_owned()),
                version: None,
            })
        });
        let path = self.path(file)?;
        let options = PutOptions::from(mode);
        match self
            .store
            .put_opts(&path, bytes.clone().into(), options)
            .await
        {
            Ok(put) => Ok(put.e_tag.unwrap_or_default()),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                // It may have been put before, and the answer was lost.
                match self.get(file).await {
                    Ok((found, tag)) if found == bytes => Ok(tag),
                    _ => Err(self.changed(file)),
                }
            }
            Err(error) => Err(self.failed(Operation::Put, file, &error)),
        }
    }

    /// Removes the object with the tag `known`.
    ///
    /// # Errors
    /// [`MirrorError::Changed`] where another one is there.
    pub(crate) async fn delete(&self, file: &str, known: &str) -> Result<(), MirrorError> {
        let path = self.path(file)?;
        match self.store.head(&path).await {
            Ok(found) if found.e_tag.as_deref() != Some(known) => return Err(self.changed(file)),
            Err(Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(self.failed(Operation::Get, file, &error)),
            Ok(_) => {}
        }
        let deleted = self.store.delete(&path).await;
        deleted.map_err(|error| self.failed(Operation::Delete, file, &error))
    }

    fn path(&self, file: &str) -> Result<Path, MirrorError> {
        let path = match self.location.prefix.as_str() {
            "" => Path::parse(file),
            prefix => Path::parse(format!("{prefix}/{file}")),
        };
        path.map_err(|error| self.failed(Operation::Put, file, &error.into()))
    }

    fn changed(&self, file: &str) -> MirrorError {
        MirrorError::Changed {
            location: self.location.to_string(),
            address: self.location.address_of(file),
        }
    }

    fn failed(&self, operation: Operation, file: &str, error: &Error) -> MirrorError {
        let location = self.location.to_string();
        let address = match file {
            "" => location.clone(),
            file => self.location.address_of(file),
        };
        failed(operation, &location, &address, error)
    }
}

fn is_url(text: &str) -> bool {
    let uri: Result<Uri, _> = text.parse();
    uri.is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
}

/// The path in the folder of the object with this key. `None` for what is no file of a results folder: those have an
/// extension, unlike the empty objects that browsers of storage make for folders, and none begins with a point.
fn file_of<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    let file = key.strip_prefix(prefix)?.trim_start_matches('/');
    let name = file.rsplit('/').next()?;
    let is_visible = file.split('/').all(|part| !part.starts_with('.'));
    (is_visible && name.contains('.')).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_results_are_fetched() {
        assert_eq!(file_of("a/b/runs/p/s.jsonl", "a/b"), Some("runs/p/s.jsonl"));
        assert_eq!(file_of("study.json", ""), Some("study.json"));
        for other in ["a/b", "a/b/runs", "a/b/.lock", "a/b/.git/x.json"] {
            assert_eq!(file_of(other, "a/b"), None, "{other}");
        }
    }
}
