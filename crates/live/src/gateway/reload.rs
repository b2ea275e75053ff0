//! Reloading beside the forwarding thread.
//!
//! Reading a configuration, checking and admitting it, and building queues and schedulers takes time
//! that no frame should wait. So another thread does that, and the forwarding thread only commits the
//! result. What is replaced goes back to that thread to be freed. A configuration that
//! [differs in single slices alone](slicewise_dataplane::Basis::diff) is not committed: these change one by one, between frames.

use super::{Gateway, GatewayParams, watch};
use crate::engine::{EngineBasis, PreparedDirections, Progress, StepwiseChange};
use crate::log;
use crate::metrics::Look;
use crate::sys::poll::Waker;
use crate::sys::{scheduling, time};
use slicewise_units::{BothWays, Duration, Instant};
use std::fmt::Display;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Scope;

/// Reads the configuration that is to be in force from now on.
pub(super) type Load<'a> = dyn FnMut() -> Result<GatewayParams, String> + Send + 'a;

/// Between steps: a thread that did not sleep would keep its processor from handing frames to it.
const PAUSE: Duration = Duration::from_micros(20);
/// Time after which a step that is refused for now is tried again.
const RETRY: Duration = Duration::from_micros(100);
/// The policy is committed as a whole if a step is refused after so long: a slice that was removed may take minutes to send what it has
/// waiting, and nobody else may change slices meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

/// A configuration that can be put in force.
#[derive(Debug)]
pub(super) struct Reload {
    params: GatewayParams,
    change: PreparedChange,
    /// Of what it is prepared for.
    versions: BothWays<u64>,
}

#[derive(Debug)]
enum PreparedChange {
    BySlice(Box<StepwiseChange>),
    Whole(Box<PreparedDirections>),
}

enum Request {
    Reload(Box<Current>),
    Drop(Box<dyn Send>),
}

/// Configuration in force, for which another is prepared.
struct Current {
    params: GatewayParams,
    basis: EngineBasis,
    /// One that was read before, and is to be put in force as a whole.
    whole: Option<GatewayParams>,
}

/// Reloads of a gateway.
#[derive(Debug, Default)]
pub(super) struct Reloading {
    /// Number of reloads put in force.
    pub(super) reloads: u64,
    /// Number of refused reloads.
    pub(super) refused: u64,
    /// It is being carried out.
    stepwise: Option<Stepwise>,
    /// Another was asked for meanwhile.
    is_asked: bool,
    /// One that had become stale is being prepared again: slices must not change.
    is_held: bool,
    /// Some slices have changed for one that is not in force as a whole.
    is_begun: bool,
}

/// A reload that is carried out slice by slice.
#[derive(Debug)]
struct Stepwise {
    params: GatewayParams,
    change: Box<StepwiseChange>,
    /// Steps in all.
    slices: usize,
    /// Frames that waited at its beginning.
    waiting: u32,
    /// When it began.
    began_at: Instant,
    /// When to go on.
    at: Instant,
}

impl Reloading {
    /// Nobody else may change slices.
    pub(super) const fn holds_slices(&self) -> bool {
        self.is_held || self.stepwise.is_some()
    }

    /// When to go on with one that is being carried out.
    pub(super) fn poll_at(&self) -> Option<Instant> {
        self.stepwise.as_ref().map(|stepwise| stepwise.at)
    }
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
                        let prepared = prepare(load, &current);
                        // First: a slice that changes is copied as long as a basis has it.
                        drop(current);
                        if outgoing.send(prepared).is_err() {
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

    /// Have a change of `params` prepared: to what is read, or to `whole`.
    fn request(&self, params: &GatewayParams, basis: EngineBasis, whole: Option<GatewayParams>) {
        let request = Request::Reload(Box::new(Current {
            params: params.clone(),
            basis,
            whole,
        }));
        // Where the thread has ended, nothing is reloaded any more.
        let _ = self.requests.send(request);
    }

    /// Returns what has been prepared, or why it was refused.
    fn next(&self) -> Option<Result<Reload, String>> {
        // Before the look: whoever is woken later finds something. And every time: the thread wakes
        // after it has answered, so that the last call may come after an answer was taken.
        self.waker.reset();
        self.results.try_recv().ok()
    }

    /// Free what was replaced.
    fn drop_later(&self, replaced: impl Send + 'static) {
        // Where the thread has ended, it is dropped here.
        let _ = self.requests.send(Request::Drop(Box::new(replaced)));
    }

    /// Descriptor to wait for, beside frames.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.waker.descriptor()
    }
}

impl Gateway {
    /// Have the configuration read again.
    pub(super) fn reload(&mut self, reloader: &Reloader<'_>) {
        if self.reloading.stepwise.is_some() {
            self.reloading.is_asked = true;
        } else {
            reloader.request(&self.params, self.engine.basis(), None);
        }
    }

    /// Put in force what has been prepared.
    pub(super) fn on_reloads(&mut self, reloader: &Reloader<'_>) {
        while let Some(prepared) = reloader.next() {
            if self.reloading.stepwise.is_some() {
                self.reloading.is_asked = true;
                reloader.drop_later(prepared);
                continue;
            }
            self.reloading.is_held = false;
            match prepared {
                Ok(reload) if reload.versions != self.engine.versions() => {
                    // Two were asked for at once, or a slice was changed: this one was prepared before.
                    self.reloading.is_held = true;
                    reloader.drop_later(reload);
                    reloader.request(&self.params, self.engine.basis(), None);
                }
                Ok(reload) => self.put_in_force(reload, reloader),
                Err(reason) => {
                    self.reloading.refused += 1;
                    let what = if self.reloading.is_begun {
                        "what has not changed yet stays as it is"
                    } else {
                        "the previous configuration stays in force"
                    };
                    log::warn("reload_refused", &[("reason", &reason), ("so", &what)]);
                    if std::mem::take(&mut self.reloading.is_asked) {
                        self.reload(reloader);
                    }
                }
            }
        }
    }

    fn put_in_force(&mut self, reload: Reload, reloader: &Reloader<'_>) {
        let now = time::now();
        let waiting = self.engine.backlog();
        match reload.change {
            PreparedChange::Whole(directions) => {
                if let Ok(replaced) = self.engine.commit(*directions, now) {
                    reloader.drop_later(replaced);
                    // Classes have other numbers.
                    self.look = Look::default();
                    let lost = waiting.saturating_sub(self.engine.backlog());
                    let fields: [(&str, &dyn Display); 2] =
                        [("waiting_frames", &waiting), ("lost_frames", &lost)];
                    self.on_reloaded(reload.params, reloader, &fields);
                }
            }
            PreparedChange::BySlice(change) => {
                self.reloading.stepwise = Some(Stepwise {
                    params: reload.params,
                    slices: change.remaining(),
                    change,
                    waiting,
                    began_at: now,
                    at: now,
                });
            }
        }
    }

    /// Go on with a reload that is carried out slice by slice. Work: bounded.
    pub(super) fn advance(&mut self, reloader: &Reloader<'_>, now: Instant) {
        let Some(stepwise) = &mut self.reloading.stepwise else {
            return;
        };
        if now < stepwise.at {
            return;
        }
        let progress = self.engine.advance(&mut stepwise.change, now);
        let is_stuck = now.saturating_since(stepwise.began_at) >= PATIENCE;
        match progress {
            Ok(Progress::More) => {
                stepwise.at = now.saturating_add(PAUSE);
                return;
            }
            Ok(Progress::Waits(_)) if !is_stuck => {
                stepwise.at = now.saturating_add(RETRY);
                return;
            }
            _ => {}
        }
        let Some(stepwise) = self.reloading.stepwise.take() else {
            return;
        };
        let is_begun = stepwise.change.remaining() < stepwise.slices;
        reloader.drop_later(stepwise.change);
        if let Ok(Progress::Waits(refused)) | Err(refused) = progress {
            let what = "the whole policy is put in force";
            log::warn("slices_not_changed", &[("reason", &refused), ("so", &what)]);
            self.reloading.is_held = true;
            self.reloading.is_begun |= is_begun;
            reloader.request(&self.params, self.engine.basis(), Some(stepwise.params));
        } else {
            let fields: [(&str, &dyn Display); 2] = [
                ("slice_changes", &stepwise.slices),
                ("waiting_frames", &stepwise.waiting),
            ];
            self.on_reloaded(stepwise.params, reloader, &fields);
        }
    }

    fn on_reloaded(
        &mut self,
        params: GatewayParams,
        reloader: &Reloader<'_>,
        fields: &[(&str, &dyn Display)],
    ) {
        reloader.drop_later(std::mem::replace(&mut self.params, params));
        self.controlled.on_reloaded(&self.params);
        watch::log_memory(&self.engine);
        self.reloading.reloads += 1;
        self.reloading.is_begun = false;
        log::info("reloaded", fields);
        if std::mem::take(&mut self.reloading.is_asked) {
            self.reload(reloader);
        }
    }
}

fn prepare(load: &mut Load<'_>, current: &Current) -> Result<Reload, String> {
    let Current {
        params: before,
        basis,
        whole,
    } = current;
    let params = match whole {
        Some(params) => params.clone(),
        None => load()?,
    };
    let GatewayParams {
        interfaces,
        directions,
        reallocated: _,
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
    let stepwise = match whole {
        Some(_) => None,
        None => basis.stepwise(&before.directions, directions),
    };
    let change = match stepwise {
        Some(change) => PreparedChange::BySlice(Box::new(change)),
        None => {
            let prepared = basis.prepare(directions, time::now());
            PreparedChange::Whole(Box::new(prepared.map_err(|error| error.to_string())?))
        }
    };
    Ok(Reload {
        params,
        change,
        versions: basis.versions(),
    })
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
            policy: policy.resolve(link.rate).unwrap().into(),
            seed: 1,
        };
        let params = GatewayParams {
            interfaces: ["a".to_owned(), "b".to_owned()],
            directions: [direction.clone(), direction],
            reallocated: [None, None],
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
            reloader.request(&params, engine.basis(), None);
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
