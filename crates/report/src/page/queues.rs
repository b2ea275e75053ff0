//! The section of a device's queues: their lengths, and the elephants that have one of their own.

use super::markup::{Section, table};
use crate::findings::Findings;
use crate::queues::Place;
use crate::text_table::TextTable;
use maud::html;
use slicewise_stats::words::digits;
use std::collections::BTreeMap;

/// `None` where neither was recorded.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let queues = &findings.queues;
    let (lengths, elephants) = (queues.lengths(), queues.elephants());
    if lengths.is_empty() && elephants.is_empty() {
        return None;
    }
    let lengths = rows(findings, lengths, |length| {
        vec![
            digits(length.mean_frames(), 4),
            length.largest_frames.to_string(),
        ]
    });
    let elephants = rows(findings, elephants, |flows| {
        let counts = [
            flows.tagged,
            flows.moved,
            flows.moved_back,
            flows.unfollowed_frames,
        ];
        counts.map(|count| count.to_string()).into()
    });
    let body = html! {
        @if !lengths.is_empty() {
            p.note {
                "Frames that wait in each queue of the device, as looks from time to time found them: the mean over all runs, and the largest \
                 number in any. The frame that is being sent waits no longer."
            }
            (table(&TextTable::new(&head(&["Queue", "Mean, frames", "Largest, frames"]), 3, lengths)))
        }
        @if !elephants.is_empty() {
            h3 { "Elephants" }
            p.note {
                "Flows of classes that move elephants to a queue of their own, in all runs. Frames are not followed where a flow finds no counter."
            }
            (table(&TextTable::new(&head(&["Class", "Tagged", "Moved", "Moved back", "Frames not followed"]), 3, elephants)))
        }
    };
    Some(Section::new("queues", "Queues", body))
}

fn head(own: &[&'static str]) -> Vec<&'static str> {
    [&["Policy", "Scenario"], own].concat()
}

/// One row a place, in the order of the study.
fn rows<T>(
    findings: &Findings,
    places: &BTreeMap<Place, T>,
    cells: impl Fn(&T) -> Vec<String>,
) -> Vec<Vec<String>> {
    let study = findings.study();
    let position = |place: &&Place| {
        let policies = study.policies.iter();
        let mut names = policies
            .map(|policy| study.policy_of_runs(&policy.name) == place.0 || policy.name == place.0);
        let scenario = study.scenarios.iter().position(|s| s.name == place.1);
        (names.position(|is| is), scenario)
    };
    let mut order: Vec<&Place> = places.keys().collect();
    order.sort_by_key(position);
    let has_path = order.iter().any(|place| place.2 > 1);
    let row = |place: &Place, of: &T| {
        let (policy, scenario, device, name) = place;
        let name = match has_path {
            true => format!("{name} (device {device})"),
            false => name.clone(),
        };
        [vec![policy.clone(), scenario.clone(), name], cells(of)].concat()
    };
    let rows = order.into_iter();
    rows.filter_map(|place| Some(row(place, places.get(place)?)))
        .collect()
}
