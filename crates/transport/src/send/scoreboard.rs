//! Data that has been sent and not yet acknowledged: runs of positions with one fate each (RFC 6675, section 4, as the
//! per-segment state of RFC 8985, section 5).
//!
//! A burst is one run until parts of it meet different fates. Whatever is looked for in order of time (what the next
//! loss may be, what is sent again next) has a position that only moves forward, so an acknowledgement costs what it
//! changes and the logarithm of the number of runs.

use slicewise_units::Instant;
use std::collections::VecDeque;

/// Positions [`start`, `end`) that were last sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When it was last sent.
    pub(crate) sent_at: Instant,
    /// The receiver holds it.
    sacked: bool,
    /// It is taken for lost.
    lost: bool,
    /// It was sent again, and that is not taken for lost.
    resent: bool,
    /// It was ever sent again.
    pub(crate) was_resent: bool,
}

impl Run {
    const fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// Data that has arrived according to an acknowledgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Positions that were not known to have arrived before.
    pub(crate) bytes: u64,
    /// The run sent last among them: when, and its last position.
    pub(crate) newest: Option<Newest>,
    /// When the first and the last of them were sent, of those sent once and acknowledged cumulatively or selectively.
    pub(crate) first_sent_once: Option<Instant>,
    pub(crate) last_sent_once: Option<Instant>,
    /// Something sent again was acknowledged, not only sacked.
    pub(crate) acknowledges_resent: bool,
    /// The highest position among those sent once.
    pub(crate) highest_sent_once: u64,
    /// The lowest position among those sent once.
    pub(crate) lowest_sent_once: Option<u64>,
}

/// The delivered run that was sent last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) sent_at: Instant,
    pub(crate) end: u64,
    pub(crate) was_resent: bool,
    /// A block said so, and not the acknowledgement: the time stamp that came with it is not that of this run.
    pub(crate) is_sacked: bool,
}

impl Delivered {
    fn add(&mut self, run: &Run, start: u64, end: u64, is_sacked: bool) {
        self.bytes += end - start;
        let is_newer = |newest: &Newest| (newest.sent_at, newest.end) < (run.sent_at, end);
        if self.newest.as_ref().is_none_or(is_newer) {
            self.newest = Some(Newest {
                sent_at: run.sent_at,
                end,
                was_resent: run.was_resent,
                is_sacked,
            });
        }
        if run.was_resent {
            self.acknowledges_resent |= !is_sacked;
            return;
        }
        let first = self.first_sent_once.get_or_insert(run.sent_at);
        *first = run.sent_at.min(*first);
        self.last_sent_once = self.last_sent_once.max(Some(run.sent_at));
        self.highest_sent_once = self.highest_sent_once.max(end);
        let lowest = self.lowest_sent_once.get_or_insert(start);
        *lowest = start.min(*lowest);
    }
}

/// Part of the stream that was sent again, in order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resent {
    start: u64,
    end: u64,
    sent_at: Instant,
}

/// The runs between what is acknowledged and what is sent next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scoreboard {
    runs: VecDeque<Run>,
    /// The first position that is not acknowledged.
    una: u64,
    /// The next position to send for the first time.
    next: u64,
    sacked_bytes: u64,
    lost_bytes: u64,
    resent_bytes: u64,
    /// Below here no run is lost and not sent again.
    resend_from: u64,
    /// Below here every run that was sent once is sacked or lost.
    judged_to: u64,
    /// When the last was sent of what was taken for lost last.
    lost_sent_at: Instant,
    /// Parts sent again, oldest first; may name parts that have met their fate since.
    resent: VecDeque<Resent>,
}

impl Scoreboard {
    pub(crate) const fn una(&self) -> u64 {
        self.una
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    pub(crate) const fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// When the last was sent of what was taken for lost last.
    pub(crate) const fn lost_sent_at(&self) -> Instant {
        self.lost_sent_at
    }

    pub(crate) const fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }

    /// Positions that are thought to be under way (RFC 6675, "pipe").
    pub(crate) const fn in_flight(&self) -> u64 {
        (self.next - self.una) + self.resent_bytes - self.sacked_bytes - self.lost_bytes
    }

    /// `bytes` positions more are sent for the first time.
    pub(crate) fn send(&mut self, bytes: u64, now: Instant) {
        let (start, end) = (self.next, self.next + bytes);
        self.next = end;
        if let Some(last) = self.runs.back_mut()
            && last.sent_at == now
            && last.end == start
            && !(last.sacked || last.lost || last.was_resent)
        {
            last.end = end;
            return;
        }
        self.runs.push_back(Run {
            start,
            end,
            sent_at: now,
            sacked: false,
            lost: false,
            resent: false,
            was_resent: false,
        });
    }

    /// Everything below `una` has arrived.
    pub(crate) fn acknowledge(&mut self, una: u64, delivered: &mut Delivered) {
        while let Some(run) = self.runs.front_mut() {
            if run.start >= una {
                break;
            }
            let end = run.end.min(una);
            let bytes = end - run.start;
            if run.sacked {
                self.sacked_bytes -= bytes;
            } else {
                delivered.add(run, run.start, end, false);
            }
            if run.lost {
                self.lost_bytes -= bytes;
            }
            if run.resent {
                self.resent_bytes -= bytes;
            }
            if end < run.end {
                run.start = end;
                break;
            }
            self.runs.pop_front();
        }
        self.una = una.max(self.una);
    }

    /// The receiver holds [`start`, `end`).
    pub(crate) fn sack(&mut self, start: u64, end: u64, delivered: &mut Delivered) {
        let mut at = start.max(self.una);
        let end = end.min(self.next);
        while at < end {
            let Some(index) = self.find(at) else {
                return;
            };
            let run = self.runs[index];
            let to = run.end.min(end);
            if !run.sacked {
                delivered.add(&run, at.max(run.start), to, true);
                self.mark_sacked(index, at.max(run.start), to);
            }
            at = to;
        }
    }

    /// Mark a part of a run, and join it to a neighbour that is sacked: many small blocks stay few runs.
    fn mark_sacked(&mut self, index: usize, start: u64, end: u64) {
        let run = self.runs[index];
        let bytes = end - start;
        self.sacked_bytes += bytes;
        if run.lost {
            self.lost_bytes -= bytes;
        }
        if run.resent {
            self.resent_bytes -= bytes;
        }
        let follows_sacked = start == run.start && index > 0 && self.runs[index - 1].sacked;
        if follows_sacked {
            self.runs[index - 1].end = end;
            if end == run.end {
                self.runs.remove(index);
                self.join_sacked(index - 1);
            } else {
                self.runs[index].start = end;
            }
            return;
        }
        let index = self.isolate(index, start, end);
        let run = &mut self.runs[index];
        (run.sacked, run.lost, run.resent) = (true, false, false);
        self.join_sacked(index);
    }

    /// Join a sacked run with the one behind it, if that is sacked too.
    fn join_sacked(&mut self, index: usize) {
        if let Some(next) = self.runs.get(index + 1).filter(|next| next.sacked) {
            self.runs[index].end = next.end;
            self.runs.remove(index + 1);
        }
    }

    /// Split a run so that [`start`, `end`) is a run of its own; returns its index.
    fn isolate(&mut self, mut index: usize, start: u64, end: u64) -> usize {
        let run = self.runs[index];
        if start > run.start {
            self.runs[index].end = start;
            index += 1;
            self.runs.insert(index, Run { start, ..run });
        }
        if end < run.end {
            self.runs[index].end = end;
            self.runs.insert(index + 1, Run { start: end, ..run });
        }
        index
    }

    /// The run that holds `position`.
    fn find(&self, position: u64) -> Option<usize> {
        // Most acknowledgements are about the oldest data.
        let index = match self.runs.front() {
            Some(first) if position < first.end => 0,
            _ => self.runs.partition_point(|run| run.end <= position),
        };
        (index < self.runs.len() && self.runs[index].start <= position).then_some(index)
    }

    /// Take everything for lost that was sent no later than `newest` was and for which `is_lost` says so, by the
    /// time it was sent (RFC 8985, section 6.2, step 5). Returns the bytes newly lost, and the time at which the first
    /// of the others was sent that were sent before `newest`.
    pub(crate) fn lose(
        &mut self,
        newest: Newest,
        is_lost: impl Fn(Instant) -> bool,
    ) -> (u64, Option<Instant>) {
        let is_before = |sent_at, end| (sent_at, end) <= (newest.sent_at, newest.end);
        let (mut lost, mut waits) = (0, None);
        let mut at = self.judged_to.max(self.una);
        while let Some(index) = self.find(at) {
            let run = self.runs[index];
            if !(run.sacked || run.lost || run.was_resent) {
                // Of a run that was sent in one burst, only what lies below the last delivered position.
                let end = match run.sent_at.cmp(&newest.sent_at) {
                    std::cmp::Ordering::Less => run.end,
                    std::cmp::Ordering::Equal => run.end.min(newest.end),
                    std::cmp::Ordering::Greater => break,
                };
                if end <= run.start {
                    break;
                }
                if !is_lost(run.sent_at) {
                    waits = Some(run.sent_at);
                    break;
                }
                lost += self.mark_lost(index, run.start, end);
                at = end;
                if end < run.end {
                    break;
                }
            }
            at = at.max(run.end);
        }
        self.judged_to = at;
        while let Some(&Resent {
            start,
            end,
            sent_at,
        }) = self.resent.front()
        {
            let mut is_settled = true;
            let mut at = start.max(self.una);
            while at < end
                && let Some(index) = self.find(at)
            {
                let run = self.runs[index];
                let is_open = run.was_resent && !run.sacked && run.resent == run.lost;
                if is_open && run.sent_at == sent_at {
                    if !is_before(sent_at, run.end.min(end)) {
                        is_settled = false;
                        break;
                    }
                    if !is_lost(sent_at) {
                        waits = Some(waits.map_or(sent_at, |other: Instant| other.min(sent_at)));
                        is_settled = false;
                        break;
                    }
                    lost += self.mark_lost(index, at.max(run.start), run.end.min(end));
                }
                at = run.end;
            }
            if !is_settled {
                break;
            }
            self.resent.pop_front();
        }
        (lost, waits)
    }

    /// Take a part of a run for lost; returns its bytes.
    fn mark_lost(&mut self, index: usize, start: u64, end: u64) -> u64 {
        let index = self.isolate(index, start, end);
        let run = &mut self.runs[index];
        let bytes = run.bytes();
        if run.resent {
            run.resent = false;
            self.resent_bytes -= bytes;
        }
        if !run.lost {
            run.lost = true;
            self.lost_bytes += bytes;
        }
        self.lost_sent_at = run.sent_at;
        self.resend_from = self.resend_from.min(start);
        bytes
    }

    /// Take the first `bytes` that are not acknowledged for lost, whatever was sent since: what a duplicate
    /// acknowledgement says without SACK (RFC 6582).
    pub(crate) fn lose_first(&mut self, bytes: u64) {
        if let Some(first) = self.runs.front()
            && !(first.sacked || first.lost)
        {
            let end = first.end.min(first.start + bytes);
            self.mark_lost(0, first.start, end);
        }
    }

    /// A time-out: what was sent together with the first that is not sacked is lost, and of the others those for which
    /// `is_lost` says so, by the time they were sent (RFC 8985, section 6.3).
    pub(crate) fn lose_on_timeout(&mut self, is_lost: impl Fn(Instant) -> bool) {
        let first = self.runs.iter().find(|run| !run.sacked);
        let first_sent_at = first.map(|run| run.sent_at);
        for run in self.runs.iter_mut().filter(|run| !run.sacked) {
            if Some(run.sent_at) != first_sent_at && !is_lost(run.sent_at) {
                continue;
            }
            if run.resent {
                self.resent_bytes -= run.bytes();
            }
            if !run.lost {
                self.lost_bytes += run.bytes();
            }
            (run.lost, run.resent) = (true, false);
        }
        self.resend_from = self.una;
    }

    /// Nothing was lost after all: what was taken for it is under way (RFC 3522).
    pub(crate) fn lose_nothing(&mut self) {
        for run in &mut self.runs {
            (run.lost, run.resent) = (false, false);
        }
        (self.lost_bytes, self.resent_bytes) = (0, 0);
        let again = self.runs.iter().filter(|run| run.was_resent && !run.sacked);
        self.resent = again
            .map(|run| Resent {
                start: run.start,
                end: run.end,
                sent_at: run.sent_at,
            })
            .collect();
        let by_time = self.resent.make_contiguous();
        by_time.sort_by_key(|resent| (resent.sent_at, resent.start));
        self.resend_from = self.next;
        self.judged_to = self.una;
    }

    /// Something is lost and not sent again.
    #[inline]
    pub(crate) const fn has_lost(&self) -> bool {
        self.lost_bytes != self.resent_bytes
    }

    /// The first part that is lost and not sent again, at most `most_bytes` of it.
    pub(crate) fn next_lost(&mut self, most_bytes: u64) -> Option<(u64, u64)> {
        if !self.has_lost() {
            return None;
        }
        let mut at = self.resend_from.max(self.una);
        let mut index = self.find(at)?;
        while let Some(run) = self.runs.get(index) {
            if run.lost && !run.resent {
                let end = run.end.min(run.start + most_bytes);
                self.resend_from = run.start;
                return Some((run.start, end));
            }
            at = run.end;
            index += 1;
        }
        self.resend_from = at;
        None
    }

    /// [`start`, `end`), within one run, is sent again.
    pub(crate) fn resend(&mut self, start: u64, end: u64, now: Instant) {
        let Some(index) = self.find(start) else {
            return;
        };
        let index = self.isolate(index, start, end);
        let run = &mut self.runs[index];
        if run.sacked {
            return;
        }
        if !run.resent && run.lost {
            run.resent = true;
            self.resent_bytes += run.bytes();
        }
        (run.was_resent, run.sent_at) = (true, now);
        self.resent.push_back(Resent {
            start,
            end,
            sent_at: now,
        });
    }

    /// The last part that is not sacked, at most `most_bytes` of it: what a probe sends again.
    pub(crate) fn last_unsacked(&self, most_bytes: u64) -> Option<(u64, u64)> {
        let run = self.runs.iter().rev().find(|run| !run.sacked)?;
        Some((run.start.max(run.end.saturating_sub(most_bytes)), run.end))
    }

    /// When the oldest of what is under way was sent.
    pub(crate) fn oldest_sent_at(&self) -> Option<Instant> {
        self.runs.front().map(|run| run.sent_at)
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        let mut at = self.una;
        let (mut sacked, mut lost, mut resent) = (0, 0, 0);
        for run in &self.runs {
            assert_eq!(run.start, at, "runs follow each other");
            assert!(run.end > run.start);
            assert!(!(run.sacked && (run.lost || run.resent)));
            assert!(run.lost || !run.resent);
            sacked += if run.sacked { run.bytes() } else { 0 };
            lost += if run.lost { run.bytes() } else { 0 };
            resent += if run.resent { run.bytes() } else { 0 };
            if run.lost && !run.resent {
                assert!(run.start >= self.resend_from, "a lost run is not found");
            }
            at = run.end;
        }
        assert_eq!(at, self.next);
        assert_eq!(
            (sacked, lost, resent),
            (self.sacked_bytes, self.lost_bytes, self.resent_bytes)
        );
    }
}

#[cfg(test)]
mod tests;
