//! Cases: studies that share settings, in one file.
//!
//! Each case is settings on top of what the file says for all of them, as in a file that extends another, and is checked
//! as a study of its own. So devices, policies and timelines may differ from case to case. A sweep makes such cases.

use crate::diagnostics::{Diagnostics, suggestion};
use crate::file::{Key, Node, Problems, Value, merge_nodes, remove_keys};
use crate::problem;
use crate::study::Study;
use slicewise_stats::description::{Coordinate, number_and_unit};
use slicewise_stats::sweep::Resolution;

/// Most cases of a file.
const MAX_CASES: usize = 256;
/// Keys that belong to the file and not to a case.
pub(crate) const OF_THE_FILE: [&str; 5] = ["extends", "name", "cases", "sweep", "figures"];

/// Contents of a study file.
#[derive(Debug, Clone, PartialEq)]
pub enum StudyFile {
    /// One study.
    Study(Box<Study>),
    /// Studies that share settings.
    Series(Box<Series>),
}

/// Studies that share settings, in the order of the file; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name: also that of the folder that the results folders of its cases lie in.
    pub name: String,
    /// One line for people; may be empty.
    pub title: String,
    /// A paragraph for people; may be empty.
    pub description: String,
    /// Where the published figures come from; may be empty.
    pub source: String,
    /// The cases. The name of each study is that of the series, a hyphen, and that of the case.
    pub cases: Vec<Study>,
    /// The axes of the sweep that made the cases, in order; empty where the file lists them.
    pub axes: Vec<SweepAxis>,
    /// How close values of the first axis are to be between which isolation begins or ceases to hold; `None` where no points are to
    /// be added.
    pub refine: Option<Resolution>,
    /// Settings that do not do in a simulation what they say.
    pub(crate) warnings: Diagnostics,
}

/// Axis of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepAxis {
    /// Name.
    pub name: String,
    /// Its values are drawn at random from a range: hardly two points have one in common.
    pub is_drawn: bool,
}

impl Series {
    /// Settings that do not do in a simulation what they say, each with its place; may be empty.
    #[must_use]
    pub const fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// The names of its cases.
    pub fn case_names(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().filter_map(|study| study.case.as_deref())
    }

    /// The case `name`.
    ///
    /// # Errors
    /// There is none: a message that says which there are.
    pub fn case(&self, name: &str) -> Result<&Study, String> {
        let mut cases = self.cases.iter();
        let found = cases.find(|study| study.case.as_deref() == Some(name));
        found.ok_or_else(|| {
            let names: Vec<&str> = self.case_names().collect();
            let help = suggestion(name, &names).unwrap_or_default();
            format!("there is no case `{name}`: {help}")
        })
    }
}

/// A case as it is written, on top of what all cases share.
pub(crate) struct WrittenCase {
    pub(crate) name: Key,
    pub(crate) root: Node,
    /// Its place on an axis of figures: a number with its unit.
    pub(crate) x: Option<String>,
    /// Its place on the axes of a sweep.
    pub(crate) coordinates: Vec<Coordinate>,
}

/// Contents of a file with cases, or with a sweep that makes them.
pub(crate) struct WrittenSeries {
    /// Its title and other texts, without cases.
    pub(crate) series: Series,
    /// Settings that all cases share.
    pub(crate) root: Node,
    pub(crate) cases: Option<(Key, Node)>,
    pub(crate) sweep: Option<(Key, Node)>,
    /// Figures over the cases.
    pub(crate) figures: Option<(Key, Node)>,
}

/// Where a file has cases, or a sweep that makes them.
pub(crate) fn written(root: &Node) -> Option<(&Key, &Node)> {
    root.entry("cases").or_else(|| root.entry("sweep"))
}

/// Divides a file; `None` where it is no mapping.
pub(crate) fn split(mut root: Node) -> Option<WrittenSeries> {
    let entries = root.entries_mut()?;
    let [figures, cases, sweep] = ["figures", "cases", "sweep"].map(|setting| {
        let index = entries.iter().position(|(key, _)| key.text == setting)?;
        Some(entries.remove(index))
    });
    let text = |setting: &str| {
        let text = root.entry(setting).and_then(|(_, node)| node.text());
        text.unwrap_or_default().to_owned()
    };
    let series = Series {
        name: text("name"),
        title: text("title"),
        description: text("description"),
        source: text("source"),
        cases: Vec::new(),
        axes: Vec::new(),
        refine: None,
        warnings: Diagnostics::new(Vec::new(), 0),
    };
    Some(WrittenSeries {
        series,
        root,
        cases,
        sweep,
        figures,
    })
}

/// Returns the tree of each case; `None` where they cannot be read.
pub(crate) fn listed(
    root: &Node,
    (key, cases): (Key, Node),
    problems: &mut Problems,
) -> Option<Vec<WrittenCase>> {
    let Value::Mapping(cases) = cases.value else {
        problem!(problems, key.span => "`cases` holds settings by the name of the case, for example `c1: {{title: \
            ...}}`");
        return None;
    };
    if cases.is_empty() || cases.len() > MAX_CASES {
        problem!(problems, key.span => "a file has from 1 to {MAX_CASES} cases, and not {}", cases.len());
        return None;
    }
    let cases = cases
        .into_iter()
        .filter_map(|(key, over)| case(root, &key, over, problems));
    Some(cases.collect())
}

/// The tree of one case.
fn case(shared: &Node, key: &Key, over: Node, problems: &mut Problems) -> Option<WrittenCase> {
    let mut base = shared.clone();
    let span = over.span;
    let mut entries = match over.value {
        Value::Mapping(entries) => entries,
        Value::Null => Vec::new(),
        Value::Scalar(_) | Value::List(_) => {
            problem!(problems, key.span => "case `{}` holds settings, as a study does", key.text);
            return None;
        }
    };
    let mut x = None;
    entries.retain(|(setting, node)| {
        if OF_THE_FILE.contains(&setting.text.as_str()) {
            problem!(problems, setting.span => "`{}` is said of the whole file, not of a case", setting.text);
            return false;
        }
        if setting.text == "without" {
            remove_keys(&mut base, node, problems);
            return false;
        }
        if setting.text == "x" {
            x = place(setting, node, problems);
            return false;
        }
        true
    });
    let over = Node {
        value: Value::Mapping(entries),
        span,
    };
    let mut root = merge_nodes(base, over);
    name_case(&mut root, key);
    Some(WrittenCase {
        name: key.clone(),
        root,
        x,
        coordinates: Vec::new(),
    })
}

/// Place of a case on an axis of figures.
fn place(key: &Key, node: &Node, problems: &mut Problems) -> Option<String> {
    let text = node.text().unwrap_or_default().trim();
    let place = number_and_unit(text).filter(|(_, unit)| !unit.is_empty());
    if place.is_none() {
        problem!(problems, node.anchor(Some(key.span)) => "`{text}` is no number with a unit";
            "write a number, then its quantity and unit: `0.75 of the link`");
    }
    place.map(|_| text.to_owned())
}

/// The name of the study that a case is. What is wrong with it is wrong where the name of the case is written.
pub(crate) fn name_case(root: &mut Node, case: &Key) {
    if let Some(name) = root.entry_mut("name")
        && let Value::Scalar(text) = &mut name.value
    {
        text.push('-');
        text.push_str(&case.text);
        name.span = case.span;
    }
}
