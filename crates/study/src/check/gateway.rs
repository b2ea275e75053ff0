//! A gateway's configuration: every setting read, every contradiction reported at its place.

use super::network::{LinkRate, ShortLink};
use super::policies::PolicyFileSpec;
use super::traffic::SliceSpec;
use super::{Checker, UNKNOWN_RATE};
use crate::diagnostics::Diagnostics;
use crate::file::Placed;
use crate::gateway::{
    DEFAULT_MEMORY, DEFAULT_METRICS_PORT, GatewayConfig, GatewayDirection, GatewayPacketIo,
};
use crate::settings;
use crate::spec::{At, Named};
use slicewise_model::{PolicyParams, Rate};
use slicewise_units::ByteCount;

/// Longest name of an interface in Linux, bytes.
const MAX_INTERFACE_BYTES: usize = 15;
/// Maximum frame memory.
const MAX_MEMORY: ByteCount = ByteCount::new(64 << 30);

settings! {
    /// What a gateway forwards, and how.
    struct GatewaySpec as "GatewayFileSpec" {
        /// The two interfaces.
        [expected] interfaces: Option<At<Vec<At<String>>>>,
        /// The link that slices share: its rate, or its rate and what it counts.
        [expected] link: Option<ShortLink>,
        /// How they share it, in both directions.
        [expected] policy: Option<Placed<PolicyFileSpec>>,
        /// Settings that differ from the second interface to the first.
        backward: Option<Placed<BackwardSpec>>,
        /// Slices by name, which classes refer to with `slice:`.
        slices: Named<Placed<SliceSpec>>,
        /// How frames are received and sent. Default `auto`.
        packet_io: GatewayPacketIo,
        /// Maximum frame memory. Default 256 MiB.
        memory: Option<At<ByteCount>>,
        /// The port of the loopback interface that serves metrics; 0 for none. Default 9640.
        metrics_port: Option<u16>,
    }
}

settings! {
    /// Settings that differ from the second interface to the first.
    struct BackwardSpec as "BackwardSpec", strict {
        /// The link. Default: as forward.
        link: Option<ShortLink>,
        /// How slices share it. Default: as forward.
        policy: Option<Placed<PolicyFileSpec>>,
    }
}

impl Checker<'_> {
    /// The configuration, unless something was found wrong.
    pub(crate) fn gateway(&mut self, spec: &GatewaySpec) -> Option<GatewayConfig> {
        if !self.is_fair("slices", &spec.slices) {
            return None;
        }
        self.names(&spec.slices);
        let interfaces = self.interfaces(spec.interfaces.as_ref());
        let link = spec.link.map(|link| link.value.0);
        // Where the link cannot be read, nothing is wrong with the policy because of it.
        let rate = link.unwrap_or(UNKNOWN_RATE);
        let policy = spec.policy.as_ref();
        let policy = policy.and_then(|policy| {
            self.gateway_policy("policy", &["policy"], policy, &spec.slices, rate)
        });
        let backward = self.backward(spec, link, policy.as_ref());
        let memory = spec.memory.as_ref().map_or(DEFAULT_MEMORY, |at| at.value);
        if let (Some(at), true) = (&spec.memory, memory > MAX_MEMORY) {
            let message = format!("this is more than {MAX_MEMORY}");
            self.problems.add(at.span, message);
        }
        let metrics_port = spec.metrics_port.unwrap_or(DEFAULT_METRICS_PORT);
        Some(GatewayConfig {
            interfaces: interfaces?,
            directions: [
                GatewayDirection {
                    link: link?,
                    policy: policy?,
                },
                backward?,
            ],
            packet_io: spec.packet_io,
            memory,
            metrics_port: (metrics_port > 0).then_some(metrics_port),
            warnings: Diagnostics::new(Vec::new(), 0),
        })
    }

    fn interfaces(&mut self, spec: Option<&At<Vec<At<String>>>>) -> Option<[String; 2]> {
        let At { value: list, span } = spec?;
        let names = list.iter().filter_map(|name| self.interface(name));
        let names: Vec<String> = names.collect();
        if names.len() < list.len() {
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

    fn interface(&mut self, name: &At<String>) -> Option<String> {
        let text = name.value.as_str();
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
            self.problems.add(name.span, message);
            return None;
        }
        Some(text.to_owned())
    }

    /// The other direction, which is like the first where nothing else is said.
    fn backward(
        &mut self,
        spec: &GatewaySpec,
        link: Option<Rate>,
        policy: Option<&PolicyParams>,
    ) -> Option<GatewayDirection> {
        let own = spec.backward.as_ref().map(|backward| &backward.value);
        let other_link = own.and_then(|own| own.link).map(|link| link.value);
        let link = other_link.map(|LinkRate(rate)| rate).or(link)?;
        let policy = match (own.and_then(|own| own.policy.as_ref()), &spec.policy) {
            (Some(other), _) => {
                let path = ["backward", "policy"];
                self.gateway_policy("backward", &path, other, &spec.slices, link)?
            }
            // Percentages are of another rate here.
            (None, Some(forward)) if other_link.is_some() => {
                self.gateway_policy("policy", &["policy"], forward, &spec.slices, link)?
            }
            (None, _) => policy?.clone(),
        };
        Some(GatewayDirection { link, policy })
    }

    fn gateway_policy(
        &mut self,
        name: &str,
        path: &[&str],
        policy: &Placed<PolicyFileSpec>,
        slices: &Named<Placed<SliceSpec>>,
        link: Rate,
    ) -> Option<PolicyParams> {
        for key in ["published", "scalability"] {
            if let Some(at) = policy.place(key) {
                let message = format!("`{key}` is for policies of a study");
                self.problems.add(at, message);
            }
        }
        let name = At {
            value: name.to_owned(),
            span: policy.span,
        };
        let understood = self.understand(&name, path, policy, slices, link.rate)?;
        self.resolved(&understood, path, policy.span, link.into())
    }
}
