//! `extends`: one study file on top of another.
//!
//! A mapping is merged key by key; anything else, a list too, replaces what was there.

use super::files::Files;
use super::sources::{Problems, Sources, Span, beside, problem};
use super::tree::{self, Key, Node, Value};
use std::collections::BTreeMap;

/// Most files in a chain of `extends`.
const MAX_CHAIN: usize = 8;
/// Most things that one `without` leaves out.
const MAX_WITHOUT: usize = 1_000;

/// Everything needed to read one more file.
pub(crate) struct Loader<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) sources: &'a mut Sources,
    pub(crate) problems: &'a mut Problems,
}

/// Read the file `name` with this `text`, and what it extends. The result has no `extends`.
pub(crate) fn load(
    name: &str,
    text: String,
    files: &dyn Files,
    sources: &mut Sources,
    problems: &mut Problems,
) -> Option<Node> {
    Loader {
        files,
        sources,
        problems,
    }
    .chain(name, text, 1)
}

impl Loader<'_> {
    fn chain(&mut self, name: &str, text: String, length: usize) -> Option<Node> {
        let file = self.sources.add(name, text);
        let mut root = tree::parse(file, self.sources, self.problems)?;
        let Value::Mapping(entries) = &mut root.value else {
            let message = match root.value {
                Value::Null => "the file is empty: it should hold a study",
                _ => "a study file holds keys and values, for example `name: my-study`",
            };
            self.problems.add(root.span, message);
            return None;
        };
        let Some(index) = entries.iter().position(|(key, _)| key.text == "extends") else {
            return Some(root);
        };
        let (key, node) = entries.remove(index);
        let base = self.base(name, &key, &node, length)?;
        Some(merge_nodes(base, root))
    }

    /// The tree that the file `name` extends, less what it does without.
    fn base(&mut self, name: &str, key: &Key, node: &Node, length: usize) -> Option<Node> {
        let file = match &node.value {
            Value::Mapping(entries) => {
                self.check_keys(entries);
                node.entry("file").map(|(_, file)| file)
            }
            _ => Some(node),
        };
        let Some((
            Node {
                value: Value::Scalar(path),
                span,
            },
            at,
        )) = file.map(|f| (f, f.span))
        else {
            problem!(self.problems, key.span => "`extends` needs the file to build on, for example `extends: \
                base.yaml`");
            return None;
        };
        let path = beside(name, path);
        if length >= MAX_CHAIN || self.sources.find(&path).is_some() {
            problem!(self.problems, *span => "`{path}` cannot be extended here: it extends this file in turn, or more \
                than {MAX_CHAIN} files extend one another");
            return None;
        }
        let text = match self.files.read(&path) {
            Ok(text) => text,
            Err(error) => {
                let shown = self.sources.shown(&path);
                problem!(self.problems, at => "cannot read `{shown}`: {error}");
                return None;
            }
        };
        let mut base = self.chain(&path, text, length + 1)?;
        if let Some((_, without)) = node.entry("without") {
            remove_keys(&mut base, without, self.problems);
        }
        Some(base)
    }

    fn check_keys(&mut self, entries: &[(Key, Node)]) {
        let known = ["file", "without"];
        for (key, _) in entries
            .iter()
            .filter(|(key, _)| !known.contains(&key.text.as_str()))
        {
            self.problems
                .add_unknown(key.span, unknown_key(&key.text), (&key.text, &known));
        }
    }
}

pub(crate) fn unknown_key(key: &str) -> String {
    format!("`{key}` is not a setting here")
}

/// `base` with everything that `over` says.
pub(crate) fn merge_nodes(base: Node, over: Node) -> Node {
    let span = over.span;
    let value = match (base.value, over.value) {
        (Value::Mapping(entries), Value::Mapping(overrides)) => {
            Value::Mapping(merge_entries(entries, overrides))
        }
        (_, value) => value,
    };
    Node { value, span }
}

fn merge_entries(entries: Vec<(Key, Node)>, overrides: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
    let mut overrides: BTreeMap<String, (usize, Key, Node)> = overrides
        .into_iter()
        .enumerate()
        .map(|(position, (key, node))| (key.text.clone(), (position, key, node)))
        .collect();
    let mut merged = Vec::with_capacity(entries.len());
    for (key, node) in entries {
        merged.push(match overrides.remove(&key.text) {
            Some((_, over_key, over)) => {
                let node = in_full(&key, node, &over);
                (over_key, merge_nodes(node, over))
            }
            None => (key, node),
        });
    }
    // What is new comes behind, in the order written.
    let mut new: Vec<(usize, Key, Node)> = overrides.into_values().collect();
    new.sort_by_key(|(position, _, _)| *position);
    merged.extend(new.into_iter().map(|(_, key, node)| (key, node)));
    merged
}

/// Settings that a word may stand for, and the key of that word among them.
const WORD_OF: [(&str, &str); 2] = [("application", "kind"), ("transport", "protocol")];

/// The word as settings, where `over` changes some of those that it stands for.
fn in_full(key: &Key, node: Node, over: &Node) -> Node {
    let mut known = WORD_OF.iter().filter(|(setting, _)| *setting == key.text);
    match (&node.value, &over.value, known.next()) {
        (Value::Scalar(_), Value::Mapping(_), Some((_, word))) => {
            let span = node.span;
            let text = (*word).to_owned();
            let value = Value::Mapping(vec![(Key { text, span }, node)]);
            Node { value, span }
        }
        _ => node,
    }
}

/// Take the keys listed in `without` out of `base`; `a.b` is the key `b` in the mapping `a`.
pub(crate) fn remove_keys(base: &mut Node, without: &Node, problems: &mut Problems) {
    let Value::List(paths) = &without.value else {
        problem!(problems, without.span => "`without` is a list, for example `[published]`");
        return;
    };
    if paths.len() > MAX_WITHOUT {
        problem!(problems, without.span => "this leaves out more than {MAX_WITHOUT} settings");
        return;
    }
    for path in paths {
        match &path.value {
            Value::Scalar(text) => remove_key(base, text, path.span, problems),
            _ => problems.add(path.span, "this is not the name of a key"),
        }
    }
}

fn remove_key(base: &mut Node, path: &str, span: Span, problems: &mut Problems) {
    let Value::Mapping(entries) = &mut base.value else {
        problem!(problems, span => "`{path}` cannot be left out: it does not exist");
        return;
    };
    // The whole path first: a name may hold a full stop itself.
    if let Some(index) = entries.iter().position(|(key, _)| key.text == path) {
        entries.remove(index);
        return;
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match entries.iter_mut().find(|(key, _)| key.text == first) {
        Some((_, node)) if !rest.is_empty() => remove_key(node, rest, span, problems),
        _ => {
            let known: Vec<&str> = entries.iter().map(|(key, _)| key.text.as_str()).collect();
            let message = format!("`{first}` cannot be left out: it does not exist");
            problems.add_unknown(span, message, (first, &known));
        }
    }
}
