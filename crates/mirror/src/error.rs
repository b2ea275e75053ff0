//! Why a folder and its objects cannot be brought together.

use object_store::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Settings that tell where storage is, for messages.
const SETTINGS: &str = "AWS_ENDPOINT_URL and AWS_REGION";

/// Parts of texts of errors, and what to do.
const HINTS: [(&str, &str); 2] = [
    (
        "corrupt message",
        "it does not speak TLS: use http:// instead of https:// in AWS_ENDPOINT_URL",
    ),
    (
        "UnknownIssuer",
        "name the certificates of its authority (PEM) in SSL_CERT_FILE",
    ),
];

/// Codes of S3 for credentials that are none, or not valid now.
const OF_CREDENTIALS: [&str; 5] = [
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
];

/// Why a mirror cannot be opened, or files cannot be put.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The text is no address of a folder in object storage.
    #[error(
        "`{text}` is no address of a folder in object storage: {reason}; expected `s3://BUCKET/PREFIX`"
    )]
    NotAnAddress {
        /// The text.
        text: String,
        /// Reason.
        reason: String,
    },
    /// A setting is missing or wrong.
    #[error("`{location}`: {reason}")]
    Settings {
        /// The address.
        location: String,
        /// Problem, and what to do.
        reason: String,
    },
    /// There is no such bucket.
    #[error(
        "`{location}`: there is no bucket of that name: make it, or check the name and {SETTINGS}"
    )]
    NoBucket {
        /// The address.
        location: String,
    },
    /// The bucket has objects below the prefix, and none that describes a study.
    #[error(
        "`{location}` holds objects, but neither `study.json` nor `series.json`: name the prefix that a study was run \
         into, or a new one"
    )]
    NoResults {
        /// The address.
        location: String,
    },
    /// The storage does not know who asks.
    #[error(
        "`{address}`: the storage refuses these credentials ({code}): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and \
         AWS_SESSION_TOKEN, and the clock of this machine"
    )]
    Credentials {
        /// Address of the folder or file.
        address: String,
        /// As the storage names it.
        code: String,
    },
    /// The user may not do this.
    #[error(
        "`{address}`: no permission to {action} ({permission}): ask the owner of the bucket for it"
    )]
    NoPermission {
        /// Address of the folder or file.
        address: String,
        /// Operation.
        action: &'static str,
        /// Name of the permission in a policy of S3.
        permission: &'static str,
    },
    /// An object is not the one that was read.
    #[error(
        "`{address}` was changed by another command since it was read, and was not overwritten: let one command at a \
         time write into `{location}`, then give the same command again, which goes on from there"
    )]
    Changed {
        /// The address of the folder.
        location: String,
        /// Address of the object.
        address: String,
    },
    /// The storage cannot be reached, or fails.
    #[error("`{address}`: cannot {action}: {reason}")]
    Failed {
        /// Address of the folder or file.
        address: String,
        /// Operation.
        action: &'static str,
        /// Reason, and what to do where that is known.
        reason: String,
    },
    /// The copy on this machine cannot be read or written.
    #[error("cannot {action} `{}`, a part of the copy on this machine: {source}", path.display())]
    Copy {
        /// Operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl MirrorError {
    /// Returns true if the user named something wrong.
    #[must_use]
    pub const fn is_users_mistake(&self) -> bool {
        !matches!(
            self,
            Self::Changed { .. } | Self::Failed { .. } | Self::Copy { .. }
        )
    }

    /// Returns true if the same may succeed later.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    pub(crate) fn copy(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Copy {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// An operation on objects.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    List,
    Get,
    Put,
    Delete,
}

impl Operation {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::List => ("list objects", "s3:ListBucket"),
            Self::Get => ("read", "s3:GetObject"),
            Self::Put => ("write", "s3:PutObject"),
            Self::Delete => ("remove objects", "s3:DeleteObject"),
        }
    }
}

/// Says what failed at an address, of the folder or of a file in it.
pub(crate) fn failed(
    operation: Operation,
    location: &str,
    address: &str,
    error: &Error,
) -> MirrorError {
    let (location, address) = (location.to_owned(), address.to_owned());
    let (action, permission) = operation.words();
    let text = error.to_string();
    let code = code(&text);
    match (error, code) {
        (_, Some("NoSuchBucket")) => MirrorError::NoBucket { location },
        (_, Some(code)) if OF_CREDENTIALS.contains(&code) => MirrorError::Credentials {
            address,
            code: code.to_owned(),
        },
        (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }, _)
        // Of a list, which is a generic error.
        | (_, Some("AccessDenied")) => {
            MirrorError::NoPermission {
                address,
                action,
                permission,
            }
        }
        (_, Some("PermanentRedirect" | "AuthorizationHeaderMalformed")) => MirrorError::Settings {
            location,
            reason: "the bucket is in another region: set AWS_REGION to that".to_owned(),
        },
        // Where a virtual machine of Amazon gets its credentials.
        _ if text.contains("169.254.") => MirrorError::Settings {
            location,
            reason:
                "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
                     AWS_SKIP_SIGNATURE=true for a bucket that everybody may read"
                    .to_owned(),
        },
        _ => MirrorError::Failed {
            address,
            action,
            reason: reason(error, code),
        },
    }
}

/// The code of an error in XML, as in `<Code>AccessDenied</Code>`.
fn code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<Code>")?;
    Some(rest.split_once("</Code>")?.0)
}

fn reason(error: &Error, code: Option<&str>) -> String {
    if let Some(code) = code {
        return format!("the storage answers {code}");
    }
    let text = innermost(error);
    let advice = HINTS.iter().find(|(part, _)| text.contains(part));
    let advice = advice.map_or_else(
        || format!("is the storage reachable, and are {SETTINGS} right?"),
        |(_, advice)| (*advice).to_owned(),
    );
    format!("{text}; {advice}")
}

/// Says what happened, without how often that was tried. Settings have the names that users give them.
pub(crate) fn innermost(error: &Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    match inner.to_string().as_str() {
        "Missing AccessKeyId" => {
            "AWS_SECRET_ACCESS_KEY is set, but AWS_ACCESS_KEY_ID is not".to_owned()
        }
        "Missing SecretAccessKey" => {
            "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not".to_owned()
        }
        other => other.trim_start_matches("io: ").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_storage_are_found_in_its_answer() {
        let answer = "status 403: <?xml?><Error><Code>AccessDenied</Code><Message/></Error>";
        assert_eq!(code(answer), Some("AccessDenied"));
        assert_eq!(code("<Code>x"), None);
    }
}
