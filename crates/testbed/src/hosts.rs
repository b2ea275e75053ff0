//! The hosts of a run: `generator` — `device` — `sink`, each a network namespace.
//!
//! Addresses are those of the study, each alone in its network (/32, /128) with a route and a permanent
//! neighbour entry, so that only offered traffic passes the device: no ARP, no neighbour discovery. VLAN
//! tags are added and removed at the ends. A second link between generator and sink bypasses the device:
//! it carries the control connection of iperf3 during a UDP test.

use crate::command::{self, Tool};
use crate::error::AttemptError;
use crate::lease::{self, Lease, PREFIX, delete_namespace};
use slicewise_live::sys::interface::Interfaces;
use slicewise_live::sys::namespace;
use slicewise_live::tagging::{self, TagRule};
use slicewise_study::ScenarioParams;
use slicewise_traffic::application::ApplicationSourceParams;
use slicewise_traffic::transport::{CongestionControl, TransportParams};
use slicewise_units::Duration as Span;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io;
use std::net::IpAddr;

/// Interface of generator and sink towards the device.
pub(crate) const INTERFACE: &str = "eth0";
/// Interfaces of the device.
pub(crate) const LEFT: &str = "left";
pub(crate) const RIGHT: &str = "right";
/// The link that bypasses the device.
const ASIDE: &str = "aside";
/// Routing table for traffic that bypasses the device.
const ASIDE_TABLE: &str = "100";
/// Bytes of two VLAN tags: frames of the longest IP packet must fit with them.
pub(crate) const TAGS_BYTES: u32 = 8;
/// Locally administered addresses of the interfaces: generator, sink; then the same for the bypass link.
const ADDRESSES: [&str; 4] = [
    "02:53:57:00:00:01",
    "02:53:57:00:00:02",
    "02:53:57:00:00:11",
    "02:53:57:00:00:12",
];

/// Three namespaces, deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Hosts {
    names: [String; 3],
}

impl Hosts {
    /// Create them for a scenario, on links with this MTU.
    pub(crate) fn new(
        lease: &Lease,
        scenario: &ScenarioParams,
        mtu_bytes: u32,
    ) -> Result<Self, AttemptError> {
        let plan = Plan::of(scenario)?;
        let prefix = format!("{PREFIX}{}", std::process::id());
        let hosts = Self {
            names: ["generator", "device", "sink"].map(|host| format!("{prefix}-{host}")),
        };
        let stranger = hosts
            .names
            .iter()
            .find(|name| lease::namespace(name).exists());
        if let Some(stranger) = stranger {
            return Err(AttemptError::Failed(format!(
                "network namespace {stranger} already exists and was not created by a testbed"
            )));
        }
        lease
            .owns(&hosts.names)
            .map_err(AttemptError::failed("the list of namespaces"))?;
        hosts
            .build(&plan, mtu_bytes)
            .map_err(AttemptError::Failed)?;
        Ok(hosts)
    }

    /// Where packets are sent.
    pub(crate) fn generator(&self) -> &str {
        &self.names[0]
    }

    /// Where the device under test is.
    pub(crate) fn device(&self) -> &str {
        &self.names[1]
    }

    /// Where packets arrive.
    pub(crate) fn sink(&self) -> &str {
        &self.names[2]
    }

    fn build(&self, plan: &Plan, mtu_bytes: u32) -> Result<(), String> {
        for name in &self.names {
            command::output(Tool::Ip, &["netns", "add", name])?;
        }
        let (generator, device, sink) = (self.generator(), self.device(), self.sink());
        let mtu = mtu_bytes.saturating_add(TAGS_BYTES);
        let [a, b, c, d] = ADDRESSES;
        let links = format!(
            "link add {INTERFACE} address {a} mtu {mtu} netns {generator} type veth peer name {LEFT} mtu {mtu} netns {device}\n\
             link add {INTERFACE} address {b} mtu {mtu} netns {sink} type veth peer name {RIGHT} mtu {mtu} netns {device}\n\
             link add {ASIDE} address {c} netns {generator} type veth peer name {ASIDE} address {d} netns {sink}\n"
        );
        command::run(Tool::Ip, &["-batch", "-"], &links)?;
        for (host, ends) in [
            (generator, [INTERFACE, ASIDE].as_slice()),
            (device, &[LEFT, RIGHT]),
            (sink, &[INTERFACE, ASIDE]),
        ] {
            self.prepare(host, ends)?;
        }
        configure(generator, &plan.sending_end(b, d, mtu_bytes))?;
        configure(sink, &plan.receiving_end(a, c, mtu_bytes))?;
        send_aside(generator, &plan.sending_rules())?;
        send_aside(sink, &plan.receiving_rules())?;
        tag(generator, &plan.tags, |rule| *rule)?;
        tag(sink, &plan.tags, |rule| TagRule {
            source: rule.destination,
            destination: rule.source,
            ..*rule
        })
    }

    /// Configure interfaces to send nothing on their own, and only normal frame sizes.
    fn prepare(&self, host: &str, ends: &[&str]) -> Result<(), String> {
        let on_a_wire =
            |name: &str| -> io::Result<()> { Interfaces::new()?.send_as_on_a_wire(name) };
        within(host, || {
            // Replies return by the bypass link.
            for scope in ["all", "default"].iter().chain(ends) {
                fs::write(format!("/proc/sys/net/ipv4/conf/{scope}/rp_filter"), "0")?;
            }
            ends.iter().try_for_each(|name| on_a_wire(name))
        })?;
        let mut batch = String::from("link set lo up\n");
        for name in ends {
            // Writing to a string cannot fail.
            let _ = writeln!(batch, "link set {name} addrgenmode none up");
        }
        configure(host, &batch)
    }

    /// Frames that the sink's interface has received.
    pub(crate) fn arrived(&self) -> Result<u64, AttemptError> {
        within(self.sink(), || Ok(frames_received(INTERFACE))).map_err(AttemptError::Failed)?
    }
}

/// Frames that an interface in the network namespace of this thread has received.
fn frames_received(interface: &str) -> Result<u64, AttemptError> {
    let path = "/proc/thread-self/net/dev";
    let text = fs::read_to_string(path).map_err(AttemptError::failed(path))?;
    let line = text.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        (name.trim() == interface).then_some(counters)
    });
    line.and_then(|counters| counters.split_whitespace().nth(1)?.parse().ok())
        .ok_or_else(|| AttemptError::Failed(format!("no counters of {interface} in {path}")))
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // If deletion fails, it stays on the list for the next testbed.
            let _ = delete_namespace(name);
        }
    }
}

/// Run a function in a namespace, on a separate thread.
pub(crate) fn within<T: Send>(
    name: &str,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, String> {
    namespace::open_in(Some(name), work).map_err(|error| error.to_string())
}

fn configure(host: &str, batch: &str) -> Result<(), String> {
    command::run(Tool::Ip, &["-n", host, "-batch", "-"], batch).map(drop)
}

/// Add rules of either family: `ip` needs `-6` for those of IPv6.
fn send_aside(host: &str, rules: &[String]) -> Result<(), String> {
    let (six, four): (Vec<&String>, Vec<&String>) =
        rules.iter().partition(|rule| rule.contains(':'));
    for (family, rules) in [("-4", four), ("-6", six)] {
        let batch: String = rules.iter().map(|rule| format!("{rule}\n")).collect();
        command::run(Tool::Ip, &["-n", host, family, "-batch", "-"], &batch)?;
    }
    Ok(())
}

fn tag(host: &str, rules: &[TagRule], as_seen: impl Fn(&TagRule) -> TagRule) -> Result<(), String> {
    if rules.is_empty() {
        return Ok(());
    }
    let rules: Vec<TagRule> = rules.iter().map(as_seen).collect();
    within(host, || tagging::attach(INTERFACE, &rules))
        .map_err(|error| format!("cannot add VLAN tags: {error}"))
}

/// Requirements of a scenario on the two ends.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    sources: BTreeSet<IpAddr>,
    destinations: BTreeSet<IpAddr>,
    tags: Vec<TagRule>,
    /// UDP ports whose TCP port of the same number belongs to iperf3.
    aside: BTreeSet<(IpAddr, IpAddr, u16)>,
    /// Settings of applications for packets to an address, of either end.
    routes: BTreeMap<IpAddr, RouteSettings>,
    /// An application uses CUBIC, which need not be what hosts use unless told.
    uses_cubic: bool,
}

impl Plan {
    pub(crate) fn of(scenario: &ScenarioParams) -> Result<Self, AttemptError> {
        let mut plan = Self::default();
        let mut tags = BTreeMap::new();
        let mut tcp = BTreeSet::new();
        let open = (scenario.sources.iter()).map(|source| source.headers.outermost());
        let closed = scenario.applications.iter().map(|source| source.headers);
        for headers in open.chain(closed) {
            let pair = (headers.source, headers.destination);
            let vlans = (headers.vlan, headers.inner_vlan);
            if let Some(other) = tags.insert(pair, vlans)
                && other != vlans
            {
                return Err(AttemptError::Unsupported(format!(
                    "sources from {} to {} have different VLAN tags: the testbed sets tags by \
                     address, so \
                     give each its own",
                    pair.0, pair.1
                )));
            }
            plan.sources.insert(pair.0);
            plan.destinations.insert(pair.1);
            let ends = (pair.0, pair.1, headers.destination_port);
            match headers.protocol {
                6 => tcp.insert(ends),
                _ => plan.aside.insert(ends),
            };
        }
        if let Some(both) = plan.sources.intersection(&plan.destinations).next() {
            return Err(AttemptError::Unsupported(format!(
                "{both} is the source of some packets and the destination of others: the testbed \
                 sends in one direction only"
            )));
        }
        if let Some((from, to, port)) = plan.aside.intersection(&tcp).next() {
            return Err(AttemptError::Unsupported(format!(
                "a TCP and a UDP source go from {from} to port {port} of {to}: give one another port"
            )));
        }
        for source in &scenario.applications {
            plan.route(source)?;
        }
        plan.tags = tags
            .into_iter()
            .filter_map(|((source, destination), (vlan, inner_vlan))| {
                Some(TagRule {
                    source,
                    destination,
                    vlan: vlan?,
                    inner_vlan,
                })
            })
            .collect();
        Ok(plan)
    }

    /// Have packets between the ends of a source go as its transport asks.
    fn route(&mut self, source: &ApplicationSourceParams) -> Result<(), AttemptError> {
        let settings = RouteSettings::of(&source.transport);
        self.uses_cubic |= source.transport.congestion == CongestionControl::Cubic;
        for address in [source.headers.source, source.headers.destination] {
            if let Some(other) = self.routes.insert(address, settings)
                && other != settings
            {
                return Err(AttemptError::Unsupported(format!(
                    "source {} and another one at {address} differ in MTU, ECN or the least time-out: the testbed sets \
                     these by address, so give each its own",
                    source.name
                )));
            }
        }
        Ok(())
    }

    fn sending_end(&self, peer: &str, aside_peer: &str, mtu_bytes: u32) -> String {
        let ends = (&self.sources, &self.destinations);
        self.end(ends, peer, aside_peer, mtu_bytes)
    }

    /// Returns the rules for packets that leave the generator by the bypass link.
    fn sending_rules(&self) -> Vec<String> {
        let rule = |(from, to, port): &(IpAddr, IpAddr, u16)| {
            format!("rule add from {from} to {to} ipproto tcp dport {port} lookup {ASIDE_TABLE}")
        };
        self.aside.iter().map(rule).collect()
    }

    fn receiving_end(&self, peer: &str, aside_peer: &str, mtu_bytes: u32) -> String {
        let ends = (&self.destinations, &self.sources);
        self.end(ends, peer, aside_peer, mtu_bytes)
    }

    /// Returns the rules for packets that leave the sink by the bypass link.
    fn receiving_rules(&self) -> Vec<String> {
        let rule = |(from, to, port): &(IpAddr, IpAddr, u16)| {
            format!("rule add from {to} to {from} ipproto tcp sport {port} lookup {ASIDE_TABLE}")
        };
        self.aside.iter().map(rule).collect()
    }

    /// One end: its own addresses, and routes to those of the other.
    fn end(
        &self,
        (own, others): (&BTreeSet<IpAddr>, &BTreeSet<IpAddr>),
        peer: &str,
        aside_peer: &str,
        mtu_bytes: u32,
    ) -> String {
        let mut batch = String::new();
        for address in own {
            let (bits, detection) = match address {
                IpAddr::V4(_) => (32, ""),
                IpAddr::V6(_) => (128, " nodad"),
            };
            let _ = writeln!(
                batch,
                "address add {address}/{bits} dev {INTERFACE}{detection}"
            );
        }
        for address in others {
            let mut settings = RouteSettings::words(self.routes.get(address), mtu_bytes);
            if self.uses_cubic {
                settings.push_str(" congctl cubic");
            }
            let _ = writeln!(
                batch,
                "route add {address} dev {INTERFACE} {settings}\n\
                 route add {address} dev {ASIDE} table {ASIDE_TABLE}\n\
                 neighbour add {address} lladdr {peer} dev {INTERFACE} nud permanent\n\
                 neighbour add {address} lladdr {aside_peer} dev {ASIDE} nud permanent"
            );
        }
        batch
    }
}

/// Linux's least time-out where nothing else is said.
const USUAL_MIN_RTO: Span = Span::from_millis(200);

/// Settings for each address that packets go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RouteSettings {
    mtu_bytes: u32,
    ecn: bool,
    min_rto: Span,
}

impl RouteSettings {
    const fn of(transport: &TransportParams) -> Self {
        Self {
            mtu_bytes: transport.mtu_bytes,
            ecn: transport.ecn,
            min_rto: transport.min_rto,
        }
    }

    /// As `ip route` takes them, on a link with this MTU.
    fn words(settings: Option<&Self>, link_mtu_bytes: u32) -> String {
        let Some(settings) = settings else {
            return format!("mtu {link_mtu_bytes}");
        };
        let mut words = format!("mtu {}", settings.mtu_bytes.min(link_mtu_bytes));
        if settings.ecn {
            words.push_str(" features ecn");
        }
        if settings.min_rto != USUAL_MIN_RTO {
            // Writing to a string cannot fail.
            let millis = settings.min_rto.nanos().div_ceil(1_000_000).max(1);
            let _ = write!(words, " rto_min {millis}ms");
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use insta::assert_snapshot;
    use slicewise_study::SourceParams;
    use slicewise_traffic::transport::TcpProfile;

    fn scenario(change: impl FnOnce(&mut Vec<SourceParams>)) -> ScenarioParams {
        let mut scenario = example::study().scenarios.swap_remove(0);
        change(&mut scenario.sources);
        scenario
    }

    fn refusal(change: impl FnOnce(&mut Vec<SourceParams>)) -> String {
        Plan::of(&scenario(change)).unwrap_err().to_string()
    }

    #[test]
    fn ambiguous_addresses_are_rejected() {
        let one_address = refusal(|sources| {
            let other = sources[0].headers;
            sources[2].headers.source = other.source;
            sources[2].headers.destination = other.destination;
        });
        assert_snapshot!(one_address, @"sources from 10.0.10.2 to 10.0.10.3 have different VLAN tags: the testbed sets tags by address, so give each its own");
        let both_ways = refusal(|sources| {
            sources[2].headers.destination = sources[0].headers.source;
        });
        assert_snapshot!(both_ways, @"10.0.10.2 is the source of some packets and the destination of others: the testbed sends in one direction only");
        let one_port = refusal(|sources| {
            sources[2].headers = sources[0].headers;
            sources[2].headers.protocol = 6;
        });
        assert_snapshot!(one_port, @"a TCP and a UDP source go from 10.0.10.2 to port 5201 of 10.0.10.3: give one another port");
    }

    #[test]
    fn sources_that_share_addresses_and_tags_are_one_host() {
        let plan = Plan::of(&scenario(|sources| {
            sources.push(sources[0].clone());
            sources[3].headers.destination_port += 1;
        }))
        .unwrap();
        assert_eq!(
            (plan.sources.len(), plan.tags.len(), plan.aside.len()),
            (3, 2, 3)
        );
    }

    #[test]
    fn routes_carry_what_applications_ask_of_tcp() {
        let mut scenario = scenario(|sources| sources.truncate(1));
        let mut source = example::bulk();
        source.transport.ecn = true;
        source.transport.congestion = CongestionControl::Cubic;
        scenario.applications = vec![source.clone()];
        let plan = Plan::of(&scenario).unwrap();
        let batch = plan.sending_end("peer", "aside", 1_500);
        let routes: Vec<&str> = batch.lines().filter(|line| line.contains("mtu")).collect();
        assert_snapshot!(routes.join("\n"), @"route add 10.0.10.3 dev eth0 mtu 1500 congctl cubic
route add 10.0.30.3 dev eth0 mtu 1500 features ecn congctl cubic");
        source.transport.ecn = false;
        scenario.applications.push(source);
        assert_snapshot!(Plan::of(&scenario).unwrap_err(), @"source copies and another one at 10.0.30.2 differ in MTU, ECN or the least time-out: the testbed sets these by address, so give each its own");
    }

    #[test]
    fn ends_are_configured_to_send_nothing_else() {
        let plan = Plan::of(&scenario(|_| ())).unwrap();
        let [a, b, c, d] = ADDRESSES;
        assert_snapshot!(plan.sending_end(b, d, 1_500), @r"
        address add 10.0.10.2/32 dev eth0
        address add 10.0.30.2/32 dev eth0
        address add 2001:db8::2/128 dev eth0 nodad
        route add 10.0.10.3 dev eth0 mtu 1500
        route add 10.0.10.3 dev aside table 100
        neighbour add 10.0.10.3 lladdr 02:53:57:00:00:02 dev eth0 nud permanent
        neighbour add 10.0.10.3 lladdr 02:53:57:00:00:12 dev aside nud permanent
        route add 10.0.30.3 dev eth0 mtu 1500
        route add 10.0.30.3 dev aside table 100
        neighbour add 10.0.30.3 lladdr 02:53:57:00:00:02 dev eth0 nud permanent
        neighbour add 10.0.30.3 lladdr 02:53:57:00:00:12 dev aside nud permanent
        route add 2001:db8::3 dev eth0 mtu 1500
        route add 2001:db8::3 dev aside table 100
        neighbour add 2001:db8::3 lladdr 02:53:57:00:00:02 dev eth0 nud permanent
        neighbour add 2001:db8::3 lladdr 02:53:57:00:00:12 dev aside nud permanent
        ");
        assert_snapshot!(plan.receiving_end(a, c, 1_500), @r"
        address add 10.0.10.3/32 dev eth0
        address add 10.0.30.3/32 dev eth0
        address add 2001:db8::3/128 dev eth0 nodad
        route add 10.0.10.2 dev eth0 mtu 1500
        route add 10.0.10.2 dev aside table 100
        neighbour add 10.0.10.2 lladdr 02:53:57:00:00:01 dev eth0 nud permanent
        neighbour add 10.0.10.2 lladdr 02:53:57:00:00:11 dev aside nud permanent
        route add 10.0.30.2 dev eth0 mtu 1500
        route add 10.0.30.2 dev aside table 100
        neighbour add 10.0.30.2 lladdr 02:53:57:00:00:01 dev eth0 nud permanent
        neighbour add 10.0.30.2 lladdr 02:53:57:00:00:11 dev aside nud permanent
        route add 2001:db8::2 dev eth0 mtu 1500
        route add 2001:db8::2 dev aside table 100
        neighbour add 2001:db8::2 lladdr 02:53:57:00:00:01 dev eth0 nud permanent
        neighbour add 2001:db8::2 lladdr 02:53:57:00:00:11 dev aside nud permanent
        ");
        assert_snapshot!(plan.sending_rules().join("\n"), @r"
        rule add from 10.0.10.2 to 10.0.10.3 ipproto tcp dport 5201 lookup 100
        rule add from 2001:db8::2 to 2001:db8::3 ipproto tcp dport 5201 lookup 100
        ");
        assert_snapshot!(plan.receiving_rules().join("\n"), @r"
        rule add from 10.0.10.3 to 10.0.10.2 ipproto tcp sport 5201 lookup 100
        rule add from 2001:db8::3 to 2001:db8::2 ipproto tcp sport 5201 lookup 100
        ");
        let tags: Vec<String> = plan
            .tags
            .iter()
            .map(|rule| {
                format!(
                    "{} to {}: {} {:?}",
                    rule.source, rule.destination, rule.vlan, rule.inner_vlan
                )
            })
            .collect();
        assert_snapshot!(tags.join("\n"), @r"
        10.0.10.2 to 10.0.10.3: 10 Some(7)
        2001:db8::2 to 2001:db8::3: 20 None
        ");
    }

    #[test]
    fn routes_carry_what_differs_from_a_linux_host() {
        let usual = TransportParams::of(TcpProfile::Linux);
        let words = |transport: TransportParams| {
            RouteSettings::words(Some(&RouteSettings::of(&transport)), 1_500)
        };
        assert_eq!(words(usual), "mtu 1500");
        assert_eq!(RouteSettings::words(None, 9_000), "mtu 9000");
        let other = TransportParams {
            ecn: true,
            mtu_bytes: 1_280,
            min_rto: Span::from_micros(4_500),
            ..usual
        };
        assert_eq!(words(other), "mtu 1280 features ecn rto_min 5ms");
        let large = TransportParams {
            mtu_bytes: 9_000,
            ..usual
        };
        assert_eq!(
            words(large),
            "mtu 1500",
            "longer packets are no packets of this link"
        );
    }
}
