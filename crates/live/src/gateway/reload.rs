//! Reloading beside the forwarding thread.
//!
//! Reading a configuration, checking and admitting it, and building queues and schedulers takes time
//! that no frame should wait. So another thread does that, and the forwarding thread only commits the
//! result. What is replaced goes back to that thread to be freed.

use super::GatewayParams;
use crate::engine::{EngineBasis, PreparedDirections};
use crate::log;
use crate::sys::poll::Waker;
use crate::sys::{scheduling, time};
use slicewise_dataplane::Replaced;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Scope;

/// Reads the configuration that is to be in force from now on.
pub(super) type Load<'a> = dyn FnMut() -> Result<GatewayParams, String> + Send + 'a;

/// A configuration that can be put in force.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) params: GatewayParams,
    pub(super) directions: PreparedDirections,
}

enum Request {
    Reload(Box<(GatewayParams, EngineBasis)>),
    Drop(Box<[Replaced; 2]>),
}

/// The forwarding thread's end.
pub(super) struct Reloader<'a> {
    requests: Sender<Request>,
    results: Receiver<Result<Reload, String>>,
    waker: &'a Waker,
    /// Reloads that are being prepared.
    pending: u32,
}

impl<'a> Reloader<'a> {
    /// Start the thread; it ends with the reloader.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        load: &'a mut Load<'a>,
        waker: &'a Waker,
    ) -> Self {
        let (requests, incoming) = mpsc::channel();
        let (outgoing, results) = mpsc::channel();
        scope.spawn(move || {
            // It inherits the scheduling of the forwarding thread, which it must not hold up.
            if let Err(error) = scheduling::become_ordinary() {
                log::warn("reload_thread_is_real_time", &[("reason", &error)]);
            }
            for request in incoming {
                match request {
                    Request::Reload(current) => {
                        let (params, basis) = *current;
                        if outgoing.send(prepare(load, &params, &basis)).is_err() {
                            return;
                        }
                        waker.wake();
                    }
                    Request::Drop(replaced) => drop(replaced),
                }
            }
        });
        Self {
            requests,
            results,
            waker,
            pending: 0,
        }
    }

    /// Have a change of `params` prepared.
    pub(super) fn request(&mut self, params: &GatewayParams, basis: EngineBasis) {
        let request = Request::Reload(Box::new((params.clone(), basis)));
        if self.requests.send(request).is_ok() {
            self.pending += 1;
        }
    }

    /// What has been prepared, or why it was refused.
    pub(super) fn next(&mut self) -> Option<Result<Reload, String>> {
        if self.pending == 0 {
            return None;
        }
        self.waker.reset();
        let result = self.results.try_recv().ok()?;
        self.pending -= 1;
        Some(result)
    }

    /// Free what was replaced.
    pub(super) fn drop_later(&self, replaced: [Replaced; 2]) {
        // Where the thread has ended, it is dropped here.
        let _ = self.requests.send(Request::Drop(Box::new(replaced)));
    }

    /// What to wait for, beside frames.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.waker.descriptor()
    }
}

fn prepare(
    load: &mut Load<'_>,
    before: &GatewayParams,
    basis: &EngineBasis,
) -> Result<Reload, String> {
    let params = load()?;
    let GatewayParams {
        interfaces,
        directions,
        packet_io,
        memory_bytes,
        metrics_port,
    } = &params;
    let changed = [
        ("interfaces", *interfaces != before.interfaces),
        ("packet_io", *packet_io != before.packet_io),
        ("memory", *memory_bytes != before.memory_bytes),
        ("metrics_port", *metrics_port != before.metrics_port),
    ];
    if let Some((what, _)) = changed.iter().find(|(_, changed)| *changed) {
        return Err(format!("changing `{what}` requires a restart"));
    }
    let directions = basis
        .prepare(directions, time::now())
        .map_err(|error| error.to_string())?;
    Ok(Reload { params, directions })
}
