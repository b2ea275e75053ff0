//! `policy-map`, `class`, and the commands of a class.

use super::definition::{Reference, Source, UnmodelledLine, WithoutEffect};
use super::rules::Command;
use super::words::Words;
use crate::error::Span;
use crate::error::{TextError, quoted};
use slicewise_model::{CLASS_DEFAULT, ClassSpec, WredSpec};

/// A share of what is left after priority and minimums.
#[derive(Debug, Clone, Copy)]
pub(super) enum Share {
    Percent(u32),
    /// Relative to the other classes.
    Ratio(u32),
}

/// A policy map as read.
#[derive(Debug, Clone)]
pub(super) struct PolicyMapText {
    pub name: String,
    pub span: Span,
    pub classes: Vec<ClassText>,
    /// Classes that decide nothing that can be decided here.
    pub left_out: Vec<LeftOut>,
    pub source: Source,
}

/// A class that is left out of its policy, with the criterion that cannot be matched.
#[derive(Debug, Clone)]
pub(super) struct LeftOut {
    pub class: String,
    pub span: Span,
    /// Its class map.
    pub map: Option<usize>,
    pub criterion: String,
}

/// One class of a policy map as read.
#[derive(Debug, Clone)]
pub(super) struct ClassText {
    /// Everything but `matches` and `child`; `weight` is set by [`super::shares`].
    pub spec: ClassSpec,
    /// `random-detect`.
    pub wred: Option<WredSpec>,
    pub span: Span,
    /// Which class map, once it is known; none for class-default.
    pub map: Option<usize>,
    pub child: Option<Reference>,
    /// `bandwidth remaining`.
    pub share: Option<(Share, Span)>,
    /// Commands and actions that change no result.
    pub without_effect: Vec<WithoutEffect>,
    /// Parts of commands that are not modelled; the rest of the command counts.
    pub unmodelled: Vec<UnmodelledLine>,
    /// Commands that rules are about, but for `service-policy`.
    pub ruled: Vec<(Command, Span)>,
    /// Commands given.
    given: Vec<(&'static str, Span)>,
}

impl PolicyMapText {
    pub fn new(span: Span) -> Self {
        Self {
            name: String::new(),
            span,
            classes: Vec::new(),
            left_out: Vec::new(),
            source: Source::default(),
        }
    }
}

impl ClassText {
    pub fn new(name: &str, span: Span) -> Self {
        Self {
            spec: ClassSpec {
                name: name.to_owned(),
                ..ClassSpec::class_default()
            },
            span,
            wred: None,
            map: None,
            child: None,
            share: None,
            without_effect: Vec::new(),
            unmodelled: Vec::new(),
            ruled: Vec::new(),
            given: Vec::new(),
        }
    }

    pub fn is_default(&self) -> bool {
        self.spec.name == CLASS_DEFAULT
    }

    /// True where no command says how its packets are treated.
    pub fn has_no_action(&self) -> bool {
        self.given.is_empty() && self.child.is_none()
    }

    /// True where its packets are treated as those of `other`: nothing is done but to mark them, alike.
    pub fn only_marks_as(&self, other: &Self) -> bool {
        let only_marks = |class: &Self| {
            class.given.iter().all(|(command, _)| *command == "set") && class.child.is_none()
        };
        only_marks(self) && only_marks(other) && self.spec.set_dscp == other.spec.set_dscp
    }

    /// Refuse a command that was given before: IOS would let the later one win.
    pub fn once(&mut self, command: &'static str, span: Span) -> Result<(), TextError> {
        if let Some(first) = self.given(command) {
            let message = format!(
                "`{command}` is given twice in class {}",
                quoted(&self.spec.name)
            );
            return Err(TextError::at(span, message)
                .expected("each setting once")
                .help(format!("the first is on line {}", first.line)));
        }
        self.given.push((command, span));
        Ok(())
    }

    /// Where a command was given.
    pub fn given(&self, command: &str) -> Option<Span> {
        let given = self.given.iter().find(|(given, _)| *given == command);
        given.map(|&(_, span)| span)
    }
}

/// Reads the rest of a line after `policy-map`.
pub(super) fn header(words: &mut Words<'_, '_>, map: &mut PolicyMapText) -> Result<(), TextError> {
    const EXPECTED: &str = "the name of the policy map";
    words.take_queueing_type();
    let name = words.name(EXPECTED)?;
    map.name = name.text.to_owned();
    map.span = name.span;
    words.end()
}

/// Reads the rest of a line after `class`.
pub(super) fn class(words: &mut Words<'_, '_>, class: &mut ClassText) -> Result<(), TextError> {
    const EXPECTED: &str = "the name of a class map, or `class-default`";
    words.take_queueing_type();
    if let Some(word) = words.take_if("type") {
        return Err(TextError::at(word.span, "classes of a `type` are not read").expected(EXPECTED));
    }
    let name = words.name(EXPECTED)?;
    class.spec.name = name.text.to_owned();
    class.span = name.span;
    words.end()
}

/// The commands of a class, for messages and dispatch.
pub(super) const CLASS_COMMANDS: [&str; 10] = [
    "bandwidth",
    "drop",
    "fair-queue",
    "police",
    "priority",
    "queue-limit",
    "random-detect",
    "service-policy",
    "set",
    "shape",
];

const STATISTICS: &str = "it only counts or records packets";
pub(super) const OTHER_FIELD: &str = "classes cannot match what it marks";
const NOT_ASKED: &str = "no frame asks this device to send less";
/// Beginnings of commands of a class that change no result, and why.
const WITHOUT_EFFECT: [(&[&str], &str); 17] = [
    (&["shape", "adaptive"], NOT_ASKED),
    (&["shape", "fecn-adapt"], NOT_ASKED),
    (&["account"], STATISTICS),
    (&["estimate"], STATISTICS),
    (&["log"], STATISTICS),
    (&["netflow-sampler"], STATISTICS),
    (&["trust", "dscp"], "markings are always trusted"),
    (&["set", "atm-clp"], OTHER_FIELD),
    (&["set", "cos"], OTHER_FIELD),
    (&["set", "cos-inner"], OTHER_FIELD),
    (&["set", "dei"], OTHER_FIELD),
    (&["set", "discard-class"], OTHER_FIELD),
    (&["set", "fr-de"], OTHER_FIELD),
    (&["set", "mpls"], OTHER_FIELD),
    (&["set", "qos-group"], OTHER_FIELD),
    (&["set", "traffic-class"], OTHER_FIELD),
    (&["set", "wlan"], OTHER_FIELD),
];

/// The beginning of the command that comes next and why it changes no result, if that is so.
pub(super) fn without_effect(words: &Words<'_, '_>) -> Option<WithoutEffect> {
    let span = words.peek()?.span;
    let begins = |keywords: &[&str]| {
        let mut keywords = keywords.iter().enumerate();
        keywords.all(|(index, keyword)| words.at(index).is_some_and(|word| word.is(keyword)))
    };
    let known = WITHOUT_EFFECT.iter().find(|(keywords, _)| begins(keywords));
    known.map(|&(keywords, why)| WithoutEffect {
        command: keywords.join(" "),
        why,
        span,
    })
}

/// Commands that decide how much passes, and what to write in their place. A policy without one of them is another
/// policy: a lenient reader does not go on without them.
const DECIDING: [(&[&str], &str); 6] = [
    (
        &["shape"],
        "write `shape average RATE`, RATE in bit/s or `percent P`: the policy is not judged without its shaper",
    ),
    (
        &[
            "police",
            "conform-action",
            "exceed-action",
            "violate-action",
        ],
        "write `police cir RATE conform-action transmit exceed-action drop`, RATE in bit/s or `percent P`: the policy \
         is not judged without its policer",
    ),
    (
        &["drop"],
        "write `drop` alone: the policy is not judged without it",
    ),
    (
        &["priority"],
        "write `priority`, `priority KBPS` or `priority percent P`: the policy is not judged without its priority",
    ),
    (
        &["bandwidth"],
        "write `bandwidth KBPS`, `bandwidth percent P` or `bandwidth remaining percent P`: the policy is not judged \
         without its share",
    ),
    (
        &["service-policy"],
        "write `service-policy NAME`: the policy is not judged without what divides the class",
    ),
];

/// `error` of the line that begins with `command`, of which nobody can be lenient where it decides how much passes.
pub(super) fn required(command: &str, error: TextError) -> TextError {
    let is_command = |name: &&str| command.eq_ignore_ascii_case(name);
    let mut deciding = DECIDING.iter();
    match deciding.find(|(commands, _)| commands.iter().any(&is_command)) {
        Some((_, instead)) if error.is_unmodelled => TextError {
            is_unmodelled: false,
            help: error.help.or_else(|| Some((*instead).to_owned())),
            ..error
        },
        _ => error,
    }
}
