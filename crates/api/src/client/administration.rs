//! Tenants, rules, tokens and the audit log.

use super::{Call, Client, ClientError, encoded};
use crate::{
    AuditPage, NewToken, Rule, RuleRecord, Tenant, TenantRecord, TokenCreated, TokenRecord,
};
use ureq::http::Method;

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
        let path = format!("/v1/tenants/{}", encoded(name));
        let answer = self.with_body(Method::PUT, path, tenant, Vec::new());
        answer.map(|(_, value)| value)
    }

    /// Remove a tenant that has no slices.
    ///
    /// # Errors
    /// As all methods.
    pub fn remove_tenant(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/v1/tenants/{}", encoded(name));
        self.tell(&Call::new(Method::DELETE, path))
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
        let path = format!("/v1/rules/{}", encoded(name));
        let answer = self.with_body(Method::PUT, path, rule, Vec::new());
        answer.map(|(_, value)| value)
    }

    /// Remove a rule; what it lends is taken back.
    ///
    /// # Errors
    /// As all methods.
    pub fn remove_rule(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/v1/rules/{}", encoded(name));
        self.tell(&Call::new(Method::DELETE, path))
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
        let answer = self.with_body(Method::POST, "/v1/tokens", token, Vec::new());
        answer.map(|(_, value)| value)
    }

    /// Revoke a token.
    ///
    /// # Errors
    /// As all methods.
    pub fn remove_token(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/v1/tokens/{}", encoded(name));
        self.tell(&Call::new(Method::DELETE, path))
    }

    /// The audit log after number `after`.
    ///
    /// # Errors
    /// As all methods.
    pub fn audit(&self, after: u64) -> Result<AuditPage, ClientError> {
        self.get(format!("/v1/audit?after={after}"))
    }
}
