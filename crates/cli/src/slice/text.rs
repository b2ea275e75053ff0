//! Slices, offers and refusals as text.

use crate::output::{self, colours};
use slicewise_api::{
    BatchAnswer, Bounds, DelayChoice, DelayChoices, DelayOrigin, DelayPercentiles,
    DirectionCounters, HopCounters, Match, OfferAnswer, Problem, SliceCountersRecord, SliceRecord,
    SliceState, Terms, Versioned,
};
use slicewise_report::terminal::{Colours, Column, Listing, wrapped};
use slicewise_stats::words;
use slicewise_units::{BitRate, ByteCount, Duration, Rounded as _, Way};

/// How to write.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Columns of the terminal.
    pub width: u16,
    /// Colours, if it shows any.
    pub colours: Colours,
}

impl Page {
    /// For standard output.
    pub fn of_output() -> Self {
        Self {
            width: output::columns(),
            colours: colours(),
        }
    }

    /// A table fitted to it; JSON has what that leaves out.
    pub fn fitted(self, table: Listing) -> String {
        table.fitted(self.width, "see --json", self.colours)
    }

    fn wrapped(self, line: &str) -> String {
        wrapped(line, self.width.into()) + "\n"
    }
}

/// The list as a table; `total` slices could be listed.
pub fn list(slices: &[SliceRecord], total: Option<u64>, page: Page) -> String {
    if slices.is_empty() {
        return "no slices".to_owned();
    }
    let mut table = Listing::new([
        Column::Name("Slice"),
        Column::Text("State"),
        Column::Number("Forward\nguaranteed"),
        Column::Number("Forward\ndelay"),
        Column::Number("Backward\nguaranteed"),
        Column::Number("Backward\ndelay"),
        Column::Name("Tenant"),
        Column::Name("Path"),
        Column::Name("Gateways"),
        Column::Number("Forward\nat most"),
        Column::Number("Backward\nat most"),
    ]);
    for slice in slices {
        let [forward, backward] = [
            (slice.forward.as_ref(), slice.bound_ns.forward),
            (slice.backward.as_ref(), slice.bound_ns.backward),
        ]
        .map(|(terms, bound)| promise(terms, bound));
        let ([forward, forward_delay, forward_most], [backward, backward_delay, backward_most]) =
            (forward, backward);
        table.add([
            slice.name.clone(),
            match slice.problems.is_empty() {
                true => slice.state.name().to_owned(),
                false => Listing::bad("✗ refused"),
            },
            forward,
            forward_delay,
            backward,
            backward_delay,
            slice.tenant.clone(),
            slice.path.join(", "),
            gateways(slice),
            forward_most,
            backward_most,
        ]);
    }
    let listed = slices.len() as u64;
    let count = match total.filter(|total| *total > listed) {
        Some(total) => format!("{} of {} slices", thousands(listed), thousands(total)),
        None => words::count(listed, "slice"),
    };
    page.fitted(table) + &count
}

/// "2,001".
fn thousands(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1_000), number % 1_000),
    }
}

/// The state, and what it waits for.
fn state(slice: &SliceRecord) -> String {
    let name = slice.state.name();
    match gateways(slice).as_str() {
        "" => name.to_owned(),
        gateways => format!("{name}, {gateways}"),
    }
}

/// "waits for edge", or which gateway refused it.
fn gateways(slice: &SliceRecord) -> String {
    match (slice.problems.first(), slice.unacknowledged.as_slice()) {
        (Some(problem), _) => format!("refused by {}", problem.gateway),
        (None, [_, ..]) if slice.state != SliceState::Installed => {
            format!("waits for {}", slice.unacknowledged.join(", "))
        }
        _ => String::new(),
    }
}

/// Guaranteed rate, bound of delay and maximum of a direction.
fn promise(terms: Option<&Terms>, bound_ns: Option<u64>) -> [String; 3] {
    let guarantee = terms.and_then(|terms| terms.guarantee);
    let maximum = terms.and_then(|terms| terms.maximum);
    [
        guarantee.map(|one| rate(one.rate_bps).to_string()),
        bound_ns.map(|bound| time(bound).to_string()),
        maximum.map(|one| rate(one.rate_bps).to_string()),
    ]
    .map(Option::unwrap_or_default)
}

fn rate(bits_per_second: u64) -> BitRate {
    BitRate::new(bits_per_second)
}

/// A time, rounded up: what is stated as a bound is one.
fn time(nanos: u64) -> Duration {
    Duration::from_nanos(nanos).rounded_up()
}

/// One slice with everything about it.
pub fn slice(record: &SliceRecord, counters: &SliceCountersRecord, page: Page) -> String {
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
    let mut text: String = lines.iter().map(|line| page.wrapped(line)).collect();
    text.push_str(&page.fitted(terms_table(record)));
    let why = reasons(record.delay_choice.as_ref());
    text.extend(why.lines().skip(1).map(|line| page.wrapped(line)));
    match counters.hops.is_empty() {
        true => text.push_str("no gateway has reported counters of it yet"),
        false => {
            let table = counters_table(&counters.hops);
            let table = table.fitted(page.width, "on a wider terminal", page.colours);
            text.push_str(table.trim_end());
        }
    }
    text
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

fn terms_table(record: &SliceRecord) -> Listing {
    let mut table = Listing::new([
        Column::Text("Direction"),
        Column::Number("Guaranteed"),
        Column::Number("Burst"),
        Column::Number("Delay\nbound"),
        Column::Number("Delay\nrequested"),
        Column::Number("At most"),
        Column::Number("Weight"),
    ]);
    for (way, (terms, bound)) in record.ways().zip(record.bound_ns.ways()) {
        let Some(direction) = terms else { continue };
        let guarantee = direction.guarantee;
        let burst = guarantee.map(|one| ByteCount::new(one.burst_bytes).to_string());
        let requested = guarantee.and_then(|one| one.delay_ns);
        let requested = requested.map(|delay| Duration::from_nanos(delay).to_string());
        let [guaranteed, bound, most] = promise(terms.as_ref(), *bound);
        table.add([
            way.to_string(),
            guaranteed,
            burst.unwrap_or_default(),
            bound,
            requested.unwrap_or_default(),
            most,
            direction.weight.to_string(),
        ]);
    }
    table
}

fn counters_table(hops: &[HopCounters]) -> Listing {
    let mut table = Listing::new([
        Column::Name("Gateway"),
        Column::Text("Direction"),
        Column::Number("Sent"),
        Column::Number("Dropped"),
        Column::Number("Longest"),
        Column::Number("p99"),
        Column::Number("Median"),
        Column::Number("Waiting"),
        Column::Text("Dropped for"),
    ]);
    for hop in hops {
        for (way, counters) in hop.ways() {
            if let Some(counters) = counters {
                table.add(counters_row(hop, way, counters));
            }
        }
    }
    table
}

fn counters_row(hop: &HopCounters, way: Way, counters: &DirectionCounters) -> [String; 9] {
    let bits = u128::from(counters.sent_bytes) * 8 * 1_000_000_000;
    let sent = bits / u128::from(hop.interval_ns.max(1));
    let sent = BitRate::new(u64::try_from(sent).unwrap_or(u64::MAX));
    let delay = |of: fn(&DelayPercentiles) -> u64| {
        let shown = counters.delay_ns.as_ref().map(of).map(time);
        shown.map_or_else(String::new, |time| time.to_string())
    };
    let dropped = counters.dropped.iter().filter(|(_, frames)| **frames > 0);
    let frames: u64 = dropped.clone().map(|(_, frames)| *frames).sum();
    let reasons: Vec<String> = dropped
        .map(|(reason, frames)| format!("{frames} {reason}"))
        .collect();
    [
        hop.gateway.clone(),
        way.to_string(),
        sent.rounded_down().to_string(),
        match frames {
            0 => "0".to_owned(),
            _ => Listing::bad(&format!("✗ {frames}")),
        },
        delay(|delay| delay.largest),
        delay(|delay| delay.p99),
        delay(|delay| delay.p50),
        counters.waiting_frames.to_string(),
        reasons.join(", "),
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
