//! Who asks, and what they may do.

use crate::refusal::Refusal;
use slicewise_api::{Scope, Slice};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    /// For history and audit log.
    pub(crate) name: String,
    pub(crate) scope: Scope,
}

impl Actor {
    /// The tenant whose slices alone are seen; `None` for all.
    pub(crate) fn tenant(&self) -> Option<&str> {
        match &self.scope {
            Scope::Tenant(name) => Some(name),
            _ => None,
        }
    }

    /// Returns whether it may see a slice.
    pub(crate) fn sees(&self, slice: &Slice) -> bool {
        self.tenant().is_none_or(|own| own == slice.tenant)
    }

    /// For whom places and time are counted: a tenant or a gateway has the same with any number of tokens.
    pub(crate) fn party(&self) -> String {
        match &self.scope {
            Scope::Tenant(_) | Scope::Gateway(_) => self.scope.to_string(),
            _ => format!("token {}", self.name),
        }
    }

    /// May read links, slices and history.
    pub(crate) fn may_read(&self) -> Result<(), Refusal> {
        self.may(!matches!(self.scope, Scope::Gateway(_)), "read slices")
    }

    /// May read what belongs to no tenant alone.
    pub(crate) fn may_read_all(&self) -> Result<(), Refusal> {
        let may = matches!(self.scope, Scope::Admin | Scope::Operator | Scope::Viewer);
        self.may(may, "read what belongs to all tenants")
    }

    /// May change slices, of some tenant at least.
    pub(crate) fn may_change(&self) -> Result<(), Refusal> {
        let may = matches!(
            self.scope,
            Scope::Admin | Scope::Operator | Scope::Tenant(_)
        );
        self.may(may, "change slices")
    }

    /// May return to a generation.
    pub(crate) fn may_operate(&self) -> Result<(), Refusal> {
        let may = matches!(self.scope, Scope::Admin | Scope::Operator);
        self.may(may, "change slices of all tenants")
    }

    /// May administer tenants and tokens.
    pub(crate) fn may_administer(&self) -> Result<(), Refusal> {
        self.may(self.scope == Scope::Admin, "administer tenants and tokens")
    }

    /// May speak for a gateway.
    pub(crate) fn may_be_gateway(&self, name: &str) -> Result<(), Refusal> {
        let is_own = matches!(&self.scope, Scope::Gateway(own) if own == name);
        let what = format!("speak for gateway `{name}`");
        self.may(is_own || self.scope == Scope::Admin, &what)
    }

    fn may(&self, may: bool, what: &str) -> Result<(), Refusal> {
        let Self { name, scope } = self;
        let refusal =
            || Refusal::forbidden(format!("`{name}` with scope `{scope}` may not {what}"));
        may.then_some(()).ok_or_else(refusal)
    }
}
