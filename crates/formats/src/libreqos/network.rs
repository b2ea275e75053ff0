//! `network.json`: nodes by name, each with its rates and the nodes behind it.

use super::{NetworkNode, TEXT_BYTES_MAX, megabits};
use crate::error::{TextError, quoted};
use crate::json::{self, Key, Node, Value};
use std::collections::BTreeSet;

/// Deepest nesting of nodes.
const DEPTH_MAX: usize = 64;
const RATE: &str = "downloadBandwidthMbps";

pub(super) fn read(text: &str) -> Result<Vec<NetworkNode>, TextError> {
    TextError::check_length(text, TEXT_BYTES_MAX)?;
    nodes(&json::parse(text)?, &mut BTreeSet::new(), 0)
}

fn nodes(
    node: &Node,
    names: &mut BTreeSet<String>,
    depth: usize,
) -> Result<Vec<NetworkNode>, TextError> {
    let Value::Object(members) = &node.value else {
        let message = format!("this is {}", node.value.kind());
        return Err(TextError::at(node.span, message).expected("nodes by name: `{\"NAME\": {..}}`"));
    };
    if depth > DEPTH_MAX {
        let message = format!("nodes are nested deeper than {DEPTH_MAX} levels");
        return Err(TextError::at(node.span, message));
    }
    let members = members.iter();
    members
        .map(|(name, settings)| network_node(name, settings, names, depth))
        .collect()
}

fn network_node(
    name: &Key,
    settings: &Node,
    names: &mut BTreeSet<String>,
    depth: usize,
) -> Result<NetworkNode, TextError> {
    if !names.insert(name.text.clone()) {
        let message = format!("two nodes are called {}", quoted(&name.text));
        return Err(TextError::at(name.span, message).expected("a name of its own"));
    }
    let member = |wanted: &str| match &settings.value {
        Value::Object(members) => {
            let mut members = members.iter();
            members
                .find(|(key, _)| key.text == wanted)
                .map(|(_, node)| node)
        }
        _ => None,
    };
    let expected = format!("`\"{RATE}\": NUMBER` in Mbit/s, above 0");
    let Some(rate) = member(RATE) else {
        let message = format!("node {} has no rate", quoted(&name.text));
        return Err(TextError::at(name.span, message).expected(expected));
    };
    let number = match &rate.value {
        Value::Number(number) | Value::Text(number) => megabits(number),
        _ => None,
    };
    let Some(number) = number else {
        return Err(TextError::at(rate.span, "this is not a rate").expected(expected));
    };
    let children = match member("children") {
        Some(children) => nodes(children, names, depth + 1)?,
        None => Vec::new(),
    };
    Ok(NetworkNode {
        name: name.text.clone(),
        rate: number,
        children,
    })
}
