//! The copy and the objects, brought together.

use crate::copy::{Copy, Known, KnownFiles, Stamp};
use crate::objects::Objects;
use crate::{Location, MirrorError};
use futures_util::stream::{self, StreamExt};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio::runtime::{Builder, Runtime};

/// Requests at a time.
const CONCURRENT: usize = 16;

/// Intended use of a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only descriptions and records are read: they are JSON.
    Read,
    /// Transactions are read, too.
    Collect,
    /// Everything is fetched, and what changes can be put.
    Write,
}

impl Access {
    fn includes(self, file: &str) -> bool {
        let is_collected = || file.split('/').any(|part| part == "transactions");
        self == Self::Write
            || file.ends_with(".json")
            || file.ends_with(".jsonl")
            || (self == Self::Collect && is_collected())
    }
}

/// A folder on this machine with the files below a prefix of a bucket.
#[derive(Debug)]
pub struct Mirror {
    objects: Objects,
    copy: Copy,
    known: KnownFiles,
    /// Files that were fetched when it was opened.
    fetched: usize,
    /// Files that an earlier process had not put, and that were given up for those of another one.
    dropped: usize,
    runtime: Runtime,
}

impl Mirror {
    /// Fetches what differs from the objects into a copy below the folder `cache`.
    ///
    /// Files that an earlier process changed and did not put are kept unless objects have changed since.
    ///
    /// # Errors
    /// Where objects cannot be listed or read, are no results, or the copy cannot be written.
    pub fn open(location: Location, cache: &Path, access: Access) -> Result<Self, MirrorError> {
        let folder = cache.join(name_of(&location));
        let copy = Copy::open(&folder)?;
        let runtime = Builder::new_current_thread().enable_time().build();
        let mut mirror = Self {
            objects: Objects::new(location)?,
            known: copy.known(),
            copy,
            fetched: 0,
            dropped: 0,
            runtime: runtime.map_err(|error| MirrorError::copy("use", &folder, error))?,
        };
        let mut objects = mirror.runtime.block_on(mirror.objects.list())?;
        objects.retain(|file, _| access.includes(file));
        let fetched = mirror.fetch(&objects, access);
        mirror.copy.remember(&mirror.known)?;
        fetched?;
        Ok(mirror)
    }

    /// The folder; it does not exist where there are no objects and no files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.copy.files
    }

    /// Its address.
    #[must_use]
    pub const fn location(&self) -> &Location {
        self.objects.location()
    }

    /// Number of files that were fetched when it was opened.
    #[must_use]
    pub const fn fetched(&self) -> usize {
        self.fetched
    }

    /// Number of files that an earlier command had not put, and that were given up because objects had changed.
    #[must_use]
    pub const fn dropped(&self) -> usize {
        self.dropped
    }

    fn fetch(
        &mut self,
        objects: &BTreeMap<String, String>,
        access: Access,
    ) -> Result<(), MirrorError> {
        let mut stamps = self.copy.stamps()?;
        stamps.retain(|file, _| access.includes(file));
        // What somebody has cleaned out of the copy is fetched again: its object is no file that this program removed.
        self.known
            .retain(|file, _| !access.includes(file) || stamps.contains_key(file));
        self.recognise(objects, &stamps)?;
        let is_there = |(file, known): (&String, &Known)| objects.get(file) == Some(&known.tag);
        let mut known = (self.known.iter()).filter(|(file, _)| access.includes(file));
        let is_new = |file: &String| !self.known.contains_key(file) && stamps.contains_key(file);
        if !known.all(is_there) || objects.keys().any(is_new) {
            for (file, stamp) in &stamps {
                let known = self.known.get_key_value(file);
                let known = known.filter(|(_, known)| known.stamp == *stamp);
                self.dropped += usize::from(known.is_none());
                if !known.is_some_and(is_there) {
                    self.copy.remove(file)?;
                    self.known.remove(file);
                }
            }
        }
        let missing: Vec<&String> = (objects.keys())
            .filter(|file| !self.known.contains_key(*file))
            .collect();
        let (objects, copy) = (&self.objects, &self.copy);
        let fetch = |file: &String| {
            let file = file.clone();
            async move {
                let (bytes, tag) = objects.get(&file).await?;
                let stamp = copy.write(&file, &bytes)?;
                Ok((file, Known { tag, stamp }))
            }
        };
        let work = stream::iter(missing.into_iter().map(fetch)).buffer_unordered(CONCURRENT);
        let results = self.runtime.block_on(work.collect());
        self.fetched = learn(&mut self.known, results)?;
        Ok(())
    }

    /// Learns the tags of objects that a killed process put, or fetched, and did not remember: such an object holds what the file in
    /// the copy holds, or the lines that were there.
    fn recognise(
        &mut self,
        objects: &BTreeMap<String, String>,
        stamps: &BTreeMap<String, Stamp>,
    ) -> Result<(), MirrorError> {
        for (file, stamp) in stamps {
            let known = self.known.get(file);
            let is_remembered = known.is_some_and(|known| {
                known.stamp == *stamp || objects.get(file) == Some(&known.tag)
            });
            if is_remembered || !objects.contains_key(file) {
                continue;
            }
            let (object, tag) = self.runtime.block_on(self.objects.get(file))?;
            let read = self.copy.read(file);
            let (bytes, _) = read
                .map_err(|error| MirrorError::copy("read", &self.copy.files.join(file), error))?;
            let is_part = bytes.starts_with(&object) && file.ends_with(".jsonl");
            if is_part || bytes == object {
                let stamp = stamp.with_bytes(object.len() as u64);
                self.known.insert(file.clone(), Known { tag, stamp });
            }
        }
        Ok(())
    }

    /// Puts the files that have changed since they were fetched or put, and removes objects whose files are gone. Returns
    /// how many. Whole lines of a file that grows meanwhile are put, the rest with the next call.
    ///
    /// # Errors
    /// [`MirrorError::Changed`] where an object is not the one that was read; where it cannot be written, or a file cannot
    /// be read. Other files of its kind are put all the same.
    pub fn put(&mut self) -> Result<usize, MirrorError> {
        let stamps = self.copy.stamps()?;
        // First the files without which the others mean nothing, but what is gone before these.
        let gone = self.known.keys().filter(|file| !stamps.contains_key(*file));
        let gone: Vec<String> = gone.cloned().collect();
        let is_unsent = |(file, stamp): &(&String, &Stamp)| {
            self.known
                .get(*file)
                .is_none_or(|known| known.stamp != **stamp)
        };
        let unsent = stamps
            .iter()
            .filter(is_unsent)
            .map(|(file, _)| file.clone());
        let (descriptions, others): (Vec<String>, Vec<String>) =
            unsent.partition(|file| file.ends_with("study.json") || file.ends_with("series.json"));
        if gone.is_empty() && descriptions.is_empty() && others.is_empty() {
            return Ok(0);
        }
        let deleted = self.delete(gone);
        let put = deleted.and_then(|count| Ok(count + self.put_files(descriptions)?));
        let put = put.and_then(|count| Ok(count + self.put_files(others)?));
        self.copy.remember(&self.known)?;
        put
    }

    fn delete(&mut self, files: Vec<String>) -> Result<usize, MirrorError> {
        let mut count = 0;
        for file in files {
            if let Some(known) = self.known.get(&file) {
                let deleted = self.objects.delete(&file, &known.tag);
                self.runtime.block_on(deleted)?;
                self.known.remove(&file);
                count += 1;
            }
        }
        Ok(count)
    }

    fn put_files(&mut self, files: Vec<String>) -> Result<usize, MirrorError> {
        let (objects, copy, known) = (&self.objects, &self.copy, &self.known);
        let put = |file: String| async move {
            let (bytes, stamp) = match copy.read(&file) {
                // It is removed with the next call.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                read => {
                    read.map_err(|error| MirrorError::copy("read", &copy.files.join(&file), error))?
                }
            };
            let before = known.get(&file).map(|known| known.tag.as_str());
            let tag = objects.put(&file, bytes, before).await?;
            Ok(Some((file, Known { tag, stamp })))
        };
        let work = stream::iter(files.into_iter().map(put)).buffer_unordered(CONCURRENT);
        let results: Vec<_> = self.runtime.block_on(work.collect());
        let results = results.into_iter().filter_map(Result::transpose).collect();
        learn(&mut self.known, results)
    }
}

/// Adds what is known now, and returns how much that is, or the first error.
fn learn(
    known: &mut KnownFiles,
    results: Vec<Result<(String, Known), MirrorError>>,
) -> Result<usize, MirrorError> {
    let mut first = None;
    let mut count = 0;
    for result in results {
        match result {
            Ok((file, one)) => {
                count += 1;
                known.insert(file, one);
            }
            // One that stays counts most.
            Err(error) if first.as_ref().is_none_or(MirrorError::is_temporary) => {
                first = Some(error)
            }
            Err(_) => {}
        }
    }
    first.map_or(Ok(count), Err)
}

/// The name of the folder of copies: of the same address at the same storage.
fn name_of(location: &Location) -> PathBuf {
    let endpoints = [
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT",
        "AWS_REGION",
    ]
    .map(|name| std::env::var(name).unwrap_or_default());
    let digest = Sha256::digest(format!("{endpoints:?} {location}"));
    let digest = digest.iter().take(8);
    digest
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>()
        .into()
}
