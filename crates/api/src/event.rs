//! Events: what happened, numbered.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Kind of an event. `slice_admitted`: a slice was added or changed, and its capacity is promised. `slice_installed`: every gateway of its path
/// has it in force. `slice_draining`: it was removed, and its capacity stays promised until its frames are gone. `slice_gone`: its frames
/// are gone, and its capacity is free. `slice_refused`: a request was refused by the admission test, by a quota, or because packets belong
/// to another slice. `gateway_refused`: a gateway refused a slice that was admitted. `announcement_refused`: an announcement contradicts
/// what is promised, another gateway of its name is connected, or the gateway follows another store. `gateway_came`: a gateway announced
/// itself, or is heard of again. `gateway_went`: a gateway has not been heard of for a while. `decision`: a decision at run time, as of
/// capacity that was lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A slice was added or changed: its capacity is promised.
    SliceAdmitted,
    /// Every gateway of its path has it in force.
    SliceInstalled,
    /// It was removed; its capacity stays promised until its frames are gone.
    SliceDraining,
    /// Its frames are gone, and its capacity is free.
    SliceGone,
    /// A request was refused by the admission test, by a quota, or because packets belong to another slice.
    SliceRefused,
    /// A gateway refused a slice that was admitted.
    GatewayRefused,
    /// An announcement of a gateway was refused: it contradicts what is promised, another gateway of its name is
    /// connected, or the gateway follows another store.
    AnnouncementRefused,
    /// A gateway announced itself, or is heard of again.
    GatewayCame,
    /// A gateway has not been heard of for a while.
    GatewayWent,
    /// A decision at run time, as of capacity that was lent.
    Decision,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its number; later events have larger ones.
    pub number: u64,
    /// When, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its kind.
    pub kind: EventKind,
    /// The slice it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The tenant that it is about, and that can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The gateway it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// The generation it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A part of the list of events, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// The events.
    pub items: Vec<Event>,
    /// `after` of the next part; absent at the end. The last number is `after` for those to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
