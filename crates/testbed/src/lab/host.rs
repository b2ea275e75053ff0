//! A host of a lab: carries out orders from its standard input, and ends with it.

use super::clocks::{Answering, compare};
use super::orders::Orders;
use super::protocol::{self, Answer, FlowPlan, Line, Order};
use crate::command::{self, Tool};
use crate::error::AttemptError;
use crate::lease::{Lease, LeaseError};
use crate::machine::{self, ProcessorTime};
use crate::sender::{Sender, SendingFlow, TimeZero};
use crate::tcpdump::{Capturing, Way};
use crate::udp_sink::UdpSink;
use crate::workspace::Workspace;
use serde::Deserialize;
use slicewise_live::awake::Awake;
use slicewise_traffic::{Pattern, Random, Recorded, Replay, Sizes, Source, Timeline};
use slicewise_units::{Duration as Span, Instant as Moment};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Largest piece of a capture in a message, bytes.
const PIECE_BYTES: u64 = 1 << 20;
/// Longest wait for the end of a host whose connection has ended.
const ENDING: Duration = Duration::from_secs(35);
/// Bytes of a packet in the data of flows.
const PACKET_BYTES: usize = 12;

/// Carry out the orders of `input` until it ends, or is silent for half a minute, and answer each. All that was started ends,
/// and all files are deleted with it.
///
/// # Errors
/// If orders cannot be read, or answers not written.
pub fn serve(
    input: impl Read + Send + 'static,
    mut output: impl Write,
    version: &str,
) -> io::Result<()> {
    let ready = Answer::Ready {
        version: version.to_owned(),
    };
    protocol::write(&mut output, &ready, &[])?;
    let orders = Orders::of(input);
    let mut host = Host::default();
    loop {
        let (order, data) = match orders.next()? {
            Line::Message(order, data) => (order, data),
            Line::End => return Ok(()),
            Line::Other(line) => {
                let why = format!("not an order: {line}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        };
        let (answer, data) = host.carry_out(order, &data).unwrap_or_else(|error| {
            let refused = Answer::Refused {
                why: error.to_string(),
                is_permanent: !matches!(error, AttemptError::Retryable(_)),
            };
            (refused, Vec::new())
        });
        protocol::write(&mut output, &answer, &data)?;
    }
}

/// Datagrams that have arrived at this host, taken or refused. Sinks have no room for those that nobody takes.
fn datagrams_arrived() -> Result<u64, AttemptError> {
    let mut sum = 0;
    for path in ["/proc/thread-self/net/snmp", "/proc/thread-self/net/snmp6"] {
        let text = match fs::read_to_string(path) {
            // Without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.ends_with('6') => {
                continue;
            }
            text => text.map_err(AttemptError::failed(path))?,
        };
        sum += datagrams(&text);
    }
    Ok(sum)
}

/// Datagrams by the counters of UDP (RFC 4113) in `/proc/net/snmp`, which has a line of names and one of values, or in
/// `/proc/net/snmp6`, which has a line for each.
fn datagrams(text: &str) -> u64 {
    let is_arrived = |name: &str| ["InDatagrams", "NoPorts", "InErrors"].contains(&name);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let in_columns = names.split_whitespace().zip(values.split_whitespace());
    let in_lines = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("Udp6")?.split_once(char::is_whitespace)?;
        Some((name, value.trim()))
    });
    let arrived = in_columns
        .chain(in_lines)
        .filter(|(name, _)| is_arrived(name));
    arrived
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}

/// Everything that runs on a host for one attempt at a run, ended in this order.
#[derive(Debug, Default)]
struct Host {
    sender: Option<Sender>,
    udp_sink: Option<UdpSink>,
    capturing: Option<Capturing>,
    captured: Option<File>,
    answering: Option<Answering>,
    awake: Option<Awake>,
    processors: ProcessorTime,
    interface: String,
    workspace: Option<Workspace>,
    lease: Option<Lease>,
}

impl Host {
    fn carry_out(&mut self, order: Order, data: &[u8]) -> Result<(Answer, Vec<u8>), AttemptError> {
        let answer = match order {
            Order::Prepare { interface } => self.prepare(interface)?,
            Order::AnswerClocks { address } => {
                let answering =
                    Answering::start(address).map_err(AttemptError::failed("clocks"))?;
                let port = answering.port();
                self.answering = Some(answering);
                Answer::AnsweringClocks { port }
            }
            Order::CompareClocks { address, with } => Answer::ClocksCompared {
                comparison: compare(address, with)?,
            },
            Order::Capture { sends, filter } => self.capture(sends, &filter)?,
            Order::Listen { addresses } => self.listen(&addresses)?,
            Order::Load { flows } => self.load(flows, data)?,
            Order::Send { wait_ns } => self.send(wait_ns)?,
            Order::StopSending => self.stop_sending()?,
            Order::CountArrived => Answer::Arrived {
                datagrams: datagrams_arrived()?,
            },
            Order::ReadProcessors => self.read_processors(),
            Order::StopCapture => self.stop_capture()?,
            Order::ReadCapture => return Ok((Answer::Piece, self.read_capture()?)),
        };
        Ok((answer, Vec::new()))
    }

    fn prepare(&mut self, interface: String) -> Result<Answer, AttemptError> {
        for tool in [Tool::Ip, Tool::Tcpdump] {
            if tool.find().is_none() {
                return Err(AttemptError::Failed(format!(
                    "{} is not installed: apt-get install {}",
                    tool.name(),
                    tool.package()
                )));
            }
        }
        let addresses = addresses(&interface)?;
        // The host of the run before may be ending; another testbed may run for hours.
        let start = Instant::now();
        let lease = Lease::take(|| (), |_| (), || start.elapsed() > ENDING).map_err(|error| {
            AttemptError::Failed(match error {
                LeaseError::Interrupted => {
                    // Or the host of a run whose connection was interrupted.
                    return AttemptError::Retryable("another testbed is running there".to_owned());
                }
                LeaseError::Privileges => {
                    "real packets require root: log in as root, or let the lab say `program: sudo \
                    slicewise`"
                        .to_owned()
                }
                other => other.to_string(),
            })
        })?;
        self.workspace = Some(Workspace::new(Some(&lease), None)?);
        self.lease = Some(lease);
        self.awake = Some(Awake::keep());
        self.interface = interface;
        let version = machine::version(Tool::Tcpdump.name(), Tool::Tcpdump).unwrap_or_default();
        let versions = vec![
            ("Linux".to_owned(), machine::kernel_version()),
            (Tool::Tcpdump.name().to_owned(), version),
        ];
        Ok(Answer::Host {
            addresses,
            versions,
        })
    }

    fn file(&self) -> Result<PathBuf, AttemptError> {
        let workspace = self.workspace.as_ref().ok_or_else(too_early)?;
        Ok(workspace.temporary().join("packets.pcap"))
    }

    fn capture(&mut self, sends: bool, filter: &str) -> Result<Answer, AttemptError> {
        let way = if sends { Way::Out } else { Way::In };
        let place = (None, self.interface.as_str());
        let capturing = Capturing::start(place, (way, filter), &self.file()?, &|| false)?;
        self.capturing = Some(capturing);
        Ok(Answer::Done)
    }

    fn listen(&mut self, addresses: &[SocketAddr]) -> Result<Answer, AttemptError> {
        // Ports may be those that are open.
        self.udp_sink = None;
        let udp_sink = UdpSink::bind(None, addresses).map_err(AttemptError::failed("the sink"))?;
        self.udp_sink = Some(udp_sink);
        Ok(Answer::Done)
    }

    fn load(&mut self, plans: Vec<FlowPlan>, data: &[u8]) -> Result<Answer, AttemptError> {
        self.sender = None;
        let (packets, []) = data.as_chunks::<PACKET_BYTES>() else {
            return Err(incomplete());
        };
        let mut packets = packets.iter().map(recorded);
        let mut flows = Vec::with_capacity(plans.len());
        for plan in plans {
            let count = usize::try_from(plan.packets).unwrap_or(usize::MAX);
            let of_flow: Vec<Recorded> = packets.by_ref().take(count).collect();
            if of_flow.len() < count {
                return Err(incomplete());
            }
            flows.push(flow(plan, of_flow));
        }
        let sender = Sender::start(None, flows).map_err(AttemptError::failed("the sender"))?;
        self.sender = Some(sender);
        Ok(Answer::Done)
    }

    fn send(&mut self, wait_ns: u64) -> Result<Answer, AttemptError> {
        let sender = self.sender.as_ref().ok_or_else(too_early)?;
        let zero = TimeZero::after(Span::from_nanos(wait_ns));
        sender.start_at(zero);
        Ok(Answer::Sending {
            zero_ns: zero.unix_ns,
        })
    }

    fn stop_sending(&mut self) -> Result<Answer, AttemptError> {
        let sender = self.sender.take().ok_or_else(too_early)?;
        sender.stop();
        let senders = sender.join();
        let senders = senders.map_err(|error| AttemptError::Retryable(error.to_string()))?;
        Ok(Answer::Sent { senders })
    }

    fn read_processors(&mut self) -> Answer {
        let now = ProcessorTime::now();
        let (steal_ratio, idle_ratio) = now.since(self.processors);
        self.processors = now;
        Answer::Processors {
            steal_ratio,
            idle_ratio,
        }
    }

    fn stop_capture(&mut self) -> Result<Answer, AttemptError> {
        let capturing = self.capturing.take().ok_or_else(too_early)?;
        let captured = capturing.stop(&|| false)?;
        let workspace = self.workspace.as_ref().ok_or_else(too_early)?;
        workspace.check_room()?;
        let shown = captured.file.display().to_string();
        let file = File::open(&captured.file).map_err(AttemptError::failed(&shown))?;
        self.captured = Some(file);
        Ok(Answer::Captured {
            packets: captured.packets,
            missed: captured.missed,
        })
    }

    fn read_capture(&mut self) -> Result<Vec<u8>, AttemptError> {
        let file = self.captured.as_mut().ok_or_else(too_early)?;
        let mut piece = Vec::new();
        let read = file.take(PIECE_BYTES).read_to_end(&mut piece);
        read.map_err(AttemptError::failed("the capture"))?;
        Ok(piece)
    }
}

fn too_early() -> AttemptError {
    AttemptError::Failed("an order came before one that it depends on".to_owned())
}

fn incomplete() -> AttemptError {
    AttemptError::Failed("the packets of a flow are incomplete".to_owned())
}

/// A packet in the data of flows.
fn recorded(packet: &[u8; PACKET_BYTES]) -> Recorded {
    let (at, bytes) = packet.split_at(8);
    let value = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte))
    };
    Recorded {
        at: Span::from_nanos(value(at)),
        ip_bytes: u32::try_from(value(bytes)).unwrap_or(u32::MAX),
    }
}

/// Appends a packet to the data of flows.
pub(super) fn append_packet(data: &mut Vec<u8>, at: Moment, l2_bytes: u32) {
    data.extend(at.nanos().to_be_bytes());
    data.extend(l2_bytes.to_be_bytes());
}

/// A flow of packets whose whole lengths are recorded.
fn flow(plan: FlowPlan, packets: Vec<Recorded>) -> SendingFlow {
    let pattern = Pattern::Replay(Replay::new(Timeline::since_start(packets)));
    let sizes = Sizes::Recorded {
        l3_offset: 0,
        least: plan.header_bytes,
    };
    let end = Moment::ZERO.saturating_add(Span::MAX);
    let random = Random::stream(0, 0);
    SendingFlow {
        name: plan.name,
        source: Source::new(pattern, sizes, Moment::ZERO, Span::ZERO, end, random),
        local: plan.local,
        remote: plan.remote,
        dscp: plan.dscp,
        header_bytes: plan.header_bytes,
        payload_bytes: plan.payload_bytes,
        inner: None,
    }
}

/// Addresses of an interface.
fn addresses(interface: &str) -> Result<Vec<IpAddr>, AttemptError> {
    let text =
        command::output(Tool::Ip, &["-j", "address", "show"]).map_err(AttemptError::Failed)?;
    let all: Vec<Interface> = serde_json::from_str(&text)
        .map_err(|error| AttemptError::Failed(format!("ip address show: {error}")))?;
    let names: Vec<&str> = all.iter().map(|one| one.ifname.as_str()).collect();
    let found = all.iter().find(|one| one.ifname == interface);
    let found = found.ok_or_else(|| {
        AttemptError::Failed(format!(
            "there is no interface `{interface}`: expected one of {}",
            names.join(", ")
        ))
    })?;
    Ok(found.addr_info.iter().filter_map(|one| one.local).collect())
}

/// One entry of `ip -j address show`.
#[derive(Debug, Deserialize)]
struct Interface {
    ifname: String,
    #[serde(default)]
    addr_info: Vec<Address>,
}

#[derive(Debug, Deserialize)]
struct Address {
    local: Option<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers to these orders, and whether all could be read.
    fn answers(input: &[u8]) -> (Vec<Answer>, bool) {
        let mut output = Vec::new();
        let input = io::Cursor::new(input.to_vec());
        let served = serve(input, &mut output, "1.2.3");
        let mut output = output.as_slice();
        let mut answers = Vec::new();
        while let Ok(Line::Message(answer, _)) = protocol::read(&mut output) {
            answers.push(answer);
        }
        (answers, served.is_ok())
    }

    fn orders(orders: &[(Order, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (order, data) in orders {
            protocol::write(&mut bytes, order, data).unwrap();
        }
        bytes
    }

    #[test]
    fn orders_that_cannot_be_carried_out_are_refused_and_the_host_goes_on() {
        let plan = FlowPlan {
            name: "voice".to_owned(),
            local: SocketAddr::from(([127, 0, 0, 1], 0)),
            remote: SocketAddr::from(([127, 0, 0, 1], 9)),
            dscp: 0,
            header_bytes: 42,
            payload_bytes: 100,
            packets: 2,
        };
        let missing = Order::Prepare {
            interface: "no-such-interface".to_owned(),
        };
        let load = || Order::Load {
            flows: vec![plan.clone()],
        };
        let input = orders(&[
            (Order::StopSending, b""),
            (Order::StopCapture, b""),
            (load(), b"one packet, less"),
            (load(), &[0; PACKET_BYTES]),
            (missing, b""),
            (Order::ReadProcessors, b""),
        ]);
        let (answers, is_read) = answers(&input);
        let ready = Answer::Ready {
            version: "1.2.3".to_owned(),
        };
        assert_eq!(answers.first(), Some(&ready));
        let is_refused = |answer: &Answer| matches!(answer, Answer::Refused { .. });
        assert!(answers[1..6].iter().all(is_refused), "{answers:?}");
        assert!(matches!(answers[6], Answer::Processors { .. }));
        assert!(is_read);
        assert_eq!(answers.len(), 7);
    }

    #[test]
    fn anything_but_an_order_ends_the_host() {
        let (greeted, is_read) = answers(b"GET / HTTP/1.1\n");
        assert!(greeted.len() == 1 && !is_read);
        let (greeted, is_read) = answers(b"[{\"order\":\"reboot\"},0]\n");
        assert!(greeted.len() == 1 && !is_read);
    }

    #[test]
    fn datagrams_count_whether_they_are_taken_or_refused() {
        let columns = "Ip: InReceives InDelivers\nIp: 900 900\n\
            Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 100 20 3 7 3\n\
            UdpLite: InDatagrams NoPorts\nUdpLite: 5 5\n";
        assert_eq!(datagrams(columns), 123);
        let lines = "Ip6InReceives  \t900\nUdp6InDatagrams  \t40\nUdp6NoPorts \t2\nUdp6InErrors\t1\nUdp6OutDatagrams\t9\n\
            UdpLite6InDatagrams\t5\n";
        assert_eq!(datagrams(lines), 43);
        let before = datagrams_arrived().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .send_to(b"one", socket.local_addr().unwrap())
            .unwrap();
        // Linux counts it when it is read, or refused for want of room.
        socket.recv(&mut [0; 3]).unwrap();
        assert!(datagrams_arrived().unwrap() > before);
    }

    #[test]
    fn packets_of_a_flow_have_the_times_and_lengths_that_were_written() {
        let mut data = Vec::new();
        append_packet(&mut data, Moment::from_nanos(0x0102_0304_0506_0708), 1_514);
        let (packets, rest) = data.as_chunks();
        let packet = recorded(&packets[0]);
        assert_eq!((packets.len(), rest.len()), (1, 0));
        assert_eq!(packet.at.nanos(), 0x0102_0304_0506_0708);
        assert_eq!(packet.ip_bytes, 1_514);
    }
}
