//! Settings of a study that its executor does not support, and their places in its file.

use crate::check::class_place;
use crate::file::{Node, Problems};
use crate::params::ScenarioParams;
use crate::study::Study;
use crate::testbed::{Pacing, TestbedError};
use slicewise_model::{Part, PolicyError};

/// Something that a study, or a gateway's configuration, asks for and that what is to carry it out does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The keys that lead to the setting, from the outermost on. It is reported at the last of them that is written.
    path: Vec<String>,
    /// The class and its setting, where the path leads to a policy.
    class: Option<(String, &'static str)>,
    problem: String,
    is_warning: bool,
}

impl Misfit {
    /// At the setting to which these keys lead, from the outermost on, or the last of them that is written.
    #[must_use]
    pub fn at(path: &[&str], problem: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            class: None,
            problem: problem.into(),
            is_warning: false,
        }
    }

    /// At `setting` of the class `class` (`outer/inner`), as far as that is written in the policy to which the path leads.
    #[must_use]
    pub fn of_class(mut self, class: Option<&str>, setting: &'static str) -> Self {
        let inner = class.and_then(|class| class.rsplit('/').next());
        self.class = inner.map(|class| (class.to_owned(), setting));
        self
    }

    /// The same as something worth knowing: the rest can be carried out.
    #[must_use]
    pub fn as_warning(self) -> Self {
        Self {
            is_warning: true,
            ..self
        }
    }

    /// Report it at its place in the file with this tree.
    pub(crate) fn report(self, root: &Node, problems: &mut Problems) {
        let (mut node, mut at) = (root, root.span);
        for key in &self.path {
            let Some((key, inner)) = node.entry(key) else {
                break;
            };
            (node, at) = (inner, inner.anchor(Some(key.span)));
        }
        let of_class = self.class.and_then(|(class, field)| {
            let error = |part| PolicyError {
                policy: String::new(),
                part,
                class: class.clone(),
                field,
                problem: String::new(),
            };
            let place = |part| class_place(node, &error(part));
            place(Part::Class).or_else(|| place(Part::Queue))
        });
        let at = of_class.unwrap_or(at);
        match self.is_warning {
            true => problems.warn(at, self.problem),
            false => problems.add(at, self.problem),
        }
    }
}

impl Study {
    /// The study on a testbed: [`into_testbed`](Self::into_testbed).
    ///
    /// # Errors
    /// All that keeps it from one.
    pub fn for_testbed(&self, pacing: Pacing) -> Result<Self, Vec<Misfit>> {
        let errors = self.unfit_for_testbed(pacing);
        if !errors.is_empty() {
            return Err(errors.iter().map(|error| self.misfit_of(error)).collect());
        }
        let study = self.clone().into_testbed(pacing);
        study.map_err(|error| vec![self.misfit_of(&error)])
    }

    /// Where the study says what keeps it from a testbed.
    fn misfit_of(&self, error: &TestbedError) -> Misfit {
        let at = |path: &[&str]| Misfit::at(path, error.to_string());
        match error {
            TestbedError::Populations => at(&["populations"]),
            TestbedError::Impairments => at(&["link", "impairments"]),
            TestbedError::VaryingRate => at(&["dut", "port_rate"]),
            TestbedError::Propagation(_) => at(&["link", "propagation"]),
            TestbedError::HostPropagation(host) => at(&["hosts", "propagation", host]),
            TestbedError::Path => at(&["path"]),
            TestbedError::Ecn(source) | TestbedError::Tunnel(source) => {
                let has = |scenario: &&ScenarioParams| {
                    let names = scenario.sources.iter().map(|it| &it.name);
                    let of_applications = scenario.applications.iter().map(|it| &it.name);
                    names.chain(of_applications).any(|name| name == source)
                };
                let key = match error {
                    TestbedError::Ecn(_) => "ecn",
                    _ => "teid",
                };
                let scenario = self.scenarios.iter().find(has);
                let source = source.split('#').next().unwrap_or(source);
                let scenario = scenario.map_or("", |scenario| &scenario.name);
                at(&["scenarios", scenario, "sources", source, "headers", key])
            }
            TestbedError::Reallocation(policy) => at(&["policies", policy, "reallocate"]),
            TestbedError::PolicyChange(phase) => at(&["timeline", "changes", phase]),
            TestbedError::Policy { policy, error, .. } => {
                at(&["policies", policy]).of_class(Some(&error.class), error.field)
            }
        }
    }
}
