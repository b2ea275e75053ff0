//! The study: a slice for each circuit, nodes as classes with a policy of their own, and the loads.

use super::{Circuit, NetworkNode, Shaping};
use slicewise_units::BitRate;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Levels of nodes that have a class: below the link, and above the circuits. Deeper nodes are flattened into the last of them.
pub const NODE_LEVELS_MAX: usize = 4;

/// A node with its circuits, as a class.
struct Branch<'a> {
    name: String,
    title: &'a str,
    rate: BitRate,
    branches: Vec<Branch<'a>>,
    leaves: Vec<Leaf<'a>>,
}

/// A circuit, as a class.
struct Leaf<'a> {
    name: String,
    circuit: &'a Circuit,
    minimum: BitRate,
    maximum: BitRate,
}

/// Remarks on the study beside its settings.
#[derive(Default)]
struct Remarks {
    /// Nodes that have no class.
    flattened: Vec<String>,
    /// Nodes whose circuits are promised more than it carries.
    overbooked: Vec<String>,
    /// Circuits behind a node that `network.json` does not have.
    astray: Vec<String>,
}

/// A study of `shaping`: YAML.
#[must_use]
pub fn study(shaping: &Shaping) -> String {
    let mut builder = Builder::of(shaping);
    let mut root = builder.root(shaping);
    fit(&mut root, &mut builder.remarks);
    let mut leaves = Vec::new();
    collect(&root, &mut leaves);
    // In the order of the file.
    leaves.sort_by_key(|leaf| builder.places.get(leaf.circuit.id.as_str()));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_study(&mut text, &root, &leaves, &builder.remarks);
    text
}

struct Builder<'a> {
    circuits: BTreeMap<&'a str, Vec<&'a Circuit>>,
    places: BTreeMap<&'a str, usize>,
    taken: BTreeSet<String>,
    remarks: Remarks,
}

impl<'a> Builder<'a> {
    fn of(shaping: &'a Shaping) -> Self {
        let mut circuits: BTreeMap<&str, Vec<&Circuit>> = BTreeMap::new();
        let mut places = BTreeMap::new();
        for (place, circuit) in shaping.circuits.iter().enumerate() {
            circuits.entry(&circuit.parent).or_default().push(circuit);
            places.insert(circuit.id.as_str(), place);
        }
        Self {
            circuits,
            places,
            taken: BTreeSet::from(["class-default".to_owned()]),
            remarks: Remarks::default(),
        }
    }

    fn root(&mut self, shaping: &'a Shaping) -> Branch<'a> {
        let nodes = shaping.network.iter();
        let branches: Vec<Branch<'a>> = nodes.map(|node| self.branch(node, 1)).collect();
        // What is left is behind no node that there is.
        let rest = std::mem::take(&mut self.circuits);
        let astray = rest.iter().filter(|(parent, _)| !parent.is_empty());
        self.remarks.astray = astray
            .flat_map(|(_, them)| them)
            .map(|it| it.id.clone())
            .collect();
        let rest = rest.into_values().flatten();
        let leaves: Vec<Leaf<'a>> = rest.map(|it| self.leaf(it, BitRate::MAX)).collect();
        let rates = branches.iter().map(|branch| branch.rate);
        let rates = rates.chain(leaves.iter().map(|leaf| leaf.maximum));
        Branch {
            name: String::new(),
            title: "the link",
            rate: rates.fold(BitRate::ZERO, |sum, rate| sum + rate),
            branches,
            leaves,
        }
    }

    fn branch(&mut self, node: &'a NetworkNode, level: usize) -> Branch<'a> {
        let name = self.name(&node.name, "node");
        let own = self.circuits.remove(node.name.as_str()).unwrap_or_default();
        let mut leaves: Vec<Leaf<'a>> =
            own.into_iter().map(|it| self.leaf(it, node.rate)).collect();
        let mut branches = Vec::new();
        for child in &node.children {
            if level < NODE_LEVELS_MAX {
                branches.push(self.branch(child, level + 1));
            } else {
                self.flatten(child, child.rate.min(node.rate), &mut leaves);
            }
        }
        Branch {
            name,
            title: &node.name,
            rate: node.rate,
            branches,
            leaves,
        }
    }

    /// The circuits of a node that has no class, each of which gets no more than the nodes around it carry.
    fn flatten(&mut self, node: &'a NetworkNode, rate: BitRate, leaves: &mut Vec<Leaf<'a>>) {
        self.remarks.flattened.push(node.name.clone());
        let own = self.circuits.remove(node.name.as_str()).unwrap_or_default();
        leaves.extend(own.into_iter().map(|it| self.leaf(it, rate)));
        for child in &node.children {
            self.flatten(child, child.rate.min(rate), leaves);
        }
    }

    fn leaf(&mut self, circuit: &'a Circuit, most: BitRate) -> Leaf<'a> {
        let maximum = circuit.maximum.min(most);
        Leaf {
            name: self.name(&circuit.id, "circuit"),
            circuit,
            minimum: circuit.minimum.min(maximum),
            maximum,
        }
    }

    /// `text` as a name of a study that no other has.
    fn name(&mut self, text: &str, kind: &str) -> String {
        let plain = |c: char| match c {
            c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
            _ => '-',
        };
        let text: String = text.chars().take(40).map(plain).collect();
        let text = format!("{kind}-{}", text.trim_matches('-'));
        let numbered = (2..).map(|number| format!("{text}-{number}"));
        let mut names = std::iter::once(text.clone()).chain(numbered);
        let free = names
            .find(|name| !self.taken.contains(name))
            .unwrap_or_default();
        self.taken.insert(free.clone());
        free
    }
}

/// Lowers the promises behind a node in proportion where the node does not carry them; returns their sum.
fn fit(branch: &mut Branch<'_>, remarks: &mut Remarks) -> BitRate {
    let inner = branch.branches.iter_mut().map(|inner| fit(inner, remarks));
    let inner = inner.fold(BitRate::ZERO, |sum, rate| sum + rate);
    let own = branch.leaves.iter().map(|leaf| leaf.minimum);
    let promised = own.fold(inner, |sum, rate| sum + rate);
    if promised <= branch.rate {
        return promised;
    }
    remarks.overbooked.push(branch.title.to_owned());
    scale(branch, (branch.rate, promised));
    branch.rate
}

fn scale(branch: &mut Branch<'_>, (rate, promised): (BitRate, BitRate)) {
    let (part, whole) = (rate.bits_per_second(), promised.bits_per_second());
    for leaf in &mut branch.leaves {
        leaf.minimum = leaf.minimum.scaled(part, whole).max(BitRate::new(1));
    }
    for inner in &mut branch.branches {
        scale(inner, (rate, promised));
    }
}

fn promised(branch: &Branch<'_>) -> BitRate {
    let inner = branch.branches.iter().map(promised);
    let own = branch.leaves.iter().map(|leaf| leaf.minimum);
    inner.chain(own).fold(BitRate::ZERO, |sum, rate| sum + rate)
}

fn collect<'b, 'a>(branch: &'b Branch<'a>, leaves: &mut Vec<&'b Leaf<'a>>) {
    leaves.extend(&branch.leaves);
    branch
        .branches
        .iter()
        .for_each(|inner| collect(inner, leaves));
}

fn write_study(
    out: &mut String,
    root: &Branch<'_>,
    leaves: &[&Leaf<'_>],
    remarks: &Remarks,
) -> std::fmt::Result {
    writeln!(
        out,
        "# yaml-language-server: $schema=slicewise-study.schema.json"
    )?;
    writeln!(out, "# The download direction of what LibreQoS shapes.")?;
    writeln!(out, "name: libreqos")?;
    writeln!(out, "title: Circuits behind LibreQoS, download")?;
    writeln!(out, "assumptions:")?;
    writeln!(
        out,
        "  link: The port carries what its nodes and circuits carry together. Put the rate of the uplink into `dut.port_rate`."
    )?;
    writeln!(
        out,
        "  queues: LibreQoS has CAKE in each circuit, which is modelled as `flow_queue` (fq_codel)."
    )?;
    let greedy = greedy(root);
    writeln!(
        out,
        "  load: No load is in the files. Every circuit asks for half its minimum, one of them for all that it may get beside that, or each for its maximum."
    )?;
    let remarks = [
        (
            "flattened",
            "Nodes nested deeper than policies are have no class; each of their circuits gets at most what they carry",
            &remarks.flattened,
        ),
        (
            "minimums",
            "Circuits are promised more than these carry; their minimums are lowered in proportion",
            &remarks.overbooked,
        ),
        (
            "astray",
            "Circuits behind a node that network.json does not have are on the link itself",
            &remarks.astray,
        ),
    ];
    for (key, remark, of) in remarks.iter().filter(|(.., of)| !of.is_empty()) {
        writeln!(
            out,
            "  {key}: {}",
            quoted(&format!("{remark}: {}.", listed(of)))
        )?;
    }
    // Nothing waits before the device, whatever is sent.
    let sent = leaves
        .iter()
        .fold(root.rate, |sum, leaf| sum + leaf.maximum);
    writeln!(out, "link: {{rate: {}}}", sent + sent)?;
    writeln!(out, "dut: {{model: port, port_rate: {}}}", root.rate)?;
    writeln!(out, "slices:")?;
    for leaf in leaves {
        let (share, matches) = (leaf.minimum, destinations(&[leaf]));
        // What one gets beyond its minimum is what the others leave.
        let guaranteed = match greedy.as_ref() {
            Some((name, _)) if *name == leaf.name => "",
            _ => ", guaranteed: true",
        };
        write!(
            out,
            "  {}: {{match: {matches}, share: {share}{guaranteed}",
            leaf.name
        )?;
        let title = shown(&leaf.circuit.name);
        let comment = if title.is_empty() { "" } else { " # " };
        let headers = headers(leaf.circuit);
        writeln!(out, ", headers: {{{headers}}}}}{comment}{title}")?;
    }
    writeln!(out, "sources:")?;
    for Leaf { name, .. } in leaves {
        writeln!(
            out,
            "  {name}: {{slice: {name}, pattern: poisson, payload: 1400 B}}"
        )?;
    }
    writeln!(out, "scenarios:")?;
    let half = |leaf: &Leaf<'_>| leaf.minimum.scaled(1, 2).max(BitRate::new(1));
    load(out, "calm: {reference: true, sources: {", leaves, half)?;
    if let Some((name, rate)) = &greedy {
        let begin = format!("greedy: {{title: {name} asks for all that it may get, sources: {{");
        load(out, &begin, leaves, |leaf| match leaf.name == *name {
            true => *rate,
            false => half(leaf),
        })?;
    }
    load(out, "busy: {sources: {", leaves, |leaf| leaf.maximum)?;
    writeln!(out, "policies:")?;
    writeln!(out, "  libreqos:")?;
    writeln!(out, "    classes:")?;
    write_classes(out, root, 6)?;
    writeln!(out, "  no-policy: {{none: true}}")?;
    writeln!(
        out,
        "repetitions: 34 # fewer cannot show that anything holds"
    )?;
    writeln!(out, "duration: 10 s")
}

/// The circuit that may get most beyond its minimum while every other one asks for half of its own, and how much it may
/// get; none where it would be the only one.
fn greedy(root: &Branch<'_>) -> Option<(String, BitRate)> {
    fn walk(branch: &Branch<'_>, free: BitRate, found: &mut Vec<(String, BitRate, BitRate)>) {
        // What is left if all circuits behind the node ask for half their minimum.
        let own = branch.rate.saturating_sub(promised(branch).scaled(1, 2));
        let free = free.min(own);
        for leaf in &branch.leaves {
            let most = (free + leaf.minimum.scaled(1, 2)).min(leaf.maximum);
            found.push((leaf.name.clone(), most, leaf.minimum));
        }
        for inner in &branch.branches {
            walk(inner, free, found);
        }
    }
    let mut found = Vec::new();
    walk(root, BitRate::MAX, &mut found);
    let is_alone = found.len() < 2;
    let beyond = |(_, most, minimum): &(String, BitRate, BitRate)| most.saturating_sub(*minimum);
    let most = found.into_iter().max_by_key(beyond)?;
    let has_more = most.1 > most.2;
    (has_more && !is_alone).then_some((most.0, most.1))
}

fn load(
    out: &mut String,
    begin: &str,
    leaves: &[&Leaf<'_>],
    rate: impl Fn(&Leaf<'_>) -> BitRate,
) -> std::fmt::Result {
    let rates = leaves
        .iter()
        .map(|leaf| format!("    {}: {{rate: {}}}", leaf.name, rate(leaf)));
    let rates: Vec<String> = rates.collect();
    writeln!(out, "  {begin}\n{}}}}}", rates.join(",\n"))
}

fn write_classes(out: &mut String, branch: &Branch<'_>, indent: usize) -> std::fmt::Result {
    let pad = " ".repeat(indent);
    for leaf in &branch.leaves {
        let Leaf {
            name,
            minimum,
            maximum,
            ..
        } = leaf;
        writeln!(
            out,
            "{pad}- {{name: {name}, slice: {name}, minimum: {minimum}, shape: {maximum}, flow_queue: {{}}}}"
        )?;
    }
    for inner in &branch.branches {
        let mut leaves = Vec::new();
        collect(inner, &mut leaves);
        // A class that no frame belongs to would be a mistake.
        if leaves.is_empty() {
            continue;
        }
        writeln!(out, "{pad}- name: {} # {}", inner.name, shown(inner.title))?;
        writeln!(out, "{pad}  match: {}", destinations(&leaves))?;
        writeln!(out, "{pad}  minimum: {}", promised(inner))?;
        writeln!(out, "{pad}  shape: {}", inner.rate)?;
        writeln!(out, "{pad}  child:")?;
        writeln!(out, "{pad}    classes:")?;
        write_classes(out, inner, indent + 6)?;
    }
    Ok(())
}

/// Returns the condition for packets to these circuits.
fn destinations(leaves: &[&Leaf<'_>]) -> String {
    let addresses = leaves.iter().flat_map(|leaf| &leaf.circuit.addresses);
    let addresses: Vec<String> = addresses.map(|prefix| format!("\"{prefix}\"")).collect();
    format!("{{destination: [{}]}}", addresses.join(", "))
}

/// A packet from outside to the first address of a circuit.
fn headers(circuit: &Circuit) -> String {
    let address = circuit.addresses.first().map(|prefix| prefix.address());
    let source = match address {
        Some(address) if address.is_ipv6() => "2001:db8::1",
        _ => "192.0.2.1",
    };
    let to = address
        .map(|address| address.to_string())
        .unwrap_or_default();
    format!("source: \"{source}\", destination: \"{to}\"")
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Text of a file, as a comment or within quotes.
fn shown(text: &str) -> String {
    let is_plain = |c: &char| !c.is_control() && !slicewise_units::is_hidden(*c);
    text.chars().filter(is_plain).take(80).collect()
}

fn quoted(text: &str) -> String {
    let shown: String = text
        .chars()
        .filter(|c| !slicewise_units::is_hidden(*c))
        .collect();
    serde_json::Value::from(shown).to_string()
}
