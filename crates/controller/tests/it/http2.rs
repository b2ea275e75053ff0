//! A client of HTTP/2, plain and over TLS: it sends what browsers would not.

use axum::body::Bytes;
use h2::client::SendRequest;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use slicewise_controller::TlsParams;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Sends one request on a connection of its own, and returns the status of its answer.
pub async fn status(
    address: SocketAddr,
    tls: Option<&TlsParams>,
    request: axum::http::Request<()>,
) -> u16 {
    let mut connection = connect(address, tls).await;
    let (answer, _) = connection.send_request(request, true).unwrap();
    answer.await.unwrap().status().as_u16()
}

/// A connection whose client takes nothing of any answer.
pub async fn connect_without_window(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    let shaken = builder.initial_window_size(0).handshake(stream).await;
    let (requests, connection) = shaken.unwrap();
    tokio::spawn(async { drop(connection.await) });
    requests.ready().await.unwrap()
}

/// A connection on which requests can be sent.
pub async fn connect(address: SocketAddr, tls: Option<&TlsParams>) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let Some(tls) = tls else {
        return shake_hands(stream).await;
    };
    // Where another test was first, that one's is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(&tls.certificate).unwrap();
    roots.add(certificate).unwrap();
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::IpAddress(address.ip().into());
    let connector = TlsConnector::from(Arc::new(config));
    shake_hands(connector.connect(name, stream).await.unwrap()).await
}

async fn shake_hands<S>(stream: S) -> SendRequest<Bytes>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    // It ends when the requests do, or the server closes it.
    tokio::spawn(async { drop(connection.await) });
    requests.ready().await.unwrap()
}
