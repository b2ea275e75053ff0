//! The threads that talk to the controller.

use crate::agent::{AgentParams, Event};
use crate::mailbox::Mailbox;
use slicewise_api::{Client, ClientError, ClientParams, Desired, GatewayAnnouncement};
use slicewise_live::log;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, sync_channel};
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
/// What was refused is announced again after this: slices that were removed may have made room.
const ANNOUNCE_AGAIN: Duration = Duration::from_secs(10);

/// What the gateway announces, which a reload may change.
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

fn client(params: &AgentParams, instance: &str, backoff: &Backoff) -> Result<Client, ClientError> {
    let read = |file: &std::path::PathBuf| {
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
        .with_instance(instance)
        .with_patience(backoff.patience))
}

/// Announce the gateway and ask for what is wanted, until the gateway stops. `after` is the generation that it has.
pub(crate) fn ask(
    params: &AgentParams,
    instance: &str,
    announcement: &Arc<Announcement>,
    mut after: u64,
    events: &Sender<Event>,
) {
    let mut backoff = Backoff::new();
    let mut trouble = Trouble::default();
    let mut refused = None;
    // What was taken, also if everything has to be asked for again.
    let mut reached = after;
    loop {
        let outcome = client(params, instance, &backoff).and_then(|mut client| {
            let (version, announced) = announcement.get();
            let announced = GatewayAnnouncement {
                reached: Some(reached),
                ..announced
            };
            match announce(&client, params, &announced, &mut refused)? {
                // It has an older store, or another one.
                Some(generation) if generation < after => after = 0,
                _ => {}
            }
            let announced_at = Instant::now();
            let mut is_new = true;
            while announcement.version.load(Ordering::Acquire) == version
                && (refused.is_none() || announced_at.elapsed() < ANNOUNCE_AGAIN)
            {
                let asked = Instant::now();
                let desired = client.desired(&params.name, after, WAIT)?;
                let generation = desired.generation;
                let is_empty =
                    generation == after || desired.snapshot.is_none() && desired.changes.is_empty();
                match tell(desired, events) {
                    None => return Ok(false),
                    Some(Ok(())) => {
                        (after, reached) = (generation, generation);
                        if std::mem::take(&mut is_new) {
                            trouble.is_over(&params.url);
                            backoff = Backoff::new();
                            client = client.with_patience(backoff.patience);
                        }
                    }
                    Some(Err(reason)) => {
                        after = 0;
                        let url = params.url.clone();
                        return Err(ClientError::Unexpected { url, reason });
                    }
                }
                if is_empty {
                    std::thread::sleep(LEAST_WAIT.saturating_sub(asked.elapsed()));
                }
            }
            Ok(true)
        });
        match outcome {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                trouble.is_there(&error);
                if events.send(Event::Away).is_err() {
                    return;
                }
                backoff.wait();
            }
        }
    }
}

/// Announce the gateway. The newest generation of the controller; `None` if it refuses, because it may hold promises that this
/// announcement would break: those stay in force. `refused` is why it refused last.
fn announce(
    client: &Client,
    params: &AgentParams,
    announced: &GatewayAnnouncement,
    refused: &mut Option<String>,
) -> Result<Option<u64>, ClientError> {
    match client.announce(&params.name, announced) {
        Ok(answer) => {
            if refused.take().is_some() {
                log::info("announcement_accepted", &[]);
            }
            Ok(Some(answer.generation))
        }
        Err(ClientError::Refused(problem)) if problem.status == 409 => {
            let reason = problem.to_string();
            if refused.as_ref() != Some(&reason) {
                log::warn("announcement_refused", &[("reason", &reason)]);
            }
            *refused = Some(reason);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Hand an answer over, and wait until it was taken: what changes meanwhile comes together with the next. Returns why it was
/// not; `None` if the gateway has stopped.
fn tell(desired: Desired, events: &Sender<Event>) -> Option<Result<(), String>> {
    let (taken, is_taken) = sync_channel(1);
    let event = Event::Desired(Box::new(desired), taken);
    events.send(event).ok()?;
    is_taken.recv().ok()
}

/// Tell the controller what is in force and what was counted, until the gateway stops.
pub(crate) fn report(
    params: &AgentParams,
    instance: &str,
    mailbox: &Mailbox,
    events: &Sender<Event>,
) {
    let mut backoff = Backoff::new();
    let mut current = None;
    loop {
        let letters = mailbox.take(WAIT);
        let usable = match current.take() {
            Some(client) => Ok(client),
            None => client(params, instance, &backoff),
        };
        let Ok(client) = usable else {
            // The other thread says why.
            if let Some(acknowledgement) = letters.acknowledgement {
                mailbox.put_back(acknowledgement);
            }
            backoff.wait();
            continue;
        };
        if let Some(acknowledgement) = letters.acknowledgement {
            match client.acknowledge(&params.name, &acknowledgement) {
                Ok(()) => {
                    backoff = Backoff::new();
                    let event = Event::Acknowledged(Box::new(acknowledgement));
                    if events.send(event).is_err() {
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
            && let Ok(answer) = client.report_counters(&params.name, &counters)
        {
            backoff = Backoff::new();
            let wanted = Event::FlowsWanted(answer.flows_wanted);
            if events.send(wanted).is_err() {
                return;
            }
        }
        current = Some(client.with_patience(backoff.patience));
    }
}

/// Whether the controller is away, so that it is logged once.
#[derive(Default)]
struct Trouble {
    reason: Option<String>,
    /// It was there before.
    is_known: bool,
}

impl Trouble {
    fn is_there(&mut self, error: &ClientError) {
        let reason = error.to_string();
        if self.reason.as_ref() != Some(&reason) {
            let so = "slices stay as they are";
            log::warn("controller_away", &[("reason", &reason), ("so", &so)]);
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
