//! Links of pages lead to files and sections, in the repository and on the site that `dist/site/build` makes of them.

use super::contents::{anchor, headings};
use super::root;
use crate::support::{Sandbox, files_with, is_installed, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Texts between each `start` and the `end` that follows it.
fn between<'a>(page: &'a str, start: &str, end: &str) -> impl Iterator<Item = &'a str> {
    page.split(start)
        .skip(1)
        .filter_map(move |rest| rest.split_once(end))
        .map(|(found, _)| found)
}

/// Prose of a page in Markdown: without code.
fn prose(page: &str) -> String {
    let outside: String = page.split("\n```").step_by(2).collect();
    outside.split('`').step_by(2).collect()
}

fn links(path: &Path, page: &str) -> Vec<String> {
    let (page, starts) = if path.extension().is_some_and(|e| e == "md") {
        (prose(page), [("](", ")"), (" src=\"", "\"")])
    } else {
        (page.to_owned(), [(" href=\"", "\""), (" src=\"", "\"")])
    };
    let found = starts.map(|(start, end)| between(&page, start, end).map(str::to_owned).collect());
    let found: [Vec<String>; 2] = found;
    found.concat()
}

/// Names by which links refer to the sections of a page.
fn sections(path: &Path) -> BTreeSet<String> {
    let page = fs::read_to_string(path).unwrap();
    if path.extension().is_some_and(|e| e == "md") {
        headings(&page).map(anchor).collect()
    } else {
        between(&page, " id=\"", "\"").map(str::to_owned).collect()
    }
}

/// Links within these pages that lead to no file or to no section, each with the page that it is on.
fn dead_links(pages: &[PathBuf]) -> Vec<String> {
    let mut dead = Vec::new();
    for path in pages {
        let page = fs::read_to_string(path).unwrap();
        for link in links(path, &page) {
            let (file, section) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                _ if file.contains(':') => continue,
                _ => path.parent().unwrap().join(file),
            };
            let is_alive =
                target.exists() && (section.is_empty() || sections(&target).contains(section));
            if !is_alive {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    dead
}

/// Runs `dist/site/build`.
fn build(arguments: &[&Path]) {
    let script = root().join("dist/site/build");
    let build = Command::new(script).args(arguments).output().unwrap();
    assert!(build.status.success(), "{}", text(&build.stderr));
}

#[test]
fn pages_of_the_site_are_in_its_contents_and_their_links_lead_to_files_and_sections() {
    let sandbox = Sandbox::new();
    build(&[Path::new("--pages"), &sandbox.path("")]);
    let contents = sandbox.read("src/SUMMARY.md");
    let pages = files_with(&sandbox.path("src"), "md");
    assert_eq!(dead_links(&pages), Vec::<String>::new());
    for page in pages.iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        let name = page.strip_prefix(sandbox.path("src")).unwrap();
        let name = name.display();
        let is_named = contents.contains(&format!("]({name})"));
        assert!(is_named, "the table of docs/README.md does not name {name}");
    }
}

#[test]
fn links_of_the_site_lead_to_files_and_sections() {
    if !is_installed("mdbook") {
        println!("skipped: mdbook is not installed");
        return;
    }
    let sandbox = Sandbox::new();
    let site = sandbox.path("site");
    build(&[&site]);
    let mut pages = files_with(&site, "html");
    pages.retain(|path| !path.ends_with("sample-report/report.html"));
    assert_eq!(dead_links(&pages), Vec::<String>::new());
}
