//! TLS: certificates that are served, renewed, refused and explained.

use crate::support::{Server, TestStore, certificate, certificate_for, params, token};
use slicewise_api::{Client, ClientParams};
use slicewise_controller::{ServeParams, TlsParams, run};
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn tls_is_served_and_a_certificate_of_others_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(tls) = certificate(folder.path()) else {
        println!("openssl is missing: TLS is not tested");
        return;
    };
    let store = TestStore::sqlite();
    let server = Server::with(&store, |params| ServeParams {
        tls: Some(tls.clone()),
        ..params
    });
    let secret = token(&store, "admin", "admin");
    let client = |authorities| {
        let params = ClientParams {
            url: server.url.replace("http://", "https://"),
            token: Some(secret.clone()),
            authorities,
        };
        Client::new(&params).unwrap()
    };
    let trusting = client(Some(tls.certificate.clone()));
    assert_eq!(trusting.tokens().unwrap().len(), 1);
    let other = tempfile::tempdir().unwrap();
    let other = certificate(other.path()).map(|other| client(Some(other.certificate)));
    let refused = other.unwrap().links().unwrap_err().to_string();
    assert!(refused.contains("certificate"), "{refused}");
}

#[test]
fn what_is_wrong_with_tls_is_said_with_what_to_do() {
    let folders: [_; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let made = [
        certificate_for(folders[0].path(), "127.0.0.1", "CA:FALSE"),
        certificate_for(folders[1].path(), "127.0.0.1", "CA:TRUE"),
        certificate_for(folders[2].path(), "192.0.2.1", "CA:FALSE"),
    ];
    let [Some(own), Some(authority), Some(other)] = made else {
        println!("openssl is missing: TLS is not tested");
        return;
    };
    let said = |tls: Option<&TlsParams>, scheme: &str, trusted: Option<&TlsParams>| {
        let store = TestStore::sqlite();
        let server = Server::with(&store, |params| ServeParams {
            tls: tls.cloned(),
            ..params
        });
        let client = Client::new(&ClientParams {
            url: server.url.replace("http://", scheme),
            token: None,
            authorities: trusted.map(|tls| tls.certificate.clone()),
        });
        let error = client.unwrap().links().unwrap_err().to_string();
        let port = server.url.rsplit(':').next().unwrap();
        error.replace(port, "PORT")
    };
    let (http, https) = ("http://", "https://");
    let texts = [
        said(Some(&own), https, Some(&other)),
        said(Some(&authority), https, Some(&authority)),
        said(Some(&other), https, Some(&other)),
        said(Some(&own), http, None),
        said(None, https, Some(&own)),
    ];
    insta::assert_snapshot!(texts.join("\n"), @"
    the controller at https://127.0.0.1:PORT cannot be reached: its certificate is signed by no authority that is trusted here: state the certificate of its authority (`--authorities FILE`; `certificate_authority` of a gateway), or its own if it signs itself
    the controller at https://127.0.0.1:PORT cannot be reached: its certificate is that of an authority, and a server needs one of its own, although `openssl req -x509` makes the former: make it with `-addext basicConstraints=critical,CA:FALSE`, and state it as its own authority
    the controller at https://127.0.0.1:PORT cannot be reached: its certificate is for other names than the one in the address: use one of those, or make it with the address in it (`openssl req -x509 … -addext subjectAltName=IP:192.0.2.1`)
    http://127.0.0.1:PORT does not answer as a controller does: HTTP status 400 Bad Request: this port speaks TLS: use https:// instead of http://
    the controller at https://127.0.0.1:PORT cannot be reached: it does not speak TLS: use http:// instead of https://
    ");
}

#[test]
fn a_renewed_certificate_is_served_while_the_controller_runs_and_a_wrong_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let Some(tls) = certificate(folder.path()) else {
        println!("openssl is missing: TLS is not tested");
        return;
    };
    let renewed = tempfile::tempdir().unwrap();
    let renewed = certificate(renewed.path()).unwrap();
    let store = TestStore::sqlite();
    let server = Server::with(&store, |params| ServeParams {
        tls: Some(tls.clone()),
        ..params
    });
    let url = server.url.replace("http://", "https://");
    let is_trusted = |certificate: &Path| {
        let client = Client::new(&ClientParams {
            url: url.clone(),
            token: None,
            authorities: Some(certificate.to_owned()),
        });
        client.unwrap().links().is_ok()
    };
    let first = folder.path().join("first.pem");
    std::fs::copy(&tls.certificate, &first).unwrap();
    assert!(is_trusted(&first) && !is_trusted(&renewed.certificate));
    // One file comes before the other: the old pair is served until both are there.
    std::fs::copy(&renewed.certificate, &tls.certificate).unwrap();
    std::thread::sleep(Duration::from_secs(6));
    assert!(is_trusted(&first));
    std::fs::copy(&renewed.key, &tls.key).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !is_trusted(&renewed.certificate) {
        assert!(Instant::now() < until, "the renewed one is not served");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(!is_trusted(&first));
}

#[test]
fn a_client_that_speaks_http_to_a_port_of_tls_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(tls) = certificate(folder.path()) else {
        println!("openssl is missing: TLS is not tested");
        return;
    };
    let store = TestStore::sqlite();
    let server = Server::with(&store, |params| ServeParams {
        tls: Some(tls.clone()),
        ..params
    });
    let answer = server.ask("GET", "/v1/links", &[], None);
    insta::assert_snapshot!(format!("{} {}", answer.status, answer.text), @"400 this port speaks TLS: use https:// instead of http://");
}

#[test]
fn a_certificate_that_cannot_be_read_is_named() {
    let store = TestStore::sqlite();
    let mut params = params("127.0.0.1:0".parse().unwrap());
    params.tls = Some(TlsParams {
        certificate: "/nonexistent/certificate.pem".into(),
        key: "/nonexistent/key.pem".into(),
    });
    let refused = run(&store.location, &params).unwrap_err();
    assert!(refused.is_mistake());
    assert!(
        refused.to_string().contains("/nonexistent/certificate.pem"),
        "{refused}"
    );
}
