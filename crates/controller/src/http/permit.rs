//! Who may do what: each handler takes one of these first, so that nobody learns anything of what they may not use, not even that a body is wrong.

use super::Shared;
use super::extract::Named;
use crate::actor::Actor;
use crate::refusal::Refusal;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

fn actor(parts: &Parts) -> Result<Actor, Refusal> {
    let actor = parts.extensions.get::<Actor>().cloned();
    actor.ok_or_else(Refusal::defect)
}

/// An extractor of an actor of whom the check holds.
macro_rules! permits {
    ($($(#[$doc:meta])* $name:ident: $check:ident;)*) => {$(
        $(#[$doc])*
        #[allow(dead_code, reason = "some handlers need to know no more than that it may")]
        pub(super) struct $name(pub(super) Actor);

        impl FromRequestParts<Shared> for $name {
            type Rejection = Refusal;

            async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Refusal> {
                let actor = actor(parts)?;
                actor.$check()?;
                Ok(Self(actor))
            }
        }
    )*};
}

permits! {
    /// Reads links, slices and history, as far as they are its own.
    Reader: may_read;
    /// Reads what belongs to no tenant alone.
    WholeReader: may_read_all;
    /// Changes slices of some tenant at least.
    Changer: may_change;
    /// Changes slices of all tenants.
    Operator: may_operate;
    /// Administers tenants and tokens.
    Administrator: may_administer;
}

/// Speaks for the gateway in the path.
pub(super) struct Gateway {
    pub(super) actor: Actor,
    pub(super) name: String,
}

impl FromRequestParts<Shared> for Gateway {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let actor = actor(parts)?;
        let Named(name) = Named::from_request_parts(parts, app).await?;
        actor.may_be_gateway(&name)?;
        Ok(Self { actor, name })
    }
}
