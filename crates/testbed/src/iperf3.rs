//! Sources that iperf3 can send: constant rate for the whole run, over UDP or TCP.

use crate::command::Tool;
use crate::congestion;
use crate::ends::Ends;
use crate::error::AttemptError;
use crate::hosts::Hosts;
use crate::process::Process;
use slicewise_live::sys::scheduling;
use slicewise_study::{HostTiming, PatternParams, SizesParams, SourceParams};
use slicewise_traffic::application::{ApplicationSourceParams, BulkParams};
use slicewise_traffic::scenario::SourceHeaders;
use slicewise_units::Duration as Span;
use slicewise_wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time that iperf3 accepts.
const LONGEST_SECONDS: u32 = 86_400;
/// A limit that no connection reaches: the kernel paces a connection that has any.
const UNREACHED: &str = "16G";
/// Most connections of one iperf3.
pub(crate) const MOST_FLOWS: u32 = 128;

/// Returns true if iperf3 can send this source in a run of this length.
pub(crate) fn can_be(source: &SourceParams, run: Span) -> bool {
    source.pattern == PatternParams::Iperf3
        && source.sizes == SizesParams::Equal
        && matches!(source.headers.protocol, PROTOCOL_TCP | PROTOCOL_UDP)
        && source.headers.tunnel.is_none()
        && source.on_off.is_none()
        && source.start == Span::ZERO
        && source.stop >= run
}

/// The longest regular gap between two packets, ns: the period of the timer or of the rate, whichever is
/// longer.
pub(crate) fn longest_period(source: &SourceParams, hosts: &HostTiming) -> u64 {
    let bits = u64::from(source.largest.counted_bytes) * 8;
    let rate = source.rate.bits_per_second().max(1);
    let packet_ns = u128::from(bits) * 1_000_000_000 / u128::from(rate);
    hosts
        .timer_of(source.machine)
        .nanos()
        .max(u64::try_from(packet_ns).unwrap_or(u64::MAX))
}

/// A client and its server.
#[derive(Debug)]
pub(crate) struct Iperf3 {
    server: Process,
    client: Option<Process>,
    arguments: Vec<String>,
    temporary: PathBuf,
    /// True if its client runs before ordinary processes, which it may as it sleeps between packets.
    is_prompt: bool,
    name: String,
}

impl Iperf3 {
    /// Start the server; it listens when this returns. The client will send for `lasts` once started.
    /// Both put their temporary files in `temporary`.
    pub(crate) fn listen(
        hosts: &Hosts,
        temporary: &Path,
        source: &SourceParams,
        pacing_timer: Span,
        lasts: Span,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let ends = (source.name.as_str(), &source.headers);
        let mut iperf3 = Self::serve(hosts, temporary, ends, is_interrupted)?;
        iperf3.arguments = arguments(source, pacing_timer, lasts);
        // A TCP client may use a whole processor.
        iperf3.is_prompt = source.headers.protocol == PROTOCOL_UDP;
        Ok(iperf3)
    }

    /// The same for bulk transfers over so many connections.
    pub(crate) fn listen_for_bulk(
        hosts: &Hosts,
        temporary: &Path,
        source: &ApplicationSourceParams,
        bulk: &BulkParams,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let ends = (source.name.as_str(), &source.headers);
        let mut iperf3 = Self::serve(hosts, temporary, ends, is_interrupted)?;
        iperf3.arguments = bulk_arguments(source, bulk);
        Ok(iperf3)
    }

    fn serve(
        hosts: &Hosts,
        temporary: &Path,
        (name, headers): (&str, &SourceHeaders),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let (address, port) = (
            headers.destination.to_string(),
            headers.destination_port.to_string(),
        );
        let mut command = program(temporary);
        command.args(["-s", "-1", "--forceflush", "-B", &address, "-p", &port]);
        let mut server = Process::start(
            format!("iperf3 server of {name}"),
            command,
            Some(hosts.sink()),
        )?;
        server.wait_for("listening", PATIENCE, is_interrupted)?;
        Ok(Self {
            server,
            client: None,
            arguments: Vec::new(),
            temporary: temporary.to_path_buf(),
            is_prompt: false,
            name: format!("iperf3 client of {name}"),
        })
    }

    /// Start the client; it is about to send when [`wait_until_connected`](Self::wait_until_connected)
    /// returns.
    pub(crate) fn connect(&mut self, hosts: &Hosts) -> Result<(), AttemptError> {
        let mut command = program(&self.temporary);
        command.args(&self.arguments);
        if self.is_prompt {
            // Otherwise it waits for other threads, repeatedly for some milliseconds.
            scheduling::be_prompt_before_exec(&mut command);
        }
        self.client = Some(Process::start(
            self.name.as_str(),
            command,
            Some(hosts.generator()),
        )?);
        Ok(())
    }

    pub(crate) fn wait_until_connected(
        &mut self,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), AttemptError> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let connected = client.wait_for("connected to", PATIENCE, is_interrupted);
        connected.map_err(|error| both(error, &mut self.server))
    }

    /// An error if either end has ended.
    pub(crate) fn check(&mut self) -> Result<(), AttemptError> {
        let Some(client) = &mut self.client else {
            return self.server.check();
        };
        client
            .check()
            .map_err(|error| both(error, &mut self.server))?;
        self.server.check().map_err(|error| both(error, client))
    }
}

/// One end has ended. The other soon ends, too, or ended first, and its output says why.
fn both(error: AttemptError, other: &mut Process) -> AttemptError {
    let AttemptError::Retryable(why) = error else {
        return error;
    };
    AttemptError::Retryable(match other.check_soon() {
        Ok(()) => why,
        Err(error) => format!("{why}; {error}"),
    })
}

/// iperf3, with its temporary files in that folder: both ends create one while connecting, which stays
/// if they are killed at that moment.
fn program(temporary: &Path) -> Command {
    let mut command = Command::new(Tool::Iperf3.name());
    command.env("TMPDIR", temporary);
    command
}

fn arguments(source: &SourceParams, pacing_timer: Span, lasts: Span) -> Vec<String> {
    let headers = &source.headers;
    // iperf3 rates count payload.
    let rate = u128::from(source.rate.bits_per_second()) * u128::from(source.largest.payload_bytes)
        / u128::from(source.largest.counted_bytes.max(1));
    let mut arguments: Vec<String> = Vec::new();
    let mut set = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    set("-c", headers.destination.to_string());
    set("-B", headers.source.to_string());
    set("-p", headers.destination_port.to_string());
    if headers.source_port != 0 {
        set("--cport", headers.source_port.to_string());
    }
    set("-b", rate.to_string());
    set("-l", source.largest.payload_bytes.to_string());
    set("-t", lasts.nanos().div_ceil(1_000_000_000).to_string());
    // It takes whole microseconds; studies on real packets use whole microseconds.
    set(
        "--pacing-timer",
        (pacing_timer.nanos().saturating_add(500) / 1_000).to_string(),
    );
    if headers.dscp > 0 {
        set("--dscp", headers.dscp.to_string());
    }
    arguments.push("--forceflush".to_owned());
    if headers.protocol == PROTOCOL_UDP {
        arguments.push("-u".to_owned());
    }
    arguments
}

/// For all connections in one process, until it is ended.
fn bulk_arguments(source: &ApplicationSourceParams, bulk: &BulkParams) -> Vec<String> {
    let headers = &source.headers;
    let mut arguments: Vec<String> = Vec::new();
    let mut set = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    set("-c", headers.destination.to_string());
    set("-B", headers.source.to_string());
    set("-p", headers.destination_port.to_string());
    set("--cport", Ends::of(source).opening.port().to_string());
    set("-P", bulk.flows.to_string());
    if let Some(rate) = bulk.bitrate {
        set("-b", rate.bits_per_second().to_string());
    }
    set(
        "-C",
        congestion::name(source.transport.congestion).to_owned(),
    );
    set("-t", LONGEST_SECONDS.to_string());
    if source.transport.pacing {
        set("--fq-rate", UNREACHED.to_owned());
    }
    // Nobody reads what it says of each interval.
    set("-i", "0".to_owned());
    if headers.dscp > 0 {
        set("--dscp", headers.dscp.to_string());
    }
    arguments.push("--forceflush".to_owned());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use insta::assert_snapshot;

    #[test]
    fn a_client_sends_as_the_source_specifies() {
        let study = example::study()
            .into_testbed(slicewise_study::Pacing::Departures)
            .unwrap();
        let lasts = Span::from_millis(4_800);
        let line = |index: usize| {
            let sources = example::sources();
            let source = &sources[index];
            arguments(source, study.hosts.timer_of(source.machine), lasts).join(" ")
        };
        assert_snapshot!(line(0), @"-c 10.0.10.3 -B 10.0.10.2 -p 5201 --cport 49152 -b 774774 -l 172 -t 5 --pacing-timer 1001 --dscp 46 --forceflush -u");
        assert_snapshot!(line(2), @"-c 10.0.30.3 -B 10.0.30.2 -p 80 --cport 40000 -b 5000000 -l 1448 -t 5 --pacing-timer 1003 --forceflush");
    }

    #[test]
    fn bulk_transfers_come_from_the_ports_of_the_source_until_they_are_ended() {
        let mut source = example::bulk();
        let line = bulk_arguments(&source, &example::transfers(&source)).join(" ");
        assert_snapshot!(line, @"-c 10.0.30.3 -B 10.0.30.2 -p 80 --cport 40000 -P 4 -C reno -t 86400 -i 0 --forceflush");
        source.transport.pacing = true;
        source.headers.source_port = 0;
        let limited = BulkParams {
            bitrate: Some(slicewise_units::BitRate::new(2_000_000)),
            ..example::transfers(&source)
        };
        let line = bulk_arguments(&source, &limited).join(" ");
        assert_snapshot!(line, @"-c 10.0.30.3 -B 10.0.30.2 -p 80 --cport 20000 -P 4 -b 2000000 -C reno -t 86400 --fq-rate 16G -i 0 --forceflush");
    }

    #[test]
    fn iperf3_sends_only_constant_rate_sources() {
        let study = example::study();
        let able = |change: &dyn Fn(&mut SourceParams)| {
            let mut source = example::sources().swap_remove(0);
            change(&mut source);
            can_be(&source, study.duration)
        };
        assert!(able(&|_| ()));
        assert!(able(&|source| source.headers.protocol = PROTOCOL_TCP));
        assert!(!able(&|source| source.sizes = SizesParams::Mix(Vec::new())));
        assert!(!able(&|source| source.headers.protocol = 47));
        assert!(!able(&|source| source.pattern = PatternParams::Cbr));
        assert!(!able(&|source| source.start = Span::from_millis(1)));
        assert!(!able(&|source| source.stop = Span::from_millis(2_499)));
        assert!(
            !can_be(&example::sources()[1], study.duration),
            "on and off"
        );
    }
}
