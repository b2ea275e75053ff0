//! The gateway: an [`Engine`] with two interfaces, the monotonic clock, and a thread of its own.

mod control;
mod interface;
mod offloads;
mod reallocation;
mod reload;
mod status;
mod watch;

use crate::awake::Awake;
use crate::engine::{DirectionParams, Engine, EngineError, EngineParams, Round};
use crate::log;
use crate::metrics::{DirectionSnapshot, Exchange, LOOKED_AT_ONCE, Look, Server, Snapshot};
use crate::port::{ETHERNET_BYTES, TAG_BYTES};
use crate::sys::interface::Interfaces;
use crate::sys::poll::{PollSet, Waker};
use crate::sys::signals::{self, Signal, Signals};
use crate::sys::{heap, scheduling, time};
pub use control::{Answer, Answers, Control, Controlled, Ended, Request, control};
use interface::Interface;
pub use interface::{OpenError, PacketIo};
use reallocation::ReallocationThread;
use reload::{Reloader, Reloading};
use slicewise_model::ReallocatedPolicy;
use slicewise_units::{Duration, Instant, Way};
pub use status::{ControllerSnapshot, ControllerStatus};
use std::io;
use std::sync::Arc;
use watch::Watch;

/// Parameters of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayParams {
    /// The two interfaces it forwards between.
    pub interfaces: [String; 2],
    /// From the first to the second interface, and back.
    pub directions: [DirectionParams; 2],
    /// GatewayLoops that set rates of these policies. None beside a controller.
    pub reallocated: [Option<ReallocatedPolicy>; 2],
    /// How frames are received and sent.
    pub packet_io: PacketIo,
    /// Maximum frame memory, bytes.
    pub memory_bytes: u64,
    /// Where metrics are served, on the loopback interface; 0 is any port that is free, `None` nowhere.
    pub metrics_port: Option<u16>,
}

/// How the gateway waits for packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitMode {
    /// Never sleep: for machines with a processor to spare. Without real-time scheduling.
    pub busy_poll: bool,
    /// Keep the processors that this process may use from halting between packets ([`Awake`]): on a
    /// virtual machine, waking one takes longer than all the work of the gateway.
    pub keep_awake: bool,
}

/// Why a gateway could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The same interface twice.
    #[error("both interfaces are `{0}`: every frame would come back")]
    OneInterface(String),
    /// An interface cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The policies cannot be run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The port for metrics is taken.
    #[error("cannot serve metrics on 127.0.0.1:{port}: {error}")]
    Metrics {
        /// The port.
        port: u16,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The system does not work.
    #[error("{doing}: {error}")]
    System {
        /// Operation that was tried.
        doing: &'static str,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// The totals of a gateway that has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Frames handed to the interfaces.
    pub sent_frames: u64,
    /// Frames that still waited when the time to empty the queues was over.
    pub given_up_frames: u64,
}

/// How often interfaces are checked and closed ones retried.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait before retrying an interface that accepts no frame.
const BLOCKED_FOR: Duration = Duration::from_micros(50);
/// Sleeps shorter than this take longer than requested.
const SHORTEST_SLEEP: Duration = Duration::from_micros(2);
/// How long queues may take to empty when the gateway stops: nothing is received meanwhile.
const DRAIN: Duration = Duration::from_millis(20);
/// How often, at least, and how long a real-time thread rests, so that it does not starve the system.
const REST_EVERY: Duration = Duration::from_millis(10);
const REST: Duration = Duration::from_micros(200);

/// Control of slices.
pub trait ControlSlices: Send {
    /// Put in force what is to be so from the first frame on.
    fn restore(&mut self, engine: &mut Engine, now: Instant);

    /// Change slices while the gateway forwards, on a thread of its own. It ends when the gateway has stopped.
    fn run(self: Box<Self>, control: Control);
}

/// Control of the slices of a gateway.
pub struct Controller {
    /// It.
    pub slices: Box<dyn ControlSlices>,
    /// Takes the answers.
    pub answers: Answers,
    /// Its state, for metrics.
    pub status: Arc<ControllerStatus>,
}

/// Forward until SIGINT or SIGTERM. On SIGHUP, `load` is asked, on a thread of its own, for what to do
/// from then on. A `controller` may change slices meanwhile; a reload leaves those that it has added. Without one, loops of
/// the policies may set their rates; a reload begins with the rates as written.
///
/// # Errors
/// If it cannot start. An interface that fails later is retried until it is back.
pub fn run(
    params: &GatewayParams,
    wait: WaitMode,
    load: &mut (dyn FnMut() -> Result<GatewayParams, String> + Send),
    controller: Option<Controller>,
) -> Result<Stopped, GatewayError> {
    heap::keep_what_is_freed();
    let outcome = Gateway::start(params, wait, controller).and_then(|gateway| {
        let waker = Waker::new().map_err(system("cannot create an event"))?;
        std::thread::scope(|scope| gateway.run(&Reloader::start(scope, load, &waker)))
    });
    log::finish();
    outcome
}

/// Start the thread that changes slices, or policies. Nobody waits for its end: it may wait for a network.
fn start_control(
    answers: Answers,
    run: impl FnOnce(Control) + Send + 'static,
) -> Result<Controlled, GatewayError> {
    let (control, controlled) = control(answers).map_err(system("cannot create an event"))?;
    let thread = std::thread::Builder::new().name("control".to_owned());
    let started = thread.spawn(move || {
        // A gateway may be started under real-time scheduling, and forwarding must not be held up.
        if let Err(error) = scheduling::become_ordinary() {
            log::warn("control_thread_is_real_time", &[("reason", &error)]);
        }
        run(control);
    });
    started.map_err(system("cannot start a thread"))?;
    Ok(controlled)
}

struct Gateway {
    params: GatewayParams,
    wait: WaitMode,
    engine: Engine,
    ports: [Interface; 2],
    system: Interfaces,
    signals: Signals,
    exchange: Arc<Exchange>,
    look: Look,
    started: Instant,
    check_at: Instant,
    rested_at: Instant,
    is_real_time: bool,
    _awake: Option<Awake>,
    /// When queues must be empty, once it is stopping.
    stop_at: Option<Instant>,
    reloading: Reloading,
    watch: Watch,
    controlled: Controlled,
    status: Option<Arc<ControllerStatus>>,
}

fn system(doing: &'static str) -> impl Fn(io::Error) -> GatewayError {
    move |error| GatewayError::System { doing, error }
}

impl Gateway {
    fn start(
        params: &GatewayParams,
        wait: WaitMode,
        mut controller: Option<Controller>,
    ) -> Result<Self, GatewayError> {
        let [first, second] = &params.interfaces;
        if first == second {
            return Err(GatewayError::OneInterface(first.clone()));
        }
        // Before any other thread is there to be interrupted.
        let signals = Signals::new().map_err(system("cannot receive signals"))?;
        signals::ignore_broken_pipes();
        log::start();
        let system_interfaces = Interfaces::new().map_err(system("cannot open a socket"))?;
        let mut ports = [first, second].map(|name| Interface::new(name, params.packet_io));
        let mut largest = 0;
        for port in &mut ports {
            let mtu = port.find(&system_interfaces)?;
            largest = largest.max(mtu + ETHERNET_BYTES + 2 * TAG_BYTES);
        }
        let receive_queues = [0, 1].map(|side: usize| {
            let port = ports.get(side);
            port.map_or(0, |port| port.receive_queues(&system_interfaces))
        });
        let now = time::now();
        let engine_params = EngineParams {
            directions: params.directions.clone(),
            largest_frame: largest,
            receive_queues,
            memory_bytes: params.memory_bytes,
            adds_slices: controller.is_some(),
        };
        let mut engine = Engine::new(&engine_params, now)?;
        if let Some(controller) = &mut controller {
            controller.slices.restore(&mut engine, now);
        }
        watch::log_memory(&engine);
        for (side, port) in ports.iter_mut().enumerate() {
            port.set_budget(engine.port_budget(side));
        }
        let (memory, [first, second]) = (&*engine.memory(), &mut ports);
        std::thread::scope(|scope| {
            scope.spawn(|| first.bind(&system_interfaces, memory));
            second.bind(&system_interfaces, memory);
        });
        for port in &mut ports {
            port.open(&system_interfaces, engine.memory())?;
        }
        let exchange = Arc::new(Exchange::new().map_err(system("cannot create an event"))?);
        if let Some(port) = params.metrics_port {
            let server = Server::start(port, Arc::clone(&exchange))
                .map_err(|error| GatewayError::Metrics { port, error })?;
            log::info(
                "metrics",
                &[("address", &format!("127.0.0.1:{}", server.port()))],
            );
        }
        let status = controller
            .as_ref()
            .map(|controller| Arc::clone(&controller.status));
        let controlled = match controller {
            Some(Controller {
                slices, answers, ..
            }) => start_control(answers, |control| slices.run(control))?,
            None => {
                let (answers, thread) = ReallocationThread::new(params, &exchange, now);
                start_control(answers, |control| thread.run(&control))?
            }
        };
        let awake = wait.keep_awake.then(Awake::keep);
        let is_real_time = schedule(wait);
        Ok(Self {
            params: params.clone(),
            wait,
            engine,
            ports,
            system: system_interfaces,
            signals,
            exchange,
            look: Look::default(),
            started: now,
            check_at: now,
            rested_at: now,
            is_real_time,
            _awake: awake,
            stop_at: None,
            reloading: Reloading::default(),
            watch: Watch::default(),
            controlled,
            status,
        })
    }

    fn run(mut self, reloader: &Reloader<'_>) -> Result<Stopped, GatewayError> {
        log::info("started", &[("pid", &std::process::id())]);
        let mut waiting = PollSet::new();
        loop {
            let round = self.engine.poll(&mut self.ports, &mut time::now);
            self.on_failures(&round);
            let now = time::now();
            if now >= self.check_at || round.is_refused {
                self.check(now);
                self.on_signals(reloader);
                self.on_reloads(reloader);
            }
            self.advance(reloader, now);
            let is_asked = self.carry_out(now);
            if self.exchange.is_wanted() {
                self.look(now);
            }
            if let Some(stop_at) = self.stop_at
                && (self.engine.backlog() == 0 || now >= stop_at)
            {
                return Ok(self.finish(now));
            }
            let is_asked = is_asked || self.exchange.is_wanted();
            let is_idle = round.received == 0 && !round.is_unfinished && !is_asked;
            if is_idle && !self.wait.busy_poll {
                self.sleep(&mut waiting, reloader, round.is_blocked, now)?;
                if waiting.happened(0) {
                    self.on_signals(reloader);
                }
                if waiting.happened(2) {
                    self.on_reloads(reloader);
                }
                if waiting.happened(3) {
                    self.controlled.on_woken();
                }
            } else if self.is_real_time && now.saturating_since(self.rested_at) > REST_EVERY {
                waiting.clear();
                waiting.wait(REST).map_err(system("cannot sleep"))?;
                self.rested_at = time::now();
            }
        }
    }

    /// Wait until a frame arrives, a frame is due, or there is a request.
    fn sleep(
        &mut self,
        waiting: &mut PollSet,
        reloader: &Reloader<'_>,
        is_blocked: bool,
        now: Instant,
    ) -> Result<(), GatewayError> {
        let due = if is_blocked {
            Some(now.saturating_add(BLOCKED_FOR))
        } else {
            self.engine.poll_at()
        };
        let until = due.unwrap_or(Instant::MAX).min(self.check_at);
        let until = self.reloading.poll_at().map_or(until, |at| until.min(at));
        let timeout = until.saturating_since(now);
        waiting.clear();
        if timeout < SHORTEST_SLEEP {
            return Ok(());
        }
        waiting.add(self.signals.descriptor());
        waiting.add(self.exchange.waker().descriptor());
        waiting.add(reloader.descriptor());
        waiting.add(self.controlled.descriptor());
        if self.stop_at.is_none() {
            for descriptor in self.ports.iter().flat_map(Interface::descriptors) {
                waiting.add(descriptor);
            }
        }
        waiting.wait(timeout).map_err(system("cannot sleep"))?;
        self.rested_at = time::now();
        let fails = (4..)
            .take_while(|&i| i < waiting.len())
            .any(|i| waiting.failed(i));
        if fails {
            for port in &mut self.ports {
                port.on_error(self.engine.memory());
            }
        }
        Ok(())
    }

    /// Change slices as another thread asks; returns whether there is more to do.
    #[inline]
    fn carry_out(&mut self, now: Instant) -> bool {
        if self.reloading.holds_slices() {
            return false;
        }
        let commits = self.engine.commits();
        let is_asked = self.controlled.carry_out(&mut self.engine, now);
        if self.engine.commits() != commits {
            // Classes have other numbers.
            self.look = Look::default();
        }
        is_asked
    }

    fn on_failures(&mut self, round: &Round) {
        for (port, failed) in self.ports.iter_mut().zip(&round.failed) {
            if let Some(error) = failed {
                port.close(&error.to_string(), self.engine.memory());
            }
        }
    }

    /// Look after the interfaces: closed ones may be back, open ones gone.
    fn check(&mut self, now: Instant) {
        self.check_at = now.saturating_add(CHECK_INTERVAL);
        for port in &mut self.ports {
            port.check(&self.system, self.engine.memory());
        }
        let [first, second] = &self.ports;
        self.engine
            .set_own_addresses([first.address(), second.address()]);
        let links = self.params.directions.each_ref().map(|d| d.link);
        self.watch.look(&self.engine, links, &mut self.ports, now);
    }

    fn on_signals(&mut self, reloader: &Reloader<'_>) {
        while let Some(signal) = self.signals.next() {
            match signal {
                Signal::Stop => {
                    log::info("stopping", &[("waiting_frames", &self.engine.backlog())]);
                    self.engine.stop();
                    let now = time::now();
                    // Asked a second time, it does not wait for the queues.
                    let patience = if self.stop_at.is_some() {
                        Duration::ZERO
                    } else {
                        DRAIN
                    };
                    self.stop_at = Some(now.saturating_add(patience));
                }
                Signal::Reload => self.reload(reloader),
            }
        }
    }

    /// Look at the next classes for somebody who asks for metrics, and answer once that were all. Work: bounded.
    fn look(&mut self, now: Instant) {
        self.engine.count_unsent(&mut self.ports);
        if let Some(directions) = self.look.advance(&self.engine, LOOKED_AT_ONCE) {
            let snapshot = self.snapshot(directions, now);
            self.exchange.publish(snapshot);
        }
    }

    fn snapshot(&mut self, directions: [DirectionSnapshot; 2], now: Instant) -> Snapshot {
        let [first, second] = &mut self.ports;
        Snapshot {
            uptime: now.saturating_since(self.started),
            interfaces: [first.snapshot(), second.snapshot()],
            directions,
            reloads: self.reloading.reloads,
            refused_reloads: self.reloading.refused,
            memory_bytes: self.engine.memory_bytes(),
            free_bytes: self.engine.free_bytes(),
            refused_frames: self.engine.refused_frames(),
            lost_log_lines: log::lost_lines(),
            controller: self.status.as_ref().map(|status| status.snapshot()),
            reallocation: None,
        }
    }

    /// Stop, and leave the interfaces as they were found.
    fn finish(mut self, now: Instant) -> Stopped {
        let given_up_frames = self.engine.give_up(now);
        let [first, second] = &mut self.ports;
        std::thread::scope(|scope| {
            scope.spawn(|| first.shut());
            second.shut();
        });
        for port in &mut self.ports {
            port.restore(&self.system, self.engine.memory());
        }
        self.engine.count_unsent(&mut self.ports);
        let counters = Way::ALL.map(|way| self.engine.counters(way));
        let sent_frames = counters.iter().map(|counters| counters.sent_frames).sum();
        let fields: [(&str, &dyn std::fmt::Display); 2] = [
            ("sent_frames", &sent_frames),
            ("given_up_frames", &given_up_frames),
        ];
        log::info("stopped", &fields);
        Stopped {
            sent_frames,
            given_up_frames,
        }
    }
}

/// Use real-time scheduling if it is allowed and would not starve the system; returns whether it is used.
fn schedule(wait: WaitMode) -> bool {
    if wait.busy_poll {
        // Whoever started it may be real-time: one that never sleeps stands still for 50 ms a second then.
        if let Err(error) = scheduling::become_ordinary() {
            log::warn("scheduling", &[("reason", &error)]);
        }
        return false;
    }
    scheduling::without_timer_slack();
    match scheduling::become_real_time() {
        Ok(()) => {
            log::info("scheduling", &[("policy", &"SCHED_FIFO")]);
            true
        }
        Err(error) => {
            let help = "departures will be later under load; CAP_SYS_NICE allows real time";
            log::warn(
                "scheduling",
                &[
                    ("policy", &"SCHED_OTHER"),
                    ("reason", &error),
                    ("so", &help),
                ],
            );
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_never_sleeps_is_not_real_time_whoever_started_it() {
        // Without root it is not now, either.
        let _ = scheduling::become_real_time();
        let busy = WaitMode {
            busy_poll: true,
            ..WaitMode::default()
        };
        assert!(!schedule(busy));
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        // The 41st, of which the third is the first here; see proc_pid_stat(5).
        assert_eq!(fields.split(' ').nth(41 - 3), Some("0"));
    }
}
