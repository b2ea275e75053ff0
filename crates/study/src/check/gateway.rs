//! A gateway's configuration: every setting read, every contradiction reported at its place.

use super::policies::message_of;
use super::{Checker, MAX_ENTRIES, UNKNOWN_LINK, excess};
use crate::diagnostics::Diagnostics;
use crate::file::{At, Span};
use crate::gateway::{
    DEFAULT_MEMORY, DEFAULT_METRICS_PORT, GatewayConfig, GatewayDirection, GatewayPacketIo,
};
use crate::spec::{
    Counted, GatewayFileSpec, List, Name, Named, PacketIoName, PlanLinkSpec, PolicyFileSpec, Short,
    SliceSpec, Text,
};
use slicewise_model::{PolicyParams, PortParams, Rate};
use slicewise_units::{BitRate, ByteCount, Layer};

/// Longest name of an interface in Linux, bytes.
const MAX_INTERFACE_BYTES: usize = 15;
/// Maximum frame memory.
const MAX_MEMORY: ByteCount = ByteCount::new(64 << 30);

impl Checker<'_> {
    /// The configuration, unless something was found wrong.
    pub(crate) fn gateway(&mut self, spec: &GatewayFileSpec) -> Option<GatewayConfig> {
        if let Some(at) = excess(&spec.slices) {
            let message = format!("there are more than {MAX_ENTRIES} slices");
            self.problems.add(at, message);
            return None;
        }
        self.names(&spec.slices);
        self.slices_have_matches(&spec.slices);
        let interfaces = self.interfaces(spec.interfaces.as_ref());
        let link = match &spec.link {
            Some(link) => self.gateway_link(&link.value),
            None => self.missing("link"),
        };
        let policy = match &spec.policy {
            // Where the link cannot be read, nothing is wrong with the policy because of it.
            Some(policy) => {
                let link = link.unwrap_or(UNKNOWN_LINK.rate);
                self.gateway_policy("policy", policy, &spec.slices, link)
            }
            None => self.missing("policy"),
        };
        let backward = self.backward(spec, link, policy.as_ref());
        let packet_io = match self.read_or(spec.packet_io.as_ref(), PacketIoName::Auto) {
            PacketIoName::Auto => GatewayPacketIo::Auto,
            PacketIoName::AfXdp => GatewayPacketIo::AfXdp,
            PacketIoName::AfPacket => GatewayPacketIo::AfPacket,
        };
        let memory = self.read_or(spec.memory.as_ref(), DEFAULT_MEMORY);
        if let (Some(text), true) = (&spec.memory, memory > MAX_MEMORY) {
            let message = format!("this is more than {MAX_MEMORY}");
            self.problems.add(text.span(), message);
        }
        let metrics_port = self.read_or(spec.metrics_port.as_ref(), DEFAULT_METRICS_PORT);
        Some(GatewayConfig {
            interfaces: interfaces?,
            directions: [
                GatewayDirection {
                    link: link?,
                    policy: policy?,
                },
                backward?,
            ],
            packet_io,
            memory,
            metrics_port: (metrics_port > 0).then_some(metrics_port),
            warnings: Diagnostics::new(Vec::new(), 0),
        })
    }

    fn missing<T>(&mut self, key: &str) -> Option<T> {
        self.problems
            .add(self.root.span, format!("`{key}` is missing"));
        None
    }

    fn slices_have_matches(&mut self, slices: &Named<SliceSpec>) {
        for (name, slice) in slices.iter() {
            let _ = self.slice_matches(name, slice.matches.as_ref());
        }
    }

    fn interfaces(&mut self, spec: Option<&At<List<Text<String>>>>) -> Option<[String; 2]> {
        let Some(At { value: list, span }) = spec else {
            return self.missing("interfaces");
        };
        let names: Vec<String> = list
            .0
            .iter()
            .filter_map(|name| self.interface(name))
            .collect();
        if names.len() < list.0.len() {
            return None;
        }
        match <[String; 2]>::try_from(names) {
            Ok([first, second]) if first == second => {
                let message = "a gateway forwards between two interfaces, but both are the same";
                self.problems.add(*span, message);
                None
            }
            Ok(both) => Some(both),
            Err(others) => {
                let message = format!("a gateway has two interfaces; here are {}", others.len());
                self.problems.add(*span, message);
                None
            }
        }
    }

    fn interface(&mut self, name: &Text<String>) -> Option<String> {
        let text = name.text().trim();
        let is_possible = !text.is_empty()
            && text.len() <= MAX_INTERFACE_BYTES
            && text
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':');
        if !is_possible {
            let message = format!(
                "`{text}` is not an interface name: Linux allows 1 to {MAX_INTERFACE_BYTES} letters, digits \
                 and punctuation marks except `/` and `:`"
            );
            self.problems.add(name.span(), message);
            return None;
        }
        Some(text.to_owned())
    }

    fn gateway_link(&mut self, link: &Short<BitRate, PlanLinkSpec>) -> Option<Rate> {
        let (rate, counts) = match link {
            Short::Value(rate) => (rate, None),
            Short::Settings(settings) => (&settings.rate, settings.counts.as_ref()),
        };
        let layer = self.read_or(counts, Layer::L1);
        Some(Rate {
            rate: self.nonzero_rate(rate)?,
            accounting: Counted::accounting(layer),
        })
    }

    /// The other direction, which is like the first where nothing else is said.
    fn backward(
        &mut self,
        spec: &GatewayFileSpec,
        link: Option<Rate>,
        policy: Option<&PolicyParams>,
    ) -> Option<GatewayDirection> {
        let own = spec.backward.as_ref().map(|backward| &backward.value);
        let other_link = match own.and_then(|own| own.link.as_ref()) {
            Some(other) => Some(self.gateway_link(&other.value)?),
            None => None,
        };
        let link = other_link.or(link)?;
        let written = match own.and_then(|own| own.policy.as_ref()) {
            Some(other) => Some((other, "backward")),
            // Percentages are of another rate here.
            None if other_link.is_some() => spec.policy.as_ref().map(|policy| (policy, "policy")),
            None => None,
        };
        let policy = match written {
            Some((written, name)) => self.gateway_policy(name, written, &spec.slices, link)?,
            None => policy?.clone(),
        };
        Some(GatewayDirection { link, policy })
    }

    fn gateway_policy(
        &mut self,
        name: &str,
        policy: &At<PolicyFileSpec>,
        slices: &Named<SliceSpec>,
        link: Rate,
    ) -> Option<PolicyParams> {
        let At { value: spec, span } = policy;
        self.only_for_studies(spec);
        let name = Text::<Name>::at(name, *span);
        let understood = self.understand(&name, spec, slices)?;
        let port = PortParams {
            rate: link,
            admissible: link,
        };
        match understood.spec.resolve_for(port) {
            Ok(params) => Some(params),
            Err(error) => {
                let at = self.place(&understood.origin, &error).unwrap_or(*span);
                let message = message_of(&error);
                self.problems.add(at, message);
                None
            }
        }
    }

    fn only_for_studies(&mut self, spec: &PolicyFileSpec) {
        let places: [(Option<Span>, &str); 2] = [
            (spec.published.as_ref().map(|at| at.span), "published"),
            (spec.scalability.as_ref().map(|at| at.span), "scalability"),
        ];
        for (place, key) in places {
            if let Some(at) = place {
                let message = format!("`{key}` is for policies of a study");
                self.problems.add(at, message);
            }
        }
    }
}
