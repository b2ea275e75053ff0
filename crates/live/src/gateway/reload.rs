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
        }
    }

    /// Have a change of `params` prepared.
    pub(super) fn request(&self, params: &GatewayParams, basis: EngineBasis) {
        let request = Request::Reload(Box::new((params.clone(), basis)));
        // Where the thread has ended, nothing is reloaded any more.
        let _ = self.requests.send(request);
    }

    /// What has been prepared, or why it was refused.
    pub(super) fn next(&self) -> Option<Result<Reload, String>> {
        // Before the look: whoever is woken later finds something. And every time: the thread wakes
        // after it has answered, so that the last call may come after an answer was taken.
        self.waker.reset();
        self.results.try_recv().ok()
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

#[cfg(test)]
mod tests {
    use super::Reloader;
    use crate::engine::{DirectionParams, Engine, EngineParams};
    use crate::gateway::{GatewayParams, PacketIo};
    use crate::sys::poll::{PollSet, Waker};
    use slicewise_model::{Discipline, PolicySpec, Rate};
    use slicewise_units::{Accounting, BitRate, Duration, Instant};

    #[test]
    fn a_wake_that_comes_after_its_answer_was_taken_wakes_once() {
        let link = Rate {
            rate: BitRate::new(1_000_000),
            accounting: Accounting::L2,
        };
        let policy = PolicySpec {
            name: "p".to_owned(),
            classes: Vec::new(),
            discipline: Discipline::MinimumShare,
            guaranteed: None,
            queues: Vec::new(),
        };
        let direction = DirectionParams {
            link,
            policy: policy.resolve(link.rate).unwrap(),
            seed: 1,
        };
        let params = GatewayParams {
            interfaces: ["a".to_owned(), "b".to_owned()],
            directions: [direction.clone(), direction],
            packet_io: PacketIo::AfPacket,
            memory_bytes: 8 << 20,
            metrics_port: None,
        };
        let engine = EngineParams {
            directions: params.directions.clone(),
            largest_frame: 1_522,
            receive_queues: [0; 2],
            memory_bytes: params.memory_bytes,
            adds_slices: false,
        };
        let engine = Engine::new(&engine, Instant::ZERO).unwrap();
        let waker = Waker::new().unwrap();
        let mut load = || Err("no file".to_owned());
        std::thread::scope(|scope| {
            let reloader = Reloader::start(scope, &mut load, &waker);
            reloader.request(&params, engine.basis());
            let answer = loop {
                if let Some(answer) = reloader.next() {
                    break answer;
                }
                std::thread::yield_now();
            };
            assert_eq!(answer.unwrap_err(), "no file");
            waker.wake();
            let mut waiting = PollSet::new();
            let mut is_woken = || {
                waiting.clear();
                waiting.add(reloader.descriptor());
                waiting.wait(Duration::from_millis(50)).unwrap();
                waiting.happened(0)
            };
            assert!(is_woken());
            assert!(reloader.next().is_none());
            assert!(!is_woken(), "it would never sleep again");
        });
    }
}
