//! Batches of changes, and their history.

use crate::{Slice, SliceRecord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One change of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "a batch has few, most of which put a slice"
)]
pub enum Change {
    /// Add the slice, or replace the one of that name as a whole.
    Put(Slice),
    /// Remove the slice of this name.
    Remove(String),
}

impl Change {
    /// The slice it is about.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Put(slice) => &slice.name,
            Self::Remove(name) => name,
        }
    }
}

/// Changes that are admitted all together or not at all. Each slice occurs once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The changes.
    #[schema(min_items = 1, max_items = 1000)]
    pub changes: Vec<Change>,
    /// Why, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// The answer to a batch that was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer {
    /// The generation in which the batch is in the history. Where nothing differed, the current one.
    pub generation: u64,
    /// How many slices were added, changed or removed.
    #[serde(default)]
    pub changed: u64,
    /// The slices of the batch as they are now, also those that it did not change; removed slices drain. Of a restore: the first 1000 by name of
    /// the slices that it changed.
    pub slices: Vec<SliceRecord>,
}

/// One generation of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GenerationRecord {
    /// Its number.
    pub generation: u64,
    /// When it was committed, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Who asked for it.
    pub by: String,
    /// Changes of slices. A tenant sees its own slices only. Empty where only the weight of a tenant changed.
    pub changes: Vec<SliceChange>,
    /// Why, as stated with the request, or as the controller decided. Never shown to tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Change of one slice in one generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SliceChange {
    /// The slice.
    pub slice: String,
    /// Before; null if it did not exist, or drained. Neither before nor after: it was purged.
    pub before: Option<Slice>,
    /// After; null if it was removed.
    pub after: Option<Slice>,
}

/// A part of the history, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GenerationPage {
    /// The generations.
    pub items: Vec<GenerationRecord>,
    /// `before` of the next part; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
