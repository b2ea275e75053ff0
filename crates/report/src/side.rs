//! Results folders beside each other: the same study on a simulator, a gateway, a kernel.

use crate::attribute::{AttributeText, attributes};
use crate::error::ReportError;
use crate::testbed::{Testbed, utc};
use slicewise_results::{ResultsError, ResultsFolder, Unsupported};
use slicewise_stats::backend;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::prediction::{OfferedTraffic, PredictedFigure, compare_with_prediction};
use slicewise_stats::record::RunRecord;
use slicewise_stats::summary::{CellSummary, Summary, SummaryBuilder};
use slicewise_stats::verdict::{self, PolicyVerdict, VerdictTable};
use slicewise_stats::words::{count, time};
use std::path::{Path, PathBuf};

/// A results folder, judged on its own.
#[derive(Debug, Clone)]
pub struct Side {
    /// Name of the back end: "simulator", "gateway", "Linux tc". No two sides of a report have the same name.
    pub name: String,
    /// True for the folder that the report is made of.
    pub is_main: bool,
    /// Study that was run.
    pub study: StudyDescription,
    /// The estimates.
    pub summary: Summary,
    /// The verdicts.
    pub verdicts: VerdictTable,
    /// Measured figures beside their predictions; empty where there are none.
    pub prediction: Vec<PredictedFigure>,
    /// How the runs went, where they were on real packets.
    pub testbed: Testbed,
    /// Runs that the whole study has, those that are not supported left out.
    pub expected_runs: u64,
    /// Runs that the verdicts are made from.
    pub finished_runs: u64,
    /// Runs that were left out because they cannot be trusted, and why; without the folder's path.
    pub damaged_runs: Vec<String>,
}

impl Side {
    /// One line on what stands behind the verdicts: device, runs, scenarios, when.
    pub(crate) fn basis(&self) -> String {
        let dut = match self.study.dut.as_str() {
            "" => "device not named",
            dut => dut,
        };
        let mut text = format!("{dut}; {}", self.extent());
        if self.finished_runs < self.expected_runs {
            text.push_str(&format!(
                "; {} of {} runs are finished",
                self.finished_runs, self.expected_runs
            ));
        }
        match self.testbed.began_ns().map(|(a, b)| (utc(a), utc(b))) {
            Some((first, last)) if first == last => text.push_str(&format!("; {first}")),
            Some((first, last)) => text.push_str(&format!("; {first} to {last}")),
            None => {}
        }
        text
    }

    /// How much was run: "3 repetitions × 10 s, scenarios 0, 6".
    pub(crate) fn extent(&self) -> String {
        let covered: Vec<&str> = self.covered_scenarios().collect();
        let scenarios = match covered.as_slice() {
            [] => "no scenario".to_owned(),
            [only] => format!("scenario {only}"),
            several => format!("scenarios {}", several.join(", ")),
        };
        let duration = match self.study.duration_ns {
            0 => String::new(),
            ns => format!(" × {}", time(ns as f64)),
        };
        let repetitions = count(self.study.repetitions.into(), "repetition");
        format!("{repetitions}{duration}, {scenarios}")
    }

    /// Its name, the policies that were run, and how that went.
    pub(crate) fn testbed(&self) -> (&str, Vec<&str>, &Testbed) {
        (&self.name, self.policies_of_runs(), &self.testbed)
    }

    /// The policies of its runs, each once, whatever their phases are called.
    pub(crate) fn policies_of_runs(&self) -> Vec<&str> {
        let judged = self.study.policies.iter();
        let mut policies: Vec<&str> = judged.map(|p| self.study.policy_of_runs(&p.name)).collect();
        policies.dedup();
        policies
    }

    /// The verdict on a policy; `None` where this side does not have it.
    pub(crate) fn verdict(&self, policy: &str) -> Option<&PolicyVerdict> {
        self.verdicts.policies.iter().find(|v| v.policy == policy)
    }

    /// The estimates of a policy in a scenario.
    pub(crate) fn cell(&self, policy: &str, scenario: &str) -> Option<&CellSummary> {
        let mut cells = self.summary.cells.iter();
        cells.find(|cell| cell.policy == policy && cell.scenario == scenario)
    }

    /// Scenarios that have runs, in the order of the study.
    pub(crate) fn covered_scenarios(&self) -> impl Iterator<Item = &str> {
        let names = self.study.scenarios.iter().map(|s| s.name.as_str());
        names.filter(|name| self.summary.cells.iter().any(|c| c.scenario == *name))
    }
}

/// The folders beside that of the report, each judged on its own.
///
/// # Errors
/// Where one cannot be read, is of another study, holds nothing to judge, or is named twice.
pub(crate) fn read_beside(
    main: &ResultsFolder,
    beside: &[PathBuf],
) -> Result<Vec<Side>, ReportError> {
    let mut known = vec![resolved(main.path())];
    let mut sides = Vec::new();
    for path in beside {
        let folder = ResultsFolder::open(path)?;
        if known.contains(&resolved(path)) {
            return Err(ReportError::SameFolderTwice { path: path.clone() });
        }
        known.push(resolved(path));
        let (found, wanted) = (&folder.judged().name, &main.study().name);
        if found != wanted {
            return Err(ReportError::OtherStudyBeside {
                path: path.clone(),
                found: found.clone(),
                wanted: wanted.clone(),
            });
        }
        sides.push(read_side(&folder)?);
    }
    Ok(sides)
}

/// Sides with their folders, from the model on; each gets a name of its own: by what carried its runs
/// out and, where that leaves two of one name, by its folder.
pub(crate) fn in_order(sides: impl Iterator<Item = (Side, PathBuf)>) -> Vec<Side> {
    let mut sides: Vec<(Side, PathBuf)> = sides.collect();
    sides.sort_by_key(|(side, _)| backend::order(&side.study.backend));
    let names: Vec<String> = sides.iter().map(|(side, _)| side.name.clone()).collect();
    for (index, (side, path)) in sides.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == side.name).count() > 1 {
            let folder = path.file_name().map(|name| name.to_string_lossy());
            side.name = match folder {
                Some(folder) => format!("{} ({folder})", side.name),
                None => format!("{} ({})", side.name, index + 1),
            };
        }
    }
    // Folders of one name may lie in different places.
    let names: Vec<String> = sides.iter().map(|(side, _)| side.name.clone()).collect();
    for (index, (side, _)) in sides.iter_mut().enumerate() {
        let before = names
            .iter()
            .take(index)
            .filter(|n| **n == side.name)
            .count();
        if before > 0 {
            side.name = format!("{} {}", side.name, before + 1);
        }
    }
    sides.into_iter().map(|(side, _)| side).collect()
}

/// The folder that the report is made of, then those beside it.
pub(crate) fn main_first(sides: &[Side]) -> impl Iterator<Item = &Side> {
    let main = sides.iter().filter(|side| side.is_main);
    main.chain(sides.iter().filter(|side| !side.is_main))
}

/// How many slices a policy holds, on which sides: that is of the device, too. `None` where no side has the
/// policy.
pub(crate) fn scalability(policy: &str, sides: &[Side]) -> Option<AttributeText> {
    let texts = main_first(sides).filter_map(|side| {
        let [_, _, text] = attributes(side.verdict(policy)?);
        Some((side, text))
    });
    let mut limits: Vec<(AttributeText, Vec<&str>)> = Vec::new();
    for (side, text) in texts {
        match limits.iter_mut().find(|(known, _)| known.word == text.word) {
            Some((_, names)) => names.push(&side.name),
            None => limits.push((text, vec![&side.name])),
        }
    }
    let on = |one: &dyn Fn(&AttributeText) -> String| {
        let of_each = limits
            .iter()
            .map(|(text, names)| format!("{}: {}", names.join(", "), one(text)));
        of_each.collect::<Vec<_>>().join("; ")
    };
    if limits.len() < 2 {
        return limits.pop().map(|(text, _)| text);
    }
    let (word, deciding, reason) = (
        on(&|text| text.word.clone()),
        on(&|text| text.deciding.clone()),
        on(&|text| text.reason.clone()),
    );
    let (first, _) = limits.swap_remove(0);
    Some(AttributeText {
        word,
        deciding,
        reason,
        ..first
    })
}

/// The same folder has the same path, whichever way it was named.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn read_side(folder: &ResultsFolder) -> Result<Side, ReportError> {
    let mut builder = SummaryBuilder::new(folder.judged());
    let mut damaged_runs = Vec::new();
    let mut testbed = Testbed::default();
    add_runs(folder, &mut builder, &mut damaged_runs, |record| {
        testbed.on_run(record);
    });
    judged(folder, &builder, testbed, damaged_runs)
}

/// A folder whose runs were read into `builder` and `testbed`, without those that are damaged.
///
/// # Errors
/// Where there is nothing to judge.
pub(crate) fn judged(
    folder: &ResultsFolder,
    builder: &SummaryBuilder<'_>,
    testbed: Testbed,
    mut damaged_runs: Vec<String>,
) -> Result<Side, ReportError> {
    let study = folder.judged();
    let unsupported = unsupported(folder, &mut damaged_runs);
    let finished_runs = builder.runs();
    if finished_runs == 0 && unsupported.is_empty() {
        return Err(ReportError::NoRuns {
            path: folder.path().to_owned(),
        });
    }
    let mut verdicts = verdict::judge(study, builder.observations());
    mark_unsupported(&mut verdicts, builder, &unsupported);
    Ok(Side {
        name: backend::name(&study.backend).to_owned(),
        is_main: false,
        study: study.clone(),
        summary: builder.summary(),
        expected_runs: expected_runs(folder, &verdicts),
        verdicts,
        prediction: predicted_figures(builder, folder, &mut damaged_runs),
        testbed,
        finished_runs,
        damaged_runs,
    })
}

/// Policies without runs. What cannot be read is left out with a word: the runs do not depend on it.
fn unsupported(folder: &ResultsFolder, left_out: &mut Vec<String>) -> Vec<Unsupported> {
    folder.read_unsupported().unwrap_or_else(|error| {
        left_out.push(without_folder(&error, folder));
        Vec::new()
    })
}

/// Say of policies without runs that they cannot have any.
fn mark_unsupported(
    verdicts: &mut VerdictTable,
    builder: &SummaryBuilder<'_>,
    unsupported: &[Unsupported],
) {
    for (index, verdict) in verdicts.policies.iter_mut().enumerate() {
        let is_it = |u: &&Unsupported| builder.is_run_as(index, &u.policy);
        let why = unsupported.iter().find(is_it);
        if let Some(why) = why.filter(|_| !builder.has_runs_of_policy(index)) {
            verdict.not_supported = Some(why.reason.clone());
        }
    }
}

/// The runs of a study without those of policies that cannot have any.
fn expected_runs(folder: &ResultsFolder, verdicts: &VerdictTable) -> u64 {
    let policies = verdicts.policies.iter();
    let supported = policies.filter(|p| p.not_supported.is_none()).count() as u64;
    let study = folder.study();
    // Each phase has a verdict, and a run has all phases.
    let supported = supported / (study.phases.len() as u64).max(1);
    supported * study.scenarios.len() as u64 * u64::from(study.repetitions)
}

/// Returns the figures measured in `folder` beside their predictions. Those that cannot be read are left out with a
/// word.
fn predicted_figures(
    measured: &SummaryBuilder<'_>,
    folder: &ResultsFolder,
    left_out: &mut Vec<String>,
) -> Vec<PredictedFigure> {
    let mut figures = Vec::new();
    for traffic in OfferedTraffic::ALL {
        match folder.open_prediction(traffic) {
            Ok(None) => {}
            Ok(Some(predicted)) => {
                let study = folder.judged();
                figures.extend(figures_of(traffic, (study, measured), &predicted, left_out));
            }
            Err(error) => left_out.push(without_folder(&error, folder)),
        }
    }
    // Both traffics of a slice beside each other.
    let study = folder.judged();
    figures.sort_by_key(|figure| {
        (
            study.policy_place(&figure.policy),
            study.scenario_place(&figure.scenario),
            study.slice_place(&figure.slice),
        )
    });
    figures
}

fn figures_of(
    traffic: OfferedTraffic,
    (study, measured): (&StudyDescription, &SummaryBuilder<'_>),
    folder: &ResultsFolder,
    left_out: &mut Vec<String>,
) -> Vec<PredictedFigure> {
    if folder.judged().name != study.name {
        left_out.push(format!(
            "the prediction is of study `{}`, not of `{}`: run the study again to have it predicted",
            folder.judged().name,
            study.name
        ));
        return Vec::new();
    }
    let mut predicted = SummaryBuilder::new(folder.judged());
    let mut damaged = Vec::new();
    add_runs(folder, &mut predicted, &mut damaged, |_| {});
    left_out.extend(
        damaged
            .into_iter()
            .map(|text| format!("prediction: {text}")),
    );
    if predicted.observations().is_empty() {
        return Vec::new();
    }
    compare_with_prediction(
        traffic,
        (study, measured.observations()),
        (folder.judged(), predicted.observations()),
    )
}

/// Take all runs that can be read; log why the others cannot.
pub(crate) fn add_runs(
    folder: &ResultsFolder,
    builder: &mut SummaryBuilder<'_>,
    left_out: &mut Vec<String>,
    mut also: impl FnMut(&RunRecord),
) {
    for run in folder.finished_runs() {
        match run {
            Ok(record) => match builder.add(&record) {
                Ok(()) => also(&record),
                Err(error) => left_out.push(error.to_string()),
            },
            Err(error) => left_out.push(without_folder(&error, folder)),
        }
    }
}

/// A message that says nothing of where results lie.
pub(crate) fn without_folder(error: &ResultsError, folder: &ResultsFolder) -> String {
    error.to_string().replace(
        &format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR),
        "",
    )
}
