//! A ring that one side fills and the other empties: descriptors, and two counters in shared memory.

use crate::sys::map::Map;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// `struct xdp_ring_offset`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets {
    pub(super) producer: u64,
    pub(super) consumer: u64,
    pub(super) descriptors: u64,
    pub(super) flags: u64,
}

/// A descriptor of a ring.
///
/// # Safety
/// Implemented only for types without padding for which every bit pattern is valid.
pub(super) unsafe trait Descriptor: Copy {}

// SAFETY: an integer.
unsafe impl Descriptor for u64 {}

/// One ring, from our side of it.
#[derive(Debug)]
pub(super) struct Ring<T> {
    map: Map,
    offsets: Offsets,
    entries: u32,
    /// How far we have filled or emptied it; the other side may not know yet.
    ours: u32,
    /// How far the other side was when we last looked.
    theirs: u32,
    of: PhantomData<T>,
}

impl<T: Descriptor> Ring<T> {
    /// Map a ring of `entries`, a power of two.
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        page_offset: i64,
        offsets: Offsets,
        entries: u32,
    ) -> io::Result<Self> {
        let start = usize::try_from(offsets.descriptors).unwrap_or(usize::MAX);
        let length = (entries as usize * size_of::<T>()).saturating_add(start);
        Ok(Self {
            map: Map::of_socket(socket, length, page_offset)?,
            offsets,
            entries,
            ours: 0,
            theirs: 0,
            of: PhantomData,
        })
    }

    #[inline]
    fn word(&self, offset: u64) -> &AtomicU32 {
        let at = self
            .map
            .at(usize::try_from(offset).unwrap_or(usize::MAX), 4);
        // SAFETY: within the mapping, aligned as the kernel says, and accessed atomically by both.
        unsafe { at.cast().as_ref() }
    }

    #[inline]
    fn slot(&self, index: u32) -> std::ptr::NonNull<T> {
        let start = usize::try_from(self.offsets.descriptors).unwrap_or(usize::MAX);
        let index = (index & (self.entries - 1)) as usize;
        self.map
            .at(start + index * size_of::<T>(), size_of::<T>())
            .cast()
    }

    /// Returns true if the kernel sleeps and must be woken to see the new entries.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        const NEED_WAKEUP: u32 = 1;
        self.word(self.offsets.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    /// Of a ring that we fill: descriptors that can be filled in now.
    #[inline]
    pub(super) fn room(&mut self) -> u32 {
        // Acquire: what the kernel read before it moved on, we may overwrite.
        self.theirs = self.word(self.offsets.consumer).load(Ordering::Acquire);
        self.entries
            .saturating_sub(self.ours.wrapping_sub(self.theirs))
    }

    /// Of a ring that we fill: fill in the next descriptor, for which there is room.
    #[inline]
    pub(super) fn fill(&mut self, descriptor: T) {
        // SAFETY: within the mapping and aligned; the kernel does not read it before `publish`.
        unsafe { self.slot(self.ours).write(descriptor) };
        self.ours = self.ours.wrapping_add(1);
    }

    /// Of a ring that we fill: pass the filled descriptors to the kernel.
    #[inline]
    pub(super) fn publish(&self) {
        self.word(self.offsets.producer)
            .store(self.ours, Ordering::Release);
    }

    /// Of a ring that the kernel fills: descriptors that wait for us.
    #[inline]
    pub(super) fn waiting(&mut self) -> u32 {
        // Acquire: the descriptors were written before it moved on.
        self.theirs = self.word(self.offsets.producer).load(Ordering::Acquire);
        self.theirs.wrapping_sub(self.ours).min(self.entries)
    }

    /// Of a ring that the kernel fills: the next descriptor, one of those waiting.
    #[inline]
    pub(super) fn next(&mut self) -> T {
        // SAFETY: within the mapping and aligned; the kernel does not write to it before `free`.
        let descriptor = unsafe { self.slot(self.ours).read() };
        self.ours = self.ours.wrapping_add(1);
        descriptor
    }

    /// Of a ring that the kernel fills: return the places of the descriptors that were read.
    #[inline]
    pub(super) fn free(&self) {
        self.word(self.offsets.consumer)
            .store(self.ours, Ordering::Release);
    }
}
