//! The threads that talk to the controller.

use crate::mailbox::Mailbox;
use slicewise_api::{
    Acknowledgement, Client, ClientError, ClientParams, Desired, GatewayAnnouncement, OTHER_STORE,
};
use slicewise_live::gateway::{Answer, ControllerStatus};
use slicewise_live::log;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the controller lets a question wait for a change.
const WAIT: Duration = Duration::from_secs(5);
/// The first pause after a failure; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long an answer may take beside [`WAIT`]: then the connection counts as lost. After a failure it is twice as long, so that
/// a controller which needs more for everything is waited for in the end.
const FIRST_PATIENCE: Duration = Duration::from_secs(4);
/// The longest.
const LONGEST_PATIENCE: Duration = Duration::from_secs(128);
/// Answers without a change come no faster than this.
const LEAST_WAIT: Duration = Duration::from_millis(20);
/// Memory that an answer to what is told may take, bytes: it has the names of a few slices.
const TOLD_ANSWER_MAX: u64 = 1 << 20;
/// Characters of a reason in the log: it may come from anybody.
const REASON_CHARS_MAX: usize = 500;
/// Time after which a refused announcement is repeated: slices that were removed may have made room.
const ANNOUNCE_AGAIN: Duration = Duration::from_secs(10);

/// Parameters of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentParams {
    /// The address of the controller.
    pub url: String,
    /// The gateway's name there.
    pub name: String,
    /// The name of its link there.
    pub link: String,
    /// The file with the token, if the controller asks for one.
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) of authorities to trust, instead of those of the system.
    pub certificate_authority: Option<PathBuf>,
    /// The file in which slices are kept.
    pub state: PathBuf,
    /// Memory that what the controller wants may take while it is read, about, bytes: as much as frames have.
    pub memory_bytes: u64,
}

/// Event for the thread that decides.
#[derive(Debug)]
pub(crate) enum Event {
    /// By the forwarding thread.
    Answer(Answer),
    /// By the controller.
    Desired {
        desired: Box<Desired>,
        /// An operator said that its store is to be followed, whatever was followed before.
        is_adopted: bool,
        /// Receives the result: taken, or why not.
        taken: SyncSender<Result<(), String>>,
    },
    /// The controller cannot be reached.
    Away,
    /// The controller knows this.
    Acknowledged(Box<Acknowledgement>),
    /// The controller wants to know the flows of these slices.
    FlowsWanted(Vec<String>),
}

/// Announcement of the gateway, which a reload may change.
#[derive(Debug)]
pub(crate) struct Announcement {
    announcement: Mutex<GatewayAnnouncement>,
    version: AtomicU64,
}

impl Announcement {
    pub(crate) fn new(announcement: GatewayAnnouncement) -> Self {
        Self {
            announcement: Mutex::new(announcement),
            version: AtomicU64::new(0),
        }
    }

    pub(crate) fn set(&self, announcement: GatewayAnnouncement) {
        let current = self.announcement.lock();
        *current.unwrap_or_else(PoisonError::into_inner) = announcement;
        self.version.fetch_add(1, Ordering::Release);
    }

    fn get(&self) -> (u64, GatewayAnnouncement) {
        let version = self.version.load(Ordering::Acquire);
        let current = self.announcement.lock();
        let current = current.unwrap_or_else(PoisonError::into_inner);
        (version, current.clone())
    }
}

/// Pauses between attempts that fail, and how long each attempt waits.
struct Backoff {
    pause: Duration,
    patience: Duration,
}

impl Backoff {
    const fn new() -> Self {
        Self {
            pause: FIRST_PAUSE,
            patience: FIRST_PATIENCE,
        }
    }

    /// Wait. Several gateways that lost their controller at once come back at different moments.
    fn wait(&mut self) {
        let nanos = std::time::SystemTime::now()
            .duration_since(std::time::SystemTime::UNIX_EPOCH)
            .map_or(0, |time| time.subsec_nanos());
        let spread = self.pause.mul_f64(f64::from(nanos % 1000) / 4000.0);
        std::thread::sleep(self.pause + spread);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.patience = (self.patience * 2).min(LONGEST_PATIENCE);
    }
}

/// Identity of the controller's store that is followed, for the threads that talk to it.
#[derive(Debug)]
pub(crate) struct Followed(Mutex<String>);

impl Followed {
    pub(crate) fn new(store: &str) -> Self {
        Self(Mutex::new(store.to_owned()))
    }

    pub(crate) fn set(&self, store: &str) {
        store.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn get(&self) -> String {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        store.clone()
    }
}

/// Tests what a controller states, its store and a generation, against the store that is followed (empty for none) and the generation that
/// was reached.
///
/// # Errors
/// If it has another store, or an older copy of it: what is in force would be undone.
pub(crate) fn check_store(
    followed: &str,
    stated: Option<&str>,
    reached: u64,
    generation: u64,
) -> Result<(), String> {
    match stated {
        Some(stated) if followed.is_empty() || stated == followed => match generation < reached {
            true => Err(format!(
                "its store has generation {generation}, and the gateway has seen {reached}: it is another store, or an older copy"
            )),
            false => Ok(()),
        },
        Some(stated) => Err(format!(
            "it has store {stated}, and the gateway follows store {followed}"
        )),
        // A controller of an earlier version is followed only by a gateway that has never seen a newer one.
        None if followed.is_empty() => Ok(()),
        None => Err(format!(
            "it does not state which store it has, as earlier versions do not, and the gateway follows store {followed}"
        )),
    }
}

/// Why the controller is not followed.
#[derive(Debug)]
enum Fault {
    /// It does not answer as it should.
    Client(ClientError),
    /// It has another store than the gateway follows.
    Store(String),
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(problem) if problem.kind.ends_with(OTHER_STORE) => {
                Self::Store(problem.detail)
            }
            other => Self::Client(other),
        }
    }
}

/// Parameters of both threads that talk to the controller.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) params: AgentParams,
    pub(crate) instance: String,
    pub(crate) followed: Arc<Followed>,
    pub(crate) events: Sender<Event>,
    pub(crate) status: Arc<ControllerStatus>,
}

impl Session {
    fn client(&self, backoff: &Backoff) -> Result<Client, ClientError> {
        let params = &self.params;
        let read = |file: &PathBuf| {
            std::fs::read_to_string(file).map_err(|error| {
                ClientError::Params(format!(
                    "the token cannot be read: {}: {error}",
                    file.display()
                ))
            })
        };
        let token = params.token_file.as_ref().map(read).transpose()?;
        let client = Client::new(&ClientParams {
            url: params.url.clone(),
            token: token.map(|token| token.trim().to_owned()),
            authorities: params.certificate_authority.clone(),
        })?;
        Ok(client
            .with_instance(&self.instance)
            .with_store(&self.followed.get())
            .with_patience(backoff.patience))
    }

    /// Announce the gateway and ask for what is wanted, until the gateway stops. `after` is the generation that it has.
    pub(crate) fn ask(&self, announcement: &Announcement, after: u64) {
        let mut asking = Asking {
            session: self,
            announcement,
            after,
            reached: after,
            refused: None,
            trouble: Trouble::default(),
            backoff: Backoff::new(),
        };
        loop {
            match asking.follow() {
                Ok(true) => {}
                Ok(false) => return,
                Err(fault) => {
                    asking.trouble.is_there(&fault);
                    self.status.set_followed(false);
                    if self.events.send(Event::Away).is_err() {
                        return;
                    }
                    asking.backoff.wait();
                }
            }
        }
    }

    /// Tell the controller what is in force and what was counted, until the gateway stops.
    pub(crate) fn report(&self, mailbox: &Mailbox) {
        let mut backoff = Backoff::new();
        let mut current = None;
        loop {
            let letters = mailbox.take(WAIT);
            let usable = match current.take() {
                Some(client) => Ok(client),
                None => self.client(&backoff),
            };
            let Ok(client) = usable else {
                // The other thread says why.
                if let Some(acknowledgement) = letters.acknowledgement {
                    mailbox.put_back(acknowledgement);
                }
                backoff.wait();
                continue;
            };
            let client = client
                .with_store(&self.followed.get())
                .with_answer_max(TOLD_ANSWER_MAX);
            if let Some(acknowledgement) = letters.acknowledgement {
                match client.acknowledge(&self.params.name, &acknowledgement) {
                    Ok(()) => {
                        backoff = Backoff::new();
                        let event = Event::Acknowledged(Box::new(acknowledgement));
                        if self.events.send(event).is_err() {
                            return;
                        }
                    }
                    Err(_) => {
                        mailbox.put_back(acknowledgement);
                        backoff.wait();
                        continue;
                    }
                }
            }
            if let Some(counters) = letters.counters
                && let Ok(answer) = client.report_counters(&self.params.name, &counters)
            {
                backoff = Backoff::new();
                let wanted = Event::FlowsWanted(answer.flows_wanted);
                if self.events.send(wanted).is_err() {
                    return;
                }
            }
            current = Some(client.with_patience(backoff.patience));
        }
    }
}

/// State of the thread that asks.
struct Asking<'a> {
    session: &'a Session,
    announcement: &'a Announcement,
    /// Generation after which changes are asked for; 0 for everything.
    after: u64,
    /// Generation that was taken, also if everything has to be asked for again.
    reached: u64,
    /// Why the last announcement was refused.
    refused: Option<String>,
    trouble: Trouble,
    backoff: Backoff,
}

impl Asking<'_> {
    /// Announce the gateway, and follow the controller until something else is to be announced. Returns false when the gateway has stopped.
    fn follow(&mut self) -> Result<bool, Fault> {
        let client = self.session.client(&self.backoff)?;
        let mut client = client.with_answer_max(self.session.params.memory_bytes);
        let (version, announced) = self.announcement.get();
        let is_adopted = self.announce(&mut client, announced)?;
        let announced_at = Instant::now();
        let mut is_new = true;
        while self.announcement.version.load(Ordering::Acquire) == version
            && (self.refused.is_none() || announced_at.elapsed() < ANNOUNCE_AGAIN)
        {
            let asked = Instant::now();
            // A store that is empty has no news, and is to be followed at once.
            let wait = if is_adopted && is_new {
                Duration::ZERO
            } else {
                WAIT
            };
            let desired = client.desired(&self.session.params.name, self.after, wait)?;
            let generation = desired.generation;
            let is_empty = generation == self.after
                || desired.snapshot.is_none() && desired.changes.is_empty();
            match self.tell(desired, is_adopted && is_new) {
                None => return Ok(false),
                Some(Ok(())) => {
                    (self.after, self.reached) = (generation, generation);
                    client = client.with_store(&self.session.followed.get());
                    if std::mem::take(&mut is_new) {
                        self.trouble.is_over(&self.session.params.url);
                        self.session.status.set_followed(true);
                        self.backoff = Backoff::new();
                        client = client.with_patience(self.backoff.patience);
                    }
                }
                Some(Err(reason)) => {
                    self.after = 0;
                    let url = self.session.params.url.clone();
                    return Err(ClientError::Unexpected { url, reason }.into());
                }
            }
            if is_empty {
                std::thread::sleep(LEAST_WAIT.saturating_sub(asked.elapsed()));
            }
        }
        Ok(true)
    }

    /// Announce the gateway; where the controller refuses, it may hold promises that the announcement would break, and those stay in
    /// force. Returns whether an operator said that its store is to be followed, whatever was followed before.
    fn announce(
        &mut self,
        client: &mut Client,
        announced: GatewayAnnouncement,
    ) -> Result<bool, Fault> {
        let announced = GatewayAnnouncement {
            reached: Some(self.reached),
            ..announced
        };
        let answer = match client.announce(&self.session.params.name, &announced) {
            Ok(answer) => answer,
            Err(ClientError::Refused(problem))
                if problem.status == 409 && !problem.kind.ends_with(OTHER_STORE) =>
            {
                let reason = problem.to_string();
                let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
                if self.refused.as_ref() != Some(&reason) {
                    log::warn("announcement_refused", &[("reason", &reason)]);
                }
                self.refused = Some(reason);
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        if self.refused.take().is_some() {
            log::info("announcement_accepted", &[]);
        }
        let followed = self.session.followed.get();
        let stated = answer.store.as_deref();
        if answer.adopted {
            log::warn(
                "store_adopted",
                &[
                    ("store", &stated.unwrap_or_default()),
                    ("instead_of", &followed),
                ],
            );
            *client = client.clone().with_store(stated.unwrap_or_default());
            self.after = 0;
            return Ok(true);
        }
        check_store(&followed, stated, self.reached, answer.generation).map_err(Fault::Store)?;
        if answer.generation < self.after {
            // Of an earlier version, with an older store, or another one.
            self.after = 0;
        }
        Ok(false)
    }

    /// Hand an answer over, and wait until it was taken: what changes meanwhile comes together with the next. Returns why it was
    /// not; `None` if the gateway has stopped.
    fn tell(&self, desired: Desired, is_adopted: bool) -> Option<Result<(), String>> {
        let (taken, is_taken) = sync_channel(1);
        let event = Event::Desired {
            desired: Box::new(desired),
            is_adopted,
            taken,
        };
        self.session.events.send(event).ok()?;
        is_taken.recv().ok()
    }
}

/// Tells whether the controller is away, so that it is logged once.
#[derive(Default)]
struct Trouble {
    reason: Option<String>,
    /// It was there before.
    is_known: bool,
}

impl Trouble {
    fn is_there(&mut self, fault: &Fault) {
        let (event, reason) = match fault {
            Fault::Client(error) => ("controller_away", error.to_string()),
            Fault::Store(reason) => ("controller_not_followed", reason.clone()),
        };
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        if self.reason.as_ref() != Some(&reason) {
            let so = "slices stay as they are";
            log::warn(event, &[("reason", &reason), ("so", &so)]);
        }
        self.reason = Some(reason);
    }

    fn is_over(&mut self, url: &str) {
        if !self.is_known || self.reason.take().is_some() {
            log::info("controller", &[("url", &url)]);
        }
        self.is_known = true;
    }
}
