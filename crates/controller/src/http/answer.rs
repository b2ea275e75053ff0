//! Answers and refusals as HTTP.

use crate::log;
use crate::refusal::Refusal;
use crate::sql::{Answer, Failed};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use slicewise_api::PROBLEM_TYPE;

/// Result of a handler.
pub(super) type Replied = Result<Response, Refusal>;

/// Has the writer carry out a block with a transaction, and answers with what it returns.
macro_rules! change {
    ($app:expr, $request:expr, |$tx:ident| $work:block) => {
        $crate::store::carry_out!($app.store, $request, |$tx| $work)
            .map(axum::response::IntoResponse::into_response)
    };
}
pub(super) use change;

/// Why a request was refused that the audit log does not have yet.
#[derive(Debug, Clone)]
pub(super) struct NotAudited(pub(super) String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self.problem).unwrap_or_default();
        let mut response = with_type(status, PROBLEM_TYPE, body);
        if !self.is_audited {
            let detail = NotAudited(self.problem.detail);
            response.extensions_mut().insert(detail);
        }
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = match self.body.is_empty() {
            true => status.into_response(),
            false => with_type(status, "application/json", self.body),
        };
        if let Some(version) = self.version {
            set_etag(&mut response, version);
        }
        response
    }
}

/// The version as an entity tag (RFC 9110, section 8.8.3).
pub(super) fn set_etag(response: &mut Response, version: u64) {
    if let Ok(value) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
}

fn with_type(status: StatusCode, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// `value` with status 200.
pub(super) fn json(value: &impl Serialize) -> Replied {
    match serde_json::to_string(value) {
        Ok(body) => Ok(with_type(StatusCode::OK, "application/json", body)),
        Err(error) => Err(sqlx::Error::Encode(Box::new(error)).into()),
    }
}

/// Logs what reading failed with.
impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        log::warn("store_failed", &[("reason", &error)]);
        Self::store(&error)
    }
}

impl From<Failed> for Refusal {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(refusal) => *refusal,
            Failed::Store(error) => error.into(),
        }
    }
}
