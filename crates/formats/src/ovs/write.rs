//! A policy as commands of Open vSwitch.

use super::openflow::{SCTP, SHORTHANDS, TCP, UDP, has_ports};
use super::{BURST_MIN, quantum};
use crate::export::{ExportError, Inexpressible};
use crate::flow::{Flow, outermost_flows_of, port_blocks};
use crate::script::{self, comment};
use slicewise_model::{
    CLASS_DEFAULT, ClassParams, Discipline, IpPrefix, NamedQueueParams, PolicyParams, Rate,
    Separation, ShaperParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount};
use std::fmt;

/// The priority of the rules of the first class; each later class has one less.
const PRIORITY_FIRST: u16 = 32_768;
/// Most rules of a policy.
const RULES_MAX: usize = 65_536;
/// The bridge of the commands.
const BRIDGE: &str = "br0";
/// DSCP has 6 bits.
const CODE_POINTS: u32 = 64;

/// A policy as commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OvsConfig {
    /// The policy's name.
    pub policy: String,
    /// The interface whose egress is configured.
    pub interface: String,
    /// The command that creates the queues: its arguments, without `ovs-vsctl` before them.
    pub vsctl: Vec<String>,
    /// The OpenFlow rules that choose queues.
    pub rules: Vec<String>,
    /// How what the switch then does differs from the policy, a sentence or a few each.
    pub differences: Vec<String>,
}

impl fmt::Display for OvsConfig {
    /// A shell script.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interface = &self.interface;
        writeln!(f, "#!/bin/sh")?;
        let title = format!("Policy `{}` at the egress of {interface}.", self.policy);
        comment(f, "", &title)?;
        let bridge = format!("{BRIDGE} stands for the bridge that {interface} is a port of.");
        comment(f, "", &bridge)?;
        let removal = format!(
            "Remove it with: ovs-vsctl clear port {interface} qos -- --all destroy qos -- --all destroy queue (all \
             queues of the switch), and ovs-ofctl del-flows {BRIDGE} (all rules of the bridge)"
        );
        comment(f, "", &removal)?;
        comment(f, "", "What differs from the policy:")?;
        for difference in &self.differences {
            comment(f, "- ", difference)?;
        }
        writeln!(f, "set -e\n")?;
        write!(f, "ovs-vsctl")?;
        for argument in &self.vsctl {
            f.write_str(if argument == "--" { " \\\n  " } else { " " })?;
            script::argument(f, argument)?;
        }
        writeln!(f, "\n")?;
        for rule in &self.rules {
            write!(f, "ovs-ofctl add-flow {BRIDGE} ")?;
            script::argument(f, rule)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Translate `policy`, for a link of rate `link` behind the egress of `interface`.
///
/// # Errors
/// All that Open vSwitch cannot express: another discipline than `minimum_share`; priorities, policers, WRED, flow queues,
/// elephants, children; rates that do not count L2; class maps that are not a union of flows; an interface that cannot
/// have that name.
pub fn write(policy: &PolicyParams, link: Rate, interface: &str) -> Result<OvsConfig, ExportError> {
    let mut writer = Writer::default();
    if !script::is_interface_name(interface) {
        let why = format!("`{interface}` is not the name of one");
        writer.refuse(None, "interface", why);
    }
    let (limit, inner) = match limited(policy) {
        Some((limit, inner)) => (limit, inner),
        None => (link.rate, policy),
    };
    writer.policy(inner);
    if !writer.problems.is_empty() {
        return Err(ExportError {
            policy: policy.name.clone(),
            language: "Open vSwitch",
            problems: writer.problems,
        });
    }
    writer.remark(link);
    let mut vsctl: Vec<String> = ["set", "port", interface, "qos=@qos", "--", "--id=@qos"]
        .map(str::to_owned)
        .to_vec();
    vsctl.extend(["create", "qos", "type=linux-htb"].map(str::to_owned));
    vsctl.push(format!("other-config:max-rate={}", limit.bits_per_second()));
    // The switch has a queue 0 in any case.
    let columns = writer.queues.iter().enumerate();
    let columns: Vec<(usize, Vec<String>)> = columns
        .map(|(number, queue)| (number, queue.columns(number)))
        .filter(|(_, columns)| !columns.is_empty())
        .collect();
    let numbers = columns.iter().map(|(number, _)| number);
    vsctl.extend(numbers.map(|number| format!("queues:{number}=@q{number}")));
    for (number, columns) in columns {
        vsctl.extend(["--".to_owned(), format!("--id=@q{number}")]);
        vsctl.extend(["create", "queue"].map(str::to_owned));
        vsctl.extend(columns);
    }
    Ok(OvsConfig {
        policy: policy.name.clone(),
        interface: interface.to_owned(),
        vsctl,
        rules: writer.rules,
        differences: writer.differences,
    })
}

/// The rate and the rest of a policy that only limits all classes together.
fn limited(policy: &PolicyParams) -> Option<(BitRate, &PolicyParams)> {
    let [only] = policy.classes.as_slice() else {
        return None;
    };
    let (shape, child) = (only.shape?, only.child.as_deref()?);
    let is_plain = only.police.is_none() && only.set_dscp.is_none() && only.minimum.is_none();
    let is_l2 = shape.rate.accounting == Accounting::L2;
    (is_plain && is_l2).then_some((shape.rate.rate, child))
}

/// A queue of the switch.
struct Queue {
    name: String,
    minimum: Option<BitRate>,
    weight: u32,
    shape: Option<(BitRate, ByteCount)>,
    dscp: Option<u8>,
}

impl Queue {
    fn columns(&self, number: usize) -> Vec<String> {
        let mut columns = Vec::new();
        let rate =
            |key: &str, rate: BitRate| format!("other-config:{key}={}", rate.bits_per_second());
        columns.extend(self.minimum.map(|minimum| rate("min-rate", minimum)));
        if let Some((maximum, burst)) = self.shape {
            columns.push(rate("max-rate", maximum));
            columns.push(format!("other-config:burst={}", burst.bits()));
        }
        columns.extend(self.dscp.map(|dscp| format!("dscp={dscp}")));
        let is_told_by_number =
            self.name == CLASS_DEFAULT || self.name == format!("queue-{number}");
        if self.is_plain() && !is_told_by_number {
            columns.push(format!("external-ids:name={}", self.name));
        } else if columns.is_empty() && number > 0 {
            // A record is created with at least one column.
            columns.push("other-config={}".to_owned());
        }
        columns
    }

    /// Returns true if the switch accepts its name without quotes.
    fn is_plain(&self) -> bool {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        !self.name.is_empty() && self.name.len() <= 64 && self.name.bytes().all(is_plain)
    }
}

#[derive(Default)]
struct Writer {
    /// By number.
    queues: Vec<Queue>,
    rules: Vec<String>,
    differences: Vec<String>,
    problems: Vec<Inexpressible>,
}

impl Writer {
    fn refuse(&mut self, class: Option<&str>, what: &'static str, why: impl Into<String>) {
        self.problems.push(Inexpressible {
            class: class.map(str::to_owned),
            what,
            why: why.into(),
        });
    }

    fn policy(&mut self, policy: &PolicyParams) {
        if policy.discipline != Discipline::MinimumShare {
            let why =
                "its queues have a minimum, and share the excess: the discipline `minimum_share`";
            self.refuse(None, "discipline", why);
            return;
        }
        let default = policy.classes.last();
        let of_class = |class: &ClassParams| match &class.named_queue {
            Some(name) => policy
                .queues
                .iter()
                .find(|queue| queue.name == *name)
                .cloned(),
            None => Some(NamedQueueParams::from(class.clone())),
        };
        let mut own = policy
            .classes
            .iter()
            .filter(|class| class.named_queue.is_none());
        let named = |name: &str| policy.queues.iter().any(|queue| queue.name == name);
        if let Some(class) = own.find(|class| named(&class.name)) {
            let why = "a named queue has the name of this class, which has a queue of its own";
            self.refuse(Some(&class.name), "queue", why);
        }
        // Queue 0 is that of frames which no rule matches. Named queues keep their order.
        let first = default.and_then(of_class);
        let is_used = |queue: &&NamedQueueParams| {
            let mut classes = policy.classes.iter();
            classes.any(|class| class.named_queue.as_ref() == Some(&queue.name))
        };
        let named = policy.queues.iter().filter(is_used).cloned();
        let owned = policy.classes.iter().filter_map(of_class);
        for queue in first.into_iter().chain(named).chain(owned) {
            if self.queues.iter().all(|known| known.name != queue.name) {
                self.queue(queue);
            }
        }
        let count = policy.classes.len().saturating_sub(1);
        if count >= usize::from(PRIORITY_FIRST) {
            self.refuse(
                None,
                "classes",
                format!("there are {PRIORITY_FIRST} priorities of rules, one a class"),
            );
            return;
        }
        for (class, priority) in policy.classes.iter().zip((0..=PRIORITY_FIRST).rev()) {
            self.class(class, priority);
        }
    }

    fn queue(&mut self, queue: NamedQueueParams) {
        let name = queue.name.as_str();
        let manager = queue.queue.manager.setting();
        let by_flow = queue.queue.flows != Separation::None;
        let refused = [
            (
                "priority",
                queue.priority.is_some(),
                "no queue is served strictly first",
            ),
            ("flow_queue", by_flow, "it has no queue for each flow"),
            (
                manager.unwrap_or_default(),
                manager.is_some() && !by_flow,
                "its queues drop at their end alone",
            ),
        ];
        for (what, is_set, why) in refused {
            if is_set {
                self.refuse(Some(name), what, why);
            }
        }
        let rates = [
            ("minimum", queue.minimum.map(|(rate, _)| rate)),
            ("shape", queue.shape.map(|shape| shape.rate)),
        ];
        for (what, rate) in rates {
            if rate.is_some_and(|rate| rate.accounting != Accounting::L2) {
                self.refuse(
                    Some(name),
                    what,
                    "the kernel counts frames without FCS (L2)",
                );
            }
        }
        let minimum = queue.minimum.map(|(rate, _)| rate.rate);
        let shape = queue
            .shape
            .map(|ShaperParams { rate, burst, .. }| (rate.rate, burst));
        self.queues.push(Queue {
            name: queue.name,
            minimum,
            weight: queue.weight,
            shape,
            dscp: None,
        });
    }

    fn class(&mut self, class: &ClassParams, priority: u16) {
        let name = class.name.as_str();
        let refused = [
            (
                "elephants",
                class.elephants.is_some(),
                "flows are not told apart by their rate",
            ),
            ("child", class.child.is_some(), "queues are not divided"),
            ("hqos", class.hqos.is_some(), "queues are not divided"),
        ];
        for (what, is_set, why) in refused {
            if is_set {
                self.refuse(Some(name), what, why);
            }
        }
        if let Some(police) = &class.police
            && !police.passes_all()
        {
            self.refuse(Some(name), "police", "its queues have no meter");
        }
        let queue = class.named_queue.as_ref().unwrap_or(&class.name);
        let Some(number) = self.queues.iter().position(|known| known.name == *queue) else {
            return;
        };
        if let Some(dscp) = class.set_dscp {
            self.mark(number, name, dscp);
        } else if self
            .queues
            .get(number)
            .is_some_and(|queue| queue.dscp.is_some())
        {
            self.refuse(
                Some(name),
                "set_dscp",
                "other classes of its queue are marked",
            );
        }
        if class.name == CLASS_DEFAULT {
            return;
        }
        let found = class
            .matches
            .as_ref()
            .map_or_else(|| Ok(vec![Flow::default()]), outermost_flows_of);
        let flows = match found {
            Ok(flows) => flows,
            Err(why) => return self.refuse(Some(name), "match", why),
        };
        for flow in &flows {
            let of_flow = rules(flow);
            if self.rules.len() + of_flow.len() > RULES_MAX {
                let why = format!("the class maps are more than {RULES_MAX} rules");
                return self.refuse(Some(name), "match", why);
            }
            self.rules.extend(of_flow.iter().map(|fields| {
                format!("priority={priority}{fields},actions=set_queue:{number},normal")
            }));
        }
    }

    fn mark(&mut self, number: usize, class: &str, dscp: u8) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        let is_other = queue.dscp.is_some_and(|other| other != dscp);
        queue.dscp = Some(dscp);
        if number == 0 {
            self.refuse(
                Some(class),
                "set_dscp",
                "queue 0, of frames that no rule matches, does not mark them",
            );
        } else if is_other {
            self.refuse(
                Some(class),
                "set_dscp",
                "other classes of its queue have another code point",
            );
        }
    }

    /// How the switch differs.
    fn remark(&mut self, link: Rate) {
        let mut differ = |difference: String| self.differences.push(difference);
        differ(
            "A queue holds as many packets as the interface's `txqueuelen`, whatever limit the policy has."
                .to_owned(),
        );
        differ(
            "A bucket is overdrawn by up to one frame, and a queue without a minimum has one of 12 kbit/s."
                .to_owned(),
        );
        let quanta = self
            .queues
            .iter()
            .map(|queue| u64::from(quantum(queue.minimum)));
        let shares: Vec<(u64, u64)> = quanta
            .zip(self.queues.iter().map(|queue| u64::from(queue.weight)))
            .collect();
        let first = shares.first().copied().unwrap_or((1, 1));
        let is_same = |&(quantum, weight): &(u64, u64)| quantum * first.1 == first.0 * weight;
        if !shares.iter().all(is_same) {
            let shares = shares.iter().zip(&self.queues);
            let shares: Vec<String> = shares
                .map(|((quantum, weight), queue)| format!("{} {quantum} ({weight})", queue.name))
                .collect();
            differ(format!(
                "The excess is shared by quanta that the kernel derives from minimum rates, not by the weights of the \
                 policy; bytes in a turn, and the weight: {}.",
                shares.join(", ")
            ));
        }
        let small = self
            .queues
            .iter()
            .filter(|queue| queue.shape.is_some_and(|(_, burst)| burst < BURST_MIN));
        let small: Vec<&str> = small.map(|queue| queue.name.as_str()).collect();
        if !small.is_empty() {
            differ(format!(
                "Bursts below {BURST_MIN} are {BURST_MIN}: {}.",
                small.join(", ")
            ));
        }
        if link.accounting != Accounting::L2 {
            differ(format!(
                "The link counts {}, but the kernel counts frames without FCS (L2).",
                link.accounting
            ));
        }
        let unnamed = self.queues.iter().enumerate();
        let unnamed = unnamed.filter(|(_, queue)| queue.name != CLASS_DEFAULT && !queue.is_plain());
        let unnamed: Vec<String> = unnamed
            .map(|(number, _)| format!("queue {number}"))
            .collect();
        if !unnamed.is_empty() {
            differ(format!(
                "Names that would need quotes are left out: {}.",
                unnamed.join(", ")
            ));
        }
        let tunnels = "Rules look at the outermost IP packet: packets in a GTP-U tunnel are matched by the outer packet.";
        differ(tunnels.to_owned());
        let uses_default = "Frames that no rule matches need a rule to be forwarded, as a bridge has from the start.";
        differ(uses_default.to_owned());
    }
}

/// The fields of the rules for a flow, each after a comma. A rule has one value or one mask for a field.
fn rules(flow: &Flow) -> Vec<String> {
    let mut rules = Vec::new();
    let has_layer_3 = flow.protocol.is_some() || flow.dscp.is_some();
    let has_layer_4 = flow.source_ports.is_some() || flow.destination_ports.is_some();
    let versions: &[Option<bool>] = match flow.is_ipv4() {
        Some(true) => &[Some(true)],
        Some(false) => &[Some(false)],
        None if has_layer_3 || has_layer_4 => &[Some(true), Some(false)],
        None => &[None],
    };
    let protocols: Vec<Option<u8>> = match (flow.protocol, has_layer_4) {
        (None, true) => [TCP, UDP, SCTP].map(Some).to_vec(),
        // No other protocol has ports.
        (protocol, true) if !has_ports(protocol) => Vec::new(),
        (protocol, _) => vec![protocol],
    };
    let vlans = alternatives(
        flow.vlan
            .as_ref()
            .map(|range| range.clone().map(|id| format!(",dl_vlan={id}"))),
    );
    let code_points =
        (0..CODE_POINTS).filter(|bit| flow.dscp.is_some_and(|set| set >> bit & 1 == 1));
    let dscps = alternatives(
        flow.dscp
            .map(|_| code_points.map(|dscp| format!(",ip_dscp={dscp}"))),
    );
    let ports = |field: &str, range: &Option<std::ops::RangeInclusive<u16>>| {
        let blocks = range.as_ref().map(port_blocks);
        let field = field.to_owned();
        alternatives(blocks.map(|blocks| {
            blocks.into_iter().map(move |(first, fixed)| match fixed {
                16 => format!(",{field}={first}"),
                _ => format!(
                    ",{field}={first}/{:#06x}",
                    u16::MAX.checked_shl(16 - fixed).unwrap_or(0)
                ),
            })
        }))
    };
    let from = ports("tp_src", &flow.source_ports);
    let to = ports("tp_dst", &flow.destination_ports);
    for vlan in &vlans {
        for version in versions {
            for protocol in &protocols {
                let network = network(flow, *version, *protocol);
                for dscp in &dscps {
                    for from in &from {
                        let ends = to.iter();
                        rules.extend(ends.map(|to| format!("{vlan}{network}{dscp}{from}{to}")));
                    }
                }
            }
        }
    }
    rules
}

/// Texts one of which a rule has, or an empty one where the field is not given.
fn alternatives(texts: Option<impl Iterator<Item = String>>) -> Vec<String> {
    texts.map_or_else(|| vec![String::new()], Iterator::collect)
}

/// EtherType, protocol and addresses.
fn network(flow: &Flow, is_ipv4: Option<bool>, protocol: Option<u8>) -> String {
    let Some(is_ipv4) = is_ipv4 else {
        return String::new();
    };
    let wanted = |&&(_, version, number): &&(&str, bool, Option<u8>)| {
        version == is_ipv4 && number == protocol
    };
    let mut text = match (SHORTHANDS.iter().find(wanted), protocol) {
        (Some((name, ..)), _) => format!(",{name}"),
        (None, Some(number)) => {
            format!(",{},nw_proto={number}", if is_ipv4 { "ip" } else { "ipv6" })
        }
        (None, None) => String::new(),
    };
    let all = [IpPrefix::ALL_IPV4, IpPrefix::ALL_IPV6];
    let family = if is_ipv4 { "nw" } else { "ipv6" };
    for (end, prefix) in [("src", flow.source), ("dst", flow.destination)] {
        if let Some(prefix) = prefix.filter(|prefix| !all.contains(prefix)) {
            text.push_str(&format!(",{family}_{end}={prefix}"));
        }
    }
    text
}
