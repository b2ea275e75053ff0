//! Messages between the machine that carries out a study and the hosts of a lab.
//!
//! A message is a line of JSON, `[message, bytes]`, followed by so many bytes of data. Each order gets one answer.

use super::clocks::Comparison;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slicewise_stats::testbed::SenderRecord;
use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Longest line, bytes.
const MAX_LINE: u64 = 64 << 20;
/// Most data behind a line, bytes.
const MAX_DATA: u64 = 1 << 30;

/// Order to a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(super) enum Order {
    /// Reserve the host, and describe it.
    Prepare { interface: String },
    /// Answer comparisons of clocks from now on.
    AnswerClocks { address: IpAddr },
    /// Compare the clock with that of a host that answers.
    CompareClocks { address: IpAddr, with: SocketAddr },
    /// Capture what is sent, or received, and passes a filter.
    Capture { sends: bool, filter: String },
    /// Open these ports, and discard what arrives.
    Listen { addresses: Vec<SocketAddr> },
    /// Be ready to send flows, whose packets are the data.
    Load { flows: Vec<FlowPlan> },
    /// Start sending after this time.
    Send { wait_ns: u64 },
    /// Stop sending.
    StopSending,
    /// Count the datagrams that have arrived.
    CountArrived,
    /// Report how busy the processors were since the last such order.
    ReadProcessors,
    /// End the capture.
    StopCapture,
    /// Read the next piece of the capture.
    ReadCapture,
}

/// Answer to an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    /// The first message of a host.
    Ready { version: String },
    /// The host has this interface.
    Host {
        addresses: Vec<IpAddr>,
        versions: Vec<(String, String)>,
    },
    /// Comparisons of clocks are answered on this port.
    AnsweringClocks { port: u16 },
    /// Result of a comparison.
    ClocksCompared { comparison: Comparison },
    /// Carried out.
    Done,
    /// Time zero on the clock of the host, ns since 1970.
    Sending { zero_ns: u64 },
    /// Figures of what was sent.
    Sent { senders: Vec<SenderRecord> },
    /// Frames that have arrived.
    Arrived { datagrams: u64 },
    /// Shares of processor time.
    Processors { steal_ratio: f64, idle_ratio: f64 },
    /// Counts of the capture.
    Captured { packets: u64, missed: u64 },
    /// The next piece is the data; no data is the end.
    Piece,
    /// The order could not be carried out.
    Refused { why: String, is_permanent: bool },
}

/// Flow to be sent. Of each packet the data has the time after time zero, ns (8 bytes), and the length, bytes (4 bytes),
/// in network byte order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FlowPlan {
    pub(super) name: String,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) dscp: u8,
    pub(super) header_bytes: u32,
    pub(super) payload_bytes: u32,
    pub(super) packets: u64,
}

/// Over an open connection something comes at least this often; after longer silence it has ended, though nobody said so.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// Writes a sign of life: an empty line, which is no message.
pub(super) fn write_sign_of_life(output: &mut impl Write) -> io::Result<()> {
    output.write_all(b"\n")?;
    output.flush()
}

/// Writes a message.
pub(super) fn write<M: Serialize>(
    output: &mut impl Write,
    message: &M,
    data: &[u8],
) -> io::Result<()> {
    let mut line = serde_json::to_vec(&(message, data.len()))?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.write_all(data)?;
    output.flush()
}

/// A line that may be a message.
pub(super) enum Line<M> {
    Message(M, Vec<u8>),
    /// Not a message, such as the greeting of a shell.
    Other(String),
    End,
}

/// Reads the next line, and the data of a message.
pub(super) fn read<M: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Line<M>> {
    let mut line = Vec::new();
    if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(Line::End);
    }
    let Ok((message, bytes)) = serde_json::from_slice::<(M, u64)>(&line) else {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        return Ok(Line::Other(text));
    };
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    if bytes > MAX_DATA {
        return Err(invalid("a message has more than 1 GiB of data"));
    }
    let mut data = Vec::new();
    input.by_ref().take(bytes).read_to_end(&mut data)?;
    if data.len() as u64 != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Line::Message(message, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written_between_lines_of_others() {
        let mut bytes = b"Welcome to host-a\n".to_vec();
        let order = Order::Send { wait_ns: 7 };
        write(&mut bytes, &order, b"with\ndata").unwrap();
        write(&mut bytes, &Order::StopSending, b"").unwrap();
        let mut input = bytes.as_slice();
        let greeting = read::<Order>(&mut input).unwrap();
        assert!(matches!(greeting, Line::Other(text) if text == "Welcome to host-a"));
        let first = read::<Order>(&mut input).unwrap();
        assert!(
            matches!(first, Line::Message(read, data) if read == order && data == b"with\ndata")
        );
        let second = read(&mut input).unwrap();
        assert!(matches!(second, Line::Message(Order::StopSending, data) if data.is_empty()));
        assert!(matches!(read::<Order>(&mut input), Ok(Line::End)));
    }

    #[test]
    fn data_that_is_cut_off_or_too_long_is_an_error() {
        let mut bytes = Vec::new();
        write(&mut bytes, &Order::CountArrived, b"whole").unwrap();
        bytes.pop();
        assert!(read::<Order>(&mut bytes.as_slice()).is_err());
        let long = "[{\"order\":\"count_arrived\"},1073741825]\n";
        assert!(read::<Order>(&mut long.as_bytes()).is_err());
    }
}
