//! Runs whose length and slices are unknown until they end: the collector grows with them.
//!
//! Bins are added until there would be more than [`MAX_BINS`]; then pairs of bins are merged, and
//! bins are twice as wide from there on. Delay histograms are kept for shorter segments of time
//! than the record needs, as it cannot be known yet where the record's segments will begin; pairs
//! of them are merged as well where they become too many or take too much memory.

use super::bins::{Bin, Cursor, Grid};
use super::ipdv::Flows;
use super::segment::SegmentPages;
use super::{
    CollectorError, CollectorParams, MAX_BINS, MAX_SEGMENTS, MeasuredSlice, RunCollector,
    SliceState,
};
use slicewise_units::{Duration, Instant};

/// State of a growing collector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    /// The last bin in use.
    last_bin: usize,
}

impl RunCollector {
    /// A collector for a run whose length and slices become known during the run; slices are added by
    /// [`RunCollector::add_slice`].
    ///
    /// Bins are `bin` wide unless the run needs more than [`MAX_BINS`] of them, of all slices
    /// together, or nothing happens in nearly all of them, as in captures with a pause of a day: then they are twice,
    /// four times … as wide, and the record says so. The record is the
    /// same as that of a collector that knew length and slices. Only percentiles of the steady state may
    /// begin later than there, by 1/32 of the run at most, where the run is longer than 1,024 bins or
    /// histograms take more than 128 MiB; with hundreds of slices under that limit, later still.
    ///
    /// # Errors
    /// Where `bin` is zero.
    pub fn open_ended(bin: Duration, cycle: Duration) -> Result<Self, CollectorError> {
        if bin == Duration::ZERO {
            return Err(CollectorError::ZeroBin);
        }
        let grid = Grid {
            bin_ns: bin.nanos(),
            bins: 1,
            bins_per_segment: 1,
            edges: Vec::new(),
        };
        Ok(Self {
            params: CollectorParams {
                slices: Vec::new(),
                duration: bin,
                bin,
                cycle,
            },
            grid,
            slices: Vec::new(),
            flows: Flows::default(),
            pages: SegmentPages::default(),
            growth: Some(Growth { last_bin: 0 }),
            phases: Vec::new(),
            keeps_medians: false,
        })
    }

    /// Add a slice and return its index. It has sent and received nothing so far.
    pub fn add_slice(&mut self, slice: impl Into<MeasuredSlice>) -> usize {
        let index = self.slices.len();
        let slice = slice.into();
        self.slices.push(SliceState::new(&self.grid, slice.delay));
        self.params.slices.push(slice);
        if self.growth.is_some() {
            while self.last_bin() >= self.most_bins() {
                self.double_bin_width();
            }
            if self.grid.bins > self.most_bins() {
                self.resize(self.most_bins());
            }
        }
        index
    }

    /// Make room for an event at `at`, and return its time, capped at 146 years.
    pub(super) fn grow_to(&mut self, at: Instant) -> Instant {
        let at_ns = at.nanos().min(u64::MAX >> 2);
        while at_ns / self.grid.bin_ns >= self.most_bins() as u64 {
            self.double_bin_width();
        }
        // Below the number of bins that are allowed.
        let bin = usize::try_from(at_ns / self.grid.bin_ns).unwrap_or(0);
        if bin >= self.grid.bins {
            self.resize((bin + 1).next_power_of_two().min(self.most_bins()));
        }
        if let Some(growth) = &mut self.growth {
            growth.last_bin = growth.last_bin.max(bin);
        }
        if self.pages.bytes() > MAX_HELD_BYTES && self.last_bin() >= self.grid.bins_per_segment {
            self.double_segment_width();
        }
        Instant::from_nanos(at_ns)
    }

    /// Merge pairs of bins until they are few, or something happened in one of [`SPARSE`]: so the record is not much
    /// longer than what it is of.
    pub(super) fn widen_sparse_bins(&mut self) {
        while self.growth.is_some() && self.last_bin() >= self.most_sparse_bins() {
            self.double_bin_width();
        }
    }

    /// Most bins that a slice of the record may have, by how many of them are used.
    fn most_sparse_bins(&self) -> usize {
        let is_used = |bin: usize| {
            let mut slices = self.slices.iter();
            slices.any(|slice| slice.bins.get(bin).is_some_and(|bin| !bin.is_empty()))
        };
        let used = (0..=self.last_bin()).filter(|&bin| is_used(bin)).count();
        let few = FEW_BINS / self.slices.len().max(1);
        used.saturating_mul(SPARSE).max(few).max(1)
    }

    /// The grid that the record is written in.
    pub(super) fn written_grid(&self) -> Grid {
        match self.growth {
            None => self.grid.clone(),
            Some(growth) => Grid {
                bin_ns: self.grid.bin_ns,
                bins: growth.last_bin + 1,
                bins_per_segment: (growth.last_bin + 1).div_ceil(MAX_SEGMENTS),
                edges: Vec::new(),
            },
        }
    }

    /// Reset if the run is open-ended, and return whether it is.
    pub(super) fn forget_growth(&mut self) -> bool {
        if self.growth.is_none() {
            return false;
        }
        if let Ok(fresh) = Self::open_ended(self.params.bin, self.params.cycle) {
            *self = fresh;
        }
        true
    }

    fn last_bin(&self) -> usize {
        self.growth.map_or(0, |growth| growth.last_bin)
    }

    /// Most bins that a slice may have.
    fn most_bins(&self) -> usize {
        let most = MAX_BINS / (self.slices.len() as u64).max(1);
        usize::try_from(most).unwrap_or(usize::MAX).max(1)
    }

    /// Resize to `bins` bins; removed ones are empty.
    fn resize(&mut self, bins: usize) {
        // Before there are more of them: a segment takes ten times what a bin does.
        while bins.div_ceil(self.grid.bins_per_segment) > MAX_HELD_SEGMENTS {
            self.double_segment_width();
        }
        for slice in &mut self.slices {
            slice.bins.resize(bins + 1, Bin::EMPTY);
        }
        self.grid.bins = bins;
        self.lay_out(1);
    }

    /// Merge pairs of bins.
    fn double_bin_width(&mut self) {
        let bins = self.grid.bins.div_ceil(2);
        for slice in &mut self.slices {
            // The bin after the end is empty, so it may be half of a pair.
            for bin in 0..bins {
                slice.bins[bin] = slice.bins[2 * bin].merged(slice.bins[2 * bin + 1]);
            }
            slice.bins.truncate(bins + 1);
            slice.bins[bins] = Bin::EMPTY;
        }
        if self.grid.bins_per_segment == 1 {
            self.double_segment_width();
        }
        self.grid.bins_per_segment /= 2;
        self.grid.bins = bins;
        self.grid.bin_ns *= 2;
        if let Some(growth) = &mut self.growth {
            growth.last_bin /= 2;
        }
        self.lay_out(1);
        self.move_cursors(2);
    }

    /// Merge pairs of segments.
    fn double_segment_width(&mut self) {
        self.grid.bins_per_segment *= 2;
        self.lay_out(2);
        self.move_cursors(1);
    }

    /// Give every slice as many segments as the grid has, each the sum of `factor` old ones.
    fn lay_out(&mut self, factor: usize) {
        let segments = self.grid.segments() + 1;
        for slice in &mut self.slices {
            if (segments, 1) != (slice.segments.len(), factor) {
                self.pages.regroup(&mut slice.segments, segments, factor);
            }
        }
    }

    /// Bins are `factor` times as wide, or segments are others.
    fn move_cursors(&mut self, factor: usize) {
        for slice in &mut self.slices {
            let cursors = [
                &mut slice.sent,
                &mut slice.received,
                &mut slice.origin,
                &mut slice.served,
                &mut slice.lost,
            ];
            for cursor in cursors {
                *cursor = Cursor::of_bin(&self.grid, cursor.bin / factor);
            }
        }
    }
}

/// Bins of a record, of all slices together, that are never merged: 5 MB of results.
const FEW_BINS: usize = 1 << 15;
/// One in so many bins is used at least where there are more.
const SPARSE: usize = 16;
/// Most segments with a delay histogram each, while the segments of the record are unknown.
const MAX_HELD_SEGMENTS: usize = 1024;
/// Above this, segments are merged.
const MAX_HELD_BYTES: usize = 128 << 20;

#[cfg(test)]
mod tests;
