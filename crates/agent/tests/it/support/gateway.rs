//! A forwarding thread over ports in memory, under traffic, and an agent.

use super::{directions, wait_until};
use slicewise_agent::{Agent, AgentParams, StateError};
use slicewise_live::EngineParams;
use slicewise_live::engine::Engine;
use slicewise_live::gateway::{
    Answer, Controlled, Controller, ControllerSnapshot, ControllerStatus, control,
};
use slicewise_live::memory::MemoryPort;
use slicewise_live::sys::time;
use slicewise_units::Way;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// VLANs with traffic: `0..VLANS`.
pub const VLANS: u16 = 4;
/// Bytes of a frame.
const FRAME_BYTES: usize = 200;
/// Frame memory, and memory for an answer of the controller.
const MEMORY_BYTES: u64 = 32 << 20;

/// Frames that wait in a gateway that is stalled.
const STALLED_FRAMES: u32 = 100;

/// What a gateway has done.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// Names of slices in each direction.
    pub names: [Vec<String>; 2],
    /// Frames that arrived, by VLAN.
    pub arrived: BTreeMap<u16, u64>,
    /// Frames that left, by VLAN.
    pub left: BTreeMap<u16, u64>,
    /// Frames that wait.
    pub backlog: u32,
    /// Frames that left after one that had arrived later.
    pub reordered: u64,
}

/// A gateway that runs until it is dropped.
pub struct Gateway {
    status: Arc<ControllerStatus>,
    is_stopping: Arc<AtomicBool>,
    /// Nothing leaves any more.
    is_stalled: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

pub fn params(url: &str, state: &Path) -> AgentParams {
    AgentParams {
        url: url.to_owned(),
        name: "edge".to_owned(),
        link: "uplink".to_owned(),
        token_file: None,
        certificate_authority: None,
        state: state.to_owned(),
        memory_bytes: MEMORY_BYTES,
    }
}

impl Gateway {
    pub fn start(url: &str, state: &Path) -> Result<Self, StateError> {
        Self::start_with(url, state, |_| {})
    }

    /// One whose answers somebody else sees, too.
    pub fn start_with(
        url: &str,
        state: &Path,
        on_answer: impl Fn(&Answer) + Send + 'static,
    ) -> Result<Self, StateError> {
        let agent = Agent::open(params(url, state), directions())?;
        let Controller {
            mut slices,
            answers,
            status,
        } = agent.into_controller();
        let answered = move |answer| {
            on_answer(&answer);
            answers(answer);
        };
        let (control, controlled) = control(Box::new(answered)).unwrap();
        let mut engine = engine();
        slices.restore(&mut engine, time::now());
        std::thread::spawn(move || slices.run(control));
        let is_stopping = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let is_stalled = Arc::new(AtomicBool::new(false));
        let (stopping, shown) = (Arc::clone(&is_stopping), Arc::clone(&seen));
        let stalled = Arc::clone(&is_stalled);
        let thread = std::thread::spawn(move || {
            forward(engine, &controlled, [&stopping, &stalled], &shown);
        });
        Ok(Self {
            status,
            is_stopping,
            is_stalled,
            seen,
            thread: Some(thread),
        })
    }

    /// Let nothing leave, or let it leave again.
    pub fn stall(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    pub fn status(&self) -> ControllerSnapshot {
        self.status.snapshot()
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Names of slices, where both directions have the same.
    pub fn names(&self) -> Option<Vec<String>> {
        let [forward, backward] = self.seen().names;
        (forward == backward).then_some(forward)
    }

    /// Waits until it has these slices.
    pub fn wait_for(&self, names: &[&str]) {
        wait_until(&format!("{names:?} are in force"), || {
            self.names().is_some_and(|found| found == names)
        });
    }

    /// Stop, and return all that happened.
    pub fn stop(mut self) -> Seen {
        self.end();
        self.seen()
    }

    fn end(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.end();
    }
}

/// A frame of a VLAN with its number.
fn frame(vlan: u16, number: u64) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0x00];
    frame.extend(vlan.to_be_bytes());
    frame.extend([0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.resize(FRAME_BYTES, 0);
    frame
}

pub fn engine() -> Engine {
    let params = EngineParams {
        directions: directions(),
        largest_frame: 1_522,
        receive_queues: [0; 2],
        memory_bytes: MEMORY_BYTES,
        adds_slices: true,
    };
    Engine::new(&params, time::now()).unwrap()
}

fn forward(
    mut engine: Engine,
    controlled: &Controlled,
    [is_stopping, is_stalled]: [&AtomicBool; 2],
    seen: &Mutex<Seen>,
) {
    let mut ports = [(); 2].map(|()| MemoryPort::new(1_500, 1_000));
    let mut last: BTreeMap<u16, u64> = BTreeMap::new();
    let mut own = Seen::default();
    let mut round = 0u64;
    loop {
        let stops = is_stopping.load(Ordering::Relaxed);
        let stalls = is_stalled.load(Ordering::Relaxed);
        own.backlog = engine.backlog();
        // Far below what the link carries: no queue is full.
        let is_full = stalls && own.backlog >= STALLED_FRAMES;
        if !(stops || is_full) && round.is_multiple_of(4) {
            for vlan in 0..VLANS {
                let number = own.arrived.entry(vlan).or_default();
                ports[0].arrive(frame(vlan, *number));
                *number += 1;
            }
        }
        let polled = engine.poll(&mut ports, &mut time::now);
        controlled.carry_out(&mut engine, time::now());
        for port in ports.iter_mut().filter(|_| !stalls) {
            port.complete(engine.memory());
        }
        for sent in ports[1].take_sent() {
            let vlan = u16::from_be_bytes([sent[14], sent[15]]);
            let number = u64::from_be_bytes(sent[18..26].try_into().unwrap());
            *own.left.entry(vlan).or_default() += 1;
            let before = last.insert(vlan, number);
            own.reordered += u64::from(before.is_some_and(|before| before > number));
        }
        round += 1;
        if round.is_multiple_of(16) || stops {
            own.names = Way::ALL.map(|direction| {
                let classes = engine.classes(direction);
                let names = classes.map(|(class, _)| class.class.clone());
                let mut names: Vec<String> = names.filter(|name| name != "class-default").collect();
                names.sort();
                names
            });
            seen.lock().unwrap().clone_from(&own);
        }
        if stops && engine.backlog() == 0 && ports[0].arriving() == 0 {
            return;
        }
        if polled.received == 0 && !polled.is_unfinished {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }
}
