//! A case of a file, as far as it is read for itself.

use super::StudySpec;
use crate::cases::OF_THE_FILE;
use crate::file::{Decode, Entry, Problems, Schemas, Settings, paragraph};
use serde_json::{Map, Value, json};

/// A case as it is written: it is read on top of the rest of the file, and not for itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaseSpec;

impl Decode for CaseSpec {
    fn decode(_: Entry<'_>, _: &mut Problems) -> Option<Self> {
        Some(Self)
    }

    /// Any settings of a study: what is required may be among those of the file.
    fn schema(_: &mut Schemas) -> Value {
        let described = |text| json!({ "description": text });
        let known = StudySpec::FIELDS.iter();
        let known = known.filter(|field| !OF_THE_FILE.contains(&field.key));
        let mut properties: Map<_, _> = known
            .map(|field| (field.key.to_owned(), described(paragraph(field.doc))))
            .collect();
        let without = described("Settings of the file that this case does not take over.".into());
        properties.insert("without".to_owned(), without);
        json!({
            "type": ["object", "null"],
            "description": "Settings of a study, on top of those of the file.",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}
