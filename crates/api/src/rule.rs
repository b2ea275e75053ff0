//! Rules of an operator: capacity that one slice leaves unused is lent to another.

use crate::invalid::check_range;
use crate::offer::Direction;
use crate::{Invalid, WEIGHT_MAX, check_name};
use serde::{Deserialize, Serialize};
use slicewise_units::Way;
use utoipa::ToSchema;

/// The longest time that a rule waits, milliseconds: a day.
const FOR_MAX_MS: u64 = 86_400_000;

/// If slice `from` leaves `unused_bps` of its guarantee unused for `for_ms`, it is lent to slice `to`, until `from` uses it again.
///
/// Lending changes only what `to` may take of the excess: its maximum and its weight. The guarantee of `from` stays as it is, so
/// it needs no decision to have it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The slice that lends; it has a guarantee in the direction. The rule ends when the slice is removed.
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub from: String,
    /// The slice that borrows; it shares a link with `from`, and exists in the direction. The rule ends when the slice is removed.
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub to: String,
    /// In which direction.
    #[serde(with = "Direction")]
    #[schema(value_type = Direction)]
    pub direction: Way,
    /// How much of its guarantee `from` leaves unused, bit/s. It is not compared with the guarantee: a rule with more than that never lends.
    #[schema(minimum = 1, maximum = 9_223_372_036_854_775_807_u64)]
    pub unused_bps: u64,
    /// For how long, milliseconds; judged by the reports of the gateway, about one a second.
    #[schema(minimum = 0, maximum = 86_400_000)]
    pub for_ms: u64,
    /// Weight of `to` while it borrows; absent for its own. Its maximum, if it has one, is raised by `unused_bps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 65535)]
    pub weight: Option<u32>,
}

impl Rule {
    /// Validates everything that does not depend on slices.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        check_name(&self.from, "/from")?;
        check_name(&self.to, "/to")?;
        if self.from == self.to {
            return Err(Invalid::new(
                "/to",
                "is `from`: a slice cannot lend to itself",
            ));
        }
        check_range(self.unused_bps, 1..=i64::MAX as u64, "/unused_bps")?;
        check_range(self.for_ms, 0..=FOR_MAX_MS, "/for_ms")?;
        let weight = self.weight.unwrap_or(1).into();
        check_range(weight, 1..=WEIGHT_MAX.into(), "/weight")
    }
}

/// A rule as read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleRecord {
    /// Its name.
    pub name: String,
    /// As in [`Rule`].
    pub rule: Rule,
    /// The gateway whose reports decide: that of the first link that both slices pass.
    pub gateway: String,
    /// True if capacity is lent now.
    pub lent: bool,
    /// Since when, milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent_since_ms: Option<u64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_rule_is_named_with_its_place() {
        let rule = Rule {
            from: "a".to_owned(),
            to: "b".to_owned(),
            direction: Way::Forward,
            unused_bps: 1,
            for_ms: 0,
            weight: Some(1),
        };
        assert!(rule.check().is_ok());
        let wrong = [
            Rule {
                to: "a".to_owned(),
                ..rule.clone()
            },
            Rule {
                unused_bps: 0,
                ..rule.clone()
            },
            Rule {
                for_ms: FOR_MAX_MS + 1,
                ..rule.clone()
            },
            Rule {
                weight: Some(0),
                ..rule
            },
        ];
        let places = wrong.map(|rule| rule.check().unwrap_err().at);
        assert_eq!(places, ["/to", "/unused_bps", "/for_ms", "/weight"]);
    }
}
