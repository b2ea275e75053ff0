//! A policy to IOS text, in one canonical form.

mod commands;
mod matches;

use super::parser::TEXT_BYTES_MAX;
use super::policy_map::Share;
use super::rules::{Command, Given, above_all, conflicts};
use super::shares::percentages;
use super::words::valid_name;
use commands::Form;
use slicewise_model::{CLASS_DEFAULT, ClassSpec, Discipline, PolicySpec};
use std::collections::BTreeMap;

/// Something in a policy that IOS has no words for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy `{policy}`{}: IOS cannot express this: {problem}", of_class(class.as_deref()))]
pub struct IosExportError {
    /// The policy.
    pub policy: String,
    /// The class, where it is one class's setting.
    pub class: Option<String>,
    /// Part that cannot be expressed, and why.
    pub problem: String,
}

fn of_class(class: Option<&str>) -> String {
    class
        .map(|class| format!(", class `{class}`"))
        .unwrap_or_default()
}

/// Write `policy`, its children, and the class maps and access lists they use.
///
/// The text is canonical: equal policies give equal text, and reading it gives the policy again.
/// Where conditions say the same in another form than the one that is read (an access-list entry
/// whose conditions are in another order, a bare address prefix), reading gives the form that is
/// read.
///
/// # Errors
/// The first thing that IOS cannot express: commands that IOS XE does not take together, a discipline
/// other than minimum share, rates that count other than L2 bytes, an excess information rate (RFC 4115), colour-aware metering, named queues,
/// fractions of a percent or of a unit, conditions without an equivalent, names that are not one
/// word or stand for two different definitions.
pub fn write(policy: &PolicySpec) -> Result<String, IosExportError> {
    let mut writer = Writer::default();
    writer
        .policy_map(policy, 1)
        .map_err(|(policy, class, problem)| IosExportError {
            policy,
            class,
            problem,
        })?;
    let text = writer.text();
    if text.len() > TEXT_BYTES_MAX {
        return Err(IosExportError {
            policy: policy.name.clone(),
            class: None,
            problem: format!("the text has more than {TEXT_BYTES_MAX} bytes"),
        });
    }
    Ok(text)
}

/// As deep as what can be read.
const DEPTH_MAX: usize = super::link::DEPTH_MAX;

/// Policy, class, problem.
type Failure = (String, Option<String>, String);
/// Problem with one setting.
type Problem = String;

/// Definitions of one kind, each once, in the order in which they must be read.
#[derive(Default)]
struct Section {
    texts: Vec<String>,
    by_name: BTreeMap<String, usize>,
}

impl Section {
    /// Add a definition, unless the same is there already.
    fn define(&mut self, kind: &str, name: &str, text: String) -> Result<(), Problem> {
        match self
            .by_name
            .get(name)
            .and_then(|&index| self.texts.get(index))
        {
            None => {
                self.by_name.insert(name.to_owned(), self.texts.len());
                self.texts.push(text);
                Ok(())
            }
            Some(same) if *same == text => Ok(()),
            Some(_) => Err(format!("two different {kind}s have the name `{name}`")),
        }
    }
}

#[derive(Default)]
struct Writer {
    access_lists: Section,
    class_maps: Section,
    policy_maps: Section,
}

impl Writer {
    fn text(self) -> String {
        let sections = [self.access_lists, self.class_maps, self.policy_maps];
        let texts: Vec<String> = sections
            .into_iter()
            .flat_map(|section| section.texts)
            .collect();
        texts.join("!\n")
    }

    fn policy_map(&mut self, policy: &PolicySpec, depth: usize) -> Result<(), Failure> {
        let fail = |problem: Problem| (policy.name.clone(), None, problem);
        valid_name("policy map", &policy.name).map_err(fail)?;
        if depth > DEPTH_MAX {
            return Err(fail(format!(
                "policies nest deeper than {DEPTH_MAX} levels"
            )));
        }
        match policy.discipline {
            Discipline::MinimumShare => {}
            Discipline::DeficitRoundRobin => {
                return Err(fail("deficit round robin by weight alone".into()));
            }
            Discipline::Fifo => {
                return Err(fail(
                    "one FIFO for all classes (leave the policy map out)".into(),
                ));
            }
            Discipline::Guaranteed => {
                return Err(fail(
                    "a guarantee with a delay bound (`priority` serves first and `bandwidth` \
                     keeps a rate, but neither bounds the delay of several classes)"
                        .into(),
                ));
            }
        }
        if let Some(queue) = policy.queues.first() {
            return Err(fail(format!(
                "the queue `{}`, which several classes may use (a class of a policy map has a queue of its own)",
                queue.name
            )));
        }
        let mut text = format!("policy-map {}\n", policy.name);
        let mut names = BTreeMap::new();
        let forms = forms(policy).map_err(|(class, problem)| {
            let class = policy.classes.get(class).map(|class| class.name.clone());
            (policy.name.clone(), class, problem)
        })?;
        for (class, form) in policy.classes.iter().zip(forms) {
            let fail = |problem| (policy.name.clone(), Some(class.name.clone()), problem);
            if names.insert(class.name.as_str(), ()).is_some() {
                return Err(fail("the class is defined twice".into()));
            }
            self.class_map_of(class).map_err(fail)?;
            text.push_str(&format!(" class {}\n", class.name));
            for line in commands::class(class, form).map_err(fail)? {
                text.push_str(&format!("  {line}\n"));
            }
            if let Some(child) = &class.child {
                self.policy_map(child, depth + 1)?;
                text.push_str(&format!("  service-policy {}\n", child.name));
            }
        }
        // After its children: IOS wants them defined first.
        self.policy_maps
            .define("policy map", &policy.name, text)
            .map_err(fail)
    }

    fn class_map_of(&mut self, class: &ClassSpec) -> Result<(), Problem> {
        match &class.matches {
            None if class.name == CLASS_DEFAULT => Ok(()),
            None => Err("the class has no class map".into()),
            Some(_) if class.name == CLASS_DEFAULT => {
                Err("class-default takes the rest and has no class map".into())
            }
            Some(map) if map.name != class.name => {
                Err(format!("the class map has another name, `{}`", map.name))
            }
            Some(map) => {
                valid_name("class map", &map.name)?;
                let text = matches::class_map(map, &mut self.access_lists)?;
                self.class_maps.define("class map", &map.name, text)
            }
        }
    }
}

/// How each class is written, so that IOS XE takes them together; else the class that it does not take, and why.
fn forms(policy: &PolicySpec) -> Result<Vec<Form>, (usize, Problem)> {
    let classes = &policy.classes;
    let levels = classes
        .iter()
        .any(|class| class.priority.is_some_and(|priority| priority.level != 1));
    let form = |share| Form { levels, share };
    let ratios = classes
        .iter()
        .map(|class| form(class.weight.map(Share::Ratio)));
    let ratios: Vec<Form> = ratios.collect();
    let as_ratios = check(classes, &ratios);
    if as_ratios.is_err()
        && let Some(percentages) = percentages(classes)
    {
        let percentages = percentages.into_iter().map(|p| form(p.map(Share::Percent)));
        let percentages: Vec<Form> = percentages.collect();
        if check(classes, &percentages).is_ok() {
            return Ok(percentages);
        }
    }
    as_ratios.map(|()| ratios)
}

fn check(classes: &[ClassSpec], forms: &[Form]) -> Result<(), (usize, Problem)> {
    let mut given = Vec::new();
    for (index, (class, form)) in classes.iter().zip(forms).enumerate() {
        let child = class.child.as_ref().filter(|child| queues(child));
        let child = child.map(|_| Command::QueueingChild);
        let commands = form.commands(class).chain(child);
        given.extend(commands.map(|command| Given {
            class: index,
            command,
            at: (),
        }));
    }
    if let Some(conflict) = conflicts(&given).first() {
        let instead = conflict.instead;
        let problem = format!("{conflict}; IOS XE takes {instead}");
        return Err((conflict.second.class, problem));
    }
    match above_all(&given) {
        Some((above, _)) => Err((
            above.class,
            "the percentages of `bandwidth percent` add up to more than 100".to_owned(),
        )),
        None => Ok(()),
    }
}

fn queues(policy: &PolicySpec) -> bool {
    let queues = |class: &ClassSpec| {
        let share = class.weight.map(Share::Ratio);
        let levels = false;
        Form { levels, share }.commands(class).next().is_some()
    };
    policy.classes.iter().any(queues)
}
