//! Captions of declared figures: what a sign is, and what has none.

use super::{Declared, Entry};
use slicewise_stats::estimate::Estimate;
use slicewise_stats::plot::{PlotValue, PlotX};
use slicewise_stats::plotted::PlotCell;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::words::{percent, share, time};

impl<'a> Declared<'a> {
    /// Explains a sign and its whiskers.
    pub(super) fn explained(&self, entries: &[Entry<'a>]) -> Vec<String> {
        let runs = entries.iter().map(|entry| entry.cell.runs);
        let (fewest, most) = (runs.clone().min(), runs.max());
        let many = match (fewest, most) {
            (Some(fewest), Some(most)) if fewest != most => format!("{fewest} to {most}"),
            _ => most.map_or_else(String::new, |most| most.to_string()),
        };
        let is_single = most.is_none_or(|most| most < 2);
        let interval = percent(self.confidence());
        let text = match &self.plot.x {
            PlotX::Distribution(of) if of.of.percentiles().is_empty() => {
                let repetitions = if is_single {
                    "one repetition".to_owned()
                } else {
                    format!("{many} repetitions")
                };
                let (members, _) = of.of.members();
                let length = of.every_ns.map(|ns| format!(" of {}", time(ns as f64)));
                let length = length.unwrap_or_default();
                format!("Share of the {members}{length} in {repetitions} with at most this value.")
            }
            PlotX::Distribution(_) if is_single => {
                format!("A sign is a percentile of one repetition{BEYOND}.")
            }
            PlotX::Distribution(_) => format!(
                "A sign is the mean of a percentile over {many} repetitions, its whisker the {interval} confidence interval of the mean{BEYOND}."
            ),
            _ if is_single => "A sign is the value of one repetition.".to_owned(),
            PlotX::Value(_) => format!(
                "A sign is the mean of {many} repetitions, its whiskers the {interval} confidence intervals of both means."
            ),
            _ => format!(
                "A sign is the mean of {many} repetitions, its whisker the {interval} confidence interval of the mean."
            ),
        };
        let mut texts = vec![text];
        texts.extend(self.span().map(str::to_owned));
        texts
    }

    /// States that applications are measured over whole runs, unlike packets; phases have their own times.
    fn span(&self) -> Option<&'static str> {
        let of_x = match &self.plot.x {
            PlotX::Distribution(of) => Some(of.of.quantity()),
            PlotX::Value(of) => Some(of.metric.quantity),
            _ => None,
        };
        let of_y = self.plot.y.as_ref().map(|of| of.metric.quantity);
        let has = |is_it: fn(Quantity) -> bool| [of_x, of_y].into_iter().flatten().any(is_it);
        let has_phases = self
            .cases
            .iter()
            .any(|(study, ..)| !study.phases.is_empty());
        if has_phases || !has(is_of_applications) {
            None
        } else if has(|quantity| quantity == Quantity::Goodput) {
            Some("Goodput is the mean over the whole run, whenever sources begin and end.")
        } else {
            Some("Applications are measured over the whole run, transient included.")
        }
    }

    /// Cases without runs, and cells without a value, in words.
    pub(super) fn left_out(&self, entries: &[Entry<'a>]) -> Vec<String> {
        let mut texts = Vec::new();
        let has_runs = |name: &str| {
            self.cases
                .iter()
                .any(|(of, ..)| of.case.as_deref() == Some(name))
        };
        let cases = self.plot.cases().map(|(_, case)| case.name.as_str());
        let without: Vec<&str> = cases.filter(|name| !has_runs(name)).collect();
        if !without.is_empty() {
            texts.push(format!("Not run: {}.", without.join(", ")));
        }
        texts.extend(self.without_value(entries));
        let mut absent: Vec<(&str, Vec<String>)> = Vec::new();
        for entry in entries {
            let runs = entry.cell.runs;
            for (quantity, has) in self.samples(entry.cell) {
                let label = match has {
                    0 => entry.label(),
                    has if has >= runs => continue,
                    has => format!("{} ({} of {runs} runs)", entry.label(), runs - has),
                };
                let reason = why_absent(quantity);
                match absent.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, labels)) if labels.contains(&label) => {}
                    Some((_, labels)) => labels.push(label),
                    None => absent.push((reason, vec![label])),
                }
            }
        }
        let sentences = absent
            .into_iter()
            .map(|(reason, labels)| format!("No value, because {reason}: {}.", named(&labels)));
        texts.extend(sentences);
        texts
    }

    /// Shares of a distribution that have no value, and lie above every line.
    fn without_value(&self, entries: &[Entry<'a>]) -> Option<String> {
        let PlotX::Distribution(of) = &self.plot.x else {
            return None;
        };
        let without = entries
            .iter()
            .filter(|entry| entry.cell.without_value > 0.0);
        let labels: Vec<String> = without
            .map(|entry| format!("{} ({})", entry.label(), share(entry.cell.without_value)))
            .collect();
        let (members, fate) = of.of.members();
        (!labels.is_empty()).then(|| {
            let labels = named(&labels);
            format!(
                "Of the {members}, these shares were {fate} and lie beyond every value: {labels}."
            )
        })
    }

    /// Quantities of a cell, each with the number of runs that have it.
    fn samples(&self, cell: &PlotCell) -> Vec<(Quantity, u32)> {
        let samples = |of: &PlotValue, value: &Option<Estimate>| {
            let samples = value.map_or(0, |estimate| estimate.samples);
            (of.metric.quantity, samples)
        };
        let of_x = match &self.plot.x {
            PlotX::Value(x) => Some(samples(x, &cell.x)),
            PlotX::Distribution(of) => {
                let runs = if cell.distribution.is_empty() {
                    0
                } else {
                    cell.runs
                };
                Some((of.of.quantity(), runs))
            }
            _ => None,
        };
        let of_y = self.plot.y.as_ref().map(|y| samples(y, &cell.y));
        of_x.into_iter().chain(of_y).collect()
    }
}

fn is_of_applications(quantity: Quantity) -> bool {
    Quantity::of_applications().any(|of| of == quantity)
}

/// Reason why a run has no value of a quantity.
fn why_absent(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::LossBurstFrames
        | Quantity::LossEpisodeLength
        | Quantity::LossEpisodeFrames
        | Quantity::LossEpisodeRatio => "nothing was lost",
        Quantity::LossRatio => "nothing was sent",
        Quantity::TransientEnd | Quantity::TransientThroughput => "no transient was found",
        Quantity::IatMean
        | Quantity::IatVariance
        | Quantity::ReceivedIatMean
        | Quantity::ReceivedIatVariance => "no interval between packets was measured",
        _ if is_of_applications(quantity) => "the applications have no sample",
        _ => "nothing arrived",
    }
}

/// The first labels, and how many more there are.
fn named(labels: &[String]) -> String {
    let first = labels.get(..MOST_NAMED).unwrap_or(labels).join("; ");
    match labels.len().saturating_sub(MOST_NAMED) {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}

/// Percentiles that are not drawn.
const BEYOND: &str = "; percentiles that no value of a repetition exceeds are left out";

/// Cells without a value that a caption names.
const MOST_NAMED: usize = 6;
