//! Frames that arrive while their class is on its way: where they wait.

use super::{Changing, Handover};
use crate::frame::{DropReason, Frame};
use slicewise_wire::Headers;

/// A frame whose class is on its way.
pub(crate) struct Arriving<'a> {
    /// The class.
    pub(crate) class: u32,
    pub(crate) frame: Frame,
    pub(crate) headers: &'a Headers,
}

/// Outcome of its arrival.
pub(crate) enum Arrived {
    /// It waits, and is counted.
    Held,
    /// It was dropped for this reason, and is counted.
    Dropped(DropReason),
    /// It is dropped because its slice was removed, and not counted yet.
    Removed,
    /// It is of this class: the frames that it had to wait for have left.
    Of(u32),
}

impl Changing<'_> {
    /// A frame has arrived whose class is on its way.
    pub(in crate::change::slice) fn on_arrival(
        &mut self,
        arriving: Arriving<'_>,
        has_memory: &mut dyn FnMut(&Frame, u32) -> bool,
    ) -> Arrived {
        let (class, headers) = (arriving.class, arriving.headers);
        self.try_finish(class);
        // If it is not there, the frame was classified before that ended, as one of a burst.
        let handover = self.ledger.handovers.get(&class);
        let is_found =
            |handover: &&Handover| !handover.part.is_empty() || handover.removed.is_some();
        let Some(handover) = handover.filter(is_found) else {
            return Arrived::Of(self.path.classifier.classify(headers));
        };
        let default = self.ledger.default;
        if handover.into == default {
            let mut next = self.path.classifier.entry_but(headers, class).target();
            while self.try_finish(next) {
                next = self.path.classifier.entry_but(headers, class).target();
            }
            if next != default {
                return Arrived::Removed;
            }
        }
        self.hold_frame(arriving, has_memory)
    }

    /// A frame waits beside the queue of its class, if there is room.
    fn hold_frame(
        &mut self,
        arriving: Arriving<'_>,
        has_memory: &mut dyn FnMut(&Frame, u32) -> bool,
    ) -> Arrived {
        let Arriving {
            class,
            frame,
            headers,
        } = arriving;
        let default = self.ledger.default;
        let Some(handover) = self.ledger.handovers.get_mut(&class) else {
            return Arrived::Of(self.path.classifier.classify(headers));
        };
        let into = handover.into;
        let limit = self.ledger.slices.get(into as usize);
        let limit = limit.and_then(|slice| Some(slice.as_ref()?.params.queue_limit));
        let waiting = if into == default {
            (self.ledger.to_default.packets, self.ledger.to_default.bytes)
        } else {
            (handover.held.packets(), handover.held.bytes())
        };
        let l2_bytes = u64::from(frame.lengths.l2_bytes);
        let has_room = limit.is_some_and(|limit| {
            waiting.0 < limit.packets && waiting.1 + l2_bytes <= limit.bytes.bytes()
        });
        let held = &mut handover.held;
        let now = self.now;
        let kept = self.path.keep(into, frame, headers, now, |queued, pool| {
            if !has_room {
                return Err(DropReason::QueueFull);
            }
            if !has_memory(&queued.frame(), into) {
                return Err(DropReason::BufferFull);
            }
            held.try_push(pool, queued)
                .map_err(|_| DropReason::BufferFull)
        });
        if let Err(reason) = kept {
            return Arrived::Dropped(reason);
        }
        if into == default {
            self.ledger.to_default.packets += 1;
            self.ledger.to_default.bytes += l2_bytes;
        }
        Arrived::Held
    }
}
