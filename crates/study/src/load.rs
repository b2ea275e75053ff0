//! Reading a file of any kind: the file, what it names, and every check, in one go.

use crate::cases::{self, Series, StudyFile, SweepAxis, WrittenCase, WrittenSeries};
use crate::check::{
    Checker, Drawable, GatewaySpec, LabSpec, MAX_RUNS, MeasuredSpec, PlanSpec, StudySpec, Sweep,
    curves, differ_in_more_than_case, figures, timeline,
};
use crate::diagnostics::Diagnostics;
use crate::expand::expand_sources;
use crate::file::{
    self, Decode, Entry, FileError, Files, Folder, Key, MAX_FILE_BYTES, Node, Problems, Sources,
    Span,
};
use crate::from_ios::{INSTEAD_OF_STATISTICS, STATISTICS, is_ios, is_statistics};
use crate::gateway::GatewayConfig;
use crate::kind::FileKind;
use crate::lab::Lab;
use crate::measured::MeasuredStudy;
use crate::misfit::Misfit;
use crate::plan::{self, Plan};
use crate::problem;
use crate::study::Study;
use slicewise_stats::plot::PlotDescription;
use std::path::Path;

/// As the message says that refuses more.
const MOST_VALUES_OF_STUDY: usize = 200_000;

/// A file that was opened.
struct Opened {
    name: String,
    text: String,
    files: Folder,
    /// The folder as messages show it.
    shown: String,
}

impl Opened {
    fn at(path: &Path) -> Result<Self, Diagnostics> {
        let shown = path.display().to_string();
        let unusable = |problem: &str| Diagnostics::of_file(&shown, problem);
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(unusable("this is not the path of a study file"));
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let files = Folder::new(folder);
        let text = files.read(name).map_err(|error| match error {
            FileError::NotUtf8 { .. } => unusable(&format!("{error}; save the file as UTF-8")),
            _ => unusable(&error.to_string()),
        })?;
        let shown = match folder.display().to_string() {
            folder if folder.is_empty() || folder.ends_with('/') => folder,
            folder => format!("{folder}/"),
        };
        let name = name.to_owned();
        Ok(Self {
            name,
            text,
            files,
            shown,
        })
    }

    fn reading(self, files: &mut Option<Folder>) -> Reading<'_> {
        let sources = Sources::in_folder(&self.shown);
        Reading::of(&self.name, self.text, files.insert(self.files), sources)
    }
}

/// The text of the file at `path`, if it is a configuration of IOS.
///
/// # Errors
/// Where it cannot be read.
pub fn ios_text(path: &Path) -> Result<Option<String>, Diagnostics> {
    let text = Opened::at(path)?.text;
    if is_statistics(&text) {
        let message = format!("{STATISTICS}: {INSTEAD_OF_STATISTICS}");
        return Err(Diagnostics::of_file(&path.display().to_string(), &message));
    }
    Ok(Some(text).filter(|text| is_ios(text)))
}

/// Check of a valid study or gateway configuration for settings that its executor does not support.
pub type Misfits<'a, T> = &'a dyn Fn(&T) -> Vec<Misfit>;

/// A file as a tree, and what is needed to make something of it.
struct Reading<'a> {
    name: String,
    files: &'a dyn Files,
    sources: Sources,
    problems: Problems,
    /// Without one where the problems say why.
    root: Option<Node>,
    misfits: Option<Misfits<'a, Study>>,
    /// Points that a sweep has besides its own.
    added: &'a [Vec<String>],
}

impl<'a> Reading<'a> {
    fn of(name: &str, text: String, files: &'a dyn Files, mut sources: Sources) -> Self {
        let mut problems = Problems::default();
        let root = if is_ios(&text) {
            let file = sources.add(name, text);
            let at = Span {
                file,
                start: 0,
                end: 0,
            };
            let shown = sources.shown(name);
            problem!(problems, at => "this is a configuration of IOS";
                "`slicewise init --ios {shown}` writes a study of it");
            None
        } else {
            file::load(name, text, files, &mut sources, &mut problems)
        };
        Self {
            name: name.to_owned(),
            files,
            sources,
            problems,
            root,
            misfits: None,
            added: &[],
        }
    }

    fn of_text(text: &str, name: &str, files: &'a dyn Files) -> Result<Self, Diagnostics> {
        if u64::try_from(text.len()).map_or(true, |length| length > MAX_FILE_BYTES) {
            let problem = FileError::TooLarge.to_string();
            return Err(Diagnostics::of_file(name, &problem));
        }
        let sources = Sources::default();
        Ok(Self::of(name, text.to_owned(), files, sources))
    }

    fn has(&self, key: &str) -> bool {
        let root = self.root.as_ref();
        root.is_some_and(|root| root.entry(key).is_some())
    }

    /// Returns the result of `check` on the file, and the warnings.
    fn checked<S: Decode, T>(
        mut self,
        check: impl FnOnce(&mut Checker<'_>, &S, &str) -> Option<T>,
    ) -> Result<(T, Diagnostics), Diagnostics> {
        let root = self.root.take();
        let made = root.as_ref().and_then(|root| self.check(root, check));
        self.outcome(made)
    }

    /// Returns the result of `check` on a tree.
    fn check<S: Decode, T>(
        &mut self,
        node: &Node,
        check: impl FnOnce(&mut Checker<'_>, &S, &str) -> Option<T>,
    ) -> Option<T> {
        let spec = S::decode(Entry { node, key: None }, &mut self.problems)?;
        // What is there is checked even if some of it could not be read.
        let mut checker = Checker {
            problems: &mut self.problems,
            sources: &mut self.sources,
            files: self.files,
            root: node,
            profile_places: Vec::new(),
            statements: Vec::new(),
            attached: Vec::new(),
        };
        check(&mut checker, &spec, &self.name)
    }

    /// Returns the result and the warnings, unless the file has mistakes.
    fn outcome<T>(self, made: Option<T>) -> Result<(T, Diagnostics), Diagnostics> {
        match made {
            Some(made) if self.problems.is_empty() => {
                Ok((made, self.problems.into_warnings(&self.sources)))
            }
            _ => Err(self.problems.into_diagnostics(&self.sources)),
        }
    }

    /// The tree of a study. It is small enough for the copies that cases, phases and scenarios make of it.
    fn root_of_study(&mut self) -> Option<Node> {
        let root = self.root.take()?;
        if root.values() <= MOST_VALUES_OF_STUDY {
            return Some(root);
        }
        problem!(self.problems, root.span => "a study has at most 200,000 values, because cases, phases and scenarios \
            copy them";
            "a population stands for any number of slices that are alike");
        None
    }

    fn study(mut self) -> Result<Study, Diagnostics> {
        let root = self.root_of_study();
        if let Some((key, _)) = root.as_ref().and_then(cases::written) {
            let what = match key.text.as_str() {
                "sweep" => "a sweep, each point of which is a study",
                _ => "cases, each of them a study",
            };
            problem!(self.problems, key.span => "this file holds {what}: this command takes one study";
                "choose a case (`--case NAME`), where the command has that option");
        }
        let figures = (root.as_ref()).and_then(|root| root.entry("figures"));
        let figures = figures.map(|(key, node)| (key.clone(), node.clone()));
        let mut study = root.and_then(|root| self.study_with_phases(root, None));
        if let (Some(study), Some(figures)) = (&mut study, figures) {
            study.plots = self.figures(&figures, &[Drawable { study, x: None }], &[]);
        }
        let (study, warnings) = self.outcome(study)?;
        Ok(Study { warnings, ..study })
    }

    /// The study, or the studies that are its cases.
    fn study_file(mut self) -> Result<StudyFile, Diagnostics> {
        if self.root.as_ref().and_then(cases::written).is_none() {
            return self.study().map(|study| StudyFile::Study(Box::new(study)));
        }
        let series = self.root_of_study().and_then(|root| self.series(root));
        let (mut series, warnings) = self.outcome(series)?;
        series.warnings = warnings;
        Ok(StudyFile::Series(Box::new(series)))
    }

    /// Returns the tree of each case; says in `series` of which sweep they are.
    fn cases(
        &mut self,
        root: Node,
        cases: Option<(Key, Node)>,
        sweep: Option<(Key, Node)>,
        series: &mut Series,
    ) -> Option<Box<dyn Iterator<Item = WrittenCase>>> {
        match (cases, sweep) {
            (Some(_), Some((key, _))) => {
                problem!(self.problems, key.span => "a file has either `cases` or a `sweep`";
                    "move the sweep to a file of its own that extends this one `without: [cases]`");
                None
            }
            (None, Some((key, node))) => {
                let sweep = Sweep::read((key, &node), &root, self.added, &mut self.problems)?;
                series.refine.clone_from(&sweep.resolution);
                series.axes = sweep.axes();
                Some(Box::new(sweep.into_cases(root)))
            }
            (cases, None) => {
                let cases = cases::listed(&root, cases?, &mut self.problems)?;
                let names = cases.iter().map(|case| &case.name);
                let names = names.map(|name| (name.text.as_str(), name.span));
                differ_in_more_than_case(names, &mut self.problems);
                Some(Box::new(cases.into_iter()))
            }
        }
    }

    /// Every case as a study of its own.
    fn series(&mut self, root: Node) -> Option<Series> {
        let at = cases::written(&root).map(|(key, _)| key.span);
        let WrittenSeries {
            mut series,
            root,
            cases,
            sweep,
            figures,
        } = cases::split(root)?;
        let cases = self.cases(root, cases, sweep, &mut series)?;
        let part = if series.axes.is_empty() {
            "case"
        } else {
            "point"
        };
        let mut places = Vec::new();
        for case in cases {
            self.problems.enter(part, &case.name.text);
            let study = self.study_with_phases(case.root, Some(case.name.text));
            self.problems.leave();
            series.cases.extend(study.map(|study| Study {
                coordinates: case.coordinates,
                ..study
            }));
            places.push(case.x);
        }
        let runs: u64 = series.cases.iter().map(Study::run_count).sum();
        if let Some(at) = at.filter(|_| !series.axes.is_empty() && runs > MAX_RUNS) {
            problem!(self.problems, at => "the points have {runs} runs together, more than {MAX_RUNS}";
                "lower `repetitions`, or leave points out");
        }
        // A case that cannot be read may be the one that a figure names.
        if self.problems.is_empty() {
            self.draw(&mut series, figures.as_ref(), &places);
        }
        Some(series)
    }

    /// Gives each case the figures that draw it: those that are declared, or those of a sweep that declares none.
    fn draw(
        &mut self,
        series: &mut Series,
        figures: Option<&(Key, Node)>,
        places: &[Option<String>],
    ) {
        let cases = series.cases.iter().zip(places);
        let drawable = |(study, x)| Drawable {
            study,
            x: Option::as_deref(x),
        };
        let drawable: Vec<Drawable<'_>> = cases.map(drawable).collect();
        let plots = match figures {
            Some(figures) => self.figures(figures, &drawable, &series.axes),
            None => curves(&drawable, &series.axes),
        };
        if series.axes.is_empty() {
            for study in &mut series.cases {
                let case = study.case.as_deref();
                let own = plots.iter().filter(|plot| plot.has_case(case));
                study.plots = own.cloned().collect();
            }
            return;
        }
        // Each point has its part of a figure alone: all points in each would be millions.
        for (case, part) in plots.into_iter().flat_map(PlotDescription::by_case) {
            let mut cases = series.cases.iter_mut();
            if let Some(study) = cases.find(|study| study.case.as_ref() == Some(&case)) {
                study.plots.push(part);
            }
        }
    }

    /// The figures of a file with these studies.
    fn figures(
        &mut self,
        (key, node): &(Key, Node),
        studies: &[Drawable<'_>],
        axes: &[SweepAxis],
    ) -> Vec<PlotDescription> {
        let key = Some(key.span);
        let specs = Decode::decode(Entry { node, key }, &mut self.problems);
        specs.map_or_else(Vec::new, |specs| {
            figures(&specs, (studies, axes), &mut self.problems)
        })
    }

    /// The study, and as it is after each change of its timeline.
    fn study_with_phases(&mut self, mut root: Node, case: Option<String>) -> Option<Study> {
        expand_sources(&mut root, &mut self.problems);
        let study = self.phases_of(&root)?;
        let study = Study { case, ..study };
        for misfit in self.misfits.map_or_else(Vec::new, |of| of(&study)) {
            misfit.report(&root, &mut self.problems);
        }
        Some(study)
    }

    fn phases_of(&mut self, root: &Node) -> Option<Study> {
        let study = self.check(root, |checker, spec: &StudySpec, name| {
            checker.study(spec, name)
        })?;
        if root.entry("timeline").is_none() {
            return Some(study);
        }
        let mut later = Vec::new();
        let mut before = root.clone();
        for change in timeline::changes(root) {
            before = change.on_top_of(&before, &mut self.problems);
            self.problems.enter("phase", change.name());
            later.extend(self.check(&before, |checker, spec: &StudySpec, name| {
                checker.study(spec, name)
            }));
            self.problems.leave();
        }
        let phases = self.check(root, |checker, spec: &StudySpec, _| {
            Some(checker.phases(spec, &study, later))
        })?;
        let digest = self.sources.digest();
        Some(Study {
            phases,
            digest,
            ..study
        })
    }

    fn plan(self) -> Result<Plan, Diagnostics> {
        let plan = self.checked(|checker, spec: &PlanSpec, name| checker.plan(spec, name))?;
        Ok(plan.0)
    }

    fn gateway(self) -> Result<GatewayConfig, Diagnostics> {
        self.fitting_gateway(&|_| Vec::new())
    }

    fn fitting_gateway(
        mut self,
        misfits: Misfits<'_, GatewayConfig>,
    ) -> Result<GatewayConfig, Diagnostics> {
        let is_study = |root: &&Node| {
            let has = |key| root.entry(key).is_some();
            ["policies", "scenarios", "cases", "sweep"]
                .into_iter()
                .any(has)
                && !has("interfaces")
        };
        if let Some(root) = self.root.as_ref().filter(is_study) {
            problem!(self.problems, root.span => "this is a study, not the configuration of a gateway, which has \
                `interfaces`, `link` and `policy`";
                "to forward with a policy of the study: `--study FILE --policy NAME --interfaces FROM TO`");
            return Err(self.problems.into_diagnostics(&self.sources));
        }
        let (config, warnings) = self.checked(|checker, spec: &GatewaySpec, _| {
            let config = checker.gateway(spec)?;
            for misfit in misfits(&config) {
                misfit.report(checker.root, checker.problems);
            }
            Some(config)
        })?;
        Ok(GatewayConfig { warnings, ..config })
    }

    fn lab(self) -> Result<Lab, Diagnostics> {
        let lab = self.checked(|checker, spec: &LabSpec, _| checker.lab(spec))?;
        Ok(lab.0)
    }

    /// A measured study, or what a study that can be simulated says of captures; `folder` is that of
    /// the file.
    fn measured(self, folder: &Path, program_version: &str) -> Result<MeasuredStudy, Diagnostics> {
        let dut = self.root.as_ref().and_then(|root| root.entry("dut"));
        let models_a_device = dut.is_some_and(|(_, dut)| dut.is_mapping());
        if models_a_device || self.has("sources") || self.has("populations") {
            let study = self.study()?;
            return Ok(MeasuredStudy::of_study(&study, program_version));
        }
        let study = self.checked(|checker, spec: &MeasuredSpec, name| {
            checker.measured(spec, name, folder, program_version)
        })?;
        Ok(study.0)
    }
}

/// Implements `load` and `parse` for types that a whole file is read as.
macro_rules! readable {
    ($($(#[$doc:meta])* $type:ty: $read:ident;)*) => {
        $(impl $type {
            $(#[$doc])*
            ///
            /// # Errors
            /// Everything found wrong with it, each with its place. A file above [`MAX_FILE_BYTES`], or something that is
            /// not a file, is refused without being read.
            pub fn load(path: &Path) -> Result<Self, Diagnostics> {
                Opened::at(path)?.reading(&mut None).$read()
            }

            /// The same of a file given as text. `file_name` is what messages call it; the files it names are read from
            /// `files`.
            ///
            /// # Errors
            /// As [`load`](Self::load).
            pub fn parse(text: &str, file_name: &str, files: &dyn Files) -> Result<Self, Diagnostics> {
                Reading::of_text(text, file_name, files)?.$read()
            }
        })*
    };
}

readable! {
    /// Read and check the study file at `path`: a study, or a series of cases. What is wrong in one case says in which.
    StudyFile: study_file;
    /// Read and check the study file at `path`.
    Study: study;
    /// Read the configuration at `path`.
    GatewayConfig: gateway;
    /// Read the lab at `path`.
    Lab: lab;
}

impl StudyFile {
    /// As [`load`](Self::load), with what else is wrong with each study of the file: `misfits`.
    ///
    /// # Errors
    /// As [`load`](Self::load), with those misfits that are no warnings.
    pub fn load_for(path: &Path, misfits: Misfits<'_, Study>) -> Result<Self, Diagnostics> {
        let mut files = None;
        let reading = Opened::at(path)?.reading(&mut files);
        let misfits = Some(misfits);
        Reading { misfits, ..reading }.study_file()
    }
}

impl Series {
    /// Read the sweep in the file at `path` with `points` besides its own: a value for each axis, in their order.
    ///
    /// # Errors
    /// Everything found wrong with it, each with its place.
    pub fn load_with_points(path: &Path, points: &[Vec<String>]) -> Result<Self, Diagnostics> {
        let mut files = None;
        let reading = Opened::at(path)?.reading(&mut files);
        let added = points;
        match (Reading { added, ..reading }).study_file()? {
            StudyFile::Series(series) => Ok(*series),
            StudyFile::Study(_) => {
                let shown = path.display().to_string();
                Err(Diagnostics::of_file(
                    &shown,
                    "this file holds no sweep any more",
                ))
            }
        }
    }
}

impl GatewayConfig {
    /// As [`load`](Self::load), with what else is wrong with it: `misfits`.
    ///
    /// # Errors
    /// As [`load`](Self::load), with those misfits that are no warnings.
    pub fn load_for(path: &Path, misfits: Misfits<'_, Self>) -> Result<Self, Diagnostics> {
        let mut files = None;
        let reading = Opened::at(path)?.reading(&mut files);
        reading.fitting_gateway(misfits)
    }
}

impl Plan {
    /// Read the file at `path`: a plan, or a study, of which each guaranteed policy is one.
    ///
    /// # Errors
    /// Everything found wrong with it, each with its place. A study is checked as a whole: one
    /// whose guarantees do not fit is wrong.
    pub fn load(path: &Path) -> Result<Vec<Self>, Diagnostics> {
        let mut files = None;
        let reading = Opened::at(path)?.reading(&mut files);
        if ["policies", "scenarios", "dut"]
            .iter()
            .any(|key| reading.has(key))
        {
            return reading.study().map(|study| plan::plans_of(&study));
        }
        reading.plan().map(|plan| vec![plan])
    }

    /// Read a plan given as text; `file_name` is what messages call it.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file_name: &str, files: &dyn Files) -> Result<Self, Diagnostics> {
        Reading::of_text(text, file_name, files)?.plan()
    }
}

impl MeasuredStudy {
    /// Read the file at `path`: a measured study, slices alone, or a study that can be simulated,
    /// of which names, slices and margins are taken.
    ///
    /// # Errors
    /// Everything found wrong with it, each with its place.
    pub fn load(path: &Path, program_version: &str) -> Result<Self, Diagnostics> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut files = None;
        let reading = Opened::at(path)?.reading(&mut files);
        reading.measured(folder, program_version)
    }

    /// Check a file given as text. `file_name` is what messages call it; files it names are read
    /// from `files`, captures are looked for in the current folder.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(
        text: &str,
        file_name: &str,
        files: &dyn Files,
        program_version: &str,
    ) -> Result<Self, Diagnostics> {
        let reading = Reading::of_text(text, file_name, files)?;
        reading.measured(Path::new(""), program_version)
    }
}

impl FileKind {
    /// Returns the kind of the file at `path`, by the settings it has. A file that could be of several kinds, or that
    /// cannot be parsed, is taken for a study: reading it as one says what is wrong.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn of(path: &Path) -> Result<Self, Diagnostics> {
        let mut files = None;
        let reading = Opened::at(path)?.reading(&mut files);
        Ok(reading.root.as_ref().map_or(Self::Study, Self::of_root))
    }
}
