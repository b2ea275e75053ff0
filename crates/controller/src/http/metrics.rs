//! Counters of the controller itself, as OpenMetrics.

use crate::sql::RowExt;
use crate::store::{Store, Totals};
use slicewise_api::{LinkDirectionRecord, LinkRecord};
use std::fmt::{Display, Write as _};
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
    let answers = metrics.answers.iter().enumerate().skip(1);
    let answers = answers.map(|(kind, count)| (format!("status=\"{kind}xx\""), loaded(count)));
    out.metric("answers", COUNTER, "Answers to requests.", answers);
    times(&mut out, metrics);
    writer(&mut out, store.writer().totals());
    let select =
        sqlx::query("SELECT state, COUNT(*) AS slices FROM slices GROUP BY state ORDER BY state");
    let rows = select.fetch_all(store.pool()).await?;
    let slices = rows.iter().map(|row| {
        let labels = format!("state=\"{}\"", row.text("state")?);
        Ok((labels, row.integer("slices")?))
    });
    let slices: Vec<_> = slices.collect::<Result<_, sqlx::Error>>()?;
    out.metric("slices", GAUGE, "Slices.", slices);
    if let Some(findings) = store.findings() {
        let help = "Contradictions that the check at the start found in the store.";
        out.metric("store_findings", GAUGE, help, one(findings));
    }
    let row = sqlx::query("SELECT generation, event FROM state WHERE id = 1")
        .fetch_one(store.pool())
        .await?;
    let generation = row.integer("generation")?;
    out.metric("generation", GAUGE, "The last generation.", one(generation));
    gateways(&mut out, store, generation).await?;
    of_links(&mut out, links);
    Ok(out.end())
}

async fn gateways(out: &mut Out, store: &Store, generation: i64) -> Result<(), sqlx::Error> {
    let select =
        sqlx::query("SELECT name, acknowledged, connected, problem FROM gateways ORDER BY name");
    let rows = select.fetch_all(store.pool()).await?;
    let gateways = rows.iter().map(|row| {
        let labels = format!("gateway=\"{}\"", row.text("name")?);
        let refused = i64::from(row.maybe_text("problem")?.is_some());
        let behind = generation - row.integer("acknowledged")?;
        Ok((labels, [behind, row.integer("connected")?, refused]))
    });
    let gateways: Vec<_> = gateways.collect::<Result<_, sqlx::Error>>()?;
    for (index, (name, help)) in [
        (
            "gateway_behind",
            "Generations that a gateway has not acknowledged.",
        ),
        (
            "gateway_connected",
            "Whether a gateway asks for its state.",
        ),
        (
            "gateway_refused",
            "Whether the last announcement of a gateway was refused: its links, or the store that it follows.",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let samples = gateways.iter();
        let samples = samples.map(|(labels, values)| (labels.clone(), values[index]));
        out.metric(name, GAUGE, help, samples);
    }
    Ok(())
}

fn times(out: &mut Out, metrics: &Metrics) {
    let name = "slicewise_controller_answer_seconds";
    out.head(name, "histogram", "Time to an answer.");
    let mut sum = 0;
    for (place, count) in metrics.times.iter().enumerate() {
        sum += loaded(count);
        let end = ENDS
            .get(place)
            .map_or_else(|| "+Inf".to_owned(), |end| format!("{end:?}"));
        out.line(&format!("{name}_bucket{{le=\"{end}\"}} {sum}"));
    }
    out.line(&format!("{name}_count {sum}"));
    out.line(&format!("{name}_sum {}", seconds(loaded(&metrics.nanos))));
}

fn writer(out: &mut Out, totals: &Totals) {
    let help = "Transactions that changed the store.";
    let count = loaded(&totals.transactions);
    out.metric("transactions", COUNTER, help, one(count));
    let help = "Requests in these transactions.";
    out.metric("changes", COUNTER, help, one(loaded(&totals.requests)));
    let help = "Transactions that the store failed.";
    let count = loaded(&totals.failures);
    out.metric("transaction_failures", COUNTER, help, one(count));
    let time = seconds(loaded(&totals.nanos));
    let help = "Time spent in transactions.";
    out.metric("transaction_seconds", COUNTER, help, one(time));
}

fn of_links(out: &mut Out, links: &[LinkRecord]) {
    let each = |value: fn(&LinkDirectionRecord) -> u64| {
        links.iter().flat_map(move |link| {
            link.ways().into_iter().map(move |(way, direction)| {
                let labels = format!("link=\"{}\",direction=\"{way}\"", link.name);
                (labels, value(direction))
            })
        })
    };
    let promised = each(|direction| direction.promised.rate_bps);
    out.metric("promised_bps", GAUGE, "Sum of guaranteed rates.", promised);
    let help = "Rate of the link that is not reserved, as the link counts.";
    out.metric(
        "left_bps",
        GAUGE,
        help,
        each(|direction| direction.left.rate_bps),
    );
}

const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

/// The sample of a metric without labels.
fn one<V>(value: V) -> [(String, V); 1] {
    [(String::new(), value)]
}

fn loaded(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
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

    /// Writes a metric of the controller with its samples: labels and values.
    fn metric<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        let name = format!("slicewise_controller_{name}");
        self.head(&name, kind, help);
        let suffix = if kind == COUNTER { "_total" } else { "" };
        for (labels, value) in samples {
            let labels = match labels.as_str() {
                "" => labels,
                labels => format!("{{{labels}}}"),
            };
            self.line(&format!("{name}{suffix}{labels} {value}"));
        }
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
