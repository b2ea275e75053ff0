//! The files of the dashboard.

use super::extract::Named;
use crate::administration::hash;
use crate::refusal::Refusal;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Name and content of every file in `assets/`.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));
const INDEX: &str = "index.html";
/// Script that keeps the files of the page in the browser; the page itself is not in its folder.
const WORKER: &str = "worker.js";

/// The dashboard.
pub(super) async fn index(headers: HeaderMap) -> Result<Response, Refusal> {
    find(INDEX, &headers)
}

/// A file of the dashboard.
pub(super) async fn file(Named(name): Named, headers: HeaderMap) -> Result<Response, Refusal> {
    find(&name, &headers)
}

fn find(name: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
    let found = FILES.iter().find(|(file, _)| *file == name);
    let Some(&(_, content)) = found else {
        return Err(Refusal::not_found("file", name));
    };
    let tag = format!("\"{}\"", hash(content).get(..16).unwrap_or_default());
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => content.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if name == WORKER {
        let scope = HeaderName::from_static("service-worker-allowed");
        headers.insert(scope, HeaderValue::from_static("/"));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> impl Iterator<Item = (&'static str, String)> {
        FILES
            .iter()
            .map(|(name, content)| (*name, String::from_utf8_lossy(content).into_owned()))
    }

    #[test]
    fn every_file_is_loaded_by_another() {
        let all: String = texts().map(|(_, text)| text).collect();
        for (name, _) in texts().filter(|(name, _)| *name != INDEX) {
            assert!(all.contains(&format!("{name}\"")), "nothing loads {name}");
        }
    }

    #[test]
    fn nothing_is_inline_markup_or_of_another_place() {
        const FORBIDDEN: [&str; 8] = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "https://",
            "style=",
            "onclick=",
        ];
        for (name, text) in texts() {
            for word in FORBIDDEN {
                assert!(!text.contains(word), "{name} has {word}");
            }
            let addresses = text.matches("http://").count();
            let namespaces = text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(addresses, namespaces, "{name}");
        }
    }
}
