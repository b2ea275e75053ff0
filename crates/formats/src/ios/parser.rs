//! Which command belongs where.

use super::access_list::{self, AccessListText, kind_of_number, number_of_name};
use super::attach::{Attachment, Direction};
use super::class_map::{self, ClassMapText};
use super::config::IosConfig;
use super::definition::{Definitions, Reference, Source};
use super::lexer::{self, Line, Word};
use super::link::{self, Names};
use super::mode::{LEAVING, Mode, PLACES, SECTIONS, is_interface, misspelt};
use super::policy_map::{self, ClassText, PolicyMapText, without_effect};
use super::sections::{self, Section};
use super::words::Words;
use super::{fair_queue, police, queueing};
use crate::error::Span;
use crate::error::{TextError, closest, quoted, suggestion};
use slicewise_units::BitRate;

/// Largest text read, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Read the class maps, access lists and policy maps of `text`, which may be a whole configuration:
/// what is not about quality of service is skipped, and counted in [`IosConfig::skipped`].
///
/// Every command stands on a line of its own. Indentation means little, as on the IOS command
/// line: a command that the current mode does not know is tried in the modes around it; one that
/// none of them knows, and that is not indented, begins another section of the configuration.
///
/// # Errors
/// For a text above [`TEXT_BYTES_MAX`]. What is wrong in a definition is an error of the policies that
/// need it: [`IosConfig::policy`], [`IosConfig::errors`].
pub fn parse(text: &str) -> Result<IosConfig, TextError> {
    TextError::check_length(text, TEXT_BYTES_MAX)?;
    let mut parser = Parser::new();
    for line in lexer::lines(text) {
        parser.line(&line);
    }
    Ok(parser.finish())
}

struct Parser {
    config: IosConfig,
    names: Names,
    /// Classes of the policy map being defined.
    classes: Definitions,
    mode: Mode,
    /// Of the first line of the definition or section being read.
    indent: Option<usize>,
    /// Some line so far was indented below another.
    is_indented: bool,
    /// After a line that is not known: lines indented deeper are part of it.
    skip_deeper_than: Option<usize>,
    /// In [`Mode::Section`].
    section: Section,
    /// Where a `service-policy` that is not indented belongs.
    place: String,
    /// End mark of the free text being skipped, and where the text began.
    delimiter: Option<(String, Span)>,
    ended: bool,
    /// There is another definition after the end.
    is_second: bool,
}

impl Parser {
    fn new() -> Self {
        Self {
            config: IosConfig::default(),
            names: Names::default(),
            classes: Definitions::new("class"),
            mode: Mode::Top,
            indent: None,
            is_indented: false,
            skip_deeper_than: None,
            section: Section::default(),
            place: String::new(),
            delimiter: None,
            ended: false,
            is_second: false,
        }
    }

    fn finish(mut self) -> IosConfig {
        if let Some((delimiter, span)) = self.delimiter {
            self.config.errors.add(|| {
                TextError::at(span, "this text is not terminated")
                    .expected(format!("{} on a line below", quoted(&delimiter)))
            });
        }
        link::link(&mut self.config, &self.names);
        self.config
    }

    fn line(&mut self, line: &Line<'_>) {
        if let Some((delimiter, _)) = &self.delimiter {
            let is_last = line.text.contains(delimiter.as_str());
            if !line.text.trim().is_empty() {
                self.config.skipped.add(&self.section.keyword, line);
            }
            if is_last {
                self.delimiter = None;
            }
            return;
        }
        let mut words = Words::new(line);
        let Some(first) = words.peek() else { return };
        if self.ended {
            self.after_end(&words, line);
            return;
        }
        self.is_indented |= line.indent > *self.indent.get_or_insert(line.indent);
        if let Some(indent) = self.skip_deeper_than {
            if line.indent > indent {
                self.note_line(line.number);
                return;
            }
            self.skip_deeper_than = None;
        }
        if self.mode == Mode::Section && line.indent > self.section.indent {
            self.in_section(line, &self.section.header.clone());
            return;
        }
        let result = match self.mode.chain().find(|mode| mode.has(&words)) {
            // Before other commands that begin with the same word.
            Some(Mode::Class) if self.is_without_effect(&words) => Ok(()),
            Some(mode) => {
                if mode == Mode::Top {
                    self.indent = Some(line.indent);
                }
                self.mode = mode;
                self.command(&first.text.to_ascii_lowercase(), &mut words)
            }
            None if self.is_without_effect(&words) => Ok(()),
            None if line.is_top || self.begins_section(first, &words, line.indent) => {
                self.section(line);
                return;
            }
            None => self.no_command_here(first, &mut words, line.indent),
        };
        self.note_line(line.number);
        let is_of_class = matches!(self.mode, Mode::Class | Mode::Police);
        let result = result.map_err(|error| match is_of_class {
            true => policy_map::required(first.text, error),
            false => error,
        });
        match self.source() {
            Some(source) => source.add_failure(result, || words.whole()),
            None => self.config.errors.add_failure(result),
        }
    }

    /// True for a command of a class that changes no result, which is noted.
    fn is_without_effect(&mut self, words: &Words<'_, '_>) -> bool {
        let is_in_class = self.mode.chain().any(|mode| mode == Mode::Class);
        let found = without_effect(words).filter(|_| is_in_class);
        let noted = found.and_then(|found| {
            self.class()?.without_effect.push(found);
            Some(())
        });
        if noted.is_some() {
            self.mode = Mode::Class;
        }
        noted.is_some()
    }

    /// Reads a line after `end`: other output of a terminal is skipped, a second configuration is a mistake.
    fn after_end(&mut self, words: &Words<'_, '_>, line: &Line<'_>) {
        let is_end = words.peek().is_some_and(|word| word.is("end"));
        if Mode::Top.has(words) && !is_end {
            if !self.is_second {
                let error = || words.missing("nothing after `end`");
                self.config.errors.add(error);
            }
            self.is_second = true;
        } else {
            self.config.skipped.add("what follows `end`", line);
        }
    }

    /// Returns the definition that the line belongs to; `None` at the top.
    fn source(&mut self) -> Option<&mut Source> {
        match self.mode {
            Mode::Top | Mode::Section => None,
            Mode::ClassMap => Some(&mut self.config.class_maps.last_mut()?.source),
            Mode::AccessList => Some(&mut self.config.access_lists.last_mut()?.source),
            Mode::PolicyMap | Mode::Class | Mode::Police => {
                Some(&mut self.config.policy_maps.last_mut()?.source)
            }
        }
    }

    fn note_line(&mut self, number: usize) {
        if let Some(source) = self.source() {
            source.lines.push(number);
        }
    }

    /// True where a line that is not known here is no mistake, but the beginning of another part of
    /// the configuration.
    fn begins_section(&self, first: Word<'_>, words: &Words<'_, '_>, indent: usize) -> bool {
        if LEAVING.iter().any(|leaving| first.is(leaving)) {
            return false;
        }
        let is_section = |word: Word<'_>| {
            SECTIONS.iter().any(|section| word.is(section)) || is_interface(word.text)
        };
        let removes_definition = first.is("no")
            && words.at(1).is_some_and(|second| {
                let mut commands = self.mode.chain().flat_map(Mode::commands);
                commands.any(|command| second.is(command)) && !is_section(second)
            });
        let is_misspelt_list = first.is("ip")
            && words
                .at(1)
                .is_some_and(|second| misspelt(second.text) == Some("access-list"));
        if misspelt(first.text).is_some() || is_misspelt_list || removes_definition {
            return false;
        }
        if Mode::Top.commands().iter().any(|command| first.is(command)) {
            return true;
        }
        match self.mode {
            Mode::Section => true,
            Mode::Top => !Mode::ALL.iter().skip(1).any(|mode| mode.has(words)),
            _ if Some(indent) > self.indent => false,
            _ => self.is_indented || is_section(first),
        }
    }

    /// The first line of a part that is skipped, or one of its lines that is not indented.
    fn section(&mut self, line: &Line<'_>) {
        let is_attachment = line.words.first().is_some_and(|w| w.is("service-policy"));
        if self.mode == Mode::Section && is_attachment {
            let place = self.place.clone();
            self.in_section(line, &place);
            return;
        }
        self.mode = Mode::Section;
        self.indent = Some(line.indent);
        self.section = Section::of(line);
        let keyword = self.section.keyword.as_str();
        if is_interface(keyword) || PLACES.contains(&keyword) {
            self.place = self.section.header.clone();
        }
        let keyword = self.section.keyword.clone();
        self.config.skipped.add(&keyword, line);
        self.names.note_foreign(line);
        let delimiter = sections::delimiter(line);
        self.delimiter = delimiter.zip(line.words.first().map(|word| word.span));
    }

    /// A line of the part that is skipped.
    fn in_section(&mut self, line: &Line<'_>, place: &str) {
        let delimiter = sections::delimiter(line);
        self.delimiter = delimiter.zip(line.words.first().map(|word| word.span));
        let mut words = Words::new(line);
        let is_attachment = words.take_if("service-policy").is_some();
        words.take_queueing_type();
        if let (true, Some(side), Some(name)) = (is_attachment, words.take(), words.take())
            && (side.is("input") || side.is("output"))
        {
            let policy = Reference::new(name);
            if place.starts_with("control-plane") {
                self.config.of_control_plane.insert(policy.name);
            } else {
                let direction = match side.is("input") {
                    true => Direction::Input,
                    false => Direction::Output,
                };
                // The first word of an interface says nothing.
                let interface = place
                    .split_once(' ')
                    .filter(|(keyword, _)| is_interface(keyword));
                let place = interface.map_or(place, |(_, name)| name).to_owned();
                self.config.attachments.push(Attachment {
                    place,
                    direction,
                    policy,
                });
            }
            return;
        }
        self.note_rate(line, place);
        let keyword = self.section.keyword.clone();
        self.config.skipped.add(&keyword, line);
    }

    /// A line of an interface that states its rate.
    fn note_rate(&mut self, line: &Line<'_>, place: &str) {
        let interface = place
            .split_once(' ')
            .filter(|(keyword, _)| is_interface(keyword));
        let [command, value, ..] = line.words[..] else {
            return;
        };
        let (Some((_, name)), Ok(value)) = (interface, value.text.parse::<u64>()) else {
            return;
        };
        let rate = |unit: u64| value.checked_mul(unit).map(BitRate::new);
        let rates = self.config.interfaces.entry(name.to_owned()).or_default();
        if command.is("bandwidth") {
            rates.bandwidth = rate(1_000);
        } else if command.is("speed") {
            rates.speed = rate(1_000_000);
        }
    }

    /// A command of the current mode.
    fn command(&mut self, keyword: &str, words: &mut Words<'_, '_>) -> Result<(), TextError> {
        match self.mode {
            Mode::AccessList => {
                let Some(list) = self.config.access_lists.last_mut() else {
                    return Ok(());
                };
                return access_list::entry(words, list);
            }
            Mode::Police => {
                let Some(class) = self.class() else {
                    return Ok(());
                };
                return police::action_line(words, class);
            }
            _ => words.take(),
        };
        match keyword {
            "description" => {
                words.take_text();
                Ok(())
            }
            "end" => {
                self.ended = true;
                words.end()
            }
            "class-map" => self.class_map(words),
            "match" => {
                let Some(map) = self.config.class_maps.last_mut() else {
                    return Ok(());
                };
                map.matches.extend(class_map::match_line(words, map.mode)?);
                Ok(())
            }
            "access-list" => self.numbered_access_list(words),
            "ip" => self.named_access_list(words),
            "policy-map" => self.policy_map(words),
            "class" => self.class_header(words),
            command => {
                if command == "police" {
                    self.mode = Mode::Police;
                }
                let Some(class) = self.class() else {
                    return Ok(());
                };
                let result = class_command(command, words, class);
                let unmodelled = std::mem::take(&mut class.unmodelled);
                if let Some(source) = self.source() {
                    source.unmodelled.extend(unmodelled);
                }
                result
            }
        }
    }

    /// The class being defined.
    fn class(&mut self) -> Option<&mut ClassText> {
        self.config.policy_maps.last_mut()?.classes.last_mut()
    }

    // A header with an error still opens its mode, with something to fill, so that the lines
    // below it are read and their own errors found. The error is one of the whole text, because
    // nothing refers to a definition without a name.

    fn class_map(&mut self, words: &mut Words<'_, '_>) -> Result<(), TextError> {
        self.mode = Mode::ClassMap;
        let mut map = ClassMapText::new(words.span());
        let index = self.config.class_maps.len();
        let header = class_map::header(words, &mut map);
        let result = header.and_then(|()| self.names.class_maps.define(&map.name, map.span, index));
        self.config.class_maps.push(map);
        self.config.errors.add_failure(result);
        Ok(())
    }

    fn policy_map(&mut self, words: &mut Words<'_, '_>) -> Result<(), TextError> {
        self.mode = Mode::PolicyMap;
        self.classes = Definitions::new("class");
        let mut map = PolicyMapText::new(words.span());
        let index = self.config.policy_maps.len();
        let header = policy_map::header(words, &mut map);
        let result =
            header.and_then(|()| self.names.policy_maps.define(&map.name, map.span, index));
        self.config.policy_maps.push(map);
        self.config.errors.add_failure(result);
        Ok(())
    }

    fn class_header(&mut self, words: &mut Words<'_, '_>) -> Result<(), TextError> {
        self.mode = Mode::Class;
        let Some(map) = self.config.policy_maps.last_mut() else {
            return Ok(());
        };
        let mut class = ClassText::new("", words.span());
        let header = policy_map::class(words, &mut class);
        let result = header.and_then(|()| {
            self.classes
                .define(&class.spec.name, class.span, map.classes.len())
        });
        map.classes.push(class);
        result
    }

    fn named_access_list(&mut self, words: &mut Words<'_, '_>) -> Result<(), TextError> {
        words.choose(&[("access-list", ())])?;
        self.mode = Mode::AccessList;
        let mut list = AccessListText::new(words.span());
        let index = self.config.access_lists.len();
        let header = access_list::header(words, &mut list);
        let result =
            header.and_then(|()| self.names.access_lists.define(&list.name, list.span, index));
        self.config.access_lists.push(list);
        self.config.errors.add_failure(result);
        Ok(())
    }

    /// A line of a numbered list; its errors are those of the list, wherever its other lines stand.
    fn numbered_access_list(&mut self, words: &mut Words<'_, '_>) -> Result<(), TextError> {
        let kind_of = |number: Word<'_>| number_of_name(number.text).and_then(kind_of_number);
        let Some((number, kind)) = words.take().and_then(|n| Some((n, kind_of(n)?))) else {
            return Ok(());
        };
        let known = self.names.access_lists.index(number.text);
        let is_flat = |index: &usize| {
            let list = self.config.access_lists.get(*index);
            list.is_some_and(|list| list.flat)
        };
        let index = match known.filter(is_flat) {
            Some(index) => index,
            None => {
                let mut list = AccessListText::new(number.span);
                list.name = number.text.to_owned();
                list.kind = kind;
                list.flat = true;
                let index = self.config.access_lists.len();
                self.names
                    .access_lists
                    .define(&list.name, list.span, index)?;
                self.config.access_lists.push(list);
                index
            }
        };
        if let Some(list) = self.config.access_lists.get_mut(index) {
            list.source.lines.push(number.span.line);
            let result = access_list::entry(words, list);
            list.source.add_failure(result, || words.whole());
        }
        Ok(())
    }

    /// The current mode and those around it have no command that begins with `first`.
    fn no_command_here(
        &mut self,
        first: Word<'_>,
        words: &mut Words<'_, '_>,
        indent: usize,
    ) -> Result<(), TextError> {
        if LEAVING.iter().any(|leaving| first.is(leaving)) {
            words.take();
            self.mode = match first.is("exit") {
                true => self.mode.parent().unwrap_or_default(),
                false => Mode::Top,
            };
            return words.end();
        }
        let shown = quoted(first.text);
        if first.is("no") || first.is("default") {
            let error = TextError::at(first.span, format!("{shown} is not supported"));
            return Err(error.help("leave out what is not configured"));
        }
        if first.is("ip") {
            words.take();
            return words.choose(&[("access-list", ())]);
        }
        let is_command = |mode: &Mode| mode.commands().iter().any(|command| first.is(command));
        if let Some(mode) = Mode::ALL.into_iter().find(is_command) {
            return Err(
                TextError::at(first.span, format!("{shown} does not belong here"))
                    .expected(format!("it {}", mode.place())),
            );
        }
        let here: Vec<&str> = self
            .mode
            .chain()
            .flat_map(Mode::commands)
            .copied()
            .chain(["exit"])
            .collect();
        let error = TextError::at(first.span, format!("unknown command {shown}"))
            .expected(self.mode.expected())
            .unmodelled()
            .maybe_help(suggestion(first.text, here.iter().copied()));
        match closest(first.text, here.iter().copied()) {
            // Go on as if that had been written, so that what follows has its place.
            Some(meant) => {
                // The error belongs to what the line was meant to stand in.
                match self.source() {
                    Some(source) if misspelt(first.text).is_none() => source.wrong.add(|| error),
                    _ => self.config.errors.add(|| error),
                }
                self.assume(meant, words);
                return Ok(());
            }
            None => self.skip_deeper_than = Some(indent),
        }
        Err(error)
    }

    /// Carry out the command that was probably meant; its own errors would only repeat that of
    /// its first word.
    fn assume(&mut self, command: &str, words: &mut Words<'_, '_>) {
        let owner = self
            .mode
            .chain()
            .find(|mode| mode.commands().contains(&command));
        let Some(mode) = owner.filter(|_| command != "end") else {
            return;
        };
        self.mode = mode;
        let _ = self.command(command, words);
    }
}

/// One command of a class; `command` is the first word, taken already.
fn class_command(
    command: &str,
    words: &mut Words<'_, '_>,
    class: &mut ClassText,
) -> Result<(), TextError> {
    match command {
        "bandwidth" => queueing::bandwidth(words, class),
        "drop" => police::drop_all(words, class),
        "fair-queue" => fair_queue::fair_queue(words, class),
        "police" => police::police(words, class),
        "priority" => queueing::priority(words, class),
        "queue-limit" => queueing::queue_limit(words, class),
        "random-detect" => queueing::random_detect(words, class),
        "set" => queueing::set(words, class),
        "shape" => queueing::shape(words, class),
        _ => service_policy(words, class),
    }
}

/// Reads the rest of a line after `service-policy` in a class.
fn service_policy(words: &mut Words<'_, '_>, class: &mut ClassText) -> Result<(), TextError> {
    let span = words.last_span();
    let name = words.name("the name of the policy map that divides this class")?;
    if words.peek().is_some() && (name.is("input") || name.is("output")) {
        return Err(
            TextError::at(name.span, "a direction stands only under an interface")
                .expected("the name of the policy map that divides this class"),
        );
    }
    words.end()?;
    class.once("service-policy", span)?;
    class.child = Some(Reference::new(name));
    Ok(())
}
