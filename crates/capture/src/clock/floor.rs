//! The floor of delays over time.

use crate::Sighting;
use crate::matching::{MatchObserver, SendOrder};

/// The smallest delays of one direction over time, by two uncorrected clocks.
///
/// Memory is bounded: the packet of smallest delay is kept for each of at most 4,096 equal time spans;
/// when the spans no longer cover the capture, they double in length.
#[derive(Debug, Clone)]
pub struct DelayFloor {
    way: Way,
    first_ns: Option<i64>,
    span_ns: i64,
    spans: Vec<Option<Point>>,
    packets: u64,
    negative: u64,
    /// Differences below it are no evidence, ns.
    resolution_ns: u64,
    /// Sum of times since the first, for the mean.
    elapsed_sum_ns: i128,
}

/// Direction of the packets measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Reverse,
}

/// A packet: its time at the sending point and its delay by the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// Since the first packet, ns.
    pub(super) elapsed_ns: i64,
    pub(super) delay_ns: i64,
}

/// A straight line below all points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    /// A point on it: time by the clock of the sending point.
    pub(super) at_ns: i64,
    pub(super) delay_ns: f64,
    /// ns a ns.
    pub(super) slope: f64,
}

impl Line {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn at(&self, time_ns: i64) -> f64 {
        let elapsed = time_ns.saturating_sub(self.at_ns);
        self.delay_ns + self.slope * elapsed as f64
    }
}

impl DelayFloor {
    /// For packets from the sending point to the receiving one.
    #[must_use]
    pub const fn forward() -> Self {
        Self::new(Way::Forward)
    }

    /// The same for timestamps of this resolution, ns, at the coarser of both points: 1, unless stated.
    #[must_use]
    pub const fn with_resolution(mut self, resolution_ns: u64) -> Self {
        self.resolution_ns = resolution_ns;
        self
    }

    /// For packets going back: delay is from the receiving point to the sending one.
    #[must_use]
    pub const fn reverse() -> Self {
        Self::new(Way::Reverse)
    }

    const fn new(way: Way) -> Self {
        Self {
            way,
            first_ns: None,
            span_ns: FIRST_SPAN_NS,
            spans: Vec::new(),
            packets: 0,
            negative: 0,
            resolution_ns: 1,
            elapsed_sum_ns: 0,
        }
    }

    /// A packet was at the sending point at `sent_point_ns` and at the receiving point at
    /// `received_point_ns`, each by its own clock.
    #[inline]
    pub fn add(&mut self, sent_point_ns: u64, received_point_ns: u64) {
        let sent = i64::try_from(sent_point_ns).unwrap_or(i64::MAX);
        let received = i64::try_from(received_point_ns).unwrap_or(i64::MAX);
        let delay_ns = match self.way {
            Way::Forward => received - sent,
            Way::Reverse => sent - received,
        };
        self.packets += 1;
        self.negative += u64::from(self.is_negative(delay_ns));
        let elapsed_ns = sent - *self.first_ns.get_or_insert(sent);
        self.elapsed_sum_ns += i128::from(elapsed_ns);
        let point = Point {
            elapsed_ns,
            delay_ns,
        };
        self.keep(point);
    }

    /// Packets added.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns true if a packet with this delay certainly arrived before it was sent, by the clocks. A timestamp is
    /// less than the resolution too early.
    #[inline]
    const fn is_negative(&self, delay_ns: i64) -> bool {
        delay_ns < 0 && delay_ns.unsigned_abs() >= self.resolution_ns
    }

    /// By how much more than a timestamp's resolution allows a packet arrived before it was sent, ns;
    /// `None` if none did.
    pub(super) fn early_by_ns(&self) -> Option<u64> {
        let smallest = self.smallest_delay_ns()?;
        self.is_negative(smallest)
            .then(|| smallest.unsigned_abs() - (self.resolution_ns - 1))
    }

    /// Packets that arrived, by the clocks, before they were sent.
    #[must_use]
    pub const fn negative_delays(&self) -> u64 {
        self.negative
    }

    /// The smallest delay by the clocks, ns; `None` without packets.
    #[must_use]
    pub fn smallest_delay_ns(&self) -> Option<i64> {
        self.points().map(|point| point.delay_ns).min()
    }

    /// Heap memory in use, bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Option<Point>>()
    }

    pub(super) const fn first_ns(&self) -> Option<i64> {
        self.first_ns
    }

    /// The line below all points with the smallest sum of distances to all packets: the linear programme
    /// of Moon, Skelly & Towsley, *Estimation and Removal of Clock Skew from Network Delay Measurements*
    /// (INFOCOM 1999). It is the edge of the lower convex hull above the mean of times. `None` where all
    /// packets have the same time.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn line(&self) -> Option<Line> {
        let first_ns = self.first_ns?;
        let hull = lower_hull(self.points());
        let mean = self.elapsed_sum_ns / i128::from(self.packets.max(1));
        let edges = hull.windows(2);
        let edge = edges
            .clone()
            .find(|edge| i128::from(edge[1].elapsed_ns) >= mean)
            .or_else(|| edges.last())?;
        let [left, right] = edge else { return None };
        let rise = right.delay_ns.saturating_sub(left.delay_ns);
        let elapsed = right.elapsed_ns.saturating_sub(left.elapsed_ns);
        Some(Line {
            at_ns: first_ns.saturating_add(left.elapsed_ns),
            delay_ns: left.delay_ns as f64,
            slope: rise as f64 / elapsed as f64,
        })
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.spans.iter().flatten().copied()
    }

    #[inline]
    fn keep(&mut self, point: Point) {
        let mut span = self.span_of(point.elapsed_ns);
        while span >= MOST_SPANS {
            self.double_spans();
            span = self.span_of(point.elapsed_ns);
        }
        if span >= self.spans.len() {
            self.spans.resize(span + 1, None);
        }
        if let Some(kept) = self.spans.get_mut(span)
            && kept.is_none_or(|kept| point.delay_ns < kept.delay_ns)
        {
            *kept = Some(point);
        }
    }

    #[inline]
    fn span_of(&self, elapsed_ns: i64) -> usize {
        // Times before the first packet belong to the first span.
        usize::try_from(elapsed_ns.max(0) / self.span_ns).unwrap_or(usize::MAX)
    }

    #[cold]
    fn double_spans(&mut self) {
        self.span_ns = self.span_ns.saturating_mul(2);
        let smaller = |pair: &[Option<Point>]| {
            let points = pair.iter().flatten().copied();
            points.min_by_key(|point| point.delay_ns)
        };
        self.spans = self.spans.chunks(2).map(smaller).collect();
    }
}

impl MatchObserver for DelayFloor {
    #[inline]
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, _: SendOrder) {
        self.add(sent.time_ns, received.time_ns);
    }
}

/// The lower convex hull of points in time order (Andrew's monotone chain).
fn lower_hull(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        while let [.., before, last] = hull.as_slice()
            && !turns_up(*before, *last, point)
        {
            hull.pop();
        }
        if hull
            .last()
            .is_none_or(|last| last.elapsed_ns < point.elapsed_ns)
        {
            hull.push(point);
        }
    }
    hull
}

/// Returns true if the way over three points turns upward at the second.
fn turns_up(one: Point, two: Point, three: Point) -> bool {
    let across = |from: Point, to: Point| i128::from(to.elapsed_ns) - i128::from(from.elapsed_ns);
    let up = |from: Point, to: Point| i128::from(to.delay_ns) - i128::from(from.delay_ns);
    across(one, two).saturating_mul(up(one, three))
        > across(one, three).saturating_mul(up(one, two))
}

/// 1 ms, so that short captures have enough points.
const FIRST_SPAN_NS: i64 = 1_000_000;

const MOST_SPANS: usize = 4_096;
