//! The sources that all scenarios have are written once: here every scenario gets them.

use crate::check::entry_as_meant;
use crate::diagnostics::closest;
use crate::file::{Key, Node, Problems, Value, merge_nodes, remove_keys};
use crate::problem;

/// Most sources of all scenarios together.
const MAX_SOURCES: usize = 100_000;

/// Settings of a scenario, for suggestions on a misspelt one.
const SCENARIO_SETTINGS: [&str; 5] = ["populations", "reference", "sources", "title", "x"];

/// Merge the table `sources` of the study into the `sources` of each scenario, and take out what a
/// scenario does `without`.
pub(crate) fn expand_sources(root: &mut Node, problems: &mut Problems) {
    let Some((key, templates)) =
        entry_as_meant(root, "sources").map(|(k, node)| (k.clone(), node.clone()))
    else {
        return;
    };
    // A misspelt key is reported where it stands, and not again in every scenario.
    let key = Key {
        text: "sources".to_owned(),
        ..key
    };
    let scenarios = entry_as_meant(root, "scenarios").map(|(key, _)| key.text.clone());
    let Some(scenarios) = scenarios else { return };
    let scenarios = root.entry_mut(&scenarios).and_then(Node::entries_mut);
    let Some(scenarios) = scenarios.filter(|_| templates.is_mapping()) else {
        return;
    };
    let sources = templates.entries();
    if sources.len().saturating_mul(scenarios.len()) > MAX_SOURCES {
        problem!(problems, key.span => "{} sources in {} scenarios are more than \
            {MAX_SOURCES}", sources.len(), scenarios.len());
        return;
    }
    for (_, scenario) in scenarios {
        expand_scenario(scenario, &key, &templates, problems);
    }
}

fn expand_scenario(scenario: &mut Node, key: &Key, templates: &Node, problems: &mut Problems) {
    let mut sources = templates.clone();
    if let Some((_, without)) = scenario.entry("without") {
        remove_keys(&mut sources, without, problems);
    }
    let Some(settings) = scenario.entries_mut() else {
        return;
    };
    settings.retain(|(key, _)| key.text != "without");
    let position = |is_it: fn(&str) -> bool| settings.iter().position(|(key, _)| is_it(&key.text));
    let own = position(|text| text == "sources")
        .or_else(|| position(|text| closest(text, SCENARIO_SETTINGS) == Some("sources")));
    match own.and_then(|at| settings.get_mut(at)) {
        Some((_, own)) => {
            let span = own.span;
            let own_node = std::mem::replace(
                own,
                Node {
                    value: Value::Null,
                    span,
                },
            );
            *own = merge_nodes(sources, own_node);
        }
        None => settings.push((key.clone(), sources)),
    }
}
