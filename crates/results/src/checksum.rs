//! A record carries the SHA-256 of its own text, as its first member.
//!
//! The sum covers the text without that member, byte for byte: a record that was edited, damaged or cut off is
//! distinguished from one that a run wrote. It does not keep out whoever computes the sum again.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// How the JSON text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Without white space: `{"sha256":"…",…`.
    Compact,
    /// A member a line.
    Pretty,
}

impl Form {
    /// Returns the text before the digits of the sum.
    pub(crate) const fn start(self) -> &'static str {
        match self {
            Self::Compact => r#"{"sha256":""#,
            Self::Pretty => "{\n  \"sha256\": \"",
        }
    }
}

const END: &[u8] = b"\",";
const DIGITS: usize = 64;

/// Why a text cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChecksumError {
    #[error("it has no checksum")]
    Missing,
    #[error("its checksum does not match: it was changed or damaged after it was written")]
    Mismatch,
}

/// `json`, an object with members, with the sum put into it.
pub(crate) fn seal(json: &[u8], form: Form) -> Vec<u8> {
    let members = json.get(1..).unwrap_or_default();
    let start = form.start().as_bytes();
    let sum = sum(members);
    [start, sum.as_bytes(), END, members].concat()
}

/// The text that was sealed. The sum is taken out in place, for records are large.
pub(crate) fn unseal(text: &mut [u8], form: Form) -> Result<&[u8], ChecksumError> {
    let start = form.start().len();
    // The comma of the member becomes the brace before the next one.
    let brace = start + DIGITS + END.len() - 1;
    let is_sealed =
        text.starts_with(form.start().as_bytes()) && text.get(start + DIGITS..=brace) == Some(END);
    if !is_sealed {
        return Err(ChecksumError::Missing);
    }
    let members = text.get(brace + 1..).unwrap_or_default();
    if text.get(start..start + DIGITS) != Some(sum(members).as_bytes()) {
        return Err(ChecksumError::Mismatch);
    }
    if let Some(byte) = text.get_mut(brace) {
        *byte = b'{';
    }
    Ok(text.get(brace..).unwrap_or_default())
}

/// Of an object whose text is `{` and then `members`.
fn sum(members: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"{");
    hash.update(members);
    let mut digits = String::with_capacity(DIGITS);
    for byte in hash.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sealed_record_is_json_whose_first_member_is_the_sum_of_the_rest() {
        let sealed = seal(br#"{"a":1}"#, Form::Compact);
        insta::assert_snapshot!(String::from_utf8(sealed).unwrap(), @r#"{"sha256":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","a":1}"#);
        let sealed = seal(b"{\n  \"a\": 1\n}\n", Form::Pretty);
        let value: serde_json::Value = serde_json::from_slice(&sealed).unwrap();
        assert_eq!(value["a"], 1);
    }

    proptest! {
        #[test]
        fn what_was_sealed_comes_back_and_no_changed_byte_goes_unnoticed(
            members in "[ -~\n]{1,60}", at in any::<prop::sample::Index>(), flip in 1u8..=255, pretty: bool,
        ) {
            let form = if pretty { Form::Pretty } else { Form::Compact };
            let json = format!("{{{members}");
            let sealed = seal(json.as_bytes(), form);
            let mut copy = sealed.clone();
            prop_assert_eq!(unseal(&mut copy, form), Ok(json.as_bytes()));
            let mut changed = sealed;
            let at = at.index(changed.len());
            changed[at] ^= flip;
            prop_assert!(unseal(&mut changed, form).is_err());
        }

        #[test]
        fn any_text_is_unsealed_without_panic(mut text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unseal(&mut text, Form::Compact);
            let _ = unseal(&mut text, Form::Pretty);
        }
    }
}
