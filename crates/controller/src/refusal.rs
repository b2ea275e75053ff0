//! Why a request is refused: problem details (RFC 9457) and the event that it leaves.

use slicewise_api::{Invalid, OfferAnswer, Problem};

/// A request that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Answer to the client.
    pub(crate) problem: Box<Problem>,
    /// The event that it leaves, if any.
    pub(crate) note: Option<Box<EventNote>>,
    /// True if the audit log has it.
    pub(crate) is_audited: bool,
}

impl Refusal {
    pub(crate) fn new(status: u16, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        Self {
            problem: Box::new(Problem {
                kind: format!("urn:slicewise:problem:{kind}"),
                title: title.to_owned(),
                status,
                detail: detail.into(),
                pointer: None,
                offer: None,
            }),
            note: None,
            is_audited: false,
        }
    }

    /// A panic.
    pub(crate) fn defect() -> Self {
        Self::new(
            500,
            "internal",
            "The controller has a defect",
            "the request met a defect of the controller, whose log has more; please report it",
        )
    }

    /// The request cannot be read.
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(400, "malformed", "The request cannot be read", detail)
    }

    /// A value is not valid.
    pub(crate) fn invalid(invalid: Invalid) -> Self {
        let mut refusal = Self::new(400, "invalid", "A value is not valid", invalid.problem);
        refusal.problem.pointer = Some(invalid.at);
        refusal
    }

    /// The value at a place (JSON pointer, RFC 6901) is not valid.
    pub(crate) fn invalid_at(at: &str, detail: impl Into<String>) -> Self {
        Self::invalid(Invalid::new(at, detail))
    }

    pub(crate) fn unauthorized(detail: &str) -> Self {
        Self::new(401, "unauthorized", "A token is required", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(403, "forbidden", "The token does not allow this", detail)
    }

    pub(crate) fn not_found(what: &str, name: &str) -> Self {
        let detail = format!("there is no {what} `{name}`");
        Self::new(404, "not-found", "There is no such resource", detail)
    }

    /// The change contradicts what there is.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(
            409,
            "conflict",
            "The change contradicts what there is",
            detail,
        )
    }

    /// The admission test refused.
    pub(crate) fn admission(offer: OfferAnswer) -> Self {
        let detail = offer.reason.clone().unwrap_or_default();
        let mut refusal = Self::new(409, "refused", "The guarantee cannot be kept", detail);
        refusal.problem.offer = Some(Box::new(offer));
        refusal
    }

    /// Packets belong to another slice.
    pub(crate) fn overlap(detail: impl Into<String>) -> Self {
        Self::new(409, "overlap", "Packets belong to another slice", detail)
    }

    pub(crate) fn quota(detail: impl Into<String>) -> Self {
        Self::new(409, "quota", "The tenant's quota is used up", detail)
    }

    pub(crate) fn precondition(detail: impl Into<String>) -> Self {
        Self::new(
            412,
            "precondition",
            "The resource is another than expected",
            detail,
        )
    }

    pub(crate) fn key_used() -> Self {
        Self::new(
            422,
            "idempotency-key-used",
            "The idempotency key was used for another request",
            "this `Idempotency-Key` was sent with another request before: use a new one for each request",
        )
    }

    pub(crate) fn overloaded() -> Self {
        Self::new(
            503,
            "overloaded",
            "The controller has too much to do",
            "nothing was changed: try again in a second",
        )
    }

    pub(crate) fn stopping() -> Self {
        Self::new(
            503,
            "stopping",
            "The controller is stopping",
            "it is not known whether the change was made: read it back, or repeat the request with its `Idempotency-Key`",
        )
    }

    /// The store failed.
    pub(crate) fn store(error: &sqlx::Error) -> Self {
        let text = error.to_string();
        let is_full = text.contains("disk is full") || text.contains("No space left");
        match is_full {
            true => Self::new(
                507,
                "store-full",
                "The store cannot grow",
                "the disk of the store is full; nothing was changed, and slices stay as they are: make room",
            ),
            false => Self::new(
                503,
                "store-unavailable",
                "The store cannot be used",
                "the store did not answer as expected (the controller's log says why); if the request was to change something, read it \
                 back or repeat it with its `Idempotency-Key`",
            ),
        }
    }

    /// With an event that says so.
    pub(crate) fn noted(mut self, slice: &str, tenant: &str, actor: &str) -> Self {
        self.note = Some(Box::new(EventNote {
            slice: slice.to_owned(),
            tenant: tenant.to_owned(),
            actor: actor.to_owned(),
            reason: self.problem.detail.clone(),
            ..EventNote::default()
        }));
        self
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid)
    }
}

/// An event to be noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventNote {
    pub(crate) slice: String,
    pub(crate) tenant: String,
    pub(crate) gateway: String,
    pub(crate) generation: Option<u64>,
    pub(crate) actor: String,
    pub(crate) reason: String,
}

impl EventNote {
    /// Returns a note about a gateway.
    pub(crate) fn of_gateway(gateway: &str) -> Self {
        Self {
            gateway: gateway.to_owned(),
            ..Self::default()
        }
    }
}
