//! Everything the page shows. What is not skipped is for its script: `assets/page/*.js` reads fields by these names.

use crate::curves::{Arrivals, BinnedRun, Curve};
use serde::Serialize;
use std::collections::BTreeMap;

/// The whole document.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    pub(crate) study: StudyView,
    #[serde(skip)]
    pub(crate) runs: RunsView,
    pub(crate) slices: Vec<SliceView>,
    pub(crate) policies: Vec<PolicyView>,
    pub(crate) scenarios: Vec<ScenarioView>,
    pub(crate) signs: Signs,
    /// True where there is one policy in one scenario: a chart that compares would have one bar.
    pub(crate) one_cell: bool,
    /// How many slices are drawn at the same time.
    pub(crate) slices_drawn: usize,
    /// Place of the scenario with most load that has runs: studies are written from light to heavy.
    pub(crate) heaviest_scenario: usize,
    /// What each slice got; empty but where there is one cell.
    #[serde(skip)]
    pub(crate) slices_table: TableView,
    /// The result of all verdicts, in a sentence or two.
    #[serde(skip)]
    pub(crate) finding: String,
    #[serde(skip)]
    pub(crate) verdicts: Vec<VerdictView>,
    /// How to read the verdict table, a line each.
    #[serde(skip)]
    pub(crate) verdict_key: Vec<String>,
    /// By policy, then scenario; `None` where no run is finished.
    pub(crate) cells: Vec<Vec<Option<CellView<'a>>>>,
    /// Time series of the first repetition of each cell.
    pub(crate) binned: &'a [BinnedRun],
    pub(crate) arrivals: &'a [Arrivals],
    pub(crate) drops: Vec<DropsView>,
    /// What impaired links lost: with link and slice for the class.
    pub(crate) link_losses: Vec<DropsView>,
    /// What queues marked: with the slice for the class.
    pub(crate) marks: Vec<DropsView>,
    #[serde(skip)]
    pub(crate) published: Vec<PublishedView>,
    /// `None` in a study without populations.
    pub(crate) populations: Option<PopulationsView>,
    /// `None` in a study of which nothing was captured.
    #[serde(skip)]
    pub(crate) captured: Option<CapturedView>,
    /// `None` where no results folder is beside.
    pub(crate) beside: Option<BesideView>,
    /// `None` where nothing was predicted.
    pub(crate) prediction: Option<PredictionView>,
    /// A back end each whose runs were on real packets.
    #[serde(skip)]
    pub(crate) testbeds: Vec<TestbedView>,
    /// How it was measured and judged, a paragraph each.
    #[serde(skip)]
    pub(crate) method: Vec<String>,
    /// What to type to run it again.
    #[serde(skip)]
    pub(crate) command: String,
    /// Facts about the host: name and value.
    #[serde(skip)]
    pub(crate) host: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
pub(crate) struct StudyView {
    #[serde(skip)]
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) description: String,
    #[serde(skip)]
    pub(crate) source: String,
    #[serde(skip)]
    pub(crate) dut: String,
    #[serde(skip)]
    pub(crate) digest: String,
    #[serde(skip)]
    pub(crate) seed: String,
    #[serde(skip)]
    pub(crate) program_version: String,
    #[serde(skip)]
    pub(crate) repetitions: u32,
    #[serde(skip)]
    pub(crate) duration_ns: u64,
    pub(crate) confidence: f64,
    #[serde(skip)]
    pub(crate) assumptions: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct RunsView {
    pub(crate) expected: u64,
    pub(crate) finished: u64,
    /// Records that could not be trusted, and why.
    pub(crate) damaged: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SliceView {
    pub(crate) name: String,
    pub(crate) share_bits_per_second: u64,
    pub(crate) guaranteed: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct PolicyView {
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) title: String,
    #[serde(skip)]
    pub(crate) configuration: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct ScenarioView {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) reference: bool,
}

/// What policies and slices are drawn with, on any background.
#[derive(Debug, Serialize)]
pub(crate) struct Signs {
    pub(crate) policies: &'static [&'static str],
    pub(crate) slices: &'static [&'static str],
    /// Outlines as SVG paths.
    pub(crate) markers: Vec<String>,
    pub(crate) dashes: &'static [Option<(u32, u32)>],
}

#[derive(Debug)]
pub(crate) struct VerdictView {
    /// Place of the policy in the study.
    pub(crate) policy: usize,
    pub(crate) isolation: AttributeView,
    pub(crate) reallocation: AttributeView,
    pub(crate) scalability: AttributeView,
}

#[derive(Debug)]
pub(crate) struct AttributeView {
    /// What it is drawn as.
    pub(crate) outcome: &'static str,
    pub(crate) word: String,
    pub(crate) deciding: String,
    pub(crate) reason: String,
    pub(crate) published: Option<String>,
    pub(crate) agrees: Option<bool>,
    pub(crate) tests: Vec<TestView>,
}

#[derive(Debug)]
pub(crate) struct TestView {
    pub(crate) outcome: &'static str,
    pub(crate) word: String,
    pub(crate) slice: String,
    pub(crate) indicator: String,
    pub(crate) scenario: String,
    pub(crate) measured: String,
    pub(crate) interval: String,
    pub(crate) margin: String,
    pub(crate) p_value: String,
    /// True for the test that the verdict names.
    pub(crate) decides: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct CellView<'a> {
    pub(crate) repetitions: u32,
    pub(crate) transient: TransientView,
    pub(crate) slices: Vec<SliceCellView<'a>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TransientView {
    /// Runs that have one.
    pub(crate) found: u32,
    /// Runs that reached no steady state.
    pub(crate) not_reached: u32,
    pub(crate) end_ns: Option<EstimateView>,
    pub(crate) before: Option<EstimateView>,
    pub(crate) after: Option<EstimateView>,
}

/// Frames that one class dropped for one reason: a mean over the runs of each scenario.
#[derive(Debug, Serialize)]
pub(crate) struct DropsView {
    pub(crate) policy: usize,
    pub(crate) class: String,
    pub(crate) reason: String,
    /// `None` where no run is finished.
    pub(crate) frames: Vec<Option<f64>>,
}

/// Mean and interval.
pub(crate) type EstimateView = (f64, Option<f64>, Option<f64>);

#[derive(Debug, Serialize)]
pub(crate) struct SliceCellView<'a> {
    #[serde(flatten)]
    pub(crate) figures: SliceFiguresView,
    pub(crate) delay_cdf: Option<&'a Curve>,
}

/// Estimates by what the script calls them: `throughput`, `loss`, and all of delay and its variation under
/// their columns' names without the unit.
pub(crate) type SliceFiguresView = BTreeMap<&'static str, Option<EstimateView>>;

/// The same study on several back ends.
#[derive(Debug, Serialize)]
pub(crate) struct BesideView {
    pub(crate) sides: Vec<SideView>,
    pub(crate) verdicts: Vec<BesideVerdictView>,
    pub(crate) scenarios: Vec<String>,
    /// The one that is shown first: the heaviest that more than one back end has.
    pub(crate) first_scenario: usize,
    /// By side, then policy (as in `verdicts`), then scenario; `None` where no run is finished.
    pub(crate) figures: Vec<Vec<Vec<Option<BesideFigures>>>>,
}

/// One results folder.
#[derive(Debug, Serialize)]
pub(crate) struct SideView {
    pub(crate) name: String,
    /// What its verdicts are based on, in a line.
    #[serde(skip)]
    pub(crate) basis: String,
    /// Records that could not be trusted, and why.
    #[serde(skip)]
    pub(crate) left_out: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct BesideVerdictView {
    pub(crate) policy: String,
    /// A line per attribute; empty where nothing was published.
    #[serde(skip)]
    pub(crate) published: Vec<String>,
    /// Isolation and reallocation by side; `None` where it has no such policy.
    #[serde(skip)]
    pub(crate) sides: Vec<Option<[AttributeView; 2]>>,
    #[serde(skip)]
    pub(crate) scalability: Option<AttributeView>,
    /// By side: whether it cannot express the policy.
    pub(crate) unsupported: Vec<bool>,
}

/// A policy in a scenario on one back end.
#[derive(Debug, Serialize)]
pub(crate) struct BesideFigures {
    pub(crate) repetitions: u32,
    /// As in the study of the report; `None` where there is no slice of that name.
    pub(crate) slices: Vec<Option<SliceFiguresView>>,
}

/// What was measured beside what was predicted.
#[derive(Debug, Serialize)]
pub(crate) struct PredictionView {
    /// A sentence per back end.
    #[serde(skip)]
    pub(crate) finding: Vec<String>,
    #[serde(skip)]
    pub(crate) note: String,
    pub(crate) rows: Vec<PredictionRow>,
}

#[derive(Debug, Serialize)]
pub(crate) struct PredictionRow {
    /// Back end, policy, scenario, slice, which packets were simulated.
    pub(crate) names: [String; 5],
    /// Throughput, loss ratio, median delay.
    pub(crate) figures: [Option<PredictedFigureView>; 3],
}

#[derive(Debug, Serialize)]
pub(crate) struct PredictedFigureView {
    pub(crate) outcome: &'static str,
    pub(crate) measured: Option<EstimateView>,
    pub(crate) predicted: Option<EstimateView>,
    pub(crate) difference: Option<EstimateView>,
    pub(crate) decided_by: String,
}

/// How runs on real packets went.
#[derive(Debug)]
pub(crate) struct TestbedView {
    pub(crate) name: String,
    pub(crate) table: TableView,
    /// Attempts that were thrown away, and why.
    pub(crate) rejected: Vec<String>,
    /// Runs that were taken although the machine was noisy, and what was wrong with them.
    pub(crate) tolerated: Vec<String>,
    /// Device, kernel, tools.
    pub(crate) versions: Vec<String>,
    /// Runs as they were carried out.
    pub(crate) order: Vec<String>,
}

/// Slices by the thousand.
#[derive(Debug, Serialize)]
pub(crate) struct PopulationsView {
    /// The results, a line each.
    #[serde(skip)]
    pub(crate) finding: Vec<String>,
    /// The cost of a frame, where the host's facts hold it; may be empty.
    #[serde(skip)]
    pub(crate) cost: String,
    pub(crate) rows: Vec<PopulationView>,
}

/// A population under a policy in a scenario; all but the numbers that charts draw are texts.
#[derive(Debug, Serialize)]
pub(crate) struct PopulationView {
    /// Places in the study.
    pub(crate) policy: Option<usize>,
    pub(crate) scenario: Option<usize>,
    pub(crate) slice: usize,
    pub(crate) backlogged: bool,
    pub(crate) all_slices: u64,
    pub(crate) delay_max_ns: Option<u64>,
    pub(crate) delay_bound_ns: Option<u64>,
    pub(crate) within_bound: Option<bool>,
    pub(crate) slices_text: String,
    pub(crate) all_slices_text: String,
    pub(crate) delay_max: String,
    pub(crate) delay_bound: String,
    pub(crate) part_of_bound: String,
    pub(crate) bytes_per_weight: String,
    pub(crate) turns_apart: String,
    pub(crate) state: String,
    pub(crate) state_in_all: String,
    pub(crate) ns_a_frame: String,
}

/// What captures show beside slices.
#[derive(Debug)]
pub(crate) struct CapturedView {
    pub(crate) note: String,
    /// What readers of the figures have to know.
    pub(crate) warnings: Vec<String>,
    pub(crate) points: TableView,
    pub(crate) matching: TableView,
    pub(crate) flows_note: String,
    pub(crate) flows: Option<TableView>,
    pub(crate) hops: Option<TableView>,
}

/// A table of texts.
#[derive(Debug, Default)]
pub(crate) struct TableView {
    pub(crate) head: Vec<String>,
    /// How many of the first columns are names; the others are numbers.
    pub(crate) names: usize,
    pub(crate) rows: Vec<Vec<String>>,
}

impl TableView {
    pub(crate) fn new(head: &[&str], names: usize, rows: Vec<Vec<String>>) -> Self {
        Self {
            head: head.iter().map(|&text| text.to_owned()).collect(),
            names,
            rows,
        }
    }
}

#[derive(Debug)]
pub(crate) struct PublishedView {
    pub(crate) claim: String,
    pub(crate) source: String,
    /// What the figure is of.
    pub(crate) subject: String,
    pub(crate) expected: String,
    pub(crate) ours: String,
    /// Where ours was seen, and how many cells agree.
    pub(crate) seen_in: String,
    pub(crate) outcome: &'static str,
    pub(crate) word: &'static str,
    pub(crate) explanation: String,
}
