//! Counters of the last hour, in memory: bins of time, in which only what had traffic takes room.

use slicewise_api::{CounterReport, DirectionCounters, DirectionHistory};
use slicewise_units::Way;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// Time that is kept, milliseconds.
pub(crate) const KEPT_MS: u64 = 3_600_000;
/// Length of a bin, milliseconds, while there is room.
const LENGTH_MS: u64 = 10_000;
/// Longest bin, milliseconds.
const LENGTH_MAX_MS: u64 = LENGTH_MS << 5;
/// Most entries of a bin that is not over yet.
const OPEN_MAX: usize = 1 << 20;
/// Most bytes of all bins; then bins are joined in pairs, the oldest first.
const BYTES_MAX: usize = 64 << 20;

/// A slice (by its name) or a link (by `/` and its name) in a direction: a hash with a secret, by which names take no room.
pub(super) type Key = u64;

/// Counters of a direction of a slice or link within a bin.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// Two halves of a [`Key`]: so it is aligned as the others are.
    key: [u32; 2],
    sent_bytes: f32,
    sent_frames: f32,
    dropped_frames: f32,
    /// Largest of the percentiles that were reported.
    p99_ns: f32,
    largest_ns: f32,
}

impl Entry {
    const fn key(&self) -> Key {
        (self.key[0] as u64) << 32 | self.key[1] as u64
    }

    /// Adds what was counted later or elsewhere.
    fn add(&mut self, other: &Self) {
        self.sent_bytes += other.sent_bytes;
        self.sent_frames += other.sent_frames;
        self.dropped_frames += other.dropped_frames;
        self.p99_ns = self.p99_ns.max(other.p99_ns);
        self.largest_ns = self.largest_ns.max(other.largest_ns);
    }
}

#[expect(clippy::cast_precision_loss, reason = "seven digits are kept")]
fn entry(key: Key, counted: &DirectionCounters) -> Entry {
    let dropped: u64 = counted
        .dropped
        .values()
        .fold(0, |sum, &one| sum.saturating_add(one));
    let delay = counted.delay_ns.unwrap_or_default();
    Entry {
        #[expect(clippy::cast_possible_truncation, reason = "its halves")]
        key: [(key >> 32) as u32, key as u32],
        sent_bytes: counted.sent_bytes as f32,
        sent_frames: counted.sent_frames as f32,
        dropped_frames: dropped as f32,
        p99_ns: delay.p99 as f32,
        largest_ns: delay.largest as f32,
    }
}

/// Rates of a direction of a link, bit/s as the link counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkRates {
    pub(crate) key: Key,
    pub(crate) rate_bps: u64,
    pub(crate) promised_bps: u64,
}

/// Counters of a gateway within some time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bin {
    pub(super) start_ms: u64,
    pub(super) length_ms: u64,
    /// Sum of the intervals of its reports.
    pub(super) counted_ns: u64,
    /// In the order of their keys.
    entries: Vec<Entry>,
    rates: Vec<LinkRates>,
}

impl Bin {
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.rates.capacity() * size_of::<LinkRates>()
    }

    pub(super) const fn end_ms(&self) -> u64 {
        self.start_ms.saturating_add(self.length_ms)
    }

    fn find(&self, key: Key) -> Entry {
        let found = self.entries.binary_search_by_key(&key, Entry::key);
        found.map_or_else(|_| Entry::default(), |index| self.entries[index])
    }

    /// Bytes that were sent, by key.
    pub(super) fn sent(&self) -> impl Iterator<Item = (Key, f64)> {
        let sent = |entry: &Entry| (entry.key(), f64::from(entry.sent_bytes));
        self.entries.iter().map(sent)
    }

    pub(super) fn rates(&self, key: Key) -> Option<&LinkRates> {
        self.rates.iter().find(|one| one.key == key)
    }

    /// Returns both as one, of twice the length.
    fn joined(&self, next: &Self) -> Self {
        let mut entries: Vec<Entry> = self.entries.iter().chain(&next.entries).copied().collect();
        // The order of equal keys does not matter.
        entries.sort_unstable_by_key(Entry::key);
        entries.dedup_by(|next, entry| {
            let is_same = next.key == entry.key;
            if is_same {
                entry.add(next);
            }
            is_same
        });
        entries.shrink_to_fit();
        Self {
            start_ms: self.start_ms,
            length_ms: 2 * self.length_ms,
            counted_ns: self.counted_ns.saturating_add(next.counted_ns),
            entries,
            rates: next.rates.clone(),
        }
    }
}

/// Returns the counters of a key in each of these bins.
pub(super) fn column(bins: &[Arc<Bin>], key: Key, with_delays: bool) -> DirectionHistory {
    let entries: Vec<Entry> = bins.iter().map(|bin| bin.find(key)).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sums of counts"
    )]
    let counts = |of: fn(&Entry) -> f32| entries.iter().map(|one| of(one) as u64).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "delays of frames"
    )]
    let delays = |of: fn(&Entry) -> f32| {
        let delay = |one: &Entry| (one.sent_frames > 0.0).then_some(of(one) as u64);
        let delays = entries.iter().filter(|_| with_delays).map(delay);
        delays.collect()
    };
    DirectionHistory {
        sent_bytes: counts(|one| one.sent_bytes),
        sent_frames: counts(|one| one.sent_frames),
        dropped_frames: counts(|one| one.dropped_frames),
        p99_ns: delays(|one| one.p99_ns),
        largest_ns: delays(|one| one.largest_ns),
    }
}

/// Bins of a gateway.
#[derive(Debug, Default)]
struct Gateway {
    /// When the newest report came.
    last_ms: u64,
    /// The bin that is not over yet; its entries are in `counted`.
    open: Option<Bin>,
    counted: HashMap<Key, Entry>,
    closed: VecDeque<Arc<Bin>>,
    bytes: usize,
}

impl Gateway {
    /// Ends the open bin.
    fn close(&mut self) {
        if let Some(bin) = self.finished() {
            self.bytes += bin.bytes();
            self.closed.push_back(Arc::new(bin));
        }
        self.open = None;
        self.counted.clear();
    }

    /// Returns the open bin as it is now.
    fn finished(&self) -> Option<Bin> {
        let mut bin = self.open.clone()?;
        bin.entries = self.counted.values().copied().collect();
        bin.entries.sort_unstable_by_key(Entry::key);
        Some(bin)
    }

    fn drop_oldest(&mut self) {
        if let Some(bin) = self.closed.pop_front() {
            self.bytes -= bin.bytes();
        }
    }

    /// Joins the oldest two of the shortest bins that are halves of a longer one, or drops the oldest bin.
    fn make_room(&mut self) {
        let lengths = std::iter::successors(Some(LENGTH_MS), |length| Some(length * 2));
        let pair = lengths
            .take_while(|&length| length < LENGTH_MAX_MS)
            .find_map(|length| {
                let is_pair = |index: &usize| {
                    let [one, other] = [&self.closed[*index], &self.closed[index + 1]];
                    let is_half = one.length_ms == length && other.length_ms == length;
                    is_half && one.start_ms % (2 * length) == 0 && one.end_ms() == other.start_ms
                };
                (0..self.closed.len().saturating_sub(1)).find(is_pair)
            });
        let Some(index) = pair else {
            return self.drop_oldest();
        };
        if let Some(next) = self.closed.remove(index + 1) {
            let joined = self.closed[index].joined(&next);
            self.bytes = self.bytes + joined.bytes() - next.bytes() - self.closed[index].bytes();
            self.closed[index] = Arc::new(joined);
        }
    }
}

/// Bins of all gateways that report to this controller.
#[derive(Debug)]
pub(crate) struct CounterBins {
    gateways: Mutex<HashMap<String, Gateway>>,
    secret: RandomState,
    bytes_max: usize,
}

impl Default for CounterBins {
    fn default() -> Self {
        Self {
            gateways: Mutex::default(),
            secret: RandomState::new(),
            bytes_max: BYTES_MAX,
        }
    }
}

impl CounterBins {
    pub(super) fn slice(&self, name: &str, way: Way) -> Key {
        self.secret.hash_one((name, way))
    }

    pub(crate) fn link(&self, name: &str, way: Way) -> Key {
        self.secret.hash_one(("/", name, way))
    }

    /// Counts a report that came at `at_ms` of day. Returns true if it is the first of a bin, which needs the rates of links.
    pub(super) fn add(&self, at_ms: u64, gateway: &str, report: &CounterReport) -> bool {
        let mut gateways = self.gateways.lock().unwrap_or_else(PoisonError::into_inner);
        let own = gateways.entry(gateway.to_owned()).or_default();
        // Reports that overlap may come in either order.
        let is_late = at_ms < own.last_ms && own.last_ms - at_ms < LENGTH_MS;
        let at_ms = if is_late { own.last_ms } else { at_ms };
        if at_ms < own.last_ms {
            // The clock went back: it is not known any more what was before what.
            *own = Gateway::default();
        }
        own.last_ms = at_ms;
        let start_ms = at_ms - at_ms % LENGTH_MS;
        let is_first = own.open.as_ref().is_none_or(|bin| bin.start_ms != start_ms);
        if is_first {
            own.close();
        }
        let bin = own.open.get_or_insert_with(|| Bin {
            start_ms,
            length_ms: LENGTH_MS,
            ..Bin::default()
        });
        bin.counted_ns = bin.counted_ns.saturating_add(report.interval_ns);
        let mut count = |key: Key, counted: &DirectionCounters| {
            if counted.sent_frames > 0 || !counted.dropped.is_empty() {
                let entry = entry(key, counted);
                if let Some(known) = own.counted.get_mut(&key) {
                    known.add(&entry);
                } else if own.counted.len() < OPEN_MAX {
                    own.counted.insert(key, entry);
                }
            }
        };
        for link in &report.links {
            for way in Way::ALL {
                count(self.link(&link.name, way), link.ways()[way]);
            }
        }
        for slice in &report.slices {
            for way in Way::ALL {
                if let Some(counted) = slice.ways()[way] {
                    count(self.slice(&slice.name, way), counted);
                }
            }
        }
        if is_first {
            tidy(&mut gateways, at_ms, self.bytes_max);
        }
        is_first
    }

    /// Notes the rates of a gateway's links in its open bin.
    pub(crate) fn set_rates(&self, gateway: &str, rates: Vec<LinkRates>) {
        let mut gateways = self.gateways.lock().unwrap_or_else(PoisonError::into_inner);
        let own = gateways.get_mut(gateway);
        if let Some(bin) = own.and_then(|own| own.open.as_mut()) {
            bin.rates = rates;
        }
    }

    /// Returns the bins of a gateway that end after `from_ms`, oldest first.
    pub(super) fn since(&self, gateway: &str, from_ms: u64) -> Vec<Arc<Bin>> {
        let gateways = self.gateways.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = gateways.get(gateway) else {
            return Vec::new();
        };
        let closed = own.closed.iter().cloned();
        let all = closed.chain(own.finished().map(Arc::new));
        all.filter(|bin| bin.end_ms() > from_ms).collect()
    }
}

/// Drops what is older than an hour, and makes room in the largest gateways.
fn tidy(gateways: &mut HashMap<String, Gateway>, now_ms: u64, bytes_max: usize) {
    gateways.retain(|_, own| {
        while own
            .closed
            .front()
            .is_some_and(|bin| bin.end_ms().saturating_add(KEPT_MS) <= now_ms)
        {
            own.drop_oldest();
        }
        !own.closed.is_empty() || own.last_ms.saturating_add(KEPT_MS) > now_ms
    });
    while gateways.values().map(|own| own.bytes).sum::<usize>() > bytes_max {
        let largest = gateways.values_mut().max_by_key(|own| own.bytes);
        let Some(largest) = largest.filter(|own| !own.closed.is_empty()) else {
            break;
        };
        largest.make_room();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_api::{DelayPercentiles, LinkCounters, SliceCounters};
    use std::time::Instant;

    /// A report of slices that sent `bytes` in both directions within a second.
    fn report(slices: std::ops::Range<usize>, bytes: u64) -> CounterReport {
        let counted = DirectionCounters {
            sent_frames: 1,
            sent_bytes: bytes,
            dropped: [("queue_full".to_owned(), 2), ("policer".to_owned(), 1)].into(),
            delay_ns: Some(DelayPercentiles {
                p50: 1,
                p99: bytes * 10,
                largest: bytes * 20,
            }),
            ..DirectionCounters::default()
        };
        CounterReport {
            interval_ns: 1_000_000_000,
            links: vec![LinkCounters {
                name: "uplink".to_owned(),
                forward: counted.clone(),
                backward: DirectionCounters::default(),
            }],
            slices: slices
                .map(|number| SliceCounters {
                    name: format!("slice-{number:06}"),
                    forward: Some(counted.clone()),
                    backward: Some(counted.clone()),
                })
                .collect(),
            ..CounterReport::default()
        }
    }

    fn lengths(bins: &CounterBins) -> Vec<u64> {
        let bins = bins.since("gw", 0);
        bins.iter().map(|bin| bin.length_ms / 1000).collect()
    }

    #[test]
    fn an_hour_is_kept_in_bins_and_silence_is_no_bin() {
        let bins = CounterBins::default();
        let start = 1_700_000_000_000;
        for second in (0..7_200).filter(|second| !(5_000..5_100).contains(second)) {
            let opened = bins.add(start + second * 1000, "gw", &report(0..2, second));
            assert_eq!(opened, second % 10 == 0);
        }
        let found = bins.since("gw", 0);
        let first = found[0].start_ms - start;
        assert_eq!(first, 3_590_000);
        assert_eq!(found.len(), 361 - 10);
        let around: Vec<u64> = found
            .iter()
            .map(|bin| (bin.start_ms - start) / 1000)
            .filter(|second| (4_980..5_120).contains(second))
            .collect();
        assert_eq!(around, [4980, 4990, 5100, 5110]);
        let counted = column(&found, bins.slice("slice-000001", Way::Backward), true);
        let of = |index: usize| {
            (
                counted.sent_bytes[index],
                counted.sent_frames[index],
                counted.dropped_frames[index],
                counted.p99_ns[index],
                counted.largest_ns[index],
            )
        };
        // 3,590 to 3,599.
        assert_eq!(of(0), (35_945, 10, 30, Some(35_990), Some(71_980)));
        let other = column(&found, bins.slice("slice-000002", Way::Backward), true);
        assert_eq!((other.sent_bytes[0], other.p99_ns[0]), (0, None));
        assert_eq!(found[0].counted_ns, 10_000_000_000);
        // A link has a slice's name, but not its key.
        assert_eq!(
            column(&found, bins.slice("uplink", Way::Forward), false).sent_bytes[0],
            0
        );
        let link = column(&found, bins.link("uplink", Way::Forward), false);
        assert_eq!((link.sent_bytes[0], link.p99_ns.len()), (35_945, 0));
    }

    #[test]
    fn a_clock_that_goes_back_begins_anew_and_an_hour_of_silence_forgets_a_gateway() {
        let bins = CounterBins::default();
        let start = 1_700_000_000_000;
        bins.add(start, "gw", &report(0..1, 1));
        bins.add(start + 10_000, "gw", &report(0..1, 1));
        assert_eq!(lengths(&bins), [10, 10]);
        // Less than a bin: reports that overlap.
        bins.add(start + 9_000, "gw", &report(0..1, 1));
        assert_eq!(lengths(&bins), [10, 10]);
        bins.add(start, "gw", &report(0..1, 1));
        assert_eq!(lengths(&bins), [10]);
        bins.add(start + KEPT_MS, "other", &report(0..1, 1));
        assert_eq!(lengths(&bins), [0; 0]);
    }

    #[test]
    fn bins_of_many_slices_are_joined_and_nothing_that_was_counted_is_lost() {
        let bytes_max = 1 << 18;
        let bins = CounterBins {
            bytes_max,
            ..CounterBins::default()
        };
        let start = 1_700_000_000_000 / LENGTH_MAX_MS * LENGTH_MAX_MS;
        for bin in 0..60 {
            bins.add(start + bin * LENGTH_MS, "gw", &report(0..100, 7));
        }
        let held = bins.gateways.lock().unwrap()["gw"].bytes;
        assert!(held <= bytes_max && held > bytes_max / 2, "{held} bytes");
        let found = bins.since("gw", 0);
        assert_eq!(found[0].start_ms, start);
        assert!(
            found
                .windows(2)
                .all(|pair| pair[0].end_ms() == pair[1].start_ms)
        );
        assert!(found[0].length_ms > LENGTH_MS);
        let sent = column(&found, bins.slice("slice-000099", Way::Forward), false).sent_bytes;
        assert_eq!(sent.iter().sum::<u64>(), 60 * 7);
    }

    /// Printed: `cargo test --release -p slicewise-controller -- --ignored --nocapture how_much_an_hour_takes`.
    #[test]
    #[ignore = "measures, and asserts nothing"]
    fn how_much_an_hour_takes() {
        for slices in [5_000, 100_000] {
            let bins = CounterBins::default();
            let report = report(0..slices, 1_000_000);
            let (mut longest, mut sum) = (0.0_f64, 0.0);
            for second in 0..3_600 {
                let begun = Instant::now();
                bins.add(1_700_000_000_000 + second * 1000, "gw", &report);
                let taken = begun.elapsed().as_secs_f64() * 1e3;
                longest = longest.max(taken);
                sum += taken;
            }
            let begun = Instant::now();
            let found = bins.since("gw", 0);
            column(&found, bins.slice("slice-000000", Way::Forward), true);
            let read = begun.elapsed().as_secs_f64() * 1e3;
            let begun = Instant::now();
            let mut sums: HashMap<Key, f64> = HashMap::new();
            for (key, bytes) in found.iter().flat_map(|bin| bin.sent()) {
                *sums.entry(key).or_default() += bytes;
            }
            let ranked = begun.elapsed().as_secs_f64() * 1e3;
            let held = bins.gateways.lock().unwrap()["gw"].bytes >> 20;
            println!(
                "{slices} slices, both directions busy: {held} MiB, bins of {:?} s, a report {:.2} ms (at most {longest:.0}), \
                 one slice read in {read:.1} ms, all added up in {ranked:.0} ms",
                lengths(&bins).iter().fold(
                    std::collections::BTreeMap::<u64, usize>::new(),
                    |mut all, &length| {
                        *all.entry(length).or_default() += 1;
                        all
                    }
                ),
                sum / 3600.0
            );
        }
    }
}
