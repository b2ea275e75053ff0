//! Tenants, rules, tokens and the audit log.

use super::{Client, ClientError, path_of};
use crate::{
    AuditPage, NewToken, Rule, RuleRecord, Tenant, TenantRecord, TokenCreated, TokenRecord,
};

impl Client {
    /// Every tenant.
    ///
    /// # Errors
    /// As all methods.
    pub fn tenants(&self) -> Result<Vec<TenantRecord>, ClientError> {
        self.get("/v1/tenants")
    }

    /// Add a tenant, or change it.
    ///
    /// # Errors
    /// As all methods.
    pub fn put_tenant(&self, name: &str, tenant: &Tenant) -> Result<TenantRecord, ClientError> {
        self.put(path_of("tenants", name), tenant)
    }

    /// Remove a tenant that has no slices.
    ///
    /// # Errors
    /// As all methods.
    pub fn remove_tenant(&self, name: &str) -> Result<(), ClientError> {
        self.delete(path_of("tenants", name))
    }

    /// Every rule.
    ///
    /// # Errors
    /// As all methods.
    pub fn rules(&self) -> Result<Vec<RuleRecord>, ClientError> {
        self.get("/v1/rules")
    }

    /// Add a rule, or change it.
    ///
    /// # Errors
    /// As all methods.
    pub fn put_rule(&self, name: &str, rule: &Rule) -> Result<RuleRecord, ClientError> {
        self.put(path_of("rules", name), rule)
    }

    /// Remove a rule; what it lends is taken back.
    ///
    /// # Errors
    /// As all methods.
    pub fn remove_rule(&self, name: &str) -> Result<(), ClientError> {
        self.delete(path_of("rules", name))
    }

    /// Every token, without its secret.
    ///
    /// # Errors
    /// As all methods.
    pub fn tokens(&self) -> Result<Vec<TokenRecord>, ClientError> {
        self.get("/v1/tokens")
    }

    /// Make a token.
    ///
    /// # Errors
    /// As all methods.
    pub fn add_token(&self, token: &NewToken) -> Result<TokenCreated, ClientError> {
        self.post("/v1/tokens", token, None)
    }

    /// Revoke a token.
    ///
    /// # Errors
    /// As all methods.
    pub fn remove_token(&self, name: &str) -> Result<(), ClientError> {
        self.delete(path_of("tokens", name))
    }

    /// The audit log after number `after`.
    ///
    /// # Errors
    /// As all methods.
    pub fn audit(&self, after: u64) -> Result<AuditPage, ClientError> {
        self.get(format!("/v1/audit?after={after}"))
    }
}
