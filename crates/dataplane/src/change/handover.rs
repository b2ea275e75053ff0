//! Frames on their way from one class to another.

use super::terms::Slice;
use crate::classifier::Part;
use crate::guaranteed::DequeueMark;
use crate::queue::FrameList;
use slicewise_model::Reservation;

/// Frames that change classes, until older ones have left.
#[derive(Debug)]
pub(crate) struct Handover {
    pub(super) part: Part,
    /// The class whose frames have to leave first.
    pub(super) from: u32,
    /// Up to this mark, or all of them if the class was removed.
    pub(super) until: DequeueMark,
    /// Position among those of the same class.
    pub(super) serial: u64,
    /// The class that the frames belong to.
    pub(super) into: u32,
    /// Frames that wait.
    pub(super) held: FrameList,
    /// Frames that the class has without them, if it is a slice.
    pub(super) kept: Part,
    pub(super) removed: Option<Box<Removed>>,
    /// Frames that the frame memory has room for because of it.
    pub(super) room: u64,
}

/// A slice that was removed, of which frames wait.
#[derive(Debug)]
pub(super) struct Removed {
    pub(super) slice: Slice,
    /// Reservation that stays until then.
    pub(super) reserved: Option<Reservation>,
}

impl Handover {
    /// Returns the slice that was removed.
    pub(crate) fn removed(&self) -> Option<&Slice> {
        self.removed.as_ref().map(|removed| &removed.slice)
    }
}
