//! Problem details (RFC 9457).

use crate::OfferAnswer;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The media type of a [`Problem`].
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Kind of problem, as `urn:slicewise:problem:refused`; `docs/controller.md` lists them.
    #[serde(rename = "type", default = "about_blank")]
    pub kind: String,
    /// The kind for people.
    #[serde(default)]
    pub title: String,
    /// The HTTP status. Answers with 429 and 503 have the header `Retry-After`.
    #[serde(default)]
    pub status: u16,
    /// Description of the problem with this request, and its remedy.
    #[serde(default)]
    pub detail: String,
    /// Where in the document it is, as a JSON pointer (RFC 6901).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Alternatives that would be accepted, where the admission test refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Box<OfferAnswer>>,
}

fn about_blank() -> String {
    "about:blank".to_owned()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pointer) = self.pointer.as_deref().filter(|at| !at.is_empty()) {
            write!(f, "{pointer}: ")?;
        }
        match self.detail.as_str() {
            "" => write!(f, "{} (HTTP status {})", self.title, self.status),
            detail => f.write_str(detail),
        }
    }
}

impl std::error::Error for Problem {}
