//! Words of a POSIX shell, for commands that are shown, written into scripts, or started.

/// Returns `text` as one word, whatever is in it.
#[must_use]
pub fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn a_quoted_word_is_the_same_text_for_a_shell(text in "[^\0]{0,20}", nasty in "[-'\"\\\\ $`@%\n*;]{0,8}") {
            let text = format!("{nasty}{text}");
            let script = format!("printf %s {}", word(&text));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            prop_assert!(output.status.success(), "{output:?}");
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
