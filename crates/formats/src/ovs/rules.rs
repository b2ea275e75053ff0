//! Rules in order of priority to runs of rules that choose the same queue.

use super::openflow::Rule;
use crate::error::{Report, TextError};
use crate::flow::{FLOWS_MAX, Flow};

/// Rules of one queue between which no rule of another queue has to stand.
pub(super) struct Run {
    pub(super) queue: u32,
    pub(super) flows: Vec<Flow>,
}

/// The runs of `rules` in the order in which frames meet them. Frames that no run matches wait in queue 0, so the
/// last run is not of that queue.
pub(super) fn runs(mut rules: Vec<Rule>, report: &mut Report) -> Vec<Run> {
    if let Some(rule) = rules.get(FLOWS_MAX) {
        let message = format!("this is more than {FLOWS_MAX} rules");
        report.add(|| {
            TextError::at(rule.at, message).expected("fewer rules, with prefixes and masks")
        });
        return Vec::new();
    }
    rules.sort_by_key(|rule| (std::cmp::Reverse(rule.priority), rule.slice));
    for (index, rule) in rules.iter().enumerate() {
        // Of rules of one priority that match the same packet, the switch may take any.
        let mut before = rules.iter().take(index).rev();
        let mut same = before
            .by_ref()
            .take_while(|other| other.priority == rule.priority);
        let by_port = rule.slice.is_some();
        let other = same.find(|other| {
            // No frame comes in by two ports.
            let is_apart = by_port && other.slice.is_some() && other.slice != rule.slice;
            let differs = other.queue != rule.queue && !is_apart;
            differs && other.flow.intersection(&rule.flow).is_some()
        });
        if let Some(other) = other {
            report.add(|| {
                let message = format!(
                    "this rule and that on line {} match common packets, choose queues {} and {}, and have the same priority",
                    other.at.line, rule.queue, other.queue
                );
                TextError::at(rule.at, message).expected("`priority=N` in one of them")
            });
        }
    }
    let mut runs: Vec<Run> = Vec::new();
    for rule in rules {
        let of_queue = runs.iter().rposition(|run| run.queue == rule.queue);
        // It may join a run before others whose packets it does not take.
        let overlaps = |run: &Run| {
            let mut flows = run.flows.iter();
            flows.any(|flow| flow.intersection(&rule.flow).is_some())
        };
        let joined = of_queue.filter(|&at| !runs.iter().skip(at + 1).any(overlaps));
        match joined.and_then(|at| runs.get_mut(at)) {
            Some(run) => run.flows.push(rule.flow),
            None => runs.push(Run {
                queue: rule.queue,
                flows: vec![rule.flow],
            }),
        }
    }
    while runs.last().is_some_and(|run| run.queue == 0) {
        runs.pop();
    }
    runs
}
