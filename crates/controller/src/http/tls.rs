//! TLS: certificate and key, and the ones that replace them while the controller runs.

use super::ServeError;
use crate::log;
use axum_server::tls_rustls::RustlsConfig;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::Signal;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Certificate and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsParams {
    /// The certificate, and those between it and its authority (PEM).
    pub certificate: PathBuf,
    /// Its key (PEM).
    pub key: PathBuf,
}

/// Contents of the two files; empty for one that cannot be read.
type Contents = [Vec<u8>; 2];

impl TlsParams {
    fn contents(&self) -> Contents {
        [&self.certificate, &self.key].map(|file| std::fs::read(file).unwrap_or_default())
    }
}

pub(super) async fn load(params: &TlsParams) -> Result<RustlsConfig, ServeError> {
    // Where another part of the process has installed one, that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = RustlsConfig::from_pem_file(&params.certificate, &params.key).await;
    config.map_err(|source| ServeError::Tls {
        certificate: params.certificate.display().to_string(),
        source,
    })
}

/// Takes a certificate that replaces another one, at SIGHUP and when the files change. Connections keep the one that they began with.
pub(super) async fn follow(tls: Option<(TlsParams, RustlsConfig)>, mut hangup: Signal) {
    let Some((params, config)) = tls else {
        // There is nothing to read again, and the signal ends nothing.
        while hangup.recv().await.is_some() {}
        return;
    };
    let mut seen = params.contents();
    loop {
        let is_asked = tokio::select! {
            asked = hangup.recv() => asked.is_some(),
            () = tokio::time::sleep(LOOK_EVERY) => false,
        };
        let contents = params.contents();
        if contents == seen && !is_asked {
            continue;
        }
        reload(&params.certificate, &config, &contents).await;
        seen = contents;
    }
}

async fn reload(file: &Path, config: &RustlsConfig, [certificate, key]: &Contents) {
    let file = file.display();
    match config
        .reload_from_pem(certificate.clone(), key.clone())
        .await
    {
        Ok(()) => log::info("certificate_read", &[("file", &file)]),
        // Where one file was replaced before the other, the next look finds both.
        Err(error) => log::warn(
            "certificate_not_read",
            &[("file", &file), ("reason", &error)],
        ),
    }
}
