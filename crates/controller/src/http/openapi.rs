//! The description of the API (OpenAPI 3.1), generated from types and handlers.

use super::{administration, events, gateways, operations, requests, rules, slices};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use slicewise_api::{PROBLEM_TYPE, Problem};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses, Modify, OpenApi};

/// What every route may answer instead: a problem document (RFC 9457).
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

/// When a token is needed.
const TOKEN: &str = "From the first token on, every request under `/v1` and `/metrics` needs one: make one with scope `admin` first. While there is none, \
                     none is needed on loopback.";

struct Tokens;

impl Modify for Tokens {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let scheme = scheme.description(Some(TOKEN)).build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Slicewise controller",
        description = "Slices as a service. Rates are in bit/s, sizes in bytes, delays in nanoseconds, moments in milliseconds since 1970-01-01 UTC; \
                       all are integers. Refusals are problem documents (RFC 9457)."
    ),
    paths(
        gateways::links, gateways::link, gateways::link_counters, slices::list, slices::read, slices::put, slices::remove, slices::purge,
        gateways::slice_counters, gateways::several_counters, slices::batch, slices::offer, slices::generations, slices::generation, slices::restore,
        events::events, requests::slice_requests, administration::tenants, administration::tenant, administration::put_tenant,
        administration::remove_tenant, rules::rules, rules::rule, rules::put_rule, rules::remove_rule, administration::tokens, administration::add_token, administration::remove_token,
        administration::audit, gateways::gateways, gateways::announce, gateways::forget, gateways::desired,
        gateways::acknowledge, gateways::report_counters, operations::healthy, operations::ready, operations::metrics, operations::slice_metrics
    ),
    components(schemas(Problem)),
    modifiers(&Tokens),
    security(("token" = []), ())
)]
struct Description;

/// The description of the API (OpenAPI 3.1) as JSON.
#[must_use]
pub fn description() -> String {
    let mut description = Description::openapi();
    env!("CARGO_PKG_VERSION").clone_into(&mut description.info.version);
    description.to_pretty_json().unwrap_or_default()
}

/// The description of the API.
pub(super) async fn serve() -> Response {
    static TEXT: OnceLock<String> = OnceLock::new();
    let mut response = TEXT.get_or_init(description).as_str().into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
