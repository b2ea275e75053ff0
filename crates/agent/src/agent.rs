//! The thread that decides.

use crate::counters::{self, Counters};
use crate::decisions::Decisions;
use crate::mailbox::Mailbox;
use crate::reconcile::{Metered, Reconcile, Reconciler};
use crate::refusals::RefusalLog;
use crate::session::{self, AgentParams, Announcement, Event, Followed};
use crate::store::{Opened, Record, StateError, Store};
use crate::terms;
use slicewise_api::{Acknowledgement, CounterReport, Desired, GatewayAnnouncement};
use slicewise_live::DirectionParams;
use slicewise_live::engine::{Engine, FlowsCounted};
use slicewise_live::gateway::{
    Answer, Control, ControlSlices, Controller, ControllerStatus, Ended, Request,
};
use slicewise_live::log;
use slicewise_live::sys::time;
use slicewise_units::{Duration, Instant, Way};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

/// How often counters are reported.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// When to try again to write to a disk that was full.
const WRITE_AGAIN: Duration = Duration::from_secs(1);
/// Events that are taken together before the disk is written to.
const MOST_TOGETHER: usize = 4096;
/// Slices whose flows are counted at a time.
const MOST_FLOWS_WANTED: usize = 8;

/// An agent that has read its state.
#[derive(Debug)]
pub struct Agent {
    params: AgentParams,
    directions: [DirectionParams; 2],
    store: Store,
    /// The generation that is on the disk.
    after: u64,
    /// The slices that are refused, as the disk has them.
    refused: BTreeSet<String>,
    reconciler: Box<dyn Reconcile>,
}

/// An agent, and what it is told.
struct Connected {
    agent: Agent,
    events: Sender<Event>,
    incoming: Receiver<Event>,
    status: Arc<ControllerStatus>,
}

impl Agent {
    /// Read the state of the gateway whose directions these are.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn open(params: AgentParams, directions: [DirectionParams; 2]) -> Result<Self, StateError> {
        let Opened {
            store,
            kept,
            warning,
        } = Store::open(&params.state, &params.name, &params.link)?;
        if let Some(warning) = warning {
            let path = params.state.display();
            log::warn("state", &[("path", &path), ("problem", &warning)]);
        }
        let (after, refused) = (kept.generation, kept.refused.clone());
        let (link, both) = (&params.link, directions.clone());
        let reconciler: Box<dyn Reconcile> =
            match both.iter().all(|of| terms::is_metered(&of.policy)) {
                true => Box::new(Metered::new(link, both, kept)),
                false => Box::new(Reconciler::new(link, both, kept)),
            };
        Ok(Self {
            after,
            refused,
            reconciler,
            params,
            directions,
            store,
        })
    }

    /// Returns the controller that the gateway runs beside its forwarding thread.
    #[must_use]
    pub fn into_controller(self) -> Controller {
        let (events, incoming) = channel();
        let answered = events.clone();
        let status = Arc::new(ControllerStatus::default());
        Controller {
            status: Arc::clone(&status),
            // Where the agent has ended, nobody wants the answers.
            answers: Box::new(move |answer| drop(answered.send(Event::Answer(answer)))),
            slices: Box::new(Connected {
                agent: self,
                events,
                incoming,
                status,
            }),
        }
    }

    fn run(
        self,
        control: &Control,
        (events, incoming): (&Sender<Event>, &Receiver<Event>),
        status: Arc<ControllerStatus>,
    ) {
        let announced = match announcement(&self.params.link, &self.directions) {
            Ok(announced) => Arc::new(Announcement::new(announced)),
            Err(problem) => {
                log::warn("controller_unused", &[("reason", &problem)]);
                return;
            }
        };
        let (now, after) = (time::now(), self.after);
        let instance = self.store.instance().to_owned();
        let followed = Arc::new(Followed::new(self.store.followed()));
        let mut deciding = Deciding {
            control,
            reconciler: self.reconciler,
            store: self.store,
            unwritten: Vec::new(),
            write_at: None,
            refused: self.refused,
            refusals: RefusalLog::default(),
            told: None,
            mailbox: Arc::default(),
            announced: Arc::clone(&announced),
            followed: Arc::clone(&followed),
            link: self.params.link.clone(),
            counters: Counters::new(now),
            report_at: now.saturating_add(REPORT_EVERY),
            is_counting: false,
            decisions: Decisions::default(),
            flows_wanted: Vec::new(),
            status: Arc::clone(&status),
        };
        // What the data plane refused at the start for now is asked for before the controller is.
        if deciding.ask_for_changes().is_err() {
            return;
        }
        let mailbox = Arc::clone(&deciding.mailbox);
        let asker = session::Session {
            params: self.params.clone(),
            instance,
            followed,
            events: events.clone(),
            status,
        };
        let reporter = asker.clone();
        let ask = move || asker.ask(&announced, after);
        let report = move || reporter.report(&mailbox);
        let threads = [
            start("controller_ask", ask),
            start("controller_tell", report),
        ];
        if let Some(Err(error)) = threads.into_iter().find(Result::is_err) {
            log::warn("controller_unused", &[("reason", &error)]);
        }
        // It ends when the gateway has stopped.
        while deciding.round(incoming).is_ok() {}
    }
}

impl ControlSlices for Connected {
    fn restore(&mut self, engine: &mut Engine, now: Instant) {
        self.agent.reconciler.restore(engine, now);
    }

    fn run(self: Box<Self>, control: Control) {
        let events = (&self.events, &self.incoming);
        self.agent.run(&control, events, self.status);
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(run).map(drop)
}

fn announcement(
    link: &str,
    directions: &[DirectionParams; 2],
) -> Result<GatewayAnnouncement, &'static str> {
    let links = vec![terms::announcement(link, directions)?];
    Ok(GatewayAnnouncement {
        links,
        reached: None,
    })
}

/// The state of the thread that decides.
struct Deciding<'a> {
    control: &'a Control,
    reconciler: Box<dyn Reconcile>,
    store: Store,
    /// Records that are not on the disk yet.
    unwritten: Vec<Record>,
    write_at: Option<Instant>,
    /// The slices that are refused, as the disk has them.
    refused: BTreeSet<String>,
    refusals: RefusalLog,
    /// Acknowledgement that the controller was told last.
    told: Option<Acknowledgement>,
    mailbox: Arc<Mailbox>,
    announced: Arc<Announcement>,
    followed: Arc<Followed>,
    link: String,
    counters: Counters,
    report_at: Instant,
    is_counting: bool,
    decisions: Decisions,
    flows_wanted: Vec<String>,
    status: Arc<ControllerStatus>,
}

impl Deciding<'_> {
    /// Wait for something to happen, and act on it.
    fn round(&mut self, incoming: &Receiver<Event>) -> Result<(), Ended> {
        let now = time::now();
        let next = self.reconciler.poll_at().into_iter().chain(self.write_at);
        let next = next.fold(self.report_at, Instant::min);
        let timeout = next.saturating_since(now).nanos();
        let first = match incoming.recv_timeout(std::time::Duration::from_nanos(timeout)) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(Ended),
        };
        let others = std::iter::from_fn(|| incoming.try_recv().ok());
        for event in first.into_iter().chain(others.take(MOST_TOGETHER)) {
            self.on_event(event)?;
        }
        // The data plane is asked first: it works while the disk is written to.
        self.ask_for_changes()?;
        self.write();
        self.status.set(
            self.reconciler.reached(),
            self.reconciler.refused_now(),
            self.write_at.is_none(),
        );
        self.tell();
        if time::now() >= self.report_at && !self.is_counting {
            self.report_at = time::now().saturating_add(REPORT_EVERY);
            self.is_counting = true;
            self.count(Way::Forward, 0)?;
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event) -> Result<(), Ended> {
        match event {
            Event::Answer(answer) => self.on_answer(answer),
            Event::Desired {
                desired,
                is_adopted,
                taken,
            } => {
                // The thread that asks has ended with the process.
                let _ = taken.send(self.take(*desired, is_adopted));
                Ok(())
            }
            Event::Away => {
                // It may have lost what it was told last.
                self.told = None;
                Ok(())
            }
            Event::FlowsWanted(mut names) => {
                names.truncate(MOST_FLOWS_WANTED);
                self.flows_wanted = names;
                Ok(())
            }
            Event::Acknowledged(acknowledgement) => {
                let records = self.reconciler.on_acknowledged(&acknowledgement);
                self.unwritten.extend(records);
                Ok(())
            }
        }
    }

    /// Take what the controller wants, if it is of the store that is followed and does not go back in it, or an operator said so.
    fn take(&mut self, desired: Desired, is_adopted: bool) -> Result<(), String> {
        let (store, generation) = (desired.store.clone(), desired.generation);
        if !is_adopted {
            let (followed, reached) = (self.store.followed(), self.reconciler.reached());
            session::check_store(followed, store.as_deref(), reached, generation)?;
        }
        let records = self.reconciler.take(desired)?;
        self.unwritten.extend(records);
        if let Some(store) = store.filter(|store| store != self.store.followed()) {
            self.followed.set(&store);
            self.store.follow(store);
        }
        Ok(())
    }

    fn on_answer(&mut self, answer: Answer) -> Result<(), Ended> {
        match answer {
            Answer::Counted(counted) => {
                let (way, next) = (counted.direction, counted.next);
                let reconciler = &self.reconciler;
                for (name, seen) in &counted.flows {
                    if let Some(terms) = reconciler.flows_in_force(name, way) {
                        self.decisions.on_seen(way, name, seen, terms);
                    }
                }
                self.counters
                    .on_counted(*counted, |name| reconciler.is_in_force(name));
                match (next, way) {
                    (Some(from), _) => self.count(way, from)?,
                    (None, Way::Forward) => self.count(Way::Backward, 0)?,
                    (None, Way::Backward) => {
                        let names = self.flows_wanted.clone();
                        self.control.request(Request::Flows(names))?;
                    }
                }
            }
            Answer::Flows(flows) => self.report(flows),
            Answer::Reloaded(params) => {
                match announcement(&self.link, &params.directions) {
                    Ok(announced) => self.announced.set(announced),
                    Err(problem) => log::warn("announcement", &[("reason", &problem)]),
                }
                self.reconciler.on_reloaded(params.directions);
            }
            other => self.reconciler.on_answer(other, time::now()),
        }
        // Answers make room for further questions.
        self.ask_for_changes()
    }

    /// Ask the data plane for the changes that are next.
    fn ask_for_changes(&mut self) -> Result<(), Ended> {
        let now = time::now();
        while let Some(request) = self.reconciler.poll_request(self.is_counting, now) {
            self.control.request(request)?;
        }
        Ok(())
    }

    fn count(&self, direction: Way, from: u32) -> Result<(), Ended> {
        self.control.request(Request::Count { direction, from })
    }

    fn report(&mut self, flows: Vec<FlowsCounted>) {
        self.is_counting = false;
        let reconciler = &self.reconciler;
        let events = self.decisions.take(|name| reconciler.is_in_force(name));
        let report = self.counters.report(&self.link, time::now());
        self.mailbox.count(CounterReport {
            flows: counters::flows(flows),
            events,
            ..report
        });
    }

    /// Write what has changed to the disk. Where that fails, the data plane goes on, and the controller is not told before it
    /// has succeeded.
    fn write(&mut self) {
        let refused = self.reconciler.refused();
        if *refused != self.refused {
            self.refused.clone_from(refused);
            let names = refused.iter().cloned().collect();
            self.unwritten.push(Record::Refused(names));
        }
        let is_due = self.write_at.is_some_and(|at| at <= time::now());
        let is_unwritten = !self.unwritten.is_empty() || self.store.is_behind();
        let is_new = is_unwritten && self.write_at.is_none();
        if !is_new && !is_due {
            return;
        }
        let kept = || self.reconciler.kept();
        match self.store.append(&self.unwritten, kept) {
            Ok(()) => {
                if self.write_at.take().is_some() {
                    log::info("state_written", &[]);
                }
                self.unwritten.clear();
            }
            Err(error) => {
                if self.write_at.is_none() {
                    let so = "slices are changed, but the controller is not told so until they are on the disk";
                    log::warn("state_not_written", &[("reason", &error), ("so", &so)]);
                    let reason = format!("its state cannot be written: {error}");
                    self.decisions.note(None, reason);
                }
                // The next attempt writes all of it.
                self.unwritten.clear();
                self.write_at = Some(time::now().saturating_add(WRITE_AGAIN));
            }
        }
    }

    /// Tell the controller what is in force and on the disk.
    fn tell(&mut self) {
        if self.store.is_behind() {
            return;
        }
        let acknowledgement = self.reconciler.acknowledgement();
        if self.told.as_ref() == Some(&acknowledgement) {
            return;
        }
        for refused in self.refusals.news(&acknowledgement.refused) {
            let (slice, reason) = (&refused.slice, &refused.reason);
            let other = refused.waits_for.as_ref();
            let other = other.map_or_else(String::new, |other| format!(": `{other}`"));
            let reason = format!("{reason}{other}");
            log::warn("slice_refused", &[("slice", slice), ("reason", &reason)]);
        }
        self.mailbox.acknowledge(acknowledgement.clone());
        self.told = Some(acknowledgement);
    }
}
