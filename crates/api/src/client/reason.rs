//! Why a connection failed, in words for who has to mend it.

use rustls::CertificateError;
use std::io;

/// Reason why a request failed, and what to do about it where that is known. `is_https`: TLS was spoken.
pub(super) fn of_request(error: &ureq::Error, is_https: bool) -> String {
    let text = match error {
        ureq::Error::Io(error) => tls(error).map(str::to_owned),
        ureq::Error::Protocol(_) if !is_https => Some(
            "it does not speak HTTP: if it speaks TLS, use https:// instead of http://".to_owned(),
        ),
        _ => None,
    };
    text.unwrap_or_else(|| of_answer(error))
}

/// Reason why an answer did not come whole.
pub(super) fn of_answer(error: &impl std::error::Error) -> String {
    let text = without_links(&error.to_string());
    format!("{text}; is `slicewise controller` running there?")
}

/// The text without addresses of a library's pages.
fn without_links(text: &str) -> String {
    let is_link = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    let words: Vec<&str> = text.split(' ').filter(|word| !is_link(word)).collect();
    words.join(" ").trim_end_matches([':', ' ']).to_owned()
}

fn tls(error: &io::Error) -> Option<&'static str> {
    let mut source = error
        .get_ref()
        .map(|inner| inner as &(dyn std::error::Error + 'static));
    while let Some(inner) = source {
        if let Some(error) = inner.downcast_ref::<rustls::Error>() {
            return of_tls(error);
        }
        source = inner.source();
    }
    None
}

fn of_tls(error: &rustls::Error) -> Option<&'static str> {
    match error {
        rustls::Error::InvalidMessage(_) => {
            Some("it does not speak TLS: use http:// instead of https://")
        }
        rustls::Error::InvalidCertificate(error) => of_certificate(error),
        _ => None,
    }
}

fn of_certificate(error: &CertificateError) -> Option<&'static str> {
    match error {
        // Another one of the same name signs with another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Some(
            "its certificate is signed by no authority that is trusted here: state the certificate of its authority (`--authorities FILE`; \
             `certificate_authority` of a gateway), or its own if it signs itself",
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Some(
                "its certificate is for other names than the one in the address: use one of those, or make it with the address in it \
             (`openssl req -x509 … -addext subjectAltName=IP:192.0.2.1`)",
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Some(
            "its certificate has expired: renew it; the controller reads the new file on its own",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Some(
            "its certificate is not valid yet: compare the clocks of both machines, or make it anew",
        ),
        // The library that checks certificates has no name for it here.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            Some(
                "its certificate is that of an authority, and a server needs one of its own, although `openssl req -x509` makes the former: make it with \
             `-addext basicConstraints=critical,CA:FALSE`, and state it as its own authority",
            )
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_libraries_are_left_out() {
        let error = "io: peer closed connection without sending TLS close_notify: https://docs.rs/rustls/latest/a#b";
        insta::assert_snapshot!(without_links(error), @"io: peer closed connection without sending TLS close_notify");
        let inside = "see https://a.example/b, and c";
        insta::assert_snapshot!(without_links(inside), @"see and c");
    }
}
