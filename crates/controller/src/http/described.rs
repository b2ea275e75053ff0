//! Parts of the description of the API that many routes have in common.

use slicewise_api::PROBLEM_TYPE;
use std::collections::BTreeMap;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};

/// Alternative answer of every route: a problem document (RFC 9457).
pub(super) struct Problems;

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let schema = Ref::from_schema_name("Problem");
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description("Why not (RFC 9457).")
            .content(PROBLEM_TYPE, content);
        BTreeMap::from([("default".to_owned(), RefOr::T(response.build()))])
    }
}

/// Header of requests for changes.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only its description is used")]
pub(super) struct IdempotencyKey {
    /// For a day, the same request of the same token with this key gets the first answer, also a refusal (409). Another request with it is refused
    /// (422). Use a new key to try again.
    #[param(rename = "Idempotency-Key", pattern = "^[ -~]{1,255}$")]
    key: Option<String>,
}

/// Headers of all that gateways ask and say.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only their description is used")]
pub(super) struct GatewayHeaders {
    /// Identifier of the gateway's process. While one process of the name is connected, another is refused (409).
    #[param(rename = "Gateway-Instance", pattern = "^[A-Za-z0-9]{1,64}$")]
    instance: Option<String>,
    /// Identity of the store that the gateway follows, as answers state it (`store`). A controller of another store refuses (409).
    #[param(rename = "Gateway-Store", pattern = "^[A-Za-z0-9]{1,64}$")]
    store: Option<String>,
}
