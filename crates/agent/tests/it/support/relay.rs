//! A network between gateway and controller that can be cut: then nothing arrives, and nobody is told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Debug, Default)]
struct Shared {
    is_cut: AtomicBool,
    /// Connections that were made.
    connections: AtomicUsize,
}

pub struct Relay {
    pub url: String,
    shared: Arc<Shared>,
}

impl Relay {
    /// Between those who connect to it and the controller at `url`.
    pub fn start(url: &str) -> Self {
        let to = url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared: Arc<Shared> = Arc::default();
        let passing = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                passing.connections.fetch_add(1, Ordering::Relaxed);
                let server = TcpStream::connect(&to).unwrap();
                let (from_client, from_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                pass_on(from_client, server, Arc::clone(&passing));
                pass_on(from_server, client, Arc::clone(&passing));
            }
        });
        Self { url, shared }
    }

    /// What is sent from now on is lost, on every connection, for as long as that exists.
    pub fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::Relaxed);
    }

    /// Connections that are made from now on work.
    pub fn mend(&self) {
        self.shared.is_cut.store(false, Ordering::Relaxed);
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, shared: Arc<Shared>) {
    std::thread::spawn(move || {
        let (mut bytes, mut is_lost) = (vec![0; 65_536], false);
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            is_lost |= shared.is_cut.load(Ordering::Relaxed);
            if !is_lost && to.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
        if !is_lost {
            let _ = to.shutdown(std::net::Shutdown::Both);
        }
    });
}
