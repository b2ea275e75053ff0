//! Study files that mean harm: no panic, no endless work, no memory without end.

use crate::support::hostile;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn refused(text: &str) -> String {
    hostile::check(text);
    let files = slicewise_study::MemoryFiles::new();
    slicewise_study::Study::parse(text, "study.yaml", &files)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    insta::assert_snapshot!(refused(&bomb), @"
    error: the document is too large or too complex: it has more than 4,000,000 values, aliases that stand for more than 200,000, or is nested too deeply
     --> study.yaml:6:10
      |
    6 | a5: &a5 [*a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4]
      |          ^^^
    ");
}

#[test]
fn a_bomb_of_merge_keys_is_refused() {
    let mut bomb = "a0: &a0 {k0: 1, k1: 1, k2: 1}\n".to_owned();
    for level in 1..30 {
        let last = level - 1;
        writeln!(
            bomb,
            "a{level}: &a{level} {{<<: [*a{last}, *a{last}, *a{last}], m{level}: *a{last}}}"
        )
        .unwrap();
    }
    refused(&bomb);
}

#[test]
fn endless_nesting_is_refused() {
    refused(&"[".repeat(100_000));
    refused(&format!("a: {}{}", "[".repeat(50), "]".repeat(50)));
    refused(&(0..200).fold(String::new(), |text, depth| {
        text + &" ".repeat(depth) + "a:\n"
    }));
    refused(&format!(
        "policies: {{p: {{classes: [{}",
        "{name: c, child: {classes: [".repeat(30)
    ));
}

#[test]
fn an_alias_to_what_holds_it_is_refused() {
    refused("a: &a [*a]\n");
    refused("a: &a {b: *a}\n");
}

/// Each case has a copy of what all have, and each scenario one of every source of all.
#[test]
fn what_is_copied_is_bounded() {
    let description = format!("description: [{}]\n", "x, ".repeat(200_001));
    let cases: String = (0..256).map(|n| format!("  c{n}: {{}}\n")).collect();
    insta::assert_snapshot!(refused(&format!("{description}cases:\n{cases}")), @"
    error: a study has at most 200,000 values, because cases, phases and scenarios copy them
     --> study.yaml:1:1
      |
    1 | description: [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,...
      | ^
      |
      = help: a population stands for any number of slices that are alike
    ");
    let payloads = "x, ".repeat(200_001);
    let sources = refused(&format!("sources: {{s: {{payload: [{payloads}]}}}}\n"));
    assert!(sources.contains("at most 200,000 values"), "{sources}");
}

#[test]
fn classes_nested_deeper_than_any_device_are_refused() {
    let mut classes = "[{name: c, match: {vlan: 1}}]".to_owned();
    for _ in 0..8 {
        classes = format!("[{{name: c, match: {{vlan: 1}}, child: {{classes: {classes}}}}}]");
    }
    let text = format!("extends: base.yaml\npolicies: {{deep: {{classes: {classes}}}}}\n");
    hostile::check(&text);
}

#[test]
fn templates_times_scenarios_are_bounded() {
    let mut text = "sources:\n".to_owned();
    for n in 0..2_000 {
        writeln!(text, "  s{n}: {{pattern: cbr}}").unwrap();
    }
    text.push_str("scenarios:\n");
    for n in 0..2_000 {
        writeln!(text, "  t{n}: {{}}").unwrap();
    }
    assert!(refused(&text).contains("are more than"));
}

#[test]
fn numbers_at_the_edge_of_what_they_can_be_are_told_apart() {
    for number in [
        "18446744073709551615",
        "18446744073709551616",
        "1e400",
        ".nan",
        "-0",
        "0x7f",
    ] {
        for key in ["seed", "repetitions", "duration"] {
            hostile::check(&format!("extends: base.yaml\n{key}: {number}\n"));
            hostile::check(&format!("extends: base.yaml\n{key}: {number} s\n"));
        }
        for unit in ["Tbit/s", "bit/s", "%"] {
            hostile::check(&format!(
                "extends: base.yaml\nlink: {{rate: {number} {unit}}}\n"
            ));
            let source = format!("{{critical: {{rate: {number} {unit}, payload: {number} B}}}}");
            hostile::check(&format!("extends: base.yaml\nsources: {source}\n"));
        }
        let times = format!("{{start: {number} s, start_spread: {number} h}}");
        hostile::check(&format!(
            "extends: base.yaml\nsources: {{critical: {times}}}\n"
        ));
        let bursts = format!("{{on_for: {number} h, off_for: {number} ns}}");
        hostile::check(&format!(
            "extends: base.yaml\nsources: {{on-off: {{on_off: {bursts}}}}}\n"
        ));
    }
}

/// The seeds of the fuzz target, and what it found.
#[test]
fn the_corpus_of_the_fuzz_target_is_read_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/study_file");
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 10, "the corpus is gone");
    for file in files {
        if let Ok(text) = String::from_utf8(std::fs::read(&file).unwrap()) {
            hostile::check(&text);
        }
    }
}

/// Texts whose pieces a mutation is made of.
fn sources() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let names = [
        "router-mechanisms.yaml",
        "shape-peak.yaml",
        "router-mechanisms-minimum.yaml",
    ];
    let mut sources: Vec<String> = names
        .iter()
        .map(|name| std::fs::read_to_string(folder.join(name)).unwrap())
        .collect();
    sources.push(EVERY_SETTING.to_owned());
    sources
}

const EVERY_SETTING: &str = include_str!("../../../../fuzz/corpus/study_file/every-setting");

#[derive(Debug, Clone)]
enum Mutation {
    /// Take a line out.
    Cut(usize),
    /// Put a line of some text in.
    Insert(usize, usize),
    /// Put two lines in each other's place.
    Swap(usize, usize),
    /// Change how far a line is indented.
    Indent(usize, usize),
    /// Put a token where another was.
    Token(usize, usize, &'static str),
}

const TOKENS: [&str; 16] = [
    "0", "-1", "~", "{}", "[]", "&a", "*a", "<<:", "|", "1e99", "0 s", "101 %", "\"\"", "- ", "é",
    ":",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        any::<usize>().prop_map(Mutation::Cut),
        any::<(usize, usize)>().prop_map(|(a, b)| Mutation::Insert(a, b)),
        any::<(usize, usize)>().prop_map(|(a, b)| Mutation::Swap(a, b)),
        (any::<usize>(), 0..8usize).prop_map(|(a, b)| Mutation::Indent(a, b)),
        (
            any::<(usize, usize)>(),
            proptest::sample::select(&TOKENS[..])
        )
            .prop_map(|((a, b), token)| Mutation::Token(a, b, token)),
    ]
}

fn mutate(lines: &mut Vec<String>, mutation: &Mutation, pool: &[String]) {
    if lines.is_empty() {
        return;
    }
    let length = lines.len();
    match *mutation {
        Mutation::Cut(at) => drop(lines.remove(at % length)),
        Mutation::Insert(at, from) => lines.insert(at % length, pool[from % pool.len()].clone()),
        Mutation::Swap(a, b) => lines.swap(a % length, b % length),
        Mutation::Indent(at, by) => {
            let line = lines[at % length].trim_start().to_owned();
            lines[at % length] = " ".repeat(by) + &line;
        }
        Mutation::Token(at, word, token) => {
            let mut words: Vec<&str> = lines[at % length].split_inclusive(' ').collect();
            let count = words.len();
            if count > 0 {
                words[word % count] = token;
            }
            lines[at % length] = words.concat();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn mutated_studies_are_read_or_refused(
        which in any::<usize>(),
        mutations in prop::collection::vec(mutation(), 1..12),
    ) {
        let sources = sources();
        let pool: Vec<String> =
            sources.iter().flat_map(|text| text.lines().map(str::to_owned)).collect();
        let text = &sources[which % sources.len()];
        let text = text.replace("extends: router-mechanisms.yaml", "extends: base.yaml")
            .replace("file: router-mechanisms.yaml", "file: base.yaml");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for mutation in &mutations {
            mutate(&mut lines, mutation, &pool);
        }
        hostile::check(&lines.join("\n"));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        hostile::check(&text);
    }

    #[test]
    fn any_yaml_like_text_is_read_or_refused(text in "([a-z]{1,4}: |- |[\\[\\]{},&*|>'\"#%!~\n ]|[0-9.]{1,3} ?(s|%|B)?){0,60}") {
        hostile::check(&text);
    }
}

/// Work must grow with a file, not with its square: each of these took minutes where it did.
#[test]
fn large_tables_are_no_hard_work() {
    let table = |name: &str, count: usize, entry: &str| {
        let entries: String = (0..count).map(|n| format!("  n{n}: {entry}\n")).collect();
        format!("{name}:\n{entries}")
    };
    refused(&table("nonsense", 20_000, "1"));
    refused(
        &(0..20_000)
            .map(|n| format!("nonsense{n}: 1\n"))
            .collect::<String>(),
    );
    refused(&table("slices", 20_000, "{share: 1 %}"));
    refused(&table("policies", 20_000, "{none: true}"));
    refused(&table("assumptions", 20_000, "x"));
    let unknown = format!(
        "{}{}",
        table("slices", 4_000, "{match: {}, share: 1 bit/s}"),
        table("sources", 4_000, "{slice: nobody, pattern: cbr}")
    );
    refused(&format!("{unknown}{}", table("scenarios", 20, "{}")));
    let base = table("assumptions", 20_000, "x");
    let files = slicewise_study::MemoryFiles::new().with("base.yaml", &base);
    let text = format!("extends: base.yaml\n{}", table("assumptions", 20_000, "y"));
    assert!(slicewise_study::Study::parse(&text, "study.yaml", &files).is_err());
    refused(&format!("{}: 1\n", "k".repeat(900)));
    refused(&format!("name: {}\n", "n".repeat(10_000_000)));
}
