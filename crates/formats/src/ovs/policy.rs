//! Queues and the rules that choose them, as a policy.

use super::in_port::{self, OvsSlice};
use super::lexer::{self, Word};
use super::openflow::{self, Rule};
use super::rules::{Run, runs};
use super::vsctl::{self, Database, Qos, Queue};
use super::{BURST_MIN, TEXT_BYTES_MAX, quantum};
use crate::error::{ReadPolicy, Report, SettingPlace, Span, TextError, TextNote, closest};
use crate::flow::class_map;
use slicewise_model::{
    CLASS_DEFAULT, ClassSpec, Discipline, NamedQueueSpec, PolicySpec, RateSpec, ShaperSpec,
};
use slicewise_units::BitRate;
use std::collections::{BTreeMap, BTreeSet};

/// A queue of the switch: its number and its record, if it has one.
struct Numbered<'d> {
    number: u32,
    record: Option<&'d Queue>,
    name: String,
}

/// Read `ovs-vsctl` commands and OpenFlow rules, for a link of rate `link`. `slices` say what frames come in by ports.
///
/// # Errors
/// The independent errors in the order of their places, [`ERRORS_MAX`](crate::ERRORS_MAX) at most: commands, columns,
/// keys, fields and actions that are not read; max-rate below min-rate; min-rates beyond the max-rate of the QoS; rules
/// that choose a queue that does not exist, or of one priority that overlap and choose different queues; rules by ports alone that
/// stand for no slice, or for one that has frames of another.
pub fn read(text: &str, link: BitRate, slices: &[OvsSlice]) -> Result<ReadPolicy, Vec<TextError>> {
    TextError::check_length(text, TEXT_BYTES_MAX).map_err(|error| vec![error])?;
    let mut report = Report::default();
    let (mut database, mut rules) = (Database::default(), Vec::new());
    for command in lexer::commands(text, &mut report) {
        let words = command.words();
        let Some((first, rest)) = words.split_first() else {
            continue;
        };
        if first.is("ovs-vsctl") {
            vsctl::read(rest, &mut database, &mut report);
        } else if first.is("ovs-ofctl") {
            take(add_flow(first, rest), &mut rules, &mut report);
        } else if let Some(flow) = command
            .joined()
            .words()
            .first()
            .filter(|it| openflow::is_rule(it))
        {
            take(openflow::read(flow), &mut rules, &mut report);
        } else if !(first.is("set") && rest.iter().all(|word| word.is("-e"))) {
            report.add(|| {
                let expected =
                    "`ovs-vsctl …`, `ovs-ofctl add-flow BRIDGE FLOW`, or a flow with `actions=`";
                first.error("is not read").expected(expected)
            });
        }
    }
    let without_rule = in_port::without_rule(&rules, slices, &database);
    let rules = in_port::resolve(rules, slices, &database, &mut report);
    let Some(qos) = qos(&database, Span::BEGIN, &mut report) else {
        return Err(report.into_errors());
    };
    let queues = queues(&database, qos, &rules, &mut report);
    let mut notes = notes(qos, &queues, &rules);
    notes.extend(without_rule);
    let runs = runs(rules, &mut report);
    if !report.is_empty() {
        return Err(report.into_errors());
    }
    let queues: Vec<Numbered<'_>> = queues
        .into_iter()
        .filter(|queue| queue.number == 0 || runs.iter().any(|run| run.queue == queue.number))
        .collect();
    check_sum(qos, &queues).map_err(|error| vec![error])?;
    let (inner, places) = policy(&runs, &queues);
    notes.sort_by_key(|note| (note.span.line, note.span.column));
    let limit = qos.max_rate.filter(|rate| *rate < link);
    Ok(ReadPolicy {
        spec: limit.map_or(inner.clone(), |rate| below(rate, inner)),
        notes,
        places,
    })
}

fn take(rule: Result<Rule, TextError>, rules: &mut Vec<Rule>, report: &mut Report) {
    match rule {
        Ok(rule) => rules.push(rule),
        Err(error) => report.add(|| error),
    }
}

/// `[OPTIONS] add-flow BRIDGE FLOW`.
fn add_flow(first: &Word<'_>, words: &[Word<'_>]) -> Result<Rule, TextError> {
    let is_version = |word: &Word<'_>| {
        word.is("-O") || word.text().starts_with("OpenFlow") || word.strip_prefix("--").is_some()
    };
    let skipped = words.iter().take_while(|word| is_version(word)).count();
    match words.get(skipped..).unwrap_or_default() {
        [verb, _bridge, flow] if verb.is("add-flow") => openflow::read(flow),
        [verb, ..] if verb.is("add-flows") => Err(verb
            .error("names a file")
            .expected("the flows themselves in this text, one a line")),
        [verb, ..] if !verb.is("add-flow") => {
            Err(verb.error("is not read").expected("`add-flow BRIDGE FLOW`"))
        }
        _ => Err(first
            .error("needs a bridge and one flow")
            .expected("`add-flow BRIDGE FLOW`, with quotes around a flow that has spaces")),
    }
}

/// The only QoS record, which a port uses.
fn qos<'d>(database: &'d Database, begin: Span, report: &mut Report) -> Option<&'d Qos> {
    let Some(qos) = database.qos.first() else {
        // Errors of the commands explain it.
        if report.is_empty() {
            let expected =
                "`ovs-vsctl set port NAME qos=@ID -- --id=@ID create qos type=linux-htb …`";
            report.add(|| TextError::at(begin, "the text creates no QoS").expected(expected));
        }
        return None;
    };
    for other in database.qos.iter().skip(1) {
        let message = "the text creates a second QoS";
        report.add(|| TextError::at(other.span, message).expected("the QoS of one port"));
    }
    for (id, at) in &database.ports {
        let is_there = database.qos.iter().any(|qos| qos.id == *id);
        if !is_there && !database.was_misread(id) {
            let message = format!("no QoS `@{id}` is created");
            report.add(|| TextError::at(*at, message).expected(format!("`@{}`", qos.id)));
        }
    }
    if database.ports.is_empty() {
        let message = format!("no port uses the QoS `@{}`", qos.id);
        let expected = format!("`set port NAME qos=@{}`", qos.id);
        report.add(|| TextError::at(qos.span, message).expected(expected));
    }
    Some(qos)
}

/// The queues of `qos`, and queue 0 in any case, by number.
fn queues<'d>(
    database: &'d Database,
    qos: &'d Qos,
    rules: &[Rule],
    report: &mut Report,
) -> Vec<Numbered<'d>> {
    let mut queues: BTreeMap<u32, Option<&Queue>> = BTreeMap::from([(0, None)]);
    for ((number, _), (id, at)) in &qos.queues {
        let record = database.queues.iter().find(|queue| queue.id == *id);
        if record.is_none() && !database.was_misread(id) {
            let known = database.queues.iter().map(|queue| queue.id.as_str());
            let help = closest(id, known).map(|known| format!("did you mean `@{known}`?"));
            let message = format!("no queue `@{id}` is created");
            report.add(|| {
                TextError::at(*at, message)
                    .expected(format!("`--id=@{id} create queue …`"))
                    .maybe_help(help)
            });
        }
        queues.insert(*number, record);
    }
    for queue in &database.queues {
        if qos.queues.iter().all(|(_, (id, _))| *id != queue.id) {
            let message = format!("the QoS does not have the queue `@{}`", queue.id);
            let expected = format!("`queues:N=@{}` in it", queue.id);
            report.add(|| TextError::at(queue.span, message).expected(expected));
        }
    }
    if let Some(dscp) = queues.get(&0).and_then(|queue| queue.as_ref()?.dscp) {
        let message = "queue 0 marks only frames of rules that choose it";
        report.add(|| TextError::at(dscp.1, message).expected("`dscp` in other queues"));
    }
    for rule in rules {
        if !queues.contains_key(&rule.queue) {
            let numbers: Vec<String> = queues.keys().map(u32::to_string).collect();
            let message = format!("queue {} does not exist", rule.queue);
            let expected = format!("a queue of the QoS: {}", numbers.join(", "));
            report.add(|| TextError::at(rule.at, message).expected(expected));
        }
    }
    let queues: Vec<Numbered<'_>> = queues
        .into_iter()
        .map(|(number, record)| {
            let given = record.and_then(|queue| queue.name.clone());
            let name = given.map_or_else(|| format!("queue-{number}"), |(name, _)| name);
            Numbered {
                number,
                record,
                name,
            }
        })
        .collect();
    check_names(&queues, report);
    queues
}

fn check_names(queues: &[Numbered<'_>], report: &mut Report) {
    const NAME_CHARS_MAX: usize = 64;
    for (index, queue) in queues.iter().enumerate() {
        let Some((name, at)) = queue.record.and_then(|record| record.name.as_ref()) else {
            continue;
        };
        let is_shown = name.chars().all(|c| !slicewise_units::is_hidden(c));
        let problem = if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !is_shown {
            "is not a name of 1 to 64 visible characters"
        } else if name == CLASS_DEFAULT {
            "is the class of what no rule matches"
        } else if queues
            .iter()
            .enumerate()
            .any(|(other, queue)| other != index && queue.name == *name)
        {
            "is the name of two queues"
        } else {
            continue;
        };
        report.add(|| {
            let message = format!("{} {problem}", crate::error::quoted(name));
            TextError::at(*at, message).expected("a name of its own")
        });
    }
}

fn notes(qos: &Qos, queues: &[Numbered<'_>], rules: &[Rule]) -> Vec<TextNote> {
    let mut notes = Vec::new();
    let mut unknown = rules.iter().filter(|rule| rule.slice.is_none());
    if let Some((_, span)) = unknown.find_map(|rule| rule.in_port.clone()) {
        let message =
            "`in_port` is not checked: frames are told apart by the other fields alone".to_owned();
        notes.push(TextNote { span, message });
    }
    for ((number, span), _) in &qos.queues {
        if *number != 0 && rules.iter().all(|rule| rule.queue != *number) {
            let (span, message) = (
                *span,
                format!("no rule chooses queue {number}: it is left out"),
            );
            notes.push(TextNote { span, message });
        }
    }
    for queue in queues.iter().filter_map(|queue| queue.record) {
        if let (Some((_, span)), None) = (queue.burst, queue.max_rate) {
            let message =
                "`burst` without `max-rate` limits nothing here: a minimum has a burst of its own"
                    .to_owned();
            notes.push(TextNote { span, message });
        }
    }
    notes
}

/// Checks that the rates promised to queues fit in the rate of the port.
fn check_sum(qos: &Qos, queues: &[Numbered<'_>]) -> Result<(), TextError> {
    let Some(max) = qos.max_rate else {
        return Ok(());
    };
    let mut sum = 0;
    for (rate, at) in queues.iter().filter_map(|queue| queue.record?.min_rate) {
        let left = max.bits_per_second().saturating_sub(sum);
        if rate.bits_per_second() > left {
            let message =
                format!("the min-rates add up to more than {max}, the max-rate of the QoS");
            return Err(TextError::at(at, message).expected(format!("at most {left}")));
        }
        sum += rate.bits_per_second();
    }
    Ok(())
}

/// `policy` below a shaper for all of it.
fn below(rate: BitRate, policy: PolicySpec) -> PolicySpec {
    PolicySpec {
        name: policy.name.clone(),
        classes: vec![ClassSpec {
            shape: Some(shaper(rate, 0)),
            child: Some(Box::new(policy)),
            ..ClassSpec::class_default()
        }],
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    }
}

/// Shaping with a burst of `bits`, as far as the switch allows it.
fn shaper(rate: BitRate, bits: u64) -> ShaperSpec {
    ShaperSpec {
        committed_burst_bits: Some(bits.max(BURST_MIN.bits()).into()),
        ..RateSpec::Absolute(rate).into()
    }
}

/// Treatment of a queue in the policy.
struct Treatment<'q> {
    queue: &'q Numbered<'q>,
    settings: NamedQueueSpec,
    /// Several classes wait in it, so it is a named queue.
    is_shared: bool,
}

impl<'q> Treatment<'q> {
    fn new(queue: &'q Numbered<'q>, weight: Option<u32>, runs: &[Run]) -> Self {
        let of_queue = runs.iter().filter(|run| run.queue == queue.number);
        let record = queue.record;
        let minimum = record.and_then(|it| it.min_rate);
        Self {
            queue,
            settings: NamedQueueSpec {
                minimum: minimum.map(|(rate, _)| RateSpec::Absolute(rate)),
                weight,
                shape: record.and_then(|it| {
                    let bits = it.burst.map_or(0, |(bits, _)| bits);
                    it.max_rate.map(|(rate, _)| shaper(rate, bits))
                }),
                ..NamedQueueSpec::new(&queue.name)
            },
            // Queue 0 has what no rule matches too.
            is_shared: of_queue.count() + usize::from(queue.number == 0) > 1,
        }
    }

    /// `class` in the named queue, or with the settings of that queue itself.
    fn of(&self, class: ClassSpec) -> ClassSpec {
        match self.is_shared {
            true => ClassSpec {
                named_queue: Some(self.settings.name.clone()),
                ..class
            },
            false => ClassSpec {
                minimum: self.settings.minimum,
                weight: self.settings.weight,
                shape: self.settings.shape,
                ..class
            },
        }
    }

    /// Where its settings are written, by the name that they have in the policy.
    fn places(&self) -> Vec<SettingPlace> {
        let is_default = !self.is_shared && self.queue.number == 0;
        let name = if is_default {
            CLASS_DEFAULT
        } else {
            &self.queue.name
        };
        let record = self.queue.record;
        record.map_or_else(Vec::new, |record| places_of(name, record))
    }
}

/// A class for each run, with the queue of the run, or in a named queue where several classes share it.
fn policy(runs: &[Run], queues: &[Numbered<'_>]) -> (PolicySpec, Vec<SettingPlace>) {
    let weighted = queues.iter().zip(weights(queues));
    let treatments: Vec<Treatment<'_>> = weighted
        .map(|(queue, weight)| Treatment::new(queue, weight, runs))
        .collect();
    let of_queue = |number: u32| treatments.iter().find(|it| it.queue.number == number);
    let mut taken: BTreeSet<String> = queues.iter().map(|queue| queue.name.clone()).collect();
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let mut classes = Vec::new();
    for run in runs {
        let Some(treatment) = of_queue(run.queue) else {
            continue;
        };
        let number = seen.entry(run.queue).or_default();
        *number += 1;
        let name = match number {
            1 => treatment.queue.name.clone(),
            _ => free_name(&treatment.queue.name, *number, &mut taken),
        };
        let dscp = treatment.queue.record.and_then(|record| record.dscp);
        classes.push(treatment.of(ClassSpec {
            set_dscp: dscp.map(|(dscp, _)| dscp),
            ..ClassSpec::new(class_map(&name, &run.flows))
        }));
    }
    classes.extend(of_queue(0).map(|it| it.of(ClassSpec::class_default())));
    let shared = treatments.iter().filter(|it| it.is_shared);
    let policy = PolicySpec {
        name: "ovs".to_owned(),
        classes,
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: shared.map(|it| it.settings.clone()).collect(),
    };
    (
        policy,
        treatments.iter().flat_map(Treatment::places).collect(),
    )
}

/// `name-number`, or with the next number that no other name has.
fn free_name(name: &str, number: usize, taken: &mut BTreeSet<String>) -> String {
    let mut names = (number..).map(|number| format!("{name}-{number}"));
    let free = names.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

fn places_of(name: &str, record: &Queue) -> Vec<SettingPlace> {
    let settings = [
        ("minimum", record.min_rate.map(|(_, at)| at)),
        ("shape", record.max_rate.map(|(_, at)| at)),
        ("match", Some(record.span)),
    ];
    let placed = settings
        .into_iter()
        .filter_map(|(field, span)| Some((field, span?)));
    let place = |(field, span)| SettingPlace {
        class: name.to_owned(),
        field,
        span,
    };
    placed.map(place).collect()
}

/// Shares of the excess in lowest terms; none where all are equal.
fn weights(queues: &[Numbered<'_>]) -> Vec<Option<u32>> {
    let quanta: Vec<u32> = queues
        .iter()
        .map(|queue| {
            quantum(
                queue
                    .record
                    .and_then(|record| record.min_rate)
                    .map(|(rate, _)| rate),
            )
        })
        .collect();
    let divisor = quanta
        .iter()
        .fold(0, |divisor, quantum| gcd(divisor, *quantum));
    let is_equal = quanta.iter().all(|quantum| *quantum == divisor);
    let weight = |quantum: u32| (!is_equal).then(|| quantum / divisor.max(1));
    quanta.into_iter().map(weight).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}
