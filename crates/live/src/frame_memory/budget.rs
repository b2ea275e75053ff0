//! How frame memory is divided between the rings of interfaces and the queues of slices.

use super::BATCH;
use super::{CHUNK_BYTES, FRAME_BYTES_PER_CHUNK};

/// Maximum number of chunks in a ring of the kernel: there is one ring for each receive queue, and one for
/// sending.
pub const RING_CHUNKS: u32 = 2048;
/// Number of frames of maximum size that a ring must have room for.
const LEAST_RING_FRAMES: u64 = 64;

/// The users of frame memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Receive queues of each interface that frame memory is lent to; 0 for one that copies frames.
    pub receive_queues: [u32; 2],
    /// Chunks that a frame of maximum size takes.
    pub frame_chunks: u32,
    /// Queues of slices, in both directions.
    pub queues: u64,
    /// Chunks that these queues take when they are full of frames of maximum size.
    pub queue_chunks: u64,
}

/// Who gets how much, in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// All.
    pub total: u32,
    /// For what each interface receives and sends.
    pub ports: [PortBudget; 2],
    /// For frames that wait in queues.
    pub queues: u32,
    /// Chunks that would suffice for everything.
    pub needed: u64,
}

/// Memory that one interface may hold, in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortBudget {
    /// To receive into, all queues together.
    pub receive: u32,
    /// To send from.
    pub transmit: u32,
}

/// There is less memory than the interfaces need to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLittle {
    /// The least that works, in chunks.
    pub least: u64,
    /// Memory that suffices for everything, in chunks.
    pub needed: u64,
}

impl Needs {
    fn rings(&self) -> u64 {
        let rings = |&queues: &u32| u64::from(queues) + u64::from(queues > 0);
        self.receive_queues.iter().map(rings).sum()
    }

    /// Received, and neither queued nor dropped yet.
    fn working(&self) -> u64 {
        BATCH as u64 * u64::from(self.frame_chunks)
    }

    /// Chunks that suffice for everything.
    #[must_use]
    pub fn chunks_needed(&self) -> u64 {
        let rings = self.rings() * u64::from(RING_CHUNKS);
        (rings + self.working()).saturating_add(self.queue_chunks)
    }
}

impl Budget {
    /// Divide at most `chunks`; if that is not enough for everything, rings get at most half.
    ///
    /// # Errors
    /// If it is not enough for rings of [`LEAST_RING_FRAMES`] and a few frames in each queue.
    pub fn divide(chunks: u64, needs: &Needs) -> Result<Self, TooLittle> {
        let frame = u64::from(needs.frame_chunks);
        let (rings, working, needed) = (needs.rings(), needs.working(), needs.chunks_needed());
        let least_ring = (LEAST_RING_FRAMES * frame).min(u64::from(RING_CHUNKS));
        // Half of what queues get is common to them; of the other half, each has room for one frame.
        let least_queues = (2 * needs.queues * frame).min(needs.queue_chunks);
        let least = rings * least_ring + working + least_queues;
        let total = needed.min(chunks).min(u64::from(u32::MAX));
        if total < least {
            return Err(TooLittle { least, needed });
        }
        let for_rings = ((total - working) / 2).min(total - working - least_queues);
        let ring = if total == needed {
            u64::from(RING_CHUNKS)
        } else {
            let scaled = for_rings.checked_div(rings).unwrap_or(0);
            scaled.clamp(least_ring, u64::from(RING_CHUNKS))
        };
        let port = |queues: u32| PortBudget {
            receive: short(u64::from(queues) * ring),
            transmit: if queues > 0 { short(ring) } else { 0 },
        };
        Ok(Self {
            total: short(total),
            ports: needs.receive_queues.map(port),
            queues: short(total - working - rings * ring),
            needed,
        })
    }
}

/// Chunks that a frame of so many bytes may take, however it is received.
#[must_use]
pub fn chunks_of(frame_bytes: u32) -> u32 {
    let chunks = (frame_bytes as usize).div_ceil(FRAME_BYTES_PER_CHUNK);
    u32::try_from(chunks).unwrap_or(u32::MAX).max(1)
}

impl PortBudget {
    /// As much as an interface with so many receive queues asks for.
    #[must_use]
    pub const fn full(receive_queues: u32) -> Self {
        Self {
            receive: receive_queues * RING_CHUNKS,
            transmit: RING_CHUNKS,
        }
    }

    /// Returns the chunks of each of so many receive queues; `None` if that is not enough to receive frames of
    /// `frame_chunks`.
    #[must_use]
    pub fn of_queue(self, receive_queues: u32, frame_chunks: u32) -> Option<u32> {
        let ring = self.receive.checked_div(receive_queues)?.min(RING_CHUNKS);
        let least = LEAST_RING_FRAMES * u64::from(frame_chunks);
        (u64::from(ring) >= least.min(u64::from(RING_CHUNKS))).then_some(ring)
    }
}

/// Bytes of so many chunks.
#[must_use]
pub const fn bytes_of(chunks: u64) -> u64 {
    chunks.saturating_mul(CHUNK_BYTES as u64)
}

/// At most the total, which is short.
fn short(chunks: u64) -> u32 {
    u32::try_from(chunks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sixteen_queues_on_one_side_leave_the_other_its_ring() {
        let needs = Needs {
            receive_queues: [16, 1],
            frame_chunks: 1,
            queues: 2,
            queue_chunks: 130,
        };
        let budget = Budget::divide(1 << 17, &needs).unwrap();
        let full = [PortBudget::full(16), PortBudget::full(1)];
        assert_eq!(budget.ports, full);
        assert_eq!(budget.queues, 130);
        // A quarter of the default: all rings are shorter, and alike.
        let scaled = Budget::divide(1 << 15, &needs).unwrap();
        assert_eq!(scaled.ports[1].receive, scaled.ports[0].receive / 16);
        assert!(scaled.ports[1].receive >= 800, "{scaled:?}");
        let refused = Budget::divide(1 << 10, &needs).unwrap_err();
        assert_eq!(refused.least, 19 * 64 + 64 + 4);
    }

    proptest! {
        #[test]
        fn no_part_takes_what_another_was_given(
            queues in [0u32..65, 0u32..65],
            frame_chunks in 1u32..6,
            slices in 2u64..2_000,
            frames in 1u64..100_000,
            chunks in 1u64..2_000_000,
        ) {
            let needs = Needs {
                receive_queues: queues,
                frame_chunks,
                queues: slices,
                queue_chunks: slices * frames * u64::from(frame_chunks),
            };
            match Budget::divide(chunks, &needs) {
                Err(refused) => prop_assert!(chunks < refused.least && refused.least <= refused.needed),
                Ok(budget) => {
                    let ports = budget.ports.iter();
                    let lent: u64 = ports.map(|p| u64::from(p.receive) + u64::from(p.transmit)).sum();
                    let working = BATCH as u64 * u64::from(frame_chunks);
                    prop_assert_eq!(lent + working + u64::from(budget.queues), u64::from(budget.total));
                    prop_assert!(u64::from(budget.total) <= chunks.min(budget.needed));
                    for (port, queues) in budget.ports.iter().zip(queues) {
                        prop_assert!(queues == 0 || port.of_queue(queues, frame_chunks).is_some());
                    }
                    let of_queue = u64::from(budget.queues) / slices;
                    prop_assert!(of_queue >= (2 * u64::from(frame_chunks)).min(frames * u64::from(frame_chunks)));
                    if u64::from(budget.total) == budget.needed {
                        prop_assert_eq!(u64::from(budget.queues), needs.queue_chunks);
                    }
                }
            }
        }
    }
}
