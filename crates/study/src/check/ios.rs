//! Policies written in IOS's own language, in a file or inside the study file.

use super::Checker;
use super::foreign::ForeignText;
use crate::file::{Sources, Span};
use crate::from_ios::{INSTEAD_OF_STATISTICS, STATISTICS, is_statistics};
use crate::spec::{At, Verbatim};
use slicewise_formats::ios::{self, Attached, Direction, IosPolicyError, PolicyChoiceError};
use slicewise_model::PolicySpec;

/// The text that a policy was read from.
pub(super) struct IosText {
    text: ForeignText,
    /// The name of its policy map.
    pub(super) map_name: String,
    /// Numbers of the lines that the policy needs, from 1, in order.
    needed: Vec<usize>,
}

/// Policies attached in a configuration from which a policy was read.
pub(crate) struct AttachedPolicies {
    /// The policy or, of one that is not compared, its device.
    name: String,
    is_compared: bool,
    /// The whole configuration: policies of one device are read from the same.
    text: String,
    /// The policy map that was read.
    map_name: String,
    attached: Vec<Attached>,
}

impl Checker<'_> {
    /// The policy, its configuration for people to read, and the text that it was read from.
    pub(super) fn ios_policy(
        &mut self,
        name: &At<String>,
        path: &[&str],
        text: &At<Verbatim>,
        (policy_map, is_lenient): (Option<&At<String>>, bool),
    ) -> Option<(PolicySpec, String, IosText)> {
        let ios = self.foreign_text(text)?;
        if is_statistics(&ios.text) {
            let help = Some(INSTEAD_OF_STATISTICS.to_owned());
            self.problems.add_suggesting(text.span, STATISTICS, help);
            return None;
        }
        let chosen = policy_map.map(|text| text.value.as_str());
        let read = ios::parse(&ios.text).map_err(|error| IosPolicyError::Text(vec![error]));
        let whole = read.and_then(|config| {
            let config = match is_lenient {
                true => config.leniently(),
                false => config,
            };
            let is_whole = config.skipped().is_some();
            config.policy(chosen).map(|policy| (policy, is_whole))
        });
        let (policy, is_whole) = match whole {
            Ok(policy) => policy,
            Err(IosPolicyError::Text(errors)) => {
                self.report_foreign(&ios, errors);
                return None;
            }
            Err(IosPolicyError::Choice(error)) => {
                let at = policy_map.map_or(text.span, |name| name.span);
                let help = match error {
                    PolicyChoiceError::NoPolicyMap => Some(
                        "take it from `show running-config`: the policy map, and the class maps that it names",
                    ),
                    _ if policy_map.is_none() => Some("name it with `policy_map`"),
                    _ => None,
                };
                let help = help.map(str::to_owned);
                self.problems.add_suggesting(at, error.to_string(), help);
                return None;
            }
        };
        self.note_foreign(name, &ios, policy.notes);
        self.state_foreign(name, &ios, &policy.unused);
        // Of a whole configuration, reports show what the policy needs: the rest holds secrets.
        let configuration = match is_whole {
            true => lines_of(&ios.text, &policy.lines),
            false => ios.text.trim_end().to_owned(),
        };
        let mut spec = policy.spec;
        let map_name = std::mem::replace(&mut spec.name, name.value.clone());
        self.attached.push(AttachedPolicies {
            name: name.value.clone(),
            is_compared: path.first() == Some(&"policies"),
            text: ios.text.clone(),
            map_name: map_name.clone(),
            attached: policy.attached,
        });
        let text = IosText {
            text: ios,
            map_name,
            needed: policy.lines,
        };
        Some((spec, configuration, text))
    }
}

impl Checker<'_> {
    /// The policies that the configuration of `policy` attaches as input, where packets arrive that it then sends, and that
    /// no device of the path runs.
    pub(super) fn attached_and_not_judged(&self, policy: &str) -> Option<String> {
        let mut all = self.attached.iter();
        let own = all.find(|own| own.is_compared && own.name == policy)?;
        let runs = |map: &str| {
            let mut devices = self.attached.iter().filter(|other| !other.is_compared);
            devices.any(|device| device.text == own.text && device.map_name == map)
        };
        let (of_own, others): (Vec<&Attached>, Vec<&Attached>) =
            (own.attached.iter()).partition(|attached| attached.policy == own.map_name);
        // One that is itself for input has none before it.
        if of_own
            .iter()
            .any(|attached| attached.direction == Direction::Input)
        {
            return None;
        }
        let places: Vec<&String> = of_own
            .iter()
            .flat_map(|attached| &attached.places)
            .collect();
        let before = others.into_iter().filter_map(|attached| {
            let mut attached = attached.clone();
            // What arrives where it leaves goes the other way.
            if let [only] = places[..] {
                attached.places.retain(|place| place != only);
            }
            let counts = attached.direction == Direction::Input && !attached.places.is_empty();
            (counts && !runs(&attached.policy)).then(|| attached.to_string())
        });
        let before: Vec<String> = before.collect();
        (!before.is_empty()).then(|| before.join("; "))
    }
}

/// The lines of `text` with these numbers, from 1.
fn lines_of(text: &str, numbers: &[usize]) -> String {
    let lines = text.lines().zip(1..);
    let kept = lines.filter(|(_, number)| numbers.binary_search(number).is_ok());
    let kept: Vec<&str> = kept.map(|(line, _)| line.trim_end()).collect();
    kept.join("\n")
}

/// The command of IOS that sets what the model calls `field`.
fn command(field: &str) -> &'static [&'static str] {
    match field {
        "police" => &["police"],
        "set_dscp" => &["set"],
        "priority" => &["priority"],
        "minimum" => &["bandwidth", "priority"],
        "weight" => &["bandwidth"],
        "shape" => &["shape"],
        "queue_limit" => &["queue-limit"],
        "wred" => &["random-detect"],
        "flow_queue" => &["fair-queue"],
        "child" => &["service-policy"],
        _ => &[],
    }
}

impl IosText {
    /// Where class `class` is configured, and in it the command that sets `field`.
    pub(super) fn place(&self, sources: &Sources, class: &str, field: &str) -> Option<Span> {
        let mut found = None;
        let mut is_inside = false;
        for (index, line) in self.text.text.lines().enumerate() {
            if self.needed.binary_search(&(index + 1)).is_err() {
                continue;
            }
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            let column = line.chars().take_while(|c| c.is_whitespace()).count() + 1;
            let length = line.trim().chars().count();
            let here = || {
                let line = index + 1;
                let place = slicewise_formats::Span {
                    line,
                    column,
                    length,
                };
                self.text.span(sources, place)
            };
            if first.eq_ignore_ascii_case("class") {
                is_inside = words.next() == Some(class);
                if is_inside && found.is_none() {
                    found = Some(here());
                }
            } else if first.eq_ignore_ascii_case("policy-map")
                || first.eq_ignore_ascii_case("class-map")
            {
                is_inside = false;
            } else if is_inside && command(field).iter().any(|c| first.eq_ignore_ascii_case(c)) {
                return Some(here());
            }
        }
        found
    }
}
