//! Damaged texts: the property of the fuzz target, on a stable toolchain and with fixed effort.

use crate::support::fixpoint;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Words that make damage more than noise.
const WORDS: [&str; 76] = [
    "!",
    "exit",
    "end",
    "no",
    "class-map",
    "match-any",
    "match-all",
    "policy-map",
    "class",
    "class-default",
    "match",
    "not",
    "any",
    "vlan",
    "inner",
    "dscp",
    "precedence",
    "ip",
    "ef",
    "access-group",
    "name",
    "101",
    "10",
    "access-list",
    "extended",
    "standard",
    "permit",
    "deny",
    "host",
    "eq",
    "range",
    "lt",
    "gt",
    "tcp",
    "police",
    "cir",
    "bc",
    "be",
    "pir",
    "percent",
    "conform-action",
    "exceed-action",
    "violate-action",
    "transmit",
    "drop",
    "shape",
    "average",
    "peak",
    "bandwidth",
    "remaining",
    "ratio",
    "priority",
    "level",
    "random-detect",
    "dscp-based",
    "queue-limit",
    "packets",
    "ms",
    "set",
    "service-policy",
    "0",
    "1",
    "8000",
    "18446744073709551616",
    "interface",
    "control-plane",
    "input",
    "output",
    "protocol",
    "http",
    "fair-queue",
    "banner",
    "motd",
    "^C",
    "R1(config)#",
    "type",
];

/// Every file of the fuzz corpus and of the golden files.
fn seeds() -> &'static [String] {
    static SEEDS: OnceLock<Vec<String>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let golden = root.join("tests/golden");
        let corpus = root.join("../../fuzz/corpus/ios_policy_map");
        let folders = [
            corpus,
            golden.join("canonical"),
            golden.join("other"),
            golden.join("hostile"),
            golden.join("running"),
        ];
        let mut paths: Vec<PathBuf> = folders
            .iter()
            .flat_map(|folder| fs::read_dir(folder).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        paths
            .iter()
            .map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into())
            .collect()
    })
}

/// One injury to a text.
#[derive(Debug, Clone)]
enum Damage {
    DropLine(Index),
    CopyLine(Index, Index),
    SwapLines(Index, Index),
    ReplaceWord(Index, Index, &'static str),
    InsertWord(Index, Index, &'static str),
    ReplaceChar(Index, char),
    Truncate(Index),
    Append(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    let word = || proptest::sample::select(&WORDS[..]);
    prop_oneof![
        1 => index().prop_map(Damage::DropLine),
        1 => (index(), index()).prop_map(|(from, to)| Damage::CopyLine(from, to)),
        1 => (index(), index()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
        4 => (index(), index(), word()).prop_map(|(l, w, new)| Damage::ReplaceWord(l, w, new)),
        4 => (index(), index(), word()).prop_map(|(l, w, new)| Damage::InsertWord(l, w, new)),
        2 => (index(), any::<char>()).prop_map(|(at, new)| Damage::ReplaceChar(at, new)),
        1 => index().prop_map(Damage::Truncate),
        1 => index().prop_map(Damage::Append),
    ]
}

fn apply(text: &str, damage: &Damage) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return String::from("policy-map p");
    }
    let count = lines.len();
    match damage {
        Damage::DropLine(at) => {
            lines.remove(at.index(count));
        }
        Damage::CopyLine(from, to) => {
            lines.insert(to.index(count), lines[from.index(count)].clone())
        }
        Damage::SwapLines(a, b) => lines.swap(a.index(count), b.index(count)),
        Damage::ReplaceWord(line, at, new) | Damage::InsertWord(line, at, new) => {
            let line = &mut lines[line.index(count)];
            let mut words: Vec<&str> = line.split(' ').collect();
            let at = at.index(words.len());
            if matches!(damage, Damage::ReplaceWord(..)) {
                words[at] = new;
            } else {
                words.insert(at, new);
            }
            *line = words.join(" ");
        }
        Damage::ReplaceChar(at, new) => {
            let mut chars: Vec<char> = text.chars().collect();
            let count = chars.len();
            chars[at.index(count)] = *new;
            return chars.into_iter().collect();
        }
        Damage::Truncate(at) => {
            let chars: Vec<char> = text.chars().collect();
            return chars[..at.index(chars.len())].iter().collect();
        }
        Damage::Append(seed) => lines.extend(seed.get(seeds()).lines().map(str::to_owned)),
    }
    lines.join("\n")
}

#[test]
fn every_file_of_the_corpus_reads_the_same_after_writing() {
    assert!(seeds().len() > 30, "only {} files found", seeds().len());
    for text in seeds() {
        fixpoint::check(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn damaged_texts_are_refused_or_read_the_same_after_writing(
        seed in any::<Index>(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let text = damages.iter().fold(seed.get(seeds()).clone(), |text, damage| apply(&text, damage));
        fixpoint::check(&text);
    }

    #[test]
    fn any_sequence_of_words_is_refused_or_read(
        lines in prop::collection::vec(prop::collection::vec(proptest::sample::select(&WORDS[..]), 1..8), 0..12),
    ) {
        let lines: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
        fixpoint::check(&lines.join("\n"));
    }

    #[test]
    fn any_text_is_refused_or_read(text in any::<String>()) {
        fixpoint::check(&text);
    }
}
