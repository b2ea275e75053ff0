//! Slices, offers and refusals as text.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use slicewise_api::{
    BatchAnswer, Bounds, DelayChoice, DelayChoices, DelayOrigin, DirectionCounters, HopCounters,
    Match, OfferAnswer, Problem, SliceCountersRecord, SliceRecord, SliceState, Terms, Versioned,
};
use slicewise_stats::words;
use slicewise_units::{BitRate, ByteCount, Duration, Rounded as _, Way};

/// The list as a table; `total` slices could be listed.
pub fn list(slices: &[SliceRecord], total: Option<u64>) -> String {
    if slices.is_empty() {
        return "no slices".to_owned();
    }
    let mut table = empty(["Slice", "Tenant", "Path", "State", "Forward", "Backward"]);
    for slice in slices {
        table.add_row([
            slice.name.clone(),
            slice.tenant.clone(),
            slice.path.join(", "),
            state(slice),
            promise(slice.forward.as_ref(), slice.bound_ns.forward),
            promise(slice.backward.as_ref(), slice.bound_ns.backward),
        ]);
    }
    let listed = slices.len() as u64;
    let count = match total.filter(|total| *total > listed) {
        Some(total) => format!("{} of {} slices", thousands(listed), thousands(total)),
        None => words::count(listed, "slice"),
    };
    format!("{table}\n{count}")
}

/// "2,001".
fn thousands(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1_000), number % 1_000),
    }
}

/// A table with this header.
pub fn empty<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table
}

/// The state, and what it waits for.
fn state(slice: &SliceRecord) -> String {
    let name = slice.state.name();
    match (slice.problems.first(), slice.unacknowledged.as_slice()) {
        (Some(problem), _) => format!("{name}, refused by {}", problem.gateway),
        (None, [_, ..]) if slice.state != SliceState::Installed => {
            format!("{name}, waits for {}", slice.unacknowledged.join(", "))
        }
        _ => name.to_owned(),
    }
}

/// "10 Mbit/s within 2 ms".
fn promise(terms: Option<&Terms>, bound_ns: Option<u64>) -> String {
    let Some(terms) = terms else {
        return "–".to_owned();
    };
    let most = terms
        .maximum
        .map(|maximum| format!(", at most {}", rate(maximum.rate_bps)))
        .unwrap_or_default();
    match (terms.guarantee, bound_ns) {
        (None, _) => format!("best effort{most}"),
        (Some(guarantee), None) => format!("{}{most}", rate(guarantee.rate_bps)),
        (Some(guarantee), Some(bound)) => {
            format!("{} within {}{most}", rate(guarantee.rate_bps), time(bound))
        }
    }
}

fn rate(bits_per_second: u64) -> BitRate {
    BitRate::new(bits_per_second)
}

/// A time, rounded up: what is stated as a bound is one.
fn time(nanos: u64) -> Duration {
    Duration::from_nanos(nanos).rounded_up()
}

/// One slice with everything about it.
pub fn slice(record: &SliceRecord, counters: &SliceCountersRecord) -> String {
    let mut lines = vec![
        format!("{}: {}", record.name, state(record)),
        format!("tenant {}, path {}", record.tenant, record.path.join(", ")),
        format!(
            "generation {}, created by {}",
            record.generation, record.created_by
        ),
    ];
    lines.extend(record.matches.iter().map(packets));
    lines.extend(
        record
            .problems
            .iter()
            .map(|problem| format!("refused by {}: {}", problem.gateway, problem.reason)),
    );
    lines.push(terms_table(record).to_string());
    let why = reasons(record.delay_choice.as_ref());
    lines.extend(why.lines().skip(1).map(str::to_owned));
    if counters.hops.is_empty() {
        lines.push("no gateway has reported counters of it yet".to_owned());
    } else {
        lines.push(counters_table(&counters.hops).to_string());
    }
    lines.join("\n")
}

/// "packets: protocol=udp, destination_port=5201".
fn packets(one: &Match) -> String {
    let fields = match serde_json::to_value(one) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let fields: Vec<String> = fields
        .iter()
        .map(|(key, value)| match value.as_str() {
            Some(text) => format!("{key}={text}"),
            None => format!("{key}={value}"),
        })
        .collect();
    format!("packets {}", fields.join(","))
}

fn terms_table(record: &SliceRecord) -> Table {
    let mut table = empty([
        "Direction",
        "Guaranteed",
        "Burst",
        "Delay at most",
        "Bound",
        "Maximum",
        "Weight",
    ]);
    for (way, (terms, bound)) in record.ways().zip(record.bound_ns.ways()) {
        let Some(terms) = terms else { continue };
        let guarantee = terms.guarantee;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        table.add_row([
            way.to_string(),
            or_none(guarantee.map(|one| rate(one.rate_bps).to_string())),
            or_none(guarantee.map(|one| ByteCount::new(one.burst_bytes).to_string())),
            or_none(
                guarantee
                    .and_then(|one| one.delay_ns)
                    .map(|delay| Duration::from_nanos(delay).to_string()),
            ),
            or_none(bound.map(|bound| time(bound).to_string())),
            or_none(terms.maximum.map(|one| rate(one.rate_bps).to_string())),
            terms.weight.to_string(),
        ]);
    }
    table
}

fn counters_table(hops: &[HopCounters]) -> Table {
    let mut table = empty([
        "Gateway",
        "Direction",
        "Sent",
        "Waiting",
        "Median",
        "p99",
        "Longest",
        "Dropped",
    ]);
    for hop in hops {
        for (way, counters) in hop.ways() {
            if let Some(counters) = counters {
                table.add_row(counters_row(hop, way, counters));
            }
        }
    }
    table
}

fn counters_row(hop: &HopCounters, way: Way, counters: &DirectionCounters) -> Vec<Cell> {
    let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let bits = u128::from(counters.sent_bytes) * 8 * 1_000_000_000;
    let sent = bits / u128::from(hop.interval_ns.max(1));
    let sent = BitRate::new(u64::try_from(sent).unwrap_or(u64::MAX));
    let delay = |of: fn(&slicewise_api::DelayPercentiles) -> u64| {
        let shown = counters.delay_ns.as_ref().map(of).map(time);
        number(shown.map_or_else(|| "–".to_owned(), |time| time.to_string()))
    };
    let dropped: Vec<String> = counters
        .dropped
        .iter()
        .filter(|(_, frames)| **frames > 0)
        .map(|(reason, frames)| format!("{frames} {reason}"))
        .collect();
    let dropped = if dropped.is_empty() {
        "none".to_owned()
    } else {
        dropped.join(", ")
    };
    vec![
        Cell::new(&hop.gateway),
        Cell::new(way),
        number(sent.rounded_down().to_string()),
        number(counters.waiting_frames.to_string()),
        delay(|delay| delay.p50),
        delay(|delay| delay.p99),
        delay(|delay| delay.largest),
        Cell::new(dropped),
    ]
}

/// Formats the result of `add` or `change`.
pub fn put(answer: &Versioned<SliceRecord>) -> String {
    let record = &answer.value;
    let done = if answer.created { "created" } else { "changed" };
    let bounds = bounds(&record.bound_ns);
    let why = reasons(record.delay_choice.as_ref());
    format!(
        "{} is {done} (generation {}, {}){bounds}{why}",
        record.name,
        record.generation,
        state(record),
    )
}

/// Why delays that were not stated are what they are: a line for each direction.
fn reasons(choices: Option<&DelayChoices>) -> String {
    let ways = choices.into_iter().flat_map(DelayChoices::ways);
    let line = |(way, choice): (Way, &Option<DelayChoice>)| {
        let choice = choice.as_ref()?;
        let default = time(choice.default_ns);
        let why = match choice.reason {
            DelayOrigin::Stated => return None,
            DelayOrigin::Default => {
                "the default (burst / rate, within the delays of the links)".to_owned()
            }
            DelayOrigin::Smallest => format!(
                "the smallest that fitted when it was admitted, or the one from before a change, not the default of {default} (burst / rate, within the delays of the links)"
            ),
        };
        Some(format!("\n{way}: no delay was stated, so it is {why}"))
    };
    ways.filter_map(line).collect()
}

/// ": delayed by at most 2 ms forward, 5 ms backward".
fn bounds(bounds: &Bounds) -> String {
    let ways = bounds.ways().into_iter();
    let known: Vec<String> = ways
        .filter_map(|(way, bound)| bound.map(|bound| format!("{} {way}", time(bound))))
        .collect();
    if known.is_empty() {
        String::new()
    } else {
        format!(": delayed by at most {}", known.join(", "))
    }
}

/// Formats the result of `remove`.
pub fn removed(answer: &BatchAnswer) -> String {
    let names: Vec<&str> = answer.slices.iter().map(|one| one.name.as_str()).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    format!(
        "{} {are} removed (generation {}); capacity is free once waiting frames have left",
        names.join(", "),
        answer.generation
    )
}

/// Result of `purge`.
pub fn purged(record: &SliceRecord) -> String {
    format!(
        "{} is purged (generation {}); waiting for: {}",
        record.name,
        record.generation,
        record.unacknowledged.join(", ")
    )
}

/// Formats whether a slice would be accepted, and the alternatives.
pub fn offer(answer: &OfferAnswer) -> String {
    if !answer.accepted {
        return format!("would be refused: {}", refusal(answer));
    }
    let none = Bounds::default();
    let bounds = bounds(answer.bound_ns.as_ref().unwrap_or(&none));
    let why = reasons(answer.delay_choice.as_ref());
    let alternatives = alternatives(answer);
    if alternatives.is_empty() {
        return format!("would be accepted{bounds}{why}");
    }
    format!("would be accepted{bounds}{why}\nwould also be accepted: {alternatives}")
}

/// The controller's reason says what would be accepted, too.
fn refusal(answer: &OfferAnswer) -> &str {
    answer.reason.as_deref().unwrap_or("it does not fit")
}

/// Rounded to what is accepted; JSON has the exact values.
fn alternatives(answer: &OfferAnswer) -> String {
    let texts = [
        answer
            .largest_rate_bps
            .map(|most| format!("a rate of up to {}", rate(most).rounded_down())),
        answer
            .largest_burst_bytes
            .map(|most| format!("a burst of up to {}", ByteCount::new(most).rounded_down())),
        answer
            .smallest_delay_ns
            .map(|least| format!("a delay of {} or more", time(least))),
    ];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    texts.join(", or ")
}

/// Why the controller did not do it.
pub fn problem(problem: &Problem) -> String {
    match &problem.offer {
        Some(offer) if problem.status == 409 => format!("refused: {}", refusal(offer)),
        _ if problem.status == 412 => {
            format!("{problem} (look at it with `slicewise slice show`, and `change` it)")
        }
        _ if problem.status == 401 => {
            format!("{problem} (give a token with `--token-file FILE` or SLICEWISE_TOKEN)")
        }
        _ => problem.to_string(),
    }
}
