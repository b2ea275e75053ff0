//! A device's queues: their lengths, and the elephants that have one of their own, in all runs.

use crate::markup::{Section, table};
use crate::text_table::TextTable;
use maud::html;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::RunRecord;
use slicewise_stats::words::digits;
use std::collections::BTreeMap;

/// Queues and elephants, where runs have them.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// By policy (in its phase), scenario, device and queue.
    lengths: BTreeMap<Place, Length>,
    /// By policy, scenario, device and class.
    elephants: BTreeMap<Place, Elephants>,
}

/// Policy, scenario, device, and queue or class.
type Place = (String, String, u32, String);

/// The length of a queue in some runs.
#[derive(Debug, Default)]
struct Length {
    runs: u32,
    sum_of_means: f64,
    largest_frames: u32,
}

/// Flows of a class in some runs.
#[derive(Debug, Default)]
struct Elephants {
    tagged: u64,
    moved: u64,
    moved_back: u64,
    unfollowed_frames: u64,
}

impl Queues {
    pub(crate) fn on_run(&mut self, record: &RunRecord) {
        let place = |of: &RunRecord, device, name: &String| {
            let key = &of.key;
            (
                key.policy.clone(),
                key.scenario.clone(),
                device,
                name.clone(),
            )
        };
        for view in record.by_phase() {
            for queue in &view.queues {
                let place = place(&view, queue.device, &queue.queue);
                let length = self.lengths.entry(place).or_default();
                length.runs += 1;
                length.sum_of_means += queue.mean_frames;
                length.largest_frames = length.largest_frames.max(queue.largest_frames);
            }
        }
        for class in &record.elephants {
            let place = place(record, class.device, &class.class);
            let flows = self.elephants.entry(place).or_default();
            flows.tagged = flows.tagged.saturating_add(class.tagged);
            flows.moved = flows.moved.saturating_add(class.moved);
            flows.moved_back = flows.moved_back.saturating_add(class.moved_back);
            let unfollowed = &mut flows.unfollowed_frames;
            *unfollowed = unfollowed.saturating_add(class.unfollowed_frames);
        }
    }
}

impl Length {
    /// Mean over the runs, frames.
    fn mean_frames(&self) -> f64 {
        self.sum_of_means / f64::from(self.runs.max(1))
    }
}

/// `None` where neither was recorded.
pub(crate) fn section(study: &StudyDescription, queues: &Queues) -> Option<Section> {
    let Queues { lengths, elephants } = queues;
    if lengths.is_empty() && elephants.is_empty() {
        return None;
    }
    let lengths = rows(study, lengths, |length| {
        vec![
            digits(length.mean_frames(), 4),
            length.largest_frames.to_string(),
        ]
    });
    let elephants = rows(study, elephants, |flows| {
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
            (table(&TextTable::new("Policy | Scenario | Queue | Mean, frames | Largest, frames", 3, lengths)))
        }
        @if !elephants.is_empty() {
            h3 { "Elephants" }
            p.note {
                "Flows of classes that move elephants to a queue of their own, in all runs. Frames are not followed where a flow finds no counter."
            }
            (table(&TextTable::new("Policy | Scenario | Class | Tagged | Moved | Moved back | Frames not followed", 3, elephants)))
        }
    };
    Some(Section::new("queues", "Queues", body))
}

/// One row a place, in the order of the study.
fn rows<T>(
    study: &StudyDescription,
    places: &BTreeMap<Place, T>,
    cells: impl Fn(&T) -> Vec<String>,
) -> Vec<Vec<String>> {
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
