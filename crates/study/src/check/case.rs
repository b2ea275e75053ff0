//! A case of a file, as far as it is read for itself.

use super::StudySpec;
use crate::cases::OF_THE_FILE;
use crate::file::{Decode, Entry, Problems, Schemas, Settings, Span, paragraph};
use crate::problem;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

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
        let x = described("Its place on an axis of `figures`: a number with its unit.".into());
        properties.insert("x".to_owned(), x);
        json!({
            "type": ["object", "null"],
            "description": "Settings of a study, on top of those of the file.",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

/// No two names of folders are alike to a file system that ignores case.
pub(crate) fn differ_in_more_than_case<'n>(
    names: impl Iterator<Item = (&'n str, Span)>,
    problems: &mut Problems,
) {
    let mut seen = BTreeMap::new();
    for (name, span) in names {
        if let Some(other) = seen.insert(name.to_lowercase(), name) {
            problem!(problems, span => "`{name}` and `{other}` differ in case only: a file system may take them for \
                one");
        }
    }
}
