//! Requests without a token: only for this machine by its own names, and only from the controller's own page.
//!
//! A page of another site can make a browser send requests here. It cannot read the answers, but it need not: `fetch` with `no-cors` sends a `POST`
//! without asking first. Three things betray it, and each is refused alone:
//! - the authority, where the page reaches this machine through a name of its own (DNS rebinding);
//! - `Origin` (RFC 6454), which browsers send with every `POST` and every request that scripts may read;
//! - `Sec-Fetch-Site` (W3C Fetch Metadata), which a page cannot set. It also covers requests without `Origin`, such as images and links. Browsers send it
//!   to `https` and to loopback addresses only, and old ones never do, so its absence says nothing.

use crate::refusal::Refusal;
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Host and port that a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority(String);

impl Authority {
    /// Takes `:authority` of HTTP/2 (RFC 9113, section 8.3.1), the target of HTTP/1.1 where it is absolute (RFC 9112, section 3.2.2), or `Host`.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub(super) fn of(request: &Request) -> Result<Self, Refusal> {
        let target = request
            .uri()
            .authority()
            .map(|authority| authority.as_str().as_bytes());
        let hosts = request.headers().get_all(header::HOST);
        let mut stated = target
            .into_iter()
            .chain(hosts.iter().map(|host| host.as_bytes()));
        let first = stated.next().unwrap_or_default();
        let text = std::str::from_utf8(first).unwrap_or_default();
        if text.is_empty() || stated.any(|other| !other.eq_ignore_ascii_case(first)) {
            return Err(Refusal::malformed(
                "the request does not say for which host it is: send one `Host` (`:authority` in HTTP/2)",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// # Errors
    /// If it is no name of this machine.
    pub(super) fn check_loopback(&self) -> Result<(), Refusal> {
        let host = &self.0;
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let is_own = name.eq_ignore_ascii_case("localhost")
            || name
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        match is_own {
            true => Ok(()),
            false => Err(Refusal::new(
                421,
                "host",
                "The request is for another host",
                format!(
                    "the request is for {host:?}: this controller serves its own machine only, as `localhost` or `127.0.0.1`"
                ),
            )),
        }
    }

    /// # Errors
    /// If a browser says that a page of another origin asks.
    pub(super) fn check_page(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for origin in headers.get_all(header::ORIGIN) {
            let from = origin.to_str().unwrap_or_default();
            let is_own = from
                .split_once("://")
                .is_some_and(|(_, from)| from.eq_ignore_ascii_case(&self.0));
            if !is_own {
                return Err(foreign(origin.as_bytes()));
            }
        }
        for site in headers.get_all(SEC_FETCH_SITE) {
            if !matches!(site.as_bytes(), b"same-origin" | b"none") {
                return Err(foreign(site.as_bytes()));
            }
        }
        Ok(())
    }
}

fn foreign(origin: &[u8]) -> Refusal {
    let origin = origin.escape_ascii();
    Refusal::forbidden(format!(
        "a page of another site ({origin}) asks, and no token is needed here: open the controller's own page, or make tokens with `slicewise controller token add`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::HeaderValue;

    fn request(target: &str, headers: &[(HeaderName, &[u8])]) -> Request {
        let mut request = Request::builder().uri(target).body(Body::empty()).unwrap();
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(value).unwrap();
            request.headers_mut().append(name, value);
        }
        request
    }

    /// Status of the refusal; 0 if it is admitted.
    fn status(target: &str, headers: &[(HeaderName, &[u8])]) -> u16 {
        let request = request(target, headers);
        let checked = Authority::of(&request).and_then(|authority| {
            authority.check_loopback()?;
            authority.check_page(request.headers())
        });
        checked.map_or_else(|refusal| refusal.problem.status, |()| 0)
    }

    #[test]
    fn the_authority_is_stated_once_and_names_this_machine() {
        let host = |value: &'static str| (header::HOST, value.as_bytes());
        for (target, headers, expected) in [
            ("/", &[host("localhost:1")][..], 0),
            ("/", &[host("[::1]:1")], 0),
            ("/", &[host("127.0.0.2")], 0),
            ("https://LOCALHOST:1/", &[], 0),
            ("https://localhost:1/", &[host("localhost:1")], 0),
            ("/", &[], 400),
            ("/", &[host("")], 400),
            ("/", &[(header::HOST, b"localhost\xff")], 400),
            ("/", &[host("localhost"), host("evil.example")], 400),
            ("https://localhost:1/", &[host("evil.example")], 400),
            ("https://evil.example/", &[], 421),
            ("https://localhost@evil.example/", &[], 421),
            ("https://evil.example@localhost/", &[], 421),
            ("/", &[host("localhost.evil.example:1")], 421),
            ("/", &[host("10.0.0.1:1")], 421),
        ] {
            assert_eq!(status(target, headers), expected, "{target} {headers:?}");
        }
    }

    #[test]
    fn a_page_of_another_origin_is_refused_by_what_the_browser_says() {
        let (origin, site) = (header::ORIGIN, SEC_FETCH_SITE);
        for (name, value, expected) in [
            (&origin, &b"https://localhost:1"[..], 0),
            (&origin, b"https://localhost:2", 403),
            (&origin, b"https://evil.example", 403),
            (&origin, b"null", 403),
            (&origin, b"https://localhost:1\xff", 403),
            (&origin, b"", 403),
            (&site, b"same-origin", 0),
            (&site, b"none", 0),
            (&site, b"same-site", 403),
            (&site, b"cross-site", 403),
            (&site, b"\xff", 403),
        ] {
            let headers = [(name.clone(), value)];
            let found = status("https://localhost:1/", &headers);
            assert_eq!(found, expected, "{name}: {value:?}");
        }
        let twice: [(_, &[u8]); 2] = [
            (header::ORIGIN, b"https://localhost:1"),
            (header::ORIGIN, b"https://evil.example"),
        ];
        assert_eq!(status("https://localhost:1/", &twice), 403);
    }
}
