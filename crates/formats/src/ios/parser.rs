//! Which command belongs where: the modes of the IOS command line.

use super::access_list::{self, AccessListText};
use super::class_map::{self, ClassMapText};
use super::config::IosConfig;
use super::error::{IosError, Report, closest, one_of, quoted, suggestion};
use super::lexer::{self, Line, Span, Word};
use super::link::{self, Definitions, Names};
use super::police;
use super::policy_map::{
    self, CLASS_COMMANDS, ClassText, PolicyMapText, REFUSED_CLASS_COMMANDS, class_command,
};
use super::words::Words;

/// Largest text read, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Read the class maps, access lists and policy maps of `text`.
///
/// Every command stands on a line of its own. Indentation means nothing, as on the IOS command
/// line: a command that the current mode does not know is tried in the modes around it.
///
/// # Errors
/// The independent errors of the text in order, [`ERRORS_MAX`](super::ERRORS_MAX) at most: a line that is not known,
/// an argument that is missing, wrong or out of range, a name that is defined twice or not at all,
/// a policy map that contains itself, a text above [`TEXT_BYTES_MAX`]. Errors of names are looked
/// for only where every line could be read.
pub fn parse(text: &str) -> Result<IosConfig, Vec<IosError>> {
    if text.len() > TEXT_BYTES_MAX {
        let span = Span {
            line: 1,
            column: 1,
            length: 1,
        };
        return Err(vec![
            IosError::at(span, format!("the text has {} bytes", text.len()))
                .expected(format!("at most {TEXT_BYTES_MAX}")),
        ]);
    }
    let mut parser = Parser::new();
    for line in lexer::lines(text) {
        if parser.ended {
            parser.report.add(|| after_end(&line));
            break;
        }
        parser.line(&line);
        if parser.report.is_full() {
            break;
        }
    }
    let Parser {
        mut config,
        names,
        mut report,
        ..
    } = parser;
    if report.is_empty() {
        link::link(&mut config, &names, &mut report);
    }
    if report.is_empty() {
        report.add_failure(link::check_expansion(&config));
    }
    if report.is_empty() {
        Ok(config)
    } else {
        Err(report.into_errors())
    }
}

fn after_end(line: &Line<'_>) -> IosError {
    Words::new(line).missing("nothing after `end`")
}

/// Where on the command line we are. What is being defined is the last of its kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Top,
    ClassMap,
    AccessList,
    PolicyMap,
    Class,
    Police,
}

impl Mode {
    const ALL: [Self; 6] = [
        Self::Top,
        Self::ClassMap,
        Self::AccessList,
        Self::PolicyMap,
        Self::Class,
        Self::Police,
    ];

    fn parent(self) -> Option<Self> {
        match self {
            Self::Top => None,
            Self::ClassMap | Self::AccessList | Self::PolicyMap => Some(Self::Top),
            Self::Class => Some(Self::PolicyMap),
            Self::Police => Some(Self::Class),
        }
    }

    /// The first words of the commands of this mode.
    fn commands(self) -> &'static [&'static str] {
        match self {
            Self::Top => &["access-list", "class-map", "end", "ip", "policy-map"],
            Self::ClassMap => &["description", "match"],
            Self::AccessList => &["deny", "permit", "remark"],
            Self::PolicyMap => &["class", "description"],
            Self::Class => &CLASS_COMMANDS,
            Self::Police => &police::ACTIONS,
        }
    }

    /// Where its commands belong, in words.
    const fn place(self) -> &'static str {
        match self {
            Self::Top => "at the top",
            Self::ClassMap => "under `class-map`",
            Self::AccessList => "under `ip access-list`",
            Self::PolicyMap => "under `policy-map`",
            Self::Class => "under `class` in a policy map",
            Self::Police => "under `police`",
        }
    }

    /// What may stand here, in words.
    fn expected(self) -> String {
        match self {
            Self::Top => one_of(self.commands()),
            Self::Police => {
                let commands = [self.commands(), Self::Class.commands()].concat();
                format!("{}, or the next class or definition", one_of(&commands))
            }
            Self::Class => format!(
                "{}, or the next class or definition",
                one_of(self.commands())
            ),
            _ => format!("{}, or the next definition", one_of(self.commands())),
        }
    }

    /// This mode and those around it.
    fn chain(self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |mode| mode.parent())
    }
}

struct Parser {
    config: IosConfig,
    names: Names,
    /// Classes of the policy map being defined.
    classes: Definitions,
    report: Report,
    mode: Mode,
    /// After a line that is not known: lines indented deeper are part of it.
    skip_deeper_than: Option<usize>,
    ended: bool,
}

impl Parser {
    fn new() -> Self {
        Self {
            config: IosConfig::default(),
            names: Names::default(),
            classes: Definitions::new("class"),
            report: Report::default(),
            mode: Mode::Top,
            skip_deeper_than: None,
            ended: false,
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        if let Some(indent) = self.skip_deeper_than {
            if line.indent > indent {
                return;
            }
            self.skip_deeper_than = None;
        }
        let mut words = Words::new(line);
        let Some(first) = words.peek() else { return };
        let owner = self.mode.chain().find(|mode| {
            let number = *mode == Mode::AccessList && words.peek_number().is_some();
            number || mode.commands().iter().any(|command| first.is(command))
        });
        let result = match owner {
            Some(mode) => {
                self.mode = mode;
                self.command(&first.text.to_ascii_lowercase(), &mut words)
            }
            None => self.no_command_here(first, &mut words, line.indent),
        };
        self.report.add_failure(result);
    }

    /// A command of the current mode.
    fn command(&mut self, keyword: &str, words: &mut Words<'_, '_>) -> Result<(), IosError> {
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
                class_command(command, words, class)
            }
        }
    }

    /// The class being defined.
    fn class(&mut self) -> Option<&mut ClassText> {
        self.config.policy_maps.last_mut()?.classes.last_mut()
    }

    // A header with an error still opens its mode, with something to fill, so that the lines
    // below it are read and their own errors found.

    fn class_map(&mut self, words: &mut Words<'_, '_>) -> Result<(), IosError> {
        self.mode = Mode::ClassMap;
        let mut map = ClassMapText::new(words.span());
        let index = self.config.class_maps.len();
        let header = class_map::header(words, &mut map);
        let result = header.and_then(|()| self.names.class_maps.define(&map.name, map.span, index));
        self.config.class_maps.push(map);
        result
    }

    fn policy_map(&mut self, words: &mut Words<'_, '_>) -> Result<(), IosError> {
        self.mode = Mode::PolicyMap;
        self.classes = Definitions::new("class");
        let mut map = PolicyMapText::new(words.span());
        let index = self.config.policy_maps.len();
        let header = policy_map::header(words, &mut map);
        let result =
            header.and_then(|()| self.names.policy_maps.define(&map.name, map.span, index));
        self.config.policy_maps.push(map);
        result
    }

    fn class_header(&mut self, words: &mut Words<'_, '_>) -> Result<(), IosError> {
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

    fn named_access_list(&mut self, words: &mut Words<'_, '_>) -> Result<(), IosError> {
        words.choose(&[("access-list", ())])?;
        self.mode = Mode::AccessList;
        let mut list = AccessListText::new(words.span());
        let index = self.config.access_lists.len();
        let header = access_list::header(words, &mut list);
        let result =
            header.and_then(|()| self.names.access_lists.define(&list.name, list.span, index));
        self.config.access_lists.push(list);
        result
    }

    fn numbered_access_list(&mut self, words: &mut Words<'_, '_>) -> Result<(), IosError> {
        let (number, kind) = access_list::number(words)?;
        let known = self.names.access_lists.index(number.text);
        let list = known.and_then(|index| self.config.access_lists.get_mut(index));
        if let Some(list) = list.filter(|list| list.flat) {
            return access_list::entry(words, list);
        }
        let mut list = AccessListText::new(number.span);
        list.name = number.text.to_owned();
        list.kind = kind;
        list.flat = true;
        let index = self.config.access_lists.len();
        let defined = self.names.access_lists.define(&list.name, list.span, index);
        let result = defined.and_then(|()| access_list::entry(words, &mut list));
        self.config.access_lists.push(list);
        result
    }

    /// The current mode and those around it have no command that begins with `first`.
    fn no_command_here(
        &mut self,
        first: Word<'_>,
        words: &mut Words<'_, '_>,
        indent: usize,
    ) -> Result<(), IosError> {
        if first.is("exit") {
            words.take();
            self.mode = self.mode.parent().unwrap_or_default();
            return words.end();
        }
        let shown = quoted(first.text);
        let refused = |why: &str| {
            Err(IosError::at(first.span, format!("{shown} is not supported")).help(why))
        };
        if first.is("no") || first.is("default") {
            return refused("leave out what is not configured");
        }
        if let Some((_, why)) = REFUSED_CLASS_COMMANDS
            .iter()
            .find(|(name, _)| first.is(name))
        {
            return refused(why);
        }
        let is_command = |mode: &Mode| mode.commands().iter().any(|command| first.is(command));
        if let Some(mode) = Mode::ALL.into_iter().find(is_command) {
            return Err(
                IosError::at(first.span, format!("{shown} does not belong here"))
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
        let help = suggestion(first.text, here.iter().copied()).or_else(|| {
            (indent == 0).then(|| {
                "of a configuration, only class maps, access lists and policy maps are read".into()
            })
        });
        let error = IosError::at(first.span, format!("unknown command {shown}"))
            .expected(self.mode.expected())
            .maybe_help(help);
        match closest(first.text, here.iter().copied()) {
            // Go on as if that had been written, so that what follows has its place.
            Some(meant) => self.assume(meant, words),
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
