//! Pages of other sites, without tokens: over HTTP/1.1 and HTTP/2, plain and over TLS.

use crate::http2;
use crate::support::{Server, TestStore, ask_with, certificate};
use axum::http::Request;
use slicewise_controller::{ServeParams, TlsParams};
use std::net::SocketAddr;

/// Statuses of `POST /v1/generations/0/restore` with each of `headers`, over HTTP/1.1 and over HTTP/2.
fn statuses(tls: Option<&TlsParams>, headers: &[(&str, &str)]) -> [u16; 2] {
    let store = TestStore::sqlite();
    let server = Server::with(&store, |params| ServeParams {
        tls: tls.cloned(),
        ..params
    });
    let address: SocketAddr = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let path = "/v1/generations/0/restore";
    let own = format!("{scheme}://{address}");
    let headers: Vec<(&str, String)> = headers
        .iter()
        .map(|&(name, value)| (name, value.replace("OWN", &own)))
        .collect();
    let authority = headers.iter().find(|(name, _)| *name == "host");
    let authority = authority.map_or(own.clone(), |(_, host)| format!("{scheme}://{host}"));
    let mut request = Request::post(format!("{authority}{path}"));
    for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
        request = request.header(*name, value);
    }
    let request = request.body(()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let second = runtime.block_on(http2::status(address, tls, request));
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    let authorities = tls.map(|tls| &*tls.certificate);
    let first = ask_with(authorities, &own, "POST", path, &headers, None).status;
    [first, second]
}

#[test]
fn a_page_of_another_site_changes_nothing_by_any_version_of_http() {
    let folder = tempfile::tempdir().unwrap();
    let tls = certificate(folder.path());
    if tls.is_none() {
        println!("openssl is missing: TLS is not tested");
    }
    for tls in std::iter::once(None).chain(tls.as_ref().map(Some)) {
        for (headers, expected) in [
            (&[][..], 200),
            (&[("origin", "OWN"), ("sec-fetch-site", "same-origin")], 200),
            (&[("origin", "https://evil.example")], 403),
            (&[("origin", "null")], 403),
            (&[("sec-fetch-site", "cross-site")], 403),
            (&[("sec-fetch-site", "same-site")], 403),
            (&[("host", "evil.example")], 421),
        ] {
            let found = statuses(tls, headers);
            assert_eq!(found, [expected; 2], "TLS {}: {headers:?}", tls.is_some());
        }
    }
}
