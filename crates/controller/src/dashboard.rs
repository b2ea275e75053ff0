//! The dashboard: files in the program, and what browsers may do with them.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

/// What the page may load and run: its own files, and requests to the controller that served it. No page may frame it, and it
/// has no inline script or style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the dashboard.
struct File {
    path: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal $kind:expr),* $(,)?) => {
        &[
            File { path: "/", kind: HTML, content: include_bytes!("../assets/index.html") },
            $(File { path: concat!("/", $name), kind: $kind, content: include_bytes!(concat!("../assets/", $name)) }),*
        ]
    };
}

const FILES: &[File] = files![
    "admission.js" SCRIPT,
    "api.js" SCRIPT,
    "chart.js" SCRIPT,
    "counters.js" SCRIPT,
    "dashboard.css" CSS,
    "dialogs.js" SCRIPT,
    "dom.js" SCRIPT,
    "events.js" SCRIPT,
    "fields.js" SCRIPT,
    "history.js" SCRIPT,
    "icon.svg" SVG,
    "links.js" SCRIPT,
    "main.js" SCRIPT,
    "measured.js" SCRIPT,
    "model.js" SCRIPT,
    "quantities.js" SCRIPT,
    "remove_dialog.js" SCRIPT,
    "slice.js" SCRIPT,
    "slice_dialog.js" SCRIPT,
    "slice_form.js" SCRIPT,
    "slices.js" SCRIPT,
    "token_dialog.js" SCRIPT,
    "undo.js" SCRIPT,
    "virtual_rows.js" SCRIPT,
    "worker.js" SCRIPT,
];

/// A route for each file. They need no token: they hold nothing but the page.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |routes, file| {
        let tag = tag(file.content);
        routes.route(
            file.path,
            get(move |request: Request| async move { answer(file, &tag, request.headers()) }),
        )
    })
}

/// The entity tag of a content.
fn tag(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let digits: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("\"{digits}\"")
}

fn answer(file: &File, tag: &str, asked: &HeaderMap) -> Response {
    let is_known = asked
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|known| known.trim() == tag));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        file.content.into_response()
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    for (name, value) in [
        (header::CONTENT_TYPE, file.kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folder_is_served_and_loaded_or_linked() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let names = std::fs::read_dir(folder).unwrap();
        let there: BTreeSet<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let served: BTreeSet<String> = FILES
            .iter()
            .map(|file| match file.path {
                "/" => "index.html".to_owned(),
                path => path[1..].to_owned(),
            })
            .collect();
        assert_eq!(there, served);
        let text: String = FILES
            .iter()
            .map(|file| String::from_utf8_lossy(file.content))
            .collect();
        for name in served.iter().filter(|name| *name != "index.html") {
            assert!(text.contains(&format!("{name}\"")), "nothing loads {name}");
        }
    }

    #[test]
    fn nothing_is_inline_and_nothing_is_of_another_place() {
        for file in FILES {
            let text = String::from_utf8_lossy(file.content);
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "https://",
                "style=",
                "onclick=",
            ] {
                assert!(!text.contains(word), "{} has {word}", file.path);
            }
            let addresses = text.matches("http://").count();
            let namespaces = text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(addresses, namespaces, "{}", file.path);
        }
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let file = &FILES[0];
        let mut asked = HeaderMap::new();
        let first = answer(file, &tag(file.content), &asked);
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
        asked.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(
            answer(file, &tag(file.content), &asked).status(),
            StatusCode::NOT_MODIFIED
        );
        assert_eq!(answer(file, "\"other\"", &asked).status(), StatusCode::OK);
    }
}
