//! Why changes of single slices are refused.

use crate::classifier::InsertError;
use crate::guaranteed::SliceError;
use slicewise_model::Refusal;

/// Why a slice cannot be added, changed or removed. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SliceChangeError {
    /// The policy has no slices.
    #[error("policy `{policy}` has no slices: its discipline is not `guaranteed`")]
    NotGuaranteed {
        /// The policy.
        policy: String,
    },
    /// There is no such slice.
    #[error("there is no slice `{name}`")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// Another slice has this name.
    #[error("there is a slice `{name}` already: change it, or choose another name")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The slice was removed, and has frames to send.
    #[error("slice `{name}` was removed, and {frames} frames of it still wait: repeat it later")]
    Draining {
        /// The slice.
        name: String,
        /// Number of frames.
        frames: u64,
    },
    /// A slice is to be purged that was not removed.
    #[error("slice `{name}` is in force: remove it first")]
    InForce {
        /// The slice.
        name: String,
    },
    /// Flows of the slice are to have queues of their own, and frames wait that came before they were told apart.
    #[error(
        "slice `{name}`: {frames} frames wait that came before its flows were told apart: repeat it later"
    )]
    NotByFlow {
        /// The slice.
        name: String,
        /// Number of frames.
        frames: u64,
    },
    /// Frames that the slice is to have are on their way from or to another.
    #[error(
        "slice `{name}`: packets that it is to have were those of slice `{of}`, of which {frames} frames still wait: repeat \
         it later"
    )]
    Moving {
        /// The slice.
        name: String,
        /// The other one.
        of: String,
        /// Number of frames.
        frames: u32,
    },
    /// Its class map or the new one is no list of few exact or prefix matches.
    #[error(
        "slice `{name}`: packets of such matches cannot change while it is in force: remove it and add it again"
    )]
    NotInPlace {
        /// The slice.
        name: String,
    },
    /// Class-default cannot be removed.
    #[error(
        "class-default cannot be removed and has no class map: frames that no class map matches belong to it"
    )]
    Default,
    /// The guarantee does not fit beside the others.
    #[error("slice `{name}`: {refusal}{}", hint(*.still_reserved))]
    Refused {
        /// The slice.
        name: String,
        /// Which condition fails, and what would be accepted.
        refusal: Box<Refusal>,
        /// True if guarantees that slices had before they were changed or removed count until no frame waits that is to
        /// leave under a guarantee.
        still_reserved: bool,
    },
    /// The guarantee would fit, but frames under the old one still have to be sent in time beside it.
    #[error(
        "slice `{name}`: until no frame waits that is to leave under a guarantee, the old guarantee \
         holds beside the new one, and both do not fit: change either the rate and the burst or the \
         delay first, and the other later ({refusal})"
    )]
    InTransition {
        /// The slice.
        name: String,
        /// For a guarantee that covers both.
        refusal: Box<Refusal>,
    },
    /// More is to be guaranteed, and frames wait from before the policy was committed, of which it is not known what they were promised.
    #[error(
        "slice `{name}`: frames wait from before the policy was put in force: repeat it when they have left"
    )]
    Committed {
        /// The slice.
        name: String,
    },
    /// Its parameters do not fit the scheduler.
    #[error("slice `{name}`: {error}")]
    Slice {
        /// The slice.
        name: String,
        /// Why not.
        error: SliceError,
    },
    /// Its class map cannot be added.
    #[error("slice `{name}`: {error}")]
    ClassMap {
        /// The slice.
        name: String,
        /// Why not.
        error: InsertError,
    },
}

impl SliceChangeError {
    /// Returns whether it is refused for what slices had that were changed or removed, or for frames that wait, and will be carried out
    /// once that is released and those have left.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::InTransition { .. }
                | Self::Draining { .. }
                | Self::Moving { .. }
                | Self::NotByFlow { .. }
                | Self::Committed { .. }
                | Self::Refused {
                    still_reserved: true,
                    ..
                }
        )
    }
}

const fn hint(still_reserved: bool) -> &'static str {
    if still_reserved {
        "; what was in force before counts until no frame waits that is to leave under a guarantee: repeat it later"
    } else {
        ""
    }
}

impl From<(&String, SliceError)> for SliceChangeError {
    fn from((name, error): (&String, SliceError)) -> Self {
        let name = name.clone();
        Self::Slice { name, error }
    }
}

impl From<(&String, InsertError)> for SliceChangeError {
    fn from((name, error): (&String, InsertError)) -> Self {
        let name = name.clone();
        Self::ClassMap { name, error }
    }
}
