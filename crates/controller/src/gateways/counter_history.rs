//! Counters of the last hour, of slices and links that somebody may see.

use super::bins::{Bin, CounterBins, KEPT_MS, Key, LinkRates, column};
use super::links::link;
use crate::actor::Actor;
use crate::slices::{Hop, Stored};
use crate::sql::{RowExt, Sql, values};
use slicewise_api::{
    Bins, DirectionHistory, HopHistory, LinkDirectionHistory, LinkHistory, NamedHistory, Slice,
    SliceHistory,
};
use slicewise_units::{BothWays, Way};
use sqlx::AnyConnection;
use std::collections::HashMap;
use std::sync::Arc;

/// Most slices of a link that are named.
pub(crate) const BUSIEST_MAX: usize = 32;

/// Time that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// Now, milliseconds of day.
    pub(crate) now_ms: u64,
    /// How much before that; at most an hour.
    pub(crate) seconds: u64,
}

impl Span {
    fn begin_ms(self) -> u64 {
        let length = self.seconds.saturating_mul(1_000).min(KEPT_MS);
        self.now_ms.saturating_sub(length)
    }
}

fn times(bins: &[Arc<Bin>]) -> Bins {
    let all = |of: fn(&Bin) -> u64| bins.iter().map(|bin| of(bin)).collect();
    Bins {
        start_ms: all(|bin| bin.start_ms),
        length_ms: all(|bin| bin.length_ms),
        counted_ns: all(|bin| bin.counted_ns),
    }
}

/// Bins of gateways within a span, each read once however many slices are.
#[derive(Debug)]
pub(crate) struct SpanBins<'a> {
    bins: &'a CounterBins,
    span: Span,
    known: HashMap<String, Vec<Arc<Bin>>>,
}

impl<'a> SpanBins<'a> {
    pub(crate) fn new(bins: &'a CounterBins, span: Span) -> Self {
        let known = HashMap::new();
        Self { bins, span, known }
    }

    fn of(&mut self, gateway: &str) -> &[Arc<Bin>] {
        let read = || self.bins.since(gateway, self.span.begin_ms());
        self.known.entry(gateway.to_owned()).or_insert_with(read)
    }
}

/// The last hour of a slice that was created at `created_at_ms`: bins that began before then may have another of its name.
pub(crate) fn slice_history(
    span_bins: &mut SpanBins<'_>,
    slice: &Slice,
    created_at_ms: u64,
    hops: &[Hop],
) -> SliceHistory {
    let bins = span_bins.bins;
    let hop = |hop: &Hop| {
        let mut found = span_bins.of(&hop.gateway).to_vec();
        found.retain(|bin| bin.start_ms >= created_at_ms);
        let direction = |way| {
            let is_there = slice.terms(way).is_some();
            is_there.then(|| column(&found, bins.slice(&slice.name, way), true))
        };
        let counted = BothWays::from_fn(direction);
        HopHistory {
            gateway: hop.gateway.clone(),
            bins: times(&found),
            forward: counted.forward,
            backward: counted.backward,
        }
    };
    SliceHistory {
        name: slice.name.clone(),
        hops: hops.iter().map(hop).collect(),
    }
}

/// The last hour of several slices; those that the actor may not see, or that do not exist, are left out.
pub(crate) async fn histories_of_several(
    connection: &mut AnyConnection,
    bins: &CounterBins,
    actor: &Actor,
    span: Span,
    names: &[&str],
) -> Result<Vec<SliceHistory>, sqlx::Error> {
    let stored = Stored::load_several(connection, names).await?;
    let (mut found, mut span_bins) = (Vec::new(), SpanBins::new(bins, span));
    for (name, stored) in stored {
        if actor.tenant().is_some_and(|own| own != stored.slice.tenant) {
            continue;
        }
        let hops = Hop::load(connection, &name).await?;
        let (slice, created) = (&stored.slice, stored.created_at_ms);
        found.push(slice_history(&mut span_bins, slice, created, &hops));
    }
    Ok(found)
}

/// The last hour of a link, and of the slices that the actor may see which sent most; `None` if there is no such link.
pub(crate) async fn link_history(
    connection: &mut AnyConnection,
    bins: &CounterBins,
    actor: &Actor,
    span: Span,
    (name, busiest): (&str, usize),
) -> Result<Option<LinkHistory>, sqlx::Error> {
    let select = "SELECT gateway FROM links WHERE name = $1";
    let row = connection.row(select, values![name]).await?;
    let Some(row) = row else { return Ok(None) };
    let gateway = row.text("gateway")?;
    let select = "SELECT s.name AS slice, s.created_at_ms AS created_at_ms \
                  FROM slice_hops h JOIN slices s ON s.name = h.slice \
                  WHERE h.link = $1 AND (s.tenant = $2 OR $2 = '')";
    let tenant = actor.tenant().unwrap_or_default();
    let rows = connection.rows(select, values![name, tenant]).await?;
    let slices = rows
        .iter()
        .map(|row| Ok((row.text("slice")?, row.natural("created_at_ms")?)));
    let slices: Vec<(String, u64)> = slices.collect::<Result<_, sqlx::Error>>()?;
    let found = bins.since(&gateway, span.begin_ms());
    let ways = BothWays::from_fn(|way| {
        let key = bins.link(name, way);
        let rates = |of: fn(&LinkRates) -> u64| {
            let rates = found.iter().map(|bin| bin.rates(key).map(of));
            rates.collect()
        };
        LinkDirectionHistory {
            rate_bps: rates(|one| one.rate_bps),
            promised_bps: rates(|one| one.promised_bps),
            total: column(&found, key, true),
            slices: most_sent(bins, &found, &slices, way, busiest),
        }
    });
    Ok(Some(LinkHistory {
        name: name.to_owned(),
        gateway,
        bins: times(&found),
        forward: ways.forward,
        backward: ways.backward,
    }))
}

/// Those of these slices, with the moments of their creation, that sent most.
fn most_sent(
    bins: &CounterBins,
    found: &[Arc<Bin>],
    slices: &[(String, u64)],
    way: Way,
    busiest: usize,
) -> Vec<NamedHistory> {
    let mut sums: HashMap<Key, (&str, u64, f64)> = slices
        .iter()
        .map(|(name, created)| (bins.slice(name, way), (name.as_str(), *created, 0.0)))
        .collect();
    for bin in found {
        for (key, bytes) in bin.sent() {
            if let Some((_, created, sum)) = sums.get_mut(&key)
                && bin.start_ms >= *created
            {
                *sum += bytes;
            }
        }
    }
    let mut sums: Vec<(&str, u64, f64)> = sums.into_values().filter(|one| one.2 > 0.0).collect();
    sums.sort_unstable_by(|one, other| other.2.total_cmp(&one.2).then(one.0.cmp(other.0)));
    sums.truncate(busiest);
    let named = sums.into_iter().map(|(name, created, _)| {
        let mut counters = column(found, bins.slice(name, way), false);
        let before = found.iter().filter(|bin| bin.start_ms < created).count();
        let DirectionHistory {
            sent_bytes,
            sent_frames,
            dropped_frames,
            ..
        } = &mut counters;
        for counts in [sent_bytes, sent_frames, dropped_frames] {
            counts.iter_mut().take(before).for_each(|count| *count = 0);
        }
        NamedHistory {
            name: name.to_owned(),
            counters,
        }
    });
    named.collect()
}

/// Rates of the links of a gateway, as they are now.
pub(crate) async fn link_rates(
    connection: &mut AnyConnection,
    bins: &CounterBins,
    gateway: &str,
) -> Result<Vec<LinkRates>, sqlx::Error> {
    let select = "SELECT name FROM links WHERE gateway = $1";
    let mut found = Vec::new();
    for row in connection.rows(select, values![gateway]).await? {
        let name = row.text("name")?;
        let Some(link) = link(&mut *connection, &name).await? else {
            continue;
        };
        for way in Way::ALL {
            let direction = link.ways()[way];
            found.push(LinkRates {
                key: bins.link(&name, way),
                rate_bps: direction.rate_bps,
                promised_bps: direction.promised.link_rate_bps,
            });
        }
    }
    Ok(found)
}
