//! Places of single values in a tree, named by the keys above them: `policies.fair.classes[voice].weight`.

use super::sources::{Problems, Span};
use super::tree::{Key, Node, Value};

/// Place of a single value.
#[derive(Debug, Clone)]
pub(crate) struct ValuePlace {
    /// Numbers of the entries and items on the way.
    steps: Vec<usize>,
    /// Key that the mapping at the end gets.
    new: Option<Key>,
}

/// Number of an entry or item, its node, and the rest of the path.
type Step<'a> = (usize, &'a Node, &'a str);

/// Message, and the name that is none of those known.
type Fault<'a> = (String, &'a str, Vec<&'a str>);

impl ValuePlace {
    /// Finds the place `path`, which is written at `at`. All but its last key must exist.
    pub(crate) fn find(root: &Node, path: &str, at: Span, problems: &mut Problems) -> Option<Self> {
        match Self::steps(root, path, at) {
            Ok(place) => Some(place),
            Err((message, written, known)) => {
                problems.add_unknown(at, message, (written, &known));
                None
            }
        }
    }

    fn steps<'a>(root: &'a Node, path: &'a str, at: Span) -> Result<Self, Fault<'a>> {
        let (mut node, mut rest, mut steps) = (root, path, Vec::new());
        loop {
            let above = path.strip_suffix(rest).unwrap_or_default();
            let (number, inner, behind) = match &node.value {
                Value::Mapping(entries) => match entry(entries, rest) {
                    Some(step) => step,
                    None if !rest.is_empty() && !rest.contains(['.', '[', ']']) => {
                        let text = rest.to_owned();
                        let new = Some(Key { text, span: at });
                        return Ok(Self { steps, new });
                    }
                    None => return Err(no_entry(entries, above, rest)),
                },
                Value::List(items) => item(items, above, rest)?,
                Value::Scalar(_) | Value::Null => {
                    let above = above.trim_end_matches('.');
                    let message = format!("`{above}` is one value: there is no `{path}`");
                    return Err((message, "", Vec::new()));
                }
            };
            steps.push(number);
            (node, rest) = (inner, behind);
            if rest.is_empty() {
                break;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
        match &node.value {
            Value::Scalar(_) | Value::Null => Ok(Self { steps, new: None }),
            Value::Mapping(entries) => {
                let message = format!("`{path}` holds settings and is no single value");
                Err((message, "", keys(entries)))
            }
            Value::List(items) => {
                let message = format!("`{path}` is a list: choose an element, as in `{path}[0]`");
                Err((message, "", names(items)))
            }
        }
    }

    /// Returns true if it is the place `other`, in the tree in which both were found.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let key = |place: &Self| place.new.as_ref().map(|key| key.text.clone());
        self.steps == other.steps && key(self) == key(other)
    }

    /// Puts `value` there, in a tree like the one in which it was found.
    pub(crate) fn set(&self, root: &mut Node, value: Node) {
        let mut steps = self.steps.iter();
        let end = steps.try_fold(root, |node, step| match &mut node.value {
            Value::Mapping(entries) => entries.get_mut(*step).map(|(_, node)| node),
            Value::List(items) => items.get_mut(*step),
            Value::Scalar(_) | Value::Null => None,
        });
        match (end, &self.new) {
            (Some(end), None) => *end = value,
            (Some(end), Some(key)) => {
                if let Some(entries) = end.entries_mut() {
                    entries.push((key.clone(), value));
                }
            }
            (None, _) => {}
        }
    }
}

/// The entry that a path begins with: the longest, because a name may hold full stops itself.
fn entry<'a>(entries: &'a [(Key, Node)], path: &'a str) -> Option<Step<'a>> {
    let steps = entries
        .iter()
        .enumerate()
        .filter_map(|(number, (key, node))| {
            let behind = path.strip_prefix(&key.text)?;
            let is_whole = behind.is_empty() || behind.starts_with(['.', '[']);
            is_whole.then_some((number, node, behind))
        });
    steps.min_by_key(|(_, _, behind)| behind.len())
}

fn no_entry<'a>(entries: &'a [(Key, Node)], above: &str, path: &'a str) -> Fault<'a> {
    let part = path.split(['.', '[']).next().unwrap_or_default();
    let place = match above.trim_end_matches('.') {
        "" => "the file".to_owned(),
        above => format!("`{above}`"),
    };
    let message = match part {
        "" => format!("{place} holds settings: go on with a full stop and one of its keys"),
        part => format!("there is no `{part}` in {place}"),
    };
    (message, part, keys(entries))
}

/// The element in brackets that a path begins with: by its `name`, or counted from 0.
fn item<'a>(items: &'a [Node], list: &str, path: &'a str) -> Result<Step<'a>, Fault<'a>> {
    let bracketed = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let bracketed =
        bracketed.filter(|(_, behind)| behind.is_empty() || behind.starts_with(['.', '[']));
    let Some((wanted, behind)) = bracketed else {
        let message = format!(
            "`{}` is a list: write which element in brackets, by its name or counted from `[0]`",
            list.trim_end_matches('.')
        );
        return Err((message, "", names(items)));
    };
    let number = items
        .iter()
        .position(|item| name(item) == Some(wanted))
        .or_else(|| wanted.parse().ok());
    let found = number.and_then(|number| Some((number, items.get(number)?, behind)));
    found.ok_or_else(|| {
        let message = format!(
            "there is no `{wanted}` among the {} elements of `{list}`",
            items.len()
        );
        (message, wanted, names(items))
    })
}

fn name(item: &Node) -> Option<&str> {
    item.entry("name").and_then(|(_, name)| name.text())
}

fn names(items: &[Node]) -> Vec<&str> {
    items.iter().filter_map(name).collect()
}

fn keys(entries: &[(Key, Node)]) -> Vec<&str> {
    entries.iter().map(|(key, _)| key.text.as_str()).collect()
}
