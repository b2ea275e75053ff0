//! Members `forward` and `backward` of resources as values of both ways.

use crate::{
    Bounds, DelayChoice, DelayChoices, DirectionCounters, GatewaySlice, GatewayTerms, HopCounters,
    LinkAnnouncement, LinkCounters, LinkCountersRecord, LinkDirection, LinkDirectionRecord,
    LinkRecord, Slice, SliceCounters, Terms,
};
use slicewise_units::{BothWays, Way};

macro_rules! ways {
    ($($type:ident: $value:ty,)*) => {$(
        impl $type {
            /// Returns the members of both ways.
            #[must_use]
            pub const fn ways(&self) -> BothWays<&$value> {
                BothWays { forward: &self.forward, backward: &self.backward }
            }

            /// Returns the member of a way, to change it.
            pub const fn way_mut(&mut self, way: Way) -> &mut $value {
                match way {
                    Way::Forward => &mut self.forward,
                    Way::Backward => &mut self.backward,
                }
            }
        }
    )*};
}

impl Slice {
    /// Returns the terms of a way; `None` if the slice does not exist there.
    #[must_use]
    pub const fn terms(&self, way: Way) -> Option<&Terms> {
        match way {
            Way::Forward => self.forward.as_ref(),
            Way::Backward => self.backward.as_ref(),
        }
    }
}

macro_rules! from_both_ways {
    ($($type:ident: $value:ty,)*) => {$(
        impl From<BothWays<$value>> for $type {
            fn from(BothWays { forward, backward }: BothWays<$value>) -> Self {
                Self { forward, backward }
            }
        }
    )*};
}

from_both_ways! {
    Bounds: Option<u64>,
    DelayChoices: Option<DelayChoice>,
}

ways! {
    Bounds: Option<u64>,
    DelayChoices: Option<DelayChoice>,
    GatewaySlice: Option<GatewayTerms>,
    HopCounters: Option<DirectionCounters>,
    LinkAnnouncement: LinkDirection,
    LinkCounters: DirectionCounters,
    LinkCountersRecord: DirectionCounters,
    LinkRecord: LinkDirectionRecord,
    Slice: Option<Terms>,
    SliceCounters: Option<DirectionCounters>,
}
