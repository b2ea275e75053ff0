//! Every file that ships, and every YAML block of the documentation, is what the schema of its kind allows
//! to a validator of others, and passes our own check.
//!
//! Behind the fence of a block stands what it is: `yaml study`, `yaml plan`, `yaml measured` or
//! `yaml gateway` for a complete file, which `=NAME.yaml` names for the blocks below it;
//! `yaml extends=NAME.yaml` for settings on top of such a file, or of one that ships; `yaml unchecked`, with
//! the reason in a comment on the line before, for what is neither.

use crate::support::markdown::{Block, blocks};
use crate::support::outside;
use serde_json::Value;
use slicewise_study::{Diagnostics, FileKind, GatewayConfig, Lab, MeasuredStudy, Plan, StudyFile};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files below a folder with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Faults of a file of this kind: for a validator of others, or for us.
fn wrong_with(path: &Path, kind: FileKind) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let mut wrong = outside::violations(&text, kind);
    let message = |diagnostics: Diagnostics| diagnostics.to_string();
    match FileKind::of(path) {
        Ok(found) if found == kind => {}
        found => wrong.push(format!("it is taken for {found:?}")),
    }
    let checked = match kind {
        FileKind::Study => StudyFile::load(path).map(drop),
        FileKind::Plan => Plan::load(path).map(drop),
        FileKind::Measured => MeasuredStudy::load(path, "test").map(drop),
        FileKind::Gateway => GatewayConfig::load(path).map(drop),
        FileKind::Lab => Lab::load(path).map(drop),
    };
    wrong.extend(checked.map_err(message).err());
    wrong
}

/// Faults of the YAML of a page.
fn wrong_on(page: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let studies = root().join("studies");
    for path in files(&studies, "yaml")
        .into_iter()
        .chain(files(&studies, "cfg"))
    {
        let copy = folder.path().join(path.strip_prefix(&studies).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(path, copy).unwrap();
    }
    let blocks = blocks(page);
    let wrong = blocks.iter().flat_map(|block| {
        let wrong = wrong_with_block(block, &folder);
        wrong
            .into_iter()
            .map(|what| format!("line {}: {what}", block.line))
    });
    wrong.collect()
}

fn wrong_with_block(block: &Block, folder: &TempDir) -> Vec<String> {
    let mut words = block.info.split_whitespace();
    match words.next() {
        Some("yaml" | "yml") => {}
        // What says that it is something else is not looked at.
        Some(_) => return Vec::new(),
        None if is_yaml(&block.text) => {
            return vec!["this is YAML: put it in a fence that says of what kind".to_owned()];
        }
        None => return Vec::new(),
    }
    let what = words.next().unwrap_or_default();
    let (what, name) = what.split_once('=').unwrap_or((what, "example.yaml"));
    let (kind, before) = match what {
        "study" => (FileKind::Study, String::new()),
        "plan" => (FileKind::Plan, String::new()),
        "measured" => (FileKind::Measured, String::new()),
        "gateway" => (FileKind::Gateway, String::new()),
        "lab" => (FileKind::Lab, String::new()),
        "extends" => (FileKind::Study, format!("extends: {name}\n")),
        "unchecked" if block.comment.is_some() => return Vec::new(),
        "unchecked" => return vec!["the reason is missing".to_owned()],
        other => return vec![format!("`{other}` is no kind of YAML")],
    };
    let name = if what == "extends" {
        "example.yaml"
    } else {
        name
    };
    let path = folder.path().join(name);
    fs::write(&path, before + &block.text).unwrap();
    wrong_with(&path, kind)
}

/// Returns true if a text is settings: a mapping of words.
fn is_yaml(text: &str) -> bool {
    let is_word = |key: &String| key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    match outside::read(text) {
        Ok(Value::Object(settings)) => settings.keys().all(is_word),
        _ => false,
    }
}

#[test]
fn every_study_and_plan_that_ships_is_correct_and_what_its_schema_allows() {
    for (folder, kind, least) in [
        ("studies", FileKind::Study, 6),
        ("plans", FileKind::Plan, 1),
    ] {
        let files = files(&root().join(folder), "yaml");
        assert!(files.len() >= least, "{files:?}");
        for path in files {
            assert_eq!(
                wrong_with(&path, kind),
                Vec::<String>::new(),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn every_example_of_the_documentation_is_correct_and_what_its_schema_allows() {
    let mut pages = files(&root().join("docs"), "md");
    let at_the_root = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    pages.extend(at_the_root.filter(|path| path.extension().is_some_and(|e| e == "md")));
    let mut examples = 0;
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        examples += blocks(&page)
            .iter()
            .filter(|b| b.info.starts_with("yaml"))
            .count();
        assert_eq!(wrong_on(&page), Vec::<String>::new(), "{}", path.display());
    }
    assert!(examples >= 9, "only {examples} are found");
}

#[test]
fn the_plan_that_ships_has_a_million_slices_and_fits() {
    let plans = Plan::load(&root().join("plans/three-kinds.yaml")).unwrap();
    let slices: u64 = plans[0].slices.iter().map(|slice| slice.count).sum();
    assert_eq!(slices, 1_000_000);
    assert!(plans[0].outcome().is_admitted());
}

const PLAN: &str = "link: 1 Gbit/s\nslices: {all: {count: 2, guarantee: 1 Mbit/s}}\n";

fn page(info: &str, text: &str) -> String {
    format!("# A page\n\nText.\n\n```{info}\n{text}```\n")
}

#[test]
fn an_example_that_becomes_invalid_is_found() {
    assert_eq!(wrong_on(&page("yaml plan", PLAN)), Vec::<String>::new());
    // For the validator and for us.
    assert_eq!(
        wrong_on(&page("yaml plan", &PLAN.replace("count: 2", "count: 2_0"))).len(),
        2
    );
    // For us alone: it needs to be understood.
    let burst = PLAN.replace("1 Mbit/s", "{rate: 1 Mbit/s, burst: 2 GB}");
    assert_eq!(wrong_on(&page("yaml plan", &burst)).len(), 1);
    let extending = |settings| wrong_on(&page("yaml extends=shape-peak.yaml", settings));
    assert_eq!(extending("repetitions: 3\n"), Vec::<String>::new());
    assert_eq!(extending("repetition: 3\n").len(), 2);
    let misnamed = wrong_on(&page("yaml gateway", PLAN)).join("\n");
    assert!(misnamed.contains("it is taken for Ok(Plan)"), "{misnamed}");
}

#[test]
fn yaml_that_is_neither_checked_nor_exempted_is_found() {
    assert_eq!(wrong_on(&page("yaml", PLAN)).len(), 1);
    assert_eq!(wrong_on(&page("", PLAN)).len(), 1);
    let indented: String = PLAN.lines().map(|line| format!("    {line}\n")).collect();
    assert_eq!(wrong_on(&format!("Text.\n\n{indented}\nText.\n")).len(), 1);
    assert_eq!(wrong_on(&page("yaml unchecked", PLAN)).len(), 1);
    let exempted = page("yaml unchecked", PLAN).replace("```yaml", "<!-- why -->\n```yaml");
    assert_eq!(wrong_on(&exempted), Vec::<String>::new());
    assert_eq!(
        wrong_on(&page("console", "slicewise plan FILE\n")),
        Vec::<String>::new()
    );
}
