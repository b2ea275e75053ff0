//! Several devices between sender and receiver.

use super::Checker;
use super::traffic::Network;
use crate::file::At;
use crate::params::{DutParams, HopParams, LinkParams};
use crate::spec::{DutSpec, Name, StudySpec, Text};
use crate::study::StudyPolicy;
use slicewise_model::{PolicyParams, PortParams};

/// A path that is written.
pub(super) struct Path {
    /// The devices that could be read, in order, each with its place among `devices`.
    pub(super) devices: Vec<(usize, DutParams)>,
    /// Of those under the policy that is compared, the one with the least capacity.
    pub(super) limiting: Option<DutParams>,
}

impl Checker<'_> {
    /// The path of the study; `None` where it has a `dut` instead.
    pub(super) fn path(&mut self, spec: &StudySpec, link: Option<&LinkParams>) -> Option<Path> {
        if let Some(policy) = spec.dut.as_ref().and_then(|dut| dut.value.policy.as_ref()) {
            let message = "`dut` is under the policies that are compared: only a device of `devices` has its own";
            self.problems.add(policy.span, message);
        }
        let Some(At { value: path, span }) = &spec.path else {
            if let Some((name, _)) = spec.devices.iter().next() {
                let message = "`devices` are those of a `path`, and there is none";
                self.problems.add(name.span(), message);
            }
            return None;
        };
        if spec.dut.is_some() {
            let message = "`path` and `dut` exclude each other: `dut` is a path of one device";
            self.problems.add(*span, message);
        }
        if path.0.is_empty() {
            self.problems.add(*span, "a path needs at least one device");
        }
        self.names(&spec.devices);
        self.check_unused(spec, &path.0);
        let places = self.places(spec, &path.0);
        let mut devices = Vec::new();
        for place in places {
            let device = spec.devices.0.get(place);
            let device = device.and_then(|(_, device)| self.dut(Some(device), link));
            devices.extend(device.map(|device| (place, device)));
        }
        let is_compared = |(place, _): &&(usize, DutParams)| own_policy(spec, *place).is_none();
        let compared = devices.iter().filter(is_compared);
        let limiting = compared.min_by_key(|(_, device)| device.capacity().rate);
        let limiting = limiting.map(|(_, device)| *device);
        if limiting.is_none() && !devices.is_empty() {
            let message = "every device of the path has a policy of its own: none is under those that are compared";
            self.problems.add(*span, message);
        }
        Some(Path { devices, limiting })
    }

    /// Devices that no frame passes.
    fn check_unused(&mut self, spec: &StudySpec, path: &[Text<Name>]) {
        for (name, _) in spec.devices.iter() {
            if path.iter().all(|hop| hop.text() != name.text()) {
                let message = format!("device `{}` is not on the path", name.text());
                let help = "name it in `path`, or leave it out".to_owned();
                self.problems
                    .add_with_help(name.span(), message, Some(help));
            }
        }
    }

    /// The place of each device of a path among `devices`.
    fn places(&mut self, spec: &StudySpec, path: &[Text<Name>]) -> Vec<usize> {
        let mut places = Vec::new();
        for (index, hop) in path.iter().enumerate() {
            if path
                .iter()
                .take(index)
                .any(|before| before.text() == hop.text())
            {
                let message = format!(
                    "the path comes back to device `{}`: frames would go round in a loop",
                    hop.text()
                );
                self.problems.add(hop.span(), message);
                continue;
            }
            let mut devices = spec.devices.iter();
            match devices.position(|(name, _)| name.text() == hop.text()) {
                Some(place) => places.push(place),
                None => {
                    let message = format!("there is no device `{}` in `devices`", hop.text());
                    self.problems.add(hop.span(), message);
                }
            }
        }
        places
    }

    /// The devices of the path under each of `policies`.
    pub(super) fn hops(
        &mut self,
        spec: &StudySpec,
        network: &Network,
        policies: &[StudyPolicy],
    ) -> Vec<HopParams> {
        let mut hops = Vec::new();
        for (place, device) in &network.path {
            let Some((name, _)) = spec.devices.0.get(*place) else {
                continue;
            };
            let of_device = match own_policy(spec, *place) {
                Some(_) => self.own(spec, *place, device, policies.len()),
                None => self.compared(spec, name, device, policies),
            };
            hops.extend(of_device.map(|policies| HopParams {
                name: name.text().to_owned(),
                device: *device,
                policies,
            }));
        }
        hops
    }

    /// A device's own policy, once for each of `count` policies.
    fn own(
        &mut self,
        spec: &StudySpec,
        place: usize,
        device: &DutParams,
        count: usize,
    ) -> Option<Vec<PolicyParams>> {
        let (name, At { value, .. }) = spec.devices.0.get(place)?;
        let At {
            value: policy,
            span,
        } = value.policy.as_ref()?;
        let understood = self.understand(name, policy, &spec.slices)?;
        match understood.spec.resolve_for(port(device)) {
            Ok(params) => Some(vec![params; count]),
            Err(error) => {
                let message = format!("on device `{}`: {}", name.text(), error.problem);
                self.problems.add(*span, message);
                None
            }
        }
    }

    /// The policies that are compared, on a device.
    fn compared(
        &mut self,
        spec: &StudySpec,
        device: &Text<Name>,
        params: &DutParams,
        policies: &[StudyPolicy],
    ) -> Option<Vec<PolicyParams>> {
        let resolve = |policy: &StudyPolicy| policy.spec.resolve_for(port(params));
        let mut resolved = Vec::new();
        for policy in policies {
            match resolve(policy) {
                Ok(policy) => resolved.push(policy),
                Err(error) => {
                    let mut written = spec.policies.iter();
                    let at = written.find(|(name, _)| name.text() == policy.name);
                    let at = at.map_or(device.span(), |(name, _)| name.span());
                    let message = format!("on device `{}`: {}", device.text(), error.problem);
                    self.problems.add(at, message);
                }
            }
        }
        (resolved.len() == policies.len()).then_some(resolved)
    }
}

fn own_policy(spec: &StudySpec, place: usize) -> Option<&DutSpec> {
    let (_, device) = spec.devices.0.get(place)?;
    device.value.policy.as_ref().map(|_| &device.value)
}

const fn port(device: &DutParams) -> PortParams {
    PortParams {
        rate: device.port_rate,
        admissible: match device.licence {
            Some(licence) => licence.rate,
            None => device.port_rate,
        },
    }
}
