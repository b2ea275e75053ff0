//! What the controller counts of itself, as OpenMetrics.

use crate::sql::RowExt;
use crate::store::{Store, Totals};
use slicewise_api::LinkRecord;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the histogram of answer times, seconds.
const ENDS: [f64; 10] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0,
];

/// Counters of the process.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By first digit of the status.
    answers: [AtomicU64; 6],
    /// By upper end, the last one without.
    times: [AtomicU64; 11],
    nanos: AtomicU64,
}

impl Metrics {
    pub(super) fn answered(&self, status: u16, time: Duration) {
        let kind = usize::from(status / 100).min(5);
        self.answers[kind].fetch_add(1, Ordering::Relaxed);
        let seconds = time.as_secs_f64();
        let place = ENDS
            .iter()
            .position(|&end| seconds <= end)
            .unwrap_or(ENDS.len());
        self.times[place].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// Text of the format OpenMetrics 1.0.
pub(super) async fn text(
    metrics: &Metrics,
    store: &Store,
    links: &[LinkRecord],
) -> Result<String, sqlx::Error> {
    let mut out = Out::default();
    out.head(
        "slicewise_controller_answers",
        "counter",
        "Answers to requests.",
    );
    for (kind, count) in metrics.answers.iter().enumerate().skip(1) {
        let count = count.load(Ordering::Relaxed);
        out.line(&format!(
            "slicewise_controller_answers_total{{status=\"{kind}xx\"}} {count}"
        ));
    }
    times(&mut out, metrics);
    writer(&mut out, store.writer().totals());
    out.head("slicewise_controller_slices", "gauge", "Slices.");
    let select =
        sqlx::query("SELECT state, COUNT(*) AS slices FROM slices GROUP BY state ORDER BY state");
    for row in select.fetch_all(store.pool()).await? {
        let (state, count) = (row.text("state")?, row.integer("slices")?);
        out.line(&format!(
            "slicewise_controller_slices{{state=\"{state}\"}} {count}"
        ));
    }
    if let Some(findings) = store.findings() {
        out.head(
            "slicewise_controller_store_findings",
            "gauge",
            "Contradictions that the check at the start found in the store.",
        );
        out.line(&format!("slicewise_controller_store_findings {findings}"));
    }
    let row = sqlx::query("SELECT generation, event FROM state WHERE id = 1")
        .fetch_one(store.pool())
        .await?;
    let generation = row.integer("generation")?;
    out.head(
        "slicewise_controller_generation",
        "gauge",
        "The last generation.",
    );
    out.line(&format!("slicewise_controller_generation {generation}"));
    out.head(
        "slicewise_controller_gateway_behind",
        "gauge",
        "Generations that a gateway has not acknowledged.",
    );
    let select =
        sqlx::query("SELECT name, acknowledged, connected, problem FROM gateways ORDER BY name");
    let gateways = select.fetch_all(store.pool()).await?;
    for row in &gateways {
        let (name, behind) = (row.text("name")?, generation - row.integer("acknowledged")?);
        out.line(&format!(
            "slicewise_controller_gateway_behind{{gateway=\"{name}\"}} {behind}"
        ));
    }
    out.head(
        "slicewise_controller_gateway_connected",
        "gauge",
        "Whether a gateway asks for its state.",
    );
    for row in &gateways {
        let (name, connected) = (row.text("name")?, row.integer("connected")?);
        out.line(&format!(
            "slicewise_controller_gateway_connected{{gateway=\"{name}\"}} {connected}"
        ));
    }
    out.head(
        "slicewise_controller_gateway_refused",
        "gauge",
        "Whether the last announcement of a gateway was refused: its links, or the store that it follows.",
    );
    for row in &gateways {
        let (name, problem) = (row.text("name")?, row.maybe_text("problem")?);
        let refused = i32::from(problem.is_some());
        out.line(&format!(
            "slicewise_controller_gateway_refused{{gateway=\"{name}\"}} {refused}"
        ));
    }
    of_links(&mut out, links);
    Ok(out.end())
}

fn times(out: &mut Out, metrics: &Metrics) {
    let name = "slicewise_controller_answer_seconds";
    out.head(name, "histogram", "Time to an answer.");
    let mut sum = 0;
    for (place, count) in metrics.times.iter().enumerate() {
        sum += count.load(Ordering::Relaxed);
        let end = ENDS
            .get(place)
            .map_or_else(|| "+Inf".to_owned(), |end| format!("{end:?}"));
        out.line(&format!("{name}_bucket{{le=\"{end}\"}} {sum}"));
    }
    out.line(&format!("{name}_count {sum}"));
    out.line(&format!(
        "{name}_sum {}",
        seconds(metrics.nanos.load(Ordering::Relaxed))
    ));
}

fn writer(out: &mut Out, totals: &Totals) {
    for (name, text, value) in [
        (
            "transactions",
            "Transactions that changed the store.",
            &totals.transactions,
        ),
        (
            "changes",
            "Requests in these transactions.",
            &totals.requests,
        ),
        (
            "transaction_failures",
            "Transactions that the store failed.",
            &totals.failures,
        ),
    ] {
        let name = format!("slicewise_controller_{name}");
        out.head(&name, "counter", text);
        out.line(&format!("{name}_total {}", value.load(Ordering::Relaxed)));
    }
    let name = "slicewise_controller_transaction_seconds";
    out.head(name, "counter", "Time spent in transactions.");
    out.line(&format!(
        "{name}_total {}",
        seconds(totals.nanos.load(Ordering::Relaxed))
    ));
}

fn of_links(out: &mut Out, links: &[LinkRecord]) {
    let directions = || {
        links.iter().flat_map(|link| {
            let ways = link.ways().into_iter();
            ways.map(|(way, direction)| (&link.name, way, direction))
        })
    };
    out.head(
        "slicewise_controller_promised_bps",
        "gauge",
        "Sum of guaranteed rates.",
    );
    for (link, name, direction) in directions() {
        let rate = direction.promised.rate_bps;
        out.line(&format!(
            "slicewise_controller_promised_bps{{link=\"{link}\",direction=\"{name}\"}} {rate}"
        ));
    }
    out.head(
        "slicewise_controller_left_bps",
        "gauge",
        "Rate of the link that is not reserved, as the link counts.",
    );
    for (link, name, direction) in directions() {
        let rate = direction.left.rate_bps;
        out.line(&format!(
            "slicewise_controller_left_bps{{link=\"{link}\",direction=\"{name}\"}} {rate}"
        ));
    }
}

fn seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

/// Text that grows line by line.
#[derive(Debug, Default)]
pub(super) struct Out(String);

impl Out {
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}\n");
    }

    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// The whole text.
    pub(super) fn end(mut self) -> String {
        self.line("# EOF");
        self.0
    }
}
