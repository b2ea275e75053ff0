//! What ARCHITECTURE.md states of the workspace, held over `cargo metadata` and the sources.

use crate::support::files_with;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Licences that may come into the program: permissive ones, as SPDX identifiers.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().unwrap()
}

fn ours(name: &str) -> Option<&str> {
    name.strip_prefix("slicewise-")
}

/// The crates of ours that ARCHITECTURE.md lets each crate depend on.
fn drawn() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, rest) = text.split_once("\n## Dependencies\n\n```text\n").unwrap();
    let (drawing, _) = rest.split_once("```").unwrap();
    let arrows = drawing.lines().map(|line| {
        let (from, to) = line.split_once('→').unwrap();
        let to = to.split(',').map(|name| name.trim().to_owned());
        (from.trim().to_owned(), to.collect())
    });
    arrows.collect()
}

#[test]
fn dependencies_between_crates_are_those_that_are_drawn() {
    let metadata = metadata();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages(&metadata) {
        let Some(name) = package["name"].as_str().and_then(ours) else {
            continue;
        };
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let dependencies = dependencies.filter(|dependency| dependency["kind"].is_null());
        let names = dependencies.filter_map(|dependency| ours(dependency["name"].as_str()?));
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        if !names.is_empty() {
            found.insert(name.to_owned(), names);
        }
    }
    assert_eq!(found, drawn());
}

#[test]
fn no_modules_of_a_folder_import_each_other_in_circles() {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let krate = entry.unwrap();
        let imports = imports(&krate.path().join("src"));
        let folders: BTreeSet<&[String]> = imports
            .keys()
            .filter_map(|module| Some(module.split_last()?.1))
            .collect();
        for folder in folders {
            let circle = circle(imports_within(&imports, folder));
            if !circle.is_empty() {
                let name = krate.file_name().into_string().unwrap();
                found.insert([&[name], folder].concat().join("/"), circle);
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Paths of the modules of a crate, and of the items that each imports or names; tests left out.
fn imports(source: &Path) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let mut found = BTreeMap::new();
    for file in rust_files(source) {
        let path = file.strip_prefix(source).unwrap().with_extension("");
        let names = path.iter().map(|name| name.to_str().unwrap().to_owned());
        let mut module: Vec<String> = names.collect();
        module.pop_if(|name| ["lib", "main", "mod"].contains(&name.as_str()));
        if module.iter().any(|name| name == "tests") {
            continue;
        }
        let code = code(&file);
        let code: Vec<&str> = code
            .lines()
            .filter_map(|line| line.split("//").next())
            .collect();
        let code = code.join("\n");
        let mut items = BTreeSet::new();
        for start in ["crate::", "self::", "super::"] {
            let is_whole = |at: usize| {
                !code[..at].ends_with(|c: char| c == ':' || c == '_' || c.is_alphanumeric())
            };
            for (at, _) in code.match_indices(start).filter(|(at, _)| is_whole(*at)) {
                items.extend(
                    paths(&code[at..])
                        .iter()
                        .map(|path| resolved(&module, path)),
                );
            }
        }
        found.insert(module, items);
    }
    found
}

/// The path at the beginning of a text, or those of its group.
fn paths(text: &str) -> Vec<Vec<String>> {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut parts) = (0, vec![String::new()]);
        for character in group.chars() {
            match character {
                '}' if depth == 0 => break,
                ',' if depth == 0 => parts.push(String::new()),
                _ => parts.last_mut().unwrap().push(character),
            }
            depth += i32::from(character == '{') - i32::from(character == '}');
        }
        return parts.iter().flat_map(|part| paths(part)).collect();
    }
    let is_letter = |c: char| c == '_' || c.is_alphanumeric();
    let name = text.split(|c| !is_letter(c)).next().unwrap();
    let behind = match text[name.len()..].strip_prefix("::") {
        Some(rest) if !name.is_empty() => paths(rest),
        _ => vec![Vec::new()],
    };
    let whole = behind
        .into_iter()
        .map(|rest| [vec![name.to_owned()], rest].concat());
    whole.collect()
}

/// A path as written in a module, from the root of the crate.
fn resolved(module: &[String], path: &[String]) -> Vec<String> {
    let mut found = module.to_vec();
    for name in path {
        match name.as_str() {
            "crate" => found.clear(),
            "super" => drop(found.pop()),
            "self" => {}
            name => found.push(name.to_owned()),
        }
    }
    found
}

/// By module of a folder: those beside it that it, or a module in it, imports.
fn imports_within(
    imports: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
    folder: &[String],
) -> BTreeMap<String, BTreeSet<String>> {
    let child = |path: &[String]| path.strip_prefix(folder)?.first().cloned();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, items) in imports {
        if let Some(name) = child(module) {
            let others = items
                .iter()
                .filter_map(|item| child(item))
                .filter(|other| *other != name);
            found.entry(name.clone()).or_default().extend(others);
        }
    }
    found
}

/// Modules in circles, and those between circles: what remains when those that import none of the others are taken
/// away again and again.
fn circle(mut imports: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let before = imports.len();
        let names: BTreeSet<String> = imports.keys().cloned().collect();
        imports.retain(|_, imported| imported.iter().any(|name| names.contains(name)));
        if imports.len() == before {
            return imports.into_keys().collect();
        }
    }
}

/// The sources of a module, its in-file tests left out.
fn code(path: &Path) -> String {
    let files = if path.is_dir() {
        rust_files(path)
    } else {
        vec![path.to_owned()]
    };
    let texts = files.iter().map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        text.split("#[cfg(test)]").next().unwrap().to_owned()
    });
    texts.collect()
}

#[test]
fn pure_crates_stay_free_of_clocks_input_output_and_async_runtimes() {
    let forbidden = [
        "std::time::",
        "std::fs",
        "std::io",
        "std::net::Tcp",
        "std::net::Udp",
        "std::thread",
        "std::env",
        "std::process",
        "tokio",
        "println!",
    ];
    for name in [
        "units",
        "wire",
        "model",
        "dataplane",
        "applications",
        "transport",
    ] {
        for file in rust_files(&root().join("crates").join(name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for word in forbidden {
                assert!(!text.contains(word), "{}: `{word}`", file.display());
            }
        }
    }
}

/// Crates in the build of `slicewise` with these features.
fn built_with(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(
            "tree --package slicewise --edges normal,build --prefix none --locked --offline"
                .split(' '),
        )
        .args(features)
        .current_dir(root())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn studies_and_slices_are_built_without_database_http_server_and_async_runtime() {
    let built = built_with(&[]);
    for name in ["axum", "hyper", "sqlx", "tokio", "slicewise-controller"] {
        assert!(!built.contains(name), "{name}");
    }
    assert!(built_with(&["--features", "controller"]).contains("sqlx"));
}

#[test]
fn simulator_captures_studies_and_report_name_no_interface_of_linux() {
    let built = built_with(&["--no-default-features"]);
    let ours: Vec<&str> = built.iter().filter_map(|name| ours(name)).collect();
    for name in ["agent", "controller", "live", "testbed"] {
        assert!(!ours.contains(&name), "{name}");
    }
    // POSIX has these, and a processor without this file has no name.
    let portable = ["libc::O_NONBLOCK", "libc::O_NOFOLLOW", "\"/proc/cpuinfo\""];
    let of_linux = ["libc::", "os::linux", "\"/proc/", "\"/sys/", "target_os"];
    for name in ours {
        for file in rust_files(&root().join("crates").join(name).join("src")) {
            let text = portable
                .iter()
                .fold(code(&file), |text, word| text.replace(word, ""));
            for word in of_linux {
                assert!(!text.contains(word), "{}: `{word}`", file.display());
            }
        }
    }
}

#[test]
fn every_crate_but_the_live_gateway_forbids_unsafe_code() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    for entry in crates {
        let entry = entry.unwrap();
        let source = entry.path().join("src");
        // It shares memory with the kernel. What it denies, single modules allow.
        let wanted = if entry.file_name() == "live" {
            "#![deny(unsafe_code)]\n#![warn(clippy::undocumented_unsafe_blocks)]"
        } else {
            "#![forbid(unsafe_code)]"
        };
        let entry = ["lib.rs", "main.rs"]
            .map(|f| source.join(f))
            .into_iter()
            .find(|f| f.exists());
        let text = std::fs::read_to_string(entry.unwrap()).unwrap();
        assert!(text.contains(wanted), "{}", source.display());
    }
}

#[test]
fn every_dependency_has_a_permissive_licence_and_comes_from_the_registry() {
    let metadata = metadata();
    let mut refused = BTreeSet::new();
    for package in packages(&metadata) {
        let name = package["name"].as_str().unwrap();
        match package["source"].as_str() {
            None => {}
            Some(source) if source.starts_with("registry+") => {}
            Some(source) => {
                refused.insert(format!("{name}: from {source}, not from the registry"));
            }
        }
        let licence = package["license"].as_str().unwrap_or("none stated");
        if !is_permissive(licence) {
            refused.insert(format!("{name}: {licence}"));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

/// An SPDX expression of OR and AND without precedence tricks: every AND part needs one allowed
/// OR alternative. `/` is the old form of OR.
fn is_permissive(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    flat.split(" AND ").all(|part| {
        part.split(" OR ")
            .any(|licence| LICENCES.contains(&licence.trim()))
    })
}

#[test]
fn no_file_of_ours_outgrows_a_head() {
    let limit = 650;
    for file in rust_files(&root().join("crates")) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(
            lines <= limit,
            "{}: {lines} lines: more than one subject?",
            file.display()
        );
    }
}

#[test]
fn names_that_say_nothing_are_not_used_for_files() {
    for file in rust_files(&root().join("crates")) {
        let stem = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let says_nothing = [
            "utils", "util", "common", "helper", "helpers", "misc", "manager",
        ];
        assert!(!says_nothing.contains(&stem.as_str()), "{}", file.display());
    }
}

#[test]
fn integration_tests_are_modules_of_one_binary() {
    for krate in std::fs::read_dir(root().join("crates")).unwrap() {
        let tests = krate.unwrap().path().join("tests");
        let Ok(entries) = std::fs::read_dir(&tests) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let alone = "//! A binary of its own";
            let main = std::fs::read_to_string(path.join("main.rs")).unwrap_or_default();
            assert!(
                path.is_dir() && (main.is_empty() || path.ends_with("it") || main.contains(alone)),
                "{}: a module of `tests/it`, or with the reason: `{alone}`",
                path.display()
            );
        }
    }
}

#[test]
fn every_promise_of_the_specification_names_a_test_and_every_test_named_exists() {
    let root = root();
    let tests: BTreeSet<String> = rust_files(&root.join("crates"))
        .iter()
        .flat_map(|file| tests_in(file))
        .collect();
    let text = std::fs::read_to_string(root.join("SPECIFICATION.md")).unwrap();
    let (promises, _) = text.split_once("\n## Speed\n").unwrap();
    let rows = promises
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| promise | tests |"));
    let mut count = 0;
    for row in rows {
        let named: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let is_name = |word: &&&str| {
            word.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let unknown = named
            .iter()
            .filter(is_name)
            .find(|name| name.contains('_') && !tests.contains(**name));
        assert_eq!(unknown, None, "no test is called that");
        assert!(
            named.iter().any(|name| tests.contains(*name)),
            "no test: {row}"
        );
        count += 1;
    }
    assert!(count > 70, "only {count} promises were found");
}

/// Names of the tests in a file: what is marked, or all of a test program without a harness.
fn tests_in(file: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(file).unwrap();
    let is_program = file.ancestors().nth(2).unwrap().ends_with("tests")
        && std::fs::read_to_string(file.with_file_name("main.rs"))
            .is_ok_and(|main| main.contains("\nfn main() {"));
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if let Some((name, _)) = line
            .strip_prefix("fn ")
            .and_then(|rest| rest.split_once('('))
        {
            names.extend((is_test || is_program).then(|| name.to_owned()));
            is_test = false;
        }
        is_test |= line == "#[test]";
    }
    names
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files_with(folder, "rs")
}
