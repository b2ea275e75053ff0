//! From bytes to a tree of values that know where they stand.

mod decode;
mod files;
mod merge;
mod place;
mod schema;
mod sources;
mod tree;

pub(crate) use decode::{
    Decode, Entry, Field, Need, Placed, Settings, document, fill, key, paragraph, schema_of,
    settings,
};
pub use files::{FileError, Files, Folder, MAX_FILE_BYTES, MemoryFiles};
pub(crate) use merge::{load, merge_nodes, remove_keys};
pub(crate) use place::ValuePlace;
pub(crate) use schema::Schemas;
pub(crate) use sources::{Capture, FileId, Problems, Sources, Span, problem};
pub(crate) use tree::{Key, Node, Value};
