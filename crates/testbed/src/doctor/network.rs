//! Network features of the kernel, tried in a temporary namespace.

use super::finding::{Check, EVERY_RUN, EVERYTHING, Finding, Fix, Group, Purpose};
use crate::command::{self, Tool};
use crate::hosts::within;
use crate::scratch::{PEER, SCRATCH, Scratch};
use slicewise_live::af_packet::AfPacketPort;
use slicewise_live::af_xdp::{AfXdpPort, Mode};
use slicewise_live::frame_memory::{FrameMemory, PortBudget};
use slicewise_live::patch;
use slicewise_live::port::Port;
use slicewise_live::sys::interface::Interfaces;
use slicewise_live::tagging::{self, TagRule};
use std::fs;
use std::io;
use std::net::Ipv4Addr;

const fn check(name: &'static str, needed_for: &'static str, stops: &'static [Purpose]) -> Check {
    Check {
        group: Group::Network,
        name,
        needed_for,
        stops,
    }
}

const NAMESPACES: Check = check("network namespaces", "the hosts of a testbed", EVERY_RUN);
const VETH: Check = check("virtual interfaces", "the links of a testbed", EVERY_RUN);
const SETTINGS: Check = check(
    "interface settings",
    "normal frame sizes, and replies that bypass the device",
    EVERY_RUN,
);
const ROUTING: Check = check(
    "routing by port",
    "the control connection of iperf3, which bypasses the device",
    EVERY_RUN,
);
const ROUTING_V6: Check = check(
    "IPv6 routing by port",
    "sources of UDP over IPv6 on a testbed",
    &[],
);
const PACKET_SOCKETS: Check = check(
    "packet sockets",
    "captures, and the gateway without AF_XDP",
    EVERYTHING,
);
const AF_XDP: Check = check("AF_XDP", "the gateway: frames without copies", &[]);
const TAGGING: Check = check(
    "VLAN tags by eBPF",
    "sources with VLAN tags on a testbed",
    &[],
);
const PATCH: Check = check(
    "patch by eBPF",
    "the device of `run --on tc`",
    &[Purpose::RunOnTc],
);

pub(super) const CHECKS: [Check; 9] = [
    NAMESPACES,
    VETH,
    SETTINGS,
    ROUTING,
    ROUTING_V6,
    PACKET_SOCKETS,
    AF_XDP,
    TAGGING,
    PATCH,
];

/// Chunks for the rings of one AF_XDP socket.
const MEMORY_CHUNKS: u32 = 4096;

/// Kernel options for eBPF programs at traffic control.
const FILTER_SYMBOLS: &str = "CONFIG_BPF_SYSCALL, CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS";
/// The interface a patch leads to: not the other end of the same link, or frames would loop.
const THIRD: &str = "scratch-third";

/// Returns true if this is the prerequisite of all other checks.
pub(super) fn is_first(check: &Check) -> bool {
    *check == NAMESPACES
}

pub(super) fn no_namespace(problem: &str) -> Finding {
    NAMESPACES.missing(problem).with_fix(Fix::advice(
        "a kernel with CONFIG_NET_NS; in a container, run it with CAP_SYS_ADMIN and a /run of its own",
    ))
}

/// Findings, and whether there are interfaces for further trials.
pub(super) fn examine(scratch: &Scratch) -> (Vec<Finding>, bool) {
    let mut findings = vec![NAMESPACES.ready("created and deleted")];
    if let Err(problem) = scratch.join() {
        findings.push(
            VETH.missing(problem)
                .with_fix(kernel("CONFIG_VETH and CONFIG_IPV6")),
        );
        let others = CHECKS.into_iter().skip(2);
        let unknown = others.map(|check| check.unknown("no interface to try it on"));
        findings.extend(unknown);
        return (findings, false);
    }
    findings.push(VETH.ready("created and deleted"));
    findings.push(outcome(&SETTINGS, settings(scratch), || {
        Fix::advice("make /proc/sys writable: in a container, run it privileged")
    }));
    findings.extend(routing(scratch));
    findings.push(outcome(&PACKET_SOCKETS, packet_sockets(scratch), || {
        kernel("CONFIG_PACKET")
    }));
    findings.push(af_xdp(scratch));
    findings.push(outcome(&TAGGING, tag(scratch), || kernel(FILTER_SYMBOLS)));
    findings.push(outcome(&PATCH, join(scratch), || kernel(FILTER_SYMBOLS)));
    (findings, true)
}

fn kernel(symbols: &str) -> Fix {
    Fix::advice(format!("a kernel with {symbols}"))
}

fn outcome(check: &Check, tried: Result<(), String>, fix: impl FnOnce() -> Fix) -> Finding {
    match tried {
        Ok(()) => check.ready("works"),
        Err(problem) => check.missing(problem).with_fix(fix()),
    }
}

fn settings(scratch: &Scratch) -> Result<(), String> {
    within(scratch.name(), || {
        let path = "/proc/sys/net/ipv4/conf/all/rp_filter";
        let named = |error| io::Error::other(format!("{path}: {error}"));
        fs::write(path, "0").map_err(named)?;
        Interfaces::new()?.send_as_on_a_wire(SCRATCH)
    })
}

fn routing(scratch: &Scratch) -> [Finding; 2] {
    let families = [
        (ROUTING, "-4", "CONFIG_IP_MULTIPLE_TABLES"),
        (ROUTING_V6, "-6", "CONFIG_IPV6_MULTIPLE_TABLES"),
    ];
    families.map(|(check, family, symbol)| {
        let rule = "rule add ipproto tcp dport 5201 lookup 100".split(' ');
        let mut arguments = vec!["-n", scratch.name(), family];
        arguments.extend(rule);
        let tried = command::output(Tool::Ip, &arguments).map(drop);
        outcome(&check, tried, || kernel(symbol))
    })
}

fn packet_sockets(scratch: &Scratch) -> Result<(), String> {
    within(scratch.name(), || {
        let state = Interfaces::new()?.state(SCRATCH)?;
        AfPacketPort::open(&state).map(drop)
    })
}

fn af_xdp(scratch: &Scratch) -> Finding {
    match open_af_xdp(scratch) {
        Ok(Mode::Native) => AF_XDP.ready("native, on virtual interfaces"),
        Ok(Mode::Generic) => AF_XDP
            .limited("generic, on virtual interfaces: slower")
            .with_fix(Fix::advice(
                "a kernel with native XDP for virtual interfaces, Linux 4.19 or later",
            )),
        Err(problem) => AF_XDP
            .limited(format!("{problem}; packet sockets are used instead"))
            .with_fix(kernel(
                "CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL, Linux 5.9 or later",
            )),
    }
}

fn open_af_xdp(scratch: &Scratch) -> Result<Mode, String> {
    within(scratch.name(), || {
        let state = Interfaces::new()?.state(SCRATCH)?;
        let mut memory = FrameMemory::new(MEMORY_CHUNKS)?;
        let mut port = AfXdpPort::open(&state, 1, PortBudget::full(1), &mut memory)
            .map_err(|failed| io::Error::other(format!("{}: {}", failed.doing, failed.error)))?;
        let mode = port.mode();
        port.close(&mut memory);
        Ok(mode)
    })
}

/// At the other end, so that traffic control's end is unchanged.
fn tag(scratch: &Scratch) -> Result<(), String> {
    let rule = TagRule {
        source: Ipv4Addr::new(192, 0, 2, 1).into(),
        destination: Ipv4Addr::new(192, 0, 2, 2).into(),
        vlan: 10,
        inner_vlan: Some(20),
    };
    within(scratch.name(), || tagging::attach(PEER, &[rule]))
}

fn join(scratch: &Scratch) -> Result<(), String> {
    scratch.configure(&format!("link add {THIRD} type veth\n"))?;
    within(scratch.name(), || patch::join(PEER, THIRD))
}
