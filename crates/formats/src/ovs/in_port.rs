//! Rules by the port that frames come in by: a slice stands for what comes in by a port.
//!
//! A policy sees no ports. So a rule for the frames of a port becomes one for those of a slice, which the user names.

use super::openflow::Rule;
use super::vsctl::Database;
use crate::error::{Report, Span, TextError, TextNote, quoted};
use crate::flow::{Flow, outermost_flows_of};
use slicewise_model::ClassMap;

/// A slice of a study, in the order in which frames are given to the first that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OvsSlice {
    /// Its name.
    pub name: String,
    /// Its frames, without those of slices before it.
    pub matches: ClassMap,
    /// The ports that its frames come in by: a number, or the name of an interface.
    pub ports: Vec<String>,
}

/// Put the frames of slices for those of ports. Rules by ports that stand for no slice stay.
pub(super) fn resolve(
    rules: Vec<Rule>,
    slices: &[OvsSlice],
    database: &Database,
    report: &mut Report,
) -> Vec<Rule> {
    let number = |port: &str| {
        let number = database.interfaces.get(port);
        number.map_or_else(|| port.to_owned(), Clone::clone)
    };
    let by_port = |port: &str| {
        let is_it = |other: &String| number(other) == number(port);
        slices
            .iter()
            .position(|slice| slice.ports.iter().any(is_it))
    };
    let mut resolved = Vec::new();
    for rule in rules {
        let Some((port, at)) = rule.in_port.clone() else {
            resolved.push(rule);
            continue;
        };
        let Some(place) = by_port(&port) else {
            match rule.flow == Flow::default() {
                true => report.add(|| without_slice(&port, at)),
                false => resolved.push(rule),
            }
            continue;
        };
        let is_all_of_port = rule.flow == Flow::default();
        match slices
            .get(place)
            .map(|slice| (slice, outermost_flows_of(&slice.matches)))
        {
            Some((_, Ok(flows))) => {
                let common = flows
                    .iter()
                    .filter_map(|flow| flow.intersection(&rule.flow));
                resolved.extend(common.map(|flow| Rule {
                    flow,
                    slice: Some(place),
                    is_all_of_port,
                    ..rule.clone()
                }));
            }
            Some((slice, Err(why))) => report.add(|| {
                let message = format!("slice `{}`, which stands for this port, {why}", slice.name);
                TextError::at(at, message).expected("a slice that is a union of header fields")
            }),
            None => {}
        }
    }
    check_apart(&resolved, slices, report);
    resolved
}

/// Notes of the ports of `slices` that no rule is for.
pub(super) fn without_rule(
    rules: &[Rule],
    slices: &[OvsSlice],
    database: &Database,
) -> Vec<TextNote> {
    let number = |port: &String| database.interfaces.get(port).unwrap_or(port).clone();
    let has_rule = |port: &String| {
        let mut ports = rules.iter().filter_map(|rule| rule.in_port.as_ref());
        ports.any(|(of_rule, _)| number(of_rule) == number(port))
    };
    let ports = slices
        .iter()
        .flat_map(|slice| slice.ports.iter().map(|port| (&slice.name, port)));
    let without = ports.filter(|(_, port)| !has_rule(port));
    let notes = without.map(|(slice, port)| TextNote {
        span: Span::BEGIN,
        message: format!(
            "no rule is for port {}, which `in_ports` names for slice {}: its frames follow the other rules",
            quoted(port),
            quoted(slice)
        ),
    });
    notes.collect()
}

fn without_slice(port: &str, at: Span) -> TextError {
    TextError::at(
        at,
        "a policy does not know the port that a frame came in by",
    )
    .expected("a slice that stands for it, or a header field too, such as `nw_src`")
    .help(format!(
        "say beside `ovs` which slice comes in by it: `in_ports: {{{port}: SLICE}}`"
    ))
}

/// Frames of a slice that come in by another port, or by one that is not known, are not taken for those of a port: where two
/// slices have common frames, which belong to the first, that one has a rule that is met no later and takes all of its frames.
fn check_apart(rules: &[Rule], slices: &[OvsSlice], report: &mut Report) {
    for rule in rules {
        let Some(place) = rule.slice else { continue };
        let before = slices.iter().enumerate().take(place);
        let taken = before.filter(|(other, slice)| {
            let is_met_first = |of: &&Rule| {
                of.slice == Some(*other) && of.is_all_of_port && of.priority >= rule.priority
            };
            !slice.matches.conditions.is_empty() && !rules.iter().any(|of| is_met_first(&of))
        });
        for (_, other) in taken {
            let flows =
                outermost_flows_of(&other.matches).unwrap_or_else(|_| vec![Flow::default()]);
            if flows
                .iter()
                .any(|flow| flow.intersection(&rule.flow).is_some())
            {
                report.add(|| {
                    let message = format!(
                        "frames of slice {} would follow this rule, too: slices are matched in order, and it comes first",
                        quoted(&other.name)
                    );
                    let expected = "slices without common frames, or a rule by the port of that slice with no lower priority";
                    TextError::at(rule.at, message).expected(expected)
                });
            }
        }
    }
}
