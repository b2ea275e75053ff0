//! Messages between a gateway and the controller.

use crate::invalid::check_count;
use crate::{Invalid, LinkAnnouncement, Match, Name, Terms, check_name};
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};
use utoipa::ToSchema;

/// Most links of one gateway.
const LINKS_MAX: usize = 64;
/// The HTTP header in which a gateway says which process it is: an identifier of its own, 1 to 64 letters and digits.
/// While one of that name is connected, another is refused (409).
pub const INSTANCE_HEADER: &str = "gateway-instance";
/// The HTTP header in which a gateway names the store that it follows, as [`Announced::store`] and [`Desired::store`] stated it.
/// A controller of another store refuses (409).
pub const STORE_HEADER: &str = "gateway-store";
/// Kind of the refusal of a gateway that follows another store, or that has seen generations which this one does not have.
pub const OTHER_STORE: &str = "other-store";

/// A gateway announces itself with its links. Announcing the same again changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayAnnouncement {
    /// All its links.
    #[schema(max_items = 64)]
    pub links: Vec<LinkAnnouncement>,
    /// The generation that it has taken; 0 if it has lost its state. What it has acknowledged beyond that is not in force any more. Absent: nothing
    /// is said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<u64>,
}

impl GatewayAnnouncement {
    /// Validates the links.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        check_count(&self.links, LINKS_MAX, "links", "/links")?;
        if self
            .reached
            .is_some_and(|reached| i64::try_from(reached).is_err())
        {
            return Err(Invalid::new("/reached", "is not a generation"));
        }
        for (index, link) in self.links.iter().enumerate() {
            let at = format!("/links/{index}");
            link.check().map_err(|invalid| invalid.within(&at))?;
            let mut before = self.links.iter().take(index);
            if before.any(|other| other.name == link.name) {
                let problem = format!("link `{}` is announced twice", link.name);
                return Err(Invalid::new(at, problem));
            }
        }
        Ok(())
    }
}

/// The answer to an announcement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Announced {
    /// The generation that the gateway must catch up with.
    pub generation: u64,
    /// The generation that it acknowledged last; 0 if none.
    pub acknowledged: u64,
    /// Identity of the store; absent from controllers of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// An operator said that the gateway is to follow this store, whatever it followed before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
}

/// State that a gateway must have in force: all of it (`snapshot`), or the changes since a generation (`changes`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Desired {
    /// The generation reached with this answer: `after` of the next request.
    pub generation: u64,
    /// Identity of the store; absent from controllers of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Every slice of the gateway. Whatever else it has must be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Vec<GatewaySlice>>,
    /// With a snapshot: slices that drain. The gateway acknowledges them as gone when no frame of them waits in it, also if it
    /// does not know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draining: Vec<String>,
    /// Slices that were removed, with this answer or before, and of which the gateway drops the frames that still wait; an agent of an
    /// earlier version waits for these to leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub purge: Vec<String>,
    /// Changes in the order in which they are to be carried out; empty if nothing changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<GatewayChange>,
}

/// One change for a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GatewayChange {
    /// Add the slice, or change it.
    Put(Box<GatewaySlice>),
    /// Remove it, and acknowledge it as gone when its frames have left.
    Remove(String),
}

/// A slice as one gateway carries it out. A slice passes a gateway once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GatewaySlice {
    /// Its name.
    pub name: String,
    /// The link of the gateway.
    pub link: String,
    /// Its tenant.
    pub tenant: String,
    /// Weight of the tenant's share of the excess.
    #[serde(default = "one")]
    pub tenant_weight: u32,
    /// In the forward direction; absent if it does not exist there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<GatewayTerms>,
    /// In the backward direction; absent if it does not exist there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<GatewayTerms>,
    /// Its version.
    pub version: u64,
}

const fn one() -> u32 {
    1
}

/// Terms of a slice in one direction of one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GatewayTerms {
    /// Packets of this direction.
    pub matches: Vec<Match>,
    /// Terms at this link: the delay of a guarantee is that of this link alone.
    #[serde(flatten)]
    pub terms: Terms,
}

impl Deref for GatewayTerms {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        &self.terms
    }
}

impl DerefMut for GatewayTerms {
    fn deref_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

/// A gateway says what it has in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Acknowledgement {
    /// Every change up to this generation is in force, refused, or draining.
    pub generation: u64,
    /// Slices that could not be put in force. Each stays refused until it is changed, or named in `recovered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedSlice>,
    /// Slices that were refused before and are in force now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Name>)]
    pub recovered: Vec<String>,
    /// Slices that were to be removed and of which no frame waits any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Name>)]
    pub gone: Vec<String>,
}

impl Acknowledgement {
    /// Validates names and sizes.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        if i64::try_from(self.generation).is_err() {
            return Err(Invalid::new("/generation", "is not a generation"));
        }
        for (index, refused) in self.refused.iter().enumerate() {
            check_name(&refused.slice, &format!("/refused/{index}/slice"))?;
        }
        for (index, name) in self.recovered.iter().enumerate() {
            check_name(name, &format!("/recovered/{index}"))?;
        }
        for (index, name) in self.gone.iter().enumerate() {
            check_name(name, &format!("/gone/{index}"))?;
        }
        Ok(())
    }
}

/// A slice that a gateway cannot put in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedSlice {
    /// The slice.
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub slice: String,
    /// Why, without the name of another slice: the slice's tenant reads it.
    pub reason: String,
    /// The other slice whose frames have to leave first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub waits_for: Option<String>,
}

/// A gateway as read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GatewayRecord {
    /// Its name.
    pub name: String,
    /// Its links.
    pub links: Vec<String>,
    /// The generation it acknowledged last.
    pub acknowledged: u64,
    /// When it was heard of last, milliseconds since 1970-01-01 UTC.
    pub seen_at_ms: u64,
    /// True if anything was heard of it within the last 10 s or so: an announcement, a request for its state that
    /// waits, an acknowledgement, or counters.
    pub connected: bool,
    /// Why its last announcement was refused. The links stay as they were accepted last. Unless the gateway follows another store, those that it
    /// announced otherwise, or not at all, are `disputed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
