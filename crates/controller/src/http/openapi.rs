//! The description of the API (OpenAPI 3.1), generated from types and handlers.

use super::{
    administration, counter_history, events, gateways, operations, requests, rules, slices,
};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use slicewise_api::Problem;
use std::sync::OnceLock;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Object, RefOr, Schema};
use utoipa::{Modify, OpenApi};

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

/// Schemas with the members of others among their own, and which of these answers always have.
const FLATTENED: [(&str, &[&str]); 2] = [
    ("SliceRecord", &["tenant", "path"]),
    ("GatewayTerms", &["weight"]),
];

/// Describes flattened members beside the others: as `allOf`, nothing would fulfil both a schema and one that allows no other members.
struct Flattened;

impl Modify for Flattened {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let schemas = &mut openapi.components.get_or_insert_default().schemas;
        for (name, required) in FLATTENED {
            let Some(RefOr::T(Schema::AllOf(parts))) = schemas.get(name) else {
                continue;
            };
            let mut whole = Object::new();
            whole.description.clone_from(&parts.description);
            for part in &parts.items {
                let part = match part {
                    RefOr::Ref(part) => part.ref_location.rsplit('/').next(),
                    RefOr::T(_) => None,
                }
                .map_or(Some(part), |name| schemas.get(name));
                if let Some(RefOr::T(Schema::Object(part))) = part {
                    whole.properties.extend(part.properties.clone());
                    whole.required.extend(part.required.iter().cloned());
                }
            }
            whole
                .required
                .extend(required.iter().map(ToString::to_string));
            schemas.insert(name.to_owned(), RefOr::T(whole.into()));
        }
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
        gateways::slice_counters, gateways::several_counters, counter_history::link, counter_history::slice, counter_history::several, slices::batch, slices::offer, slices::generations, slices::generation, slices::restore,
        events::events, requests::slice_requests, administration::tenants, administration::tenant, administration::put_tenant,
        administration::remove_tenant, rules::rules, rules::rule, rules::put_rule, rules::remove_rule, administration::tokens, administration::add_token, administration::remove_token,
        administration::audit, gateways::gateways, gateways::announce, gateways::forget, gateways::desired,
        gateways::acknowledge, gateways::report_counters, operations::healthy, operations::ready, operations::metrics, operations::slice_metrics
    ),
    components(schemas(Problem)),
    modifiers(&Tokens, &Flattened),
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
