//! File names for policies, scenarios and slices, in results and captures.

use crate::record::RunKey;
use std::fmt::Write as _;

/// `name` as one component of a path.
///
/// Two different names never give the same component, and no name leaves its folder: ASCII
/// letters, digits, `-`, `_` and inner `.` stay, a space becomes `+`, every other byte of the
/// UTF-8 text becomes `%` and two hexadecimal digits.
#[must_use]
pub fn path_component(name: &str) -> String {
    if name.is_empty() {
        // No byte is written as a lone `%`, so this is unique.
        return "%".to_owned();
    }
    let mut component = String::with_capacity(name.len());
    for (index, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => {
                component.push(char::from(byte))
            }
            // A leading dot would hide the file, or be `.` or `..`.
            b'.' if index > 0 => component.push('.'),
            b' ' => component.push('+'),
            other => {
                // Writing to a String cannot fail.
                let _ = write!(component, "%{other:02X}");
            }
        }
    }
    component
}

/// The folders of a run below a root, one in another: `policy/scenario/rep-000`.
#[must_use]
pub fn run_components(key: &RunKey) -> [String; 3] {
    [
        path_component(&key.policy),
        path_component(&key.scenario),
        format!("rep-{:03}", key.repetition),
    ]
}

#[cfg(test)]
mod tests {
    use super::path_component;
    use proptest::prelude::*;

    #[test]
    fn keeps_ordinary_names_readable() {
        assert_eq!(path_component("no policy"), "no+policy");
        assert_eq!(path_component("tail-drop_2.5"), "tail-drop_2.5");
    }

    #[test]
    fn keeps_every_name_inside_its_folder() {
        for name in [
            "",
            ".",
            "..",
            "../../etc",
            "/etc/passwd",
            ".hidden",
            "a\\b",
            "nul\0",
            "C:",
        ] {
            let component = path_component(name);
            assert!(
                !component.is_empty() && !component.starts_with('.'),
                "{component}"
            );
            assert!(!component.contains(['/', '\\', '\0', ':']), "{component}");
        }
    }

    proptest! {
        #[test]
        fn gives_different_names_different_components(a in "[ -~é]{0,6}", b in "[ -~é]{0,6}") {
            prop_assert_eq!(a == b, path_component(&a) == path_component(&b));
        }
    }
}
