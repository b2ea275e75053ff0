//! A page of another site, open in the browser of somebody who may change everything.

use super::*;
use slicewise_api::SliceState;
use std::io::Write as _;
use std::net::TcpListener;

/// Serves a page that sends `script` to the browser, on a port of its own; returns its address.
fn page(script: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            let mut head = BufReader::new(&connection).lines().map_while(Result::ok);
            let _ = head.find(String::is_empty);
            let page = format!("<!doctype html><title>waiting</title><script>{script}</script>");
            let _ = write!(
                connection,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            );
        }
    });
    format!("http://{address}/")
}

#[test]
fn a_page_of_another_site_reaches_the_controller_and_changes_nothing() {
    for tls in [false, true] {
        let Some(browser) = Browser::start(360, 740) else {
            return;
        };
        let sandbox = Sandbox::new();
        let mut more = Vec::new();
        if tls {
            sandbox.certify("127.0.0.1");
            more = vec![
                "--tls-certificate",
                "certificate.pem",
                "--tls-key",
                "key.pem",
            ];
        }
        let controller = Controller::start_with(sandbox, &more);
        announce(&controller.client());
        add(&controller.client(), &slice("gold", 5201, 20));
        // Generation 0 has no slices. Without `cors`, a browser asks nobody before it sends this.
        let send = format!(
            "fetch('{}/v1/generations/0/restore', {{method: 'POST', mode: 'no-cors'}}).then(() => document.title = 'answered')",
            controller.url
        );
        browser.open(&page(send));
        browser.wait_for("return document.title === 'answered'");
        let state = || controller.client().slice("gold").unwrap().state;
        assert_eq!(state(), SliceState::Admitted);
        // The controller's own page still may.
        browser.open(&controller.url);
        browser.wait_for_text("gold");
        let own = "return fetch('/v1/generations/0/restore', {method: 'POST'}).then((answer) => answer.status)";
        assert_eq!(browser.script(own), 200);
        assert_eq!(state(), SliceState::Draining);
    }
}
