//! A controller that keeps slices in memory, and answers as it is told.

use serde_json::{Value, json};
use slicewise_api::{
    Acknowledgement, Announced, CounterReport, Desired, GatewayChange, GatewaySlice,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Mood {
    /// As a controller does.
    #[default]
    Well,
    /// With this status and body, whatever it is asked.
    Says(u16, Vec<u8>),
    /// With this to the question what is desired.
    Wants(Value),
    /// With this again and again to the question what is desired, without an end.
    Endless(&'static str, &'static str),
    /// It closes the connection.
    HangsUp,
    /// Not at all.
    Silent,
}

/// What it keeps.
#[derive(Debug, Default)]
pub struct State {
    pub mood: Mood,
    pub generation: u64,
    /// Identity that it states; `None` as of an earlier version.
    pub store: Option<String>,
    /// Set if an operator said that the gateway is to follow it.
    pub adopts: bool,
    pub slices: BTreeMap<String, GatewaySlice>,
    /// Changes with their generation; those before `forgotten` are not known any more.
    changes: Vec<(u64, GatewayChange)>,
    pub forgotten: u64,
    pub draining: Vec<String>,
    pub purged: Vec<String>,
    pub announced: Option<Value>,
    /// Whether announcements are refused (409), and how many were.
    pub refuses: bool,
    pub refused: u64,
    /// Which processes asked and said something.
    pub instances: BTreeSet<String>,
    pub acknowledged: Acknowledgement,
    pub acknowledged_at: Option<Instant>,
    pub gone: Vec<String>,
    pub counters: Vec<CounterReport>,
    /// `after` of every question.
    pub asked: Vec<u64>,
    /// Bytes of the longest endless answer that were taken.
    pub taken: usize,
}

/// A controller that listens until the process ends.
pub struct Server {
    pub url: String,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { url, shared }
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let (state, changed) = &*self.shared;
        let done = act(&mut state.lock().unwrap());
        changed.notify_all();
        done
    }

    /// Commit changes as one generation.
    pub fn change(&self, changes: Vec<GatewayChange>) -> u64 {
        self.with(|state| {
            state.generation += 1;
            for change in changes {
                match &change {
                    GatewayChange::Put(slice) => {
                        state.draining.retain(|name| *name != slice.name);
                        state.slices.insert(slice.name.clone(), (**slice).clone());
                    }
                    GatewayChange::Remove(name) => {
                        state.slices.remove(name);
                        state.draining.push(name.clone());
                    }
                }
                state.changes.push((state.generation, change));
            }
            state.generation
        })
    }

    pub fn put(&self, slice: GatewaySlice) -> u64 {
        self.change(vec![GatewayChange::Put(Box::new(slice))])
    }

    pub fn remove(&self, name: &str) -> u64 {
        self.change(vec![GatewayChange::Remove(name.to_owned())])
    }

    /// Wait until a generation is acknowledged; returns when it was.
    pub fn wait_for(&self, generation: u64) -> Instant {
        let (state, changed) = &*self.shared;
        let is_awaited = |state: &mut State| state.acknowledged.generation < generation;
        let state = state.lock().unwrap();
        let waited = changed.wait_timeout_while(state, Duration::from_secs(60), is_awaited);
        let (state, timeout) = waited.unwrap();
        assert!(
            !timeout.timed_out(),
            "generation {generation} is never acknowledged"
        );
        state.acknowledged_at.unwrap()
    }

    pub fn acknowledged(&self) -> u64 {
        self.with(|state| state.acknowledged.generation)
    }
}

fn serve(stream: TcpStream, shared: &(Mutex<State>, Condvar)) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some((target, instance, body)) = request(&mut reader) {
        shared.0.lock().unwrap().instances.extend(instance);
        let mood = shared.0.lock().unwrap().mood.clone();
        let (status, answer) = match mood {
            Mood::HangsUp => return,
            Mood::Silent => {
                std::thread::sleep(Duration::from_secs(600));
                return;
            }
            Mood::Says(status, body) => (status, body),
            Mood::Wants(value) if target.contains("/desired") => (200, value.to_string().into()),
            Mood::Endless(begin, again) if target.contains("/desired") => {
                return send_for_ever(&mut stream, begin, again, shared);
            }
            Mood::Well | Mood::Wants(_) | Mood::Endless(..) => answer(&target, &body, shared),
        };
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        // In one write: the second of two would wait for an acknowledgement.
        if stream
            .write_all(&[head.as_bytes(), &answer].concat())
            .is_err()
        {
            return;
        }
    }
}

/// Sends chunks until the other end closes the connection.
fn send_for_ever(
    stream: &mut TcpStream,
    begin: &str,
    again: &str,
    shared: &(Mutex<State>, Condvar),
) {
    let head =
        "HTTP/1.1 200 x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let mut taken = 0;
    let mut next = format!("{head}{}", chunk(begin));
    let again = chunk(&again.repeat(1_000));
    while stream.write_all(next.as_bytes()).is_ok() {
        taken += next.len();
        next.clone_from(&again);
    }
    let mut state = shared.0.lock().unwrap();
    state.taken = state.taken.max(taken);
}

/// The method and path of the next request, the process it comes from, and its body.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Option<String>, Vec<u8>)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|&read| read > 0)?;
    let (mut length, mut instance) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if let Some(value) = line.strip_prefix("gateway-instance:") {
            instance = Some(value.trim().to_owned());
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (target, _) = first.rsplit_once(' ')?;
    Some((target.to_owned(), instance, body))
}

fn answer(target: &str, body: &[u8], shared: &(Mutex<State>, Condvar)) -> (u16, Vec<u8>) {
    let mut state = shared.0.lock().unwrap();
    let body = || serde_json::from_slice::<Value>(body).unwrap();
    if target == "PUT /v1/gateways/edge" && state.refuses {
        state.refused += 1;
        let problem = json!({"title": "Conflict", "detail": "it holds less than is promised"});
        return (409, problem.to_string().into());
    }
    if target == "PUT /v1/gateways/edge" {
        state.announced = Some(body());
        let answer = Announced {
            generation: state.generation,
            acknowledged: state.acknowledged.generation,
            store: state.store.clone(),
            adopted: state.adopts,
        };
        return (200, serde_json::to_vec(&answer).unwrap());
    }
    if target == "POST /v1/gateways/edge/acknowledgements" {
        let acknowledgement: Acknowledgement = serde_json::from_value(body()).unwrap();
        acknowledgement.check().unwrap();
        for name in &acknowledgement.gone {
            state.draining.retain(|draining| draining != name);
            state.gone.push(name.clone());
        }
        let known = acknowledgement.generation;
        state.changes.retain(|(generation, _)| *generation > known);
        state.forgotten = state.forgotten.max(known);
        state.acknowledged_at = Some(Instant::now());
        state.acknowledged = acknowledgement;
        shared.1.notify_all();
        return (204, Vec::new());
    }
    if target == "POST /v1/gateways/edge/counters" {
        state.counters.push(serde_json::from_value(body()).unwrap());
        return (200, b"{}".to_vec());
    }
    let query = target.strip_prefix("GET /v1/gateways/edge/desired?after=");
    let (after, wait) = query
        .and_then(|query| query.split_once("&wait_ms="))
        .unwrap();
    let (after, wait): (u64, u64) = (after.parse().unwrap(), wait.parse().unwrap());
    state.asked.push(after);
    let is_news = |state: &State| state.generation != after || state.mood != Mood::Well;
    let (state, _) = shared
        .1
        .wait_timeout_while(state, Duration::from_millis(wait), |state| !is_news(state))
        .unwrap();
    let mut desired = Desired {
        generation: state.generation,
        store: state.store.clone(),
        purge: state.purged.clone(),
        ..Desired::default()
    };
    if after < state.forgotten || after == 0 && state.generation > 0 || after > state.generation {
        desired.snapshot = Some(state.slices.values().cloned().collect());
        desired.draining.clone_from(&state.draining);
    } else {
        let newer = state
            .changes
            .iter()
            .filter(|(generation, _)| *generation > after);
        desired.changes = newer.map(|(_, change)| change.clone()).collect();
    }
    (200, serde_json::to_vec(&desired).unwrap())
}
