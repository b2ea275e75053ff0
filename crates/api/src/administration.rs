//! Tenants, tokens, and the audit log.

use crate::invalid::{check_range, check_stored};
use crate::{Invalid, WEIGHT_MAX, check_name};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// A tenant: slices that share one portion of the excess, and a quota. A request replaces the tenant as a whole: a member that it leaves
/// out gets its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Weight of its share of the excess among tenants.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 65535, default = 1)]
    pub weight: u32,
    /// Largest number of slices; absent if not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_slices: Option<u64>,
    /// Largest sum of guaranteed rates, bit/s; each slice counts forward and backward. Absent if not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_rate_bps: Option<u64>,
}

const fn one() -> u32 {
    1
}

impl Default for Tenant {
    /// Weight 1, no quota.
    fn default() -> Self {
        Self {
            weight: 1,
            most_slices: None,
            most_rate_bps: None,
        }
    }
}

impl Tenant {
    /// Validates the numbers.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        check_range(self.weight.into(), 1..=WEIGHT_MAX.into(), "/weight")?;
        check_stored(self.most_slices.unwrap_or(0), "/most_slices")?;
        check_stored(self.most_rate_bps.unwrap_or(0), "/most_rate_bps")
    }
}

/// A tenant as read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantRecord {
    /// Its name.
    pub name: String,
    /// As in [`Tenant`].
    pub weight: u32,
    /// As in [`Tenant`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_slices: Option<u64>,
    /// As in [`Tenant`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_rate_bps: Option<u64>,
    /// Slices it has, also those that drain.
    pub slices: u64,
    /// Sum of their guaranteed rates, bit/s.
    pub rate_bps: u64,
}

/// Permissions of a token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything, also tokens and tenants.
    Admin,
    /// Slices and rules of every tenant, restoring a generation, and forgetting gateways.
    Operator,
    /// The slices, history and events of this tenant, and reading links.
    Tenant(String),
    /// Reading everything but tokens and the audit log, and asking for offers.
    Viewer,
    /// Requests of the gateway of this name.
    Gateway(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admin => f.write_str("admin"),
            Self::Operator => f.write_str("operator"),
            Self::Tenant(name) => write!(f, "tenant:{name}"),
            Self::Viewer => f.write_str("viewer"),
            Self::Gateway(name) => write!(f, "gateway:{name}"),
        }
    }
}

impl FromStr for Scope {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.split_once(':') {
            Some(("tenant", name)) => {
                check_name(name, "/scope").map(|()| Self::Tenant(name.to_owned()))
            }
            Some(("gateway", name)) => {
                check_name(name, "/scope").map(|()| Self::Gateway(name.to_owned()))
            }
            _ => match text {
                "admin" => Ok(Self::Admin),
                "operator" => Ok(Self::Operator),
                "viewer" => Ok(Self::Viewer),
                _ => Err(Invalid::new(
                    "/scope",
                    format!(
                        "{text:?} is not a scope: expected `admin`, `operator`, `viewer`, `tenant:NAME` or `gateway:NAME`"
                    ),
                )),
            },
        }
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|invalid: Invalid| serde::de::Error::custom(invalid.problem))
    }
}

/// A token that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Its name: who asked, in history and audit log.
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub name: String,
    /// Permissions. `admin`: everything. `operator`: slices and rules of all tenants, restoring a generation, and
    /// forgetting gateways. `viewer`: reading everything but tokens and the audit log, and asking for offers.
    /// `tenant:NAME`: the slices, history and events of this tenant, which must exist, and reading links.
    /// `gateway:NAME`: the requests of this gateway, and nothing else.
    #[schema(
        value_type = String,
        pattern = "^(admin|operator|viewer|(tenant|gateway):[a-z0-9][a-z0-9._-]{0,62})$"
    )]
    pub scope: Scope,
}

/// A token that was made. It is shown this one time.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenCreated {
    /// Its name.
    pub name: String,
    /// Its permissions.
    #[schema(value_type = String)]
    pub scope: Scope,
    /// The token itself: the store keeps a hash of it only.
    pub token: String,
}

impl fmt::Debug for TokenCreated {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TokenCreated");
        shown.field("name", &self.name).field("scope", &self.scope);
        shown.finish_non_exhaustive()
    }
}

/// A token as read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenRecord {
    /// Its name.
    pub name: String,
    /// Its permissions.
    #[schema(value_type = String)]
    pub scope: Scope,
    /// When it was made, milliseconds since 1970-01-01 UTC.
    pub created_at_ms: u64,
    /// Who made it.
    pub created_by: String,
}

/// One entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number.
    pub number: u64,
    /// When, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Who.
    pub by: String,
    /// Method and path of the request, as `PUT /v1/slices/gold`.
    pub request: String,
    /// The HTTP status of the answer.
    pub status: u16,
    /// More about it: the reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A part of the audit log, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The entries.
    pub items: Vec<AuditEntry>,
    /// `after` of the next part; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
