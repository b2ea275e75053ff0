//! Records of the configuration database that `ovs-vsctl` commands create (ovs-vsctl(8), ovs-vswitchd.conf.db(5)).

use super::lexer::Word;
use super::values::{number, small};
use crate::error::{Report, Span, TextError, closest, one_of, quoted};
use slicewise_units::BitRate;
use std::collections::{BTreeMap, BTreeSet};

/// Queue 0xffffffff does not exist (ovs-actions(7)).
const QUEUE_MAX: u32 = u32::MAX - 1;
/// Options that change nothing about queues.
const OPTIONS: [&str; 3] = ["--may-exist", "--if-exists", "--no-wait"];

/// A value and its place.
pub(super) type Placed<T> = (T, Span);

/// Records that the commands created and set.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) qos: Vec<Qos>,
    pub(super) queues: Vec<Queue>,
    /// The QoS records that ports refer to.
    pub(super) ports: Vec<Placed<String>>,
    /// The numbers that are asked for interfaces, by the name of the interface.
    pub(super) interfaces: BTreeMap<String, String>,
    /// Names of the records that are created, also of those with errors in them.
    pub(super) ids: BTreeSet<String>,
}

impl Database {
    /// Returns true if a record called `id` is created, but with an error in it, so that nothing is known of it: the
    /// error is reported, and nothing that follows from it.
    pub(super) fn was_misread(&self, id: &str) -> bool {
        self.ids.contains(id)
            && self.qos.iter().all(|qos| qos.id != id)
            && self.queues.iter().all(|queue| queue.id != id)
    }
}

/// A record of the table QoS.
#[derive(Debug)]
pub(super) struct Qos {
    pub(super) id: String,
    pub(super) span: Span,
    pub(super) max_rate: Option<BitRate>,
    /// Numbers of queues and the records they refer to.
    pub(super) queues: Vec<(Placed<u32>, Placed<String>)>,
}

/// A record of the table Queue.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub(super) id: String,
    pub(super) span: Span,
    /// From its external ids.
    pub(super) name: Option<Placed<String>>,
    pub(super) min_rate: Option<Placed<BitRate>>,
    pub(super) max_rate: Option<Placed<BitRate>>,
    /// In bits.
    pub(super) burst: Option<Placed<u64>>,
    pub(super) dscp: Option<Placed<u8>>,
}

/// One value that a command gives to a column, or to a key of it.
struct Assignment<'a> {
    column: String,
    key: Option<Word<'a>>,
    value: Word<'a>,
    /// All of it.
    whole: Word<'a>,
}

/// Read what follows `ovs-vsctl`: commands between words `--`.
pub(super) fn read(words: &[Word<'_>], database: &mut Database, report: &mut Report) {
    for command in words.split(|word| word.is("--")) {
        let options = command
            .iter()
            .take_while(|word| word.strip_prefix("--").is_some());
        let count = options.count();
        let (options, command) = command.split_at_checked(count).unwrap_or((command, &[]));
        let mut id = None;
        for option in options {
            let is_known = OPTIONS.iter().any(|known| option.is(known))
                || ["--db=", "--timeout="]
                    .iter()
                    .any(|known| option.strip_prefix(known).is_some());
            match option.strip_prefix("--id=@") {
                Some(name) => id = Some(name),
                None if is_known => {}
                None => report.add(|| option.error("is not read").expected("`--id=@NAME`")),
            }
        }
        let Some((verb, rest)) = command.split_first() else {
            continue;
        };
        match verb.text().as_str() {
            "add-br" | "add-port" => {}
            "set" => report.add_failure(set(verb, rest, database)),
            "create" => report.add_failure(create(verb, rest, id, database)),
            _ => report.add(|| {
                let expected = one_of(&["set", "create", "add-br", "add-port"]);
                verb.error("is not read").expected(expected)
            }),
        }
    }
}

fn set(verb: &Word<'_>, words: &[Word<'_>], database: &mut Database) -> Result<(), TextError> {
    let [table, record, columns @ ..] = words else {
        return Err(verb
            .error("ends too early")
            .expected("`set port NAME qos=@ID`"));
    };
    let known: &[&str] = match table.text().to_ascii_lowercase().as_str() {
        "port" => &["qos"],
        "interface" => &["type", "ofport_request"],
        _ => {
            let expected = one_of(&["port", "interface"]);
            return Err(table.error("is not read after `set`").expected(expected));
        }
    };
    for column in columns {
        let set = assignment(column, known)?;
        if set.column == "qos" {
            database.ports.push(reference(&set.value, "QoS")?);
        } else if set.column == "ofport_request" {
            let number = set.value.text();
            database.interfaces.insert(record.text(), number);
        }
    }
    Ok(())
}

fn create(
    verb: &Word<'_>,
    words: &[Word<'_>],
    id: Option<Word<'_>>,
    database: &mut Database,
) -> Result<(), TextError> {
    // Kept whatever is wrong with the record.
    let is_new = id.is_none_or(|id| database.ids.insert(id.text()));
    let Some((table, columns)) = words.split_first() else {
        return Err(verb
            .error("ends too early")
            .expected("`create qos` or `create queue`"));
    };
    let table_name = table.text().to_ascii_lowercase();
    if !["qos", "queue"].contains(&table_name.as_str()) {
        return Err(table
            .error("is not read after `create`")
            .expected(one_of(&["qos", "queue"])));
    }
    let Some(id) = id else {
        let message = format!("nothing can refer to this {table_name}");
        return Err(TextError::at(verb.span(), message).expected("`--id=@NAME` before `create`"));
    };
    if !is_new {
        return Err(id.error("is created twice").expected("another name"));
    }
    if columns.is_empty() {
        let expected = "at least one `COLUMN=VALUE`, without which `ovs-vsctl` refuses it";
        return Err(table.error("has no column").expected(expected));
    }
    if table_name == "qos" {
        let qos = qos(table, columns, id.text())?;
        database.qos.push(qos);
    } else {
        let queue = queue(table, columns, id.text())?;
        database.queues.push(queue);
    }
    Ok(())
}

fn qos(table: &Word<'_>, columns: &[Word<'_>], id: String) -> Result<Qos, TextError> {
    let mut qos = Qos {
        id,
        span: table.span(),
        max_rate: None,
        queues: Vec::new(),
    };
    let mut has_type = false;
    for column in columns {
        let set = assignment(column, &["type", "other_config", "queues", "external_ids"])?;
        match set.column.as_str() {
            "type" if set.value.is("linux-htb") => has_type = true,
            "type" => {
                let expected = "`linux-htb`";
                return Err(set.value.error("is another scheduler").expected(expected));
            }
            "other_config" => {
                for (key, value) in pairs(&set)? {
                    config_key(&key, &["max-rate"])?;
                    once(&key, qos.max_rate.is_some())?;
                    qos.max_rate = Some(rate(&value)?);
                }
            }
            "queues" => {
                for (key, value) in pairs(&set)? {
                    let queue = small(&key, "the number of a queue", 0..=QUEUE_MAX)?;
                    once(
                        &key,
                        qos.queues.iter().any(|((other, _), _)| *other == queue),
                    )?;
                    qos.queues
                        .push(((queue, key.span()), reference(&value, "queue")?));
                }
            }
            _ => {}
        }
    }
    match has_type {
        true => Ok(qos),
        false => {
            Err(TextError::at(table.span(), "the QoS has no type").expected("`type=linux-htb`"))
        }
    }
}

fn queue(table: &Word<'_>, columns: &[Word<'_>], id: String) -> Result<Queue, TextError> {
    let mut queue = Queue {
        id,
        span: table.span(),
        name: None,
        min_rate: None,
        max_rate: None,
        burst: None,
        dscp: None,
    };
    for column in columns {
        let set = assignment(column, &["other_config", "dscp", "external_ids"])?;
        match set.column.as_str() {
            "dscp" => {
                once(&set.whole, queue.dscp.is_some())?;
                queue.dscp = Some((small(&set.value, "a DSCP", 0..=63u8)?, set.whole.span()));
            }
            "other_config" => {
                for (key, value) in pairs(&set)? {
                    queue_config(&mut queue, &key, &value)?;
                }
            }
            _ => {
                for (key, value) in pairs(&set)? {
                    if key.is("name") {
                        queue.name = Some((value.text(), value.span()));
                    }
                }
            }
        }
    }
    if let (Some((min, _)), Some((max, at))) = (queue.min_rate, queue.max_rate)
        && max < min
    {
        let message = format!("max-rate {max} is below min-rate {min}");
        return Err(
            TextError::at(at, message).expected(format!("{} or more", min.bits_per_second()))
        );
    }
    Ok(queue)
}

fn queue_config(queue: &mut Queue, key: &Word<'_>, value: &Word<'_>) -> Result<(), TextError> {
    if key.is("priority") {
        let help = "leave it out: the excess is shared by minimum rates";
        return Err(key.error("is not supported").help(help));
    }
    config_key(key, &["min-rate", "max-rate", "burst"])?;
    let at = value.span();
    if key.is("min-rate") {
        once(key, queue.min_rate.is_some())?;
        queue.min_rate = Some((rate(value)?, at));
    } else if key.is("max-rate") {
        once(key, queue.max_rate.is_some())?;
        queue.max_rate = Some((rate(value)?, at));
    } else {
        once(key, queue.burst.is_some())?;
        const BITS_MAX: u64 = 1 << 40;
        queue.burst = Some((number(value, "a burst in bits", 1..=BITS_MAX)?, at));
    }
    Ok(())
}

fn rate(word: &Word<'_>) -> Result<BitRate, TextError> {
    let largest = BitRate::MAX.bits_per_second();
    number(word, "a rate in bit/s", 1..=largest).map(BitRate::new)
}

fn config_key(key: &Word<'_>, known: &[&str]) -> Result<(), TextError> {
    if known.iter().any(|name| key.is(name)) {
        return Ok(());
    }
    let text = key.text();
    let help = closest(&text, known.iter().copied());
    Err(key
        .error("is not a key that is read here")
        .expected(one_of(known))
        .maybe_help(help.map(|name| format!("did you mean `{name}`?"))))
}

fn once(word: &Word<'_>, is_given: bool) -> Result<(), TextError> {
    match is_given {
        true => Err(word.error("is given twice").expected("each setting once")),
        false => Ok(()),
    }
}

/// `column=value` or `column:key=value`; underscores may be written as dashes.
fn assignment<'a>(word: &Word<'a>, known: &[&str]) -> Result<Assignment<'a>, TextError> {
    let Some((left, value)) = word.split_once(|c| c == '=') else {
        return Err(word
            .error("sets nothing")
            .expected("`COLUMN=VALUE` or `COLUMN:KEY=VALUE`"));
    };
    let (column, key) = match left.split_once(|c| c == ':') {
        Some((column, key)) => (column, Some(key)),
        None => (left, None),
    };
    let name = column.text().to_ascii_lowercase().replace('-', "_");
    if !known.contains(&name.as_str()) {
        let help = closest(&name, known.iter().copied());
        return Err(column
            .error("is not a column that is read here")
            .expected(one_of(known))
            .maybe_help(help.map(|name| format!("did you mean `{name}`?"))));
    }
    Ok(Assignment {
        column: name,
        key,
        value,
        whole: *word,
    })
}

/// The keys and values of a map.
fn pairs<'a>(set: &Assignment<'a>) -> Result<Vec<(Word<'a>, Word<'a>)>, TextError> {
    let unquoted = |word: Word<'a>| {
        let inner = word
            .strip_prefix("\"")
            .and_then(|word| word.strip_suffix("\""));
        inner.unwrap_or(word)
    };
    if let Some(key) = set.key {
        return Ok(vec![(unquoted(key), unquoted(set.value))]);
    }
    let braced = set
        .value
        .strip_prefix("{")
        .and_then(|word| word.strip_suffix("}"));
    let pairs = braced.unwrap_or(set.value).split(|c| c == ',' || c == ' ');
    let pairs = pairs.into_iter().map(|pair| {
        let (key, value) = pair
            .split_once(|c| c == '=')
            .ok_or_else(|| pair.error("has no value").expected("`KEY=VALUE`"))?;
        Ok((unquoted(key), unquoted(value)))
    });
    pairs.collect()
}

/// The name of a record created in the same text, `@NAME`.
fn reference(word: &Word<'_>, what: &str) -> Result<Placed<String>, TextError> {
    match word.strip_prefix("@") {
        Some(name) if !name.is_empty() => Ok((name.text(), word.span())),
        _ => {
            let message = format!("{} is not a {what} of this text", quoted(&word.text()));
            let expected = "`@NAME`, with `--id=@NAME create …` in the text";
            Err(TextError::at(word.span(), message).expected(expected))
        }
    }
}
