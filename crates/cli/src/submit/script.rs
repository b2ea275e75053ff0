//! Commands as text for `sh`, and the templates that they are put into.

/// Fills the names between two `@` in `template`. Values are put in as they are.
pub fn fill(template: &str, values: &[(&str, String)]) -> String {
    let parts = template.split('@').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => part,
        _ => (values.iter().find(|(name, _)| *name == part)).map_or("", |(_, value)| value),
    });
    parts.collect()
}

/// Returns `text` as a string of YAML, of which JSON is a part.
pub fn yaml(text: &str) -> String {
    // YAML takes these for ends of lines, JSON does not.
    let lines = [
        ('\u{85}', "\\u0085"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    let json = serde_json::Value::from(text).to_string();
    lines
        .iter()
        .fold(json, |json, (c, escape)| json.replace(*c, escape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_a_template_are_filled_once_whatever_the_values_contain() {
        let filled = fill(
            "a @X@ b @Y@\n",
            &[("X", "@Y@ $1".to_owned()), ("Y", "'".to_owned())],
        );
        assert_eq!(filled, "a @Y@ $1 b '\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_string_of_yaml_is_the_same_text(text in "\\PC{0,20}", nasty in "[-'\"\\\\ :#{}\n\t\u{85}\u{2028}]{0,8}") {
            let text = format!("{nasty}{text}");
            let read: String = serde_saphyr::from_str(&yaml(&text)).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}
