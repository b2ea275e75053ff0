//! Addresses of folders in object storage.

use crate::MirrorError;
use std::fmt;

const SCHEME: &str = "s3://";

/// A prefix of a bucket, below which the files of a folder lie as objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub(crate) bucket: String,
    /// Without slashes at its ends; empty for the whole bucket.
    pub(crate) prefix: String,
}

impl Location {
    /// Reads `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// [`MirrorError::NotAnAddress`] for anything else.
    pub fn parse(text: &str) -> Result<Self, MirrorError> {
        let refused = |reason: &str| MirrorError::NotAnAddress {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| refused("it does not begin with `s3://`"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.is_empty() || !bucket.chars().all(is_allowed) {
            return Err(refused(
                "the name of a bucket has letters, digits, `-` and `.`",
            ));
        }
        let prefix = prefix.trim_end_matches('/');
        let is_part = |part: &str| {
            !["", ".", ".."].contains(&part) && !part.contains(|c: char| c.is_control())
        };
        if !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return Err(refused(
                "no part of the prefix may be empty, `.` or `..`, or have control characters",
            ));
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }

    /// Returns the address of the file at a path in the folder.
    pub(crate) fn address_of(&self, file: &str) -> String {
        format!("{self}/{file}")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.bucket)?;
        match self.prefix.as_str() {
            "" => Ok(()),
            prefix => write!(f, "/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_bucket_and_a_prefix() {
        for (text, shown) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            ("s3://my.bucket-1/a/b c/", "s3://my.bucket-1/a/b c"),
        ] {
            assert_eq!(Location::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "gs://bucket/a",
            "s3:/bucket",
            "s3://",
            "s3:///a",
            "s3://bu cket/a",
            "s3://bucket//a",
            "s3://bucket/a/../b",
            "s3://bucket/a\nb",
        ] {
            let refused = Location::parse(text).unwrap_err().to_string();
            assert!(refused.contains("expected `s3://BUCKET/PREFIX`"), "{text}");
        }
    }
}
