//! Applications of ours over real sockets: the logic that the simulator runs, too, with a thread for each source.
//!
//! The thread is in the namespace of the end that opens connections. It also has the sockets of the other end, except
//! where that is a real server.

mod ends;
mod engine;
pub(crate) mod http;

use engine::Engine;
use slicewise_applications::{Application, Start};
use slicewise_live::sys::tcp::{self, TcpOptions};
use slicewise_live::sys::{limits, namespace, scheduling};
use slicewise_stats::application::FailureCount;
use slicewise_traffic::application::{ApplicationParams, ServerParams};
use slicewise_units::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Exchange of one source with its peer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) params: ApplicationParams,
    /// When it begins, and begins nothing new, on the monotonic clock.
    pub(crate) start: Start,
    pub(crate) stop: Instant,
    pub(crate) seed: u64,
    /// Where the first connection is opened; the others have the ports above.
    pub(crate) local: SocketAddr,
    /// Where all go to.
    pub(crate) remote: SocketAddr,
    pub(crate) options: TcpOptions,
    /// Server that answers, if there is one.
    pub(crate) server: Option<ServerParams>,
}

/// Result of the exchange.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) application: Application,
    pub(crate) failures: Vec<FailureCount>,
}

/// A running thread. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Exchanging {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Ended>>>,
}

/// Where the ends are: names of network namespaces, or, without, that of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) opening: Option<&'a str>,
    /// `None` where another program listens.
    pub(crate) listening: Option<Option<&'a str>>,
}

impl Exchanging {
    /// Listen, and begin at the start that is stated.
    pub(crate) fn start(exchange: Exchange, places: Places<'_>) -> io::Result<Self> {
        // Both ends of thousands of connections. Where there are too few, opening fails, which is counted.
        let _ = limits::raise_descriptors();
        let listener = match places.listening {
            Some(listening) => Some(namespace::open_in(listening, || {
                tcp::listen(exchange.remote, exchange.options)
            })?),
            None => None,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let ordered = Arc::clone(&stop);
        let opening = places.opening.map(str::to_owned);
        let work = move || {
            // If not permitted, its figures will show it.
            let _ = scheduling::become_real_time();
            scheduling::without_timer_slack();
            let (start, end) = (exchange.start, exchange.stop);
            let application = Application::new(&exchange.params, start, end, exchange.seed);
            let run = || {
                let engine = Engine::new(exchange, application, listener)?;
                engine.run(&|| ordered.load(Ordering::Relaxed))
            };
            match opening {
                Some(name) => namespace::within(&name, run)?,
                None => run(),
            }
        };
        let thread = thread::Builder::new()
            .name("application".to_owned())
            .spawn(work)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Returns true if it has ended or failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// End it, with what is under way.
    pub(crate) fn finish(mut self) -> io::Result<Option<Ended>> {
        self.wait()
    }

    fn wait(&mut self) -> io::Result<Option<Ended>> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else {
            return Ok(None);
        };
        let ended = thread.join();
        ended
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map(Some)
    }
}

impl Drop for Exchanging {
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

#[cfg(test)]
mod tests;
