//! A gateway's configuration: every setting read, every contradiction reported at its place.

use super::network::{LinkRate, ShortLink};
use super::network_control::NetworkControl;
use super::policies::PolicyFileSpec;
use super::traffic::SliceSpec;
use super::{Checker, UNKNOWN_RATE};
use crate::diagnostics::Diagnostics;
use crate::file::Placed;
use crate::gateway::{
    DEFAULT_MEMORY, DEFAULT_METRICS_PORT, GatewayConfig, GatewayController, GatewayDirection,
    GatewayPacketIo,
};
use crate::params::DutModel;
use crate::spec::{At, Named};
use crate::testbed::on_testbed;
use crate::{problem, settings};
use slicewise_model::{Discipline, PolicyParams, Rate, ReallocatedPolicy, ReallocationParams};
use slicewise_units::ByteCount;

/// Longest name of an interface in Linux, bytes.
const MAX_INTERFACE_BYTES: usize = 15;
/// Longest name of a gateway or link at a controller, bytes.
const MAX_NAME_BYTES: usize = 63;
/// Maximum frame memory.
const MAX_MEMORY: ByteCount = ByteCount::new(64 << 30);

settings! {
    /// Configuration of a gateway: what it forwards, and how.
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
        /// The share of ARP, neighbour discovery, LACP, STP, LLDP, PTP and 802.1X, in both directions.
        network_control: Option<Placed<NetworkControl>>,
        /// How frames are received and sent. Default `auto`.
        packet_io: GatewayPacketIo,
        /// Maximum frame memory. Default 256 MiB.
        memory: Option<At<ByteCount>>,
        /// The port of the loopback interface that serves metrics; 0 for none. Default 9640.
        metrics_port: Option<u16>,
        /// The controller that slices come from while the gateway runs.
        controller: Option<Placed<ControllerSpec>>,
    }
}

settings! {
    /// The controller that slices come from while the gateway runs.
    struct ControllerSpec as "ControllerSpec" {
        /// Its address, `http://` or `https://`.
        [expected] url: Option<At<String>>,
        /// The gateway's name there.
        [expected] name: Option<At<String>>,
        /// The name of its link there.
        [expected] link: Option<At<String>>,
        /// The file with the token.
        token_file: Option<At<String>>,
        /// The file with certificates (PEM) of authorities to trust, instead of those of the system.
        certificate_authority: Option<At<String>>,
        /// The file in which the gateway keeps its slices.
        [expected] state: Option<At<String>>,
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
        self.names(&spec.slices);
        let interfaces = self.interfaces(spec.interfaces.as_ref());
        let link = spec.link.map(|link| link.value.0);
        // Where the link cannot be read, nothing is wrong with the policy because of it.
        let rate = link.unwrap_or(UNKNOWN_RATE);
        let policy = spec.policy.as_ref();
        let policy = policy
            .and_then(|policy| self.gateway_policy("policy", &["policy"], policy, spec, rate));
        let backward = self.backward(spec, link, policy.as_ref());
        let memory = spec.memory.as_ref().map_or(DEFAULT_MEMORY, |at| at.value);
        if let (Some(at), true) = (&spec.memory, memory > MAX_MEMORY) {
            problem!(self.problems, at.span => "this is more than {MAX_MEMORY}");
        }
        let metrics_port = spec.metrics_port.unwrap_or(DEFAULT_METRICS_PORT);
        let ways = [policy.as_ref(), backward.as_ref()];
        let policies = ways.map(|way| way.map(|way| &way.policy));
        self.check_commits(spec, ways);
        let controller = match &spec.controller {
            Some(controller) => Some(self.controller(controller, policies)?),
            None => None,
        };
        Some(GatewayConfig {
            interfaces: interfaces?,
            directions: [link.and(policy)?, backward?],
            packet_io: spec.packet_io,
            memory,
            metrics_port: (metrics_port > 0).then_some(metrics_port),
            controller,
            warnings: Diagnostics::new(Vec::new(), 0),
        })
    }

    /// The controller; `policies` are those of both directions, beside which its slices are to be.
    fn controller(
        &mut self,
        spec: &Placed<ControllerSpec>,
        policies: [Option<&PolicyParams>; 2],
    ) -> Option<GatewayController> {
        let policies = policies.into_iter().flatten();
        let found: Vec<_> = policies
            .map(|policy| match policy.discipline {
                Discipline::Guaranteed => Ok(true),
                _ => policy.check_metered().map(|()| false),
            })
            .collect();
        if let Some(Err(problem)) = found.iter().find(|found| found.is_err()) {
            problem!(self.problems, spec.span => "slices of a controller need `discipline: guaranteed` in the policy of both directions, \
                or the data plane of P4-TINS: this policy is neither, because {problem}"; "docs/mechanisms/metered-slices.md has an example of the latter");
            return None;
        }
        if found.windows(2).any(|both| both[0] != both[1]) {
            problem!(self.problems, spec.span => "slices of a controller need the same kind of policy in both directions: \
                `discipline: guaranteed`, or the data plane of P4-TINS");
            return None;
        }
        let controller = &spec.value;
        let url = controller.url.as_ref();
        let url = url.filter(|url| {
            let is_url = ["http://", "https://"]
                .iter()
                .any(|scheme| url.value.starts_with(scheme));
            if !is_url {
                problem!(self.problems, url.span => "`{}` is not the address of a controller: expected for example \
                    `http://127.0.0.1:9650`", url.value);
            }
            is_url
        });
        let name = self.controller_name("gateway", controller.name.as_ref());
        let link = self.controller_name("link", controller.link.as_ref());
        let locate = |path: &At<String>| {
            let path = self.sources.beside(path.span.file, &path.value);
            self.files.locate(&path)
        };
        Some(GatewayController {
            url: url?.value.clone(),
            name: name?,
            link: link?,
            token_file: controller.token_file.as_ref().map(locate),
            certificate_authority: controller.certificate_authority.as_ref().map(locate),
            state: controller.state.as_ref().map(locate)?,
        })
    }

    /// A name as controllers take it, of `what`.
    fn controller_name(&mut self, what: &str, name: Option<&At<String>>) -> Option<String> {
        let At { value, span } = name?;
        let is_first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_next = |byte: u8| is_first(byte) || matches!(byte, b'.' | b'_' | b'-');
        let is_name = value.len() <= MAX_NAME_BYTES
            && value.bytes().next().is_some_and(is_first)
            && value.bytes().all(is_next);
        if !is_name {
            problem!(self.problems, *span => "`{value}` is no name that a {what} can have at a controller: expected 1 \
                to {MAX_NAME_BYTES} of a-z, 0-9, `.`, `_` and `-`, and a letter or digit first");
            return None;
        }
        Some(value.clone())
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
                problem!(self.problems, *span => "a gateway forwards between two interfaces, but both are the same");
                None
            }
            Ok(both) => Some(both),
            Err(others) => {
                problem!(self.problems, *span => "a gateway has two interfaces; here are {}", others.len());
                None
            }
        }
    }

    pub(super) fn interface(&mut self, name: &At<String>) -> Option<String> {
        let text = name.value.as_str();
        let is_possible = !text.is_empty()
            && text.len() <= MAX_INTERFACE_BYTES
            && text
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':');
        if !is_possible {
            problem!(self.problems, name.span => "`{text}` is not an interface name: Linux allows 1 to \
                {MAX_INTERFACE_BYTES} letters, digits and punctuation marks except `/` and `:`");
            return None;
        }
        Some(text.to_owned())
    }

    /// No loop commits a guaranteed policy of the other direction, too: its bounds would not hold again before the next busy period.
    fn check_commits(&mut self, spec: &GatewaySpec, ways: [Option<&GatewayDirection>; 2]) {
        let ways = || ways.into_iter().flatten();
        let is_guaranteed =
            |way: &GatewayDirection| way.policy.discipline == Discipline::Guaranteed;
        let backward = spec
            .backward
            .as_ref()
            .and_then(|way| way.value.policy.as_ref());
        let mut written = spec.policy.iter().chain(backward);
        if ways().any(|way| way.reallocated.is_some())
            && ways().any(is_guaranteed)
            && let Some(at) = written.find_map(|policy| policy.place("reallocate"))
        {
            problem!(self.problems, at => "each decision of the loop commits the policies of both directions, and the other one is \
                `guaranteed`, whose delay bounds hold from the next busy period after a commit"; "leave `reallocate` out");
        }
    }

    /// The other direction, which is like the first where nothing else is said.
    fn backward(
        &mut self,
        spec: &GatewaySpec,
        link: Option<Rate>,
        forward: Option<&GatewayDirection>,
    ) -> Option<GatewayDirection> {
        let own = spec.backward.as_ref().map(|backward| &backward.value);
        let other_link = own.and_then(|own| own.link).map(|link| link.value);
        let link = other_link.map(|LinkRate(rate)| rate).or(link)?;
        match (own.and_then(|own| own.policy.as_ref()), &spec.policy) {
            (Some(other), _) => {
                let path = ["backward", "policy"];
                self.gateway_policy("backward", &path, other, spec, link)
            }
            // Percentages are of another rate here.
            (None, Some(written)) if other_link.is_some() => {
                self.gateway_policy("policy", &["policy"], written, spec, link)
            }
            (None, _) => forward.cloned(),
        }
    }

    fn gateway_policy(
        &mut self,
        name: &str,
        path: &[&str],
        policy: &Placed<PolicyFileSpec>,
        spec: &GatewaySpec,
        link: Rate,
    ) -> Option<GatewayDirection> {
        for key in ["published", "scalability"] {
            if let Some(at) = policy.place(key) {
                problem!(self.problems, at => "`{key}` is for policies of a study");
            }
        }
        if let (Some(at), Some(_)) = (policy.place("reallocate"), &spec.controller) {
            problem!(self.problems, at => "a loop would set rates beside slices of the controller"; "leave out `reallocate` or `controller`");
            return None;
        }
        // A class is compared with each of them.
        let queues = policy.value.queues.iter().flat_map(|list| &list.0);
        if !self.is_few("queues", queues.map(|queue| queue.span)) {
            return None;
        }
        let name = At {
            value: name.to_owned(),
            span: policy.span,
        };
        let mut understood = self.understand(&name, path, policy, &spec.slices, link.rate)?;
        let written = understood.spec.clone();
        let control = spec.network_control.as_ref();
        let resolved =
            self.with_network_control(control, &mut understood, path, policy.span, link)?;
        for note in written.delay_notes(&resolved) {
            self.problems.warn(policy.span, note);
        }
        let device = on_testbed(DutModel::Gateway, link);
        let reallocation = self.reallocation(path, policy, &understood.spec, &device)?;
        if let Some(Err(error)) = reallocation.as_ref().map(ReallocationParams::check_gateway) {
            let at = self.place_of_loop(path, &error).unwrap_or(policy.span);
            self.problems.add(at, error.to_string());
            return None;
        }
        Some(GatewayDirection {
            link,
            policy: resolved,
            reallocated: reallocation.map(|params| ReallocatedPolicy {
                spec: understood.spec,
                params,
            }),
        })
    }
}
