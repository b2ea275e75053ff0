//! Several devices between sender and receiver.

use super::traffic::Network;
use super::{Checker, StudySpec, Table, entry_as_meant};
use crate::device;
use crate::file::Span;
use crate::params::{DutParams, HopParams, StudyLink};
use crate::problem;
use crate::spec::{At, Reference};
use crate::study::StudyPolicy;
use slicewise_model::{PolicyParams, PolicySpec};

/// A path that is written.
pub(super) struct Path {
    /// The devices that could be read, in order, each with its place among `devices`.
    pub(super) devices: Vec<(usize, DutParams)>,
    /// Of those under the policy that is compared, the one with the least capacity.
    pub(super) limiting: Option<DutParams>,
}

impl Checker<'_> {
    /// The path of the study; `None` where it has a `dut` instead.
    pub(super) fn path(&mut self, spec: &StudySpec, link: Option<&StudyLink>) -> Option<Path> {
        if let Some(at) = spec.dut.as_ref().and_then(|dut| dut.place("policy")) {
            problem!(self.problems, at => "`dut` is under the policies that are compared: only a device of `devices` \
                has its own");
        }
        let is_written = |key| entry_as_meant(self.root, key).is_some();
        let (has_path, has_dut) = (is_written("path"), is_written("dut"));
        if !has_path {
            let devices = entry_as_meant(self.root, "devices").map(|(key, _)| key.span);
            match (has_dut, devices) {
                (true, Some(at)) => {
                    problem!(self.problems, at => "`devices` are those of a `path`, and there is none");
                }
                (false, Some(at)) => {
                    problem!(self.problems, at => "`path` is missing: in which order do frames pass the devices?";
                        "add their names in that order, for example `path: [first, second]`");
                }
                (false, None) => self.problems.add(self.root.span, "`dut` is missing"),
                (true, None) => {}
            }
            return None;
        }
        // One that cannot be read has been reported.
        let Some(At { value: path, span }) = &spec.path else {
            let devices = Vec::new();
            return Some(Path {
                devices,
                limiting: None,
            });
        };
        if has_dut {
            problem!(self.problems, *span => "`path` and `dut` exclude each other: `dut` is a path of one device");
        }
        if path.0.is_empty() {
            self.problems.add(*span, "a path needs at least one device");
        }
        self.names(&spec.devices);
        if !path.0.is_empty() {
            self.check_unused(spec, &path.0);
        }
        let mut devices = Vec::new();
        for place in self.places(spec, &path.0) {
            let device = spec.devices.0.get(place);
            let device = device.and_then(|(_, device)| self.dut_of_path(device, link));
            devices.extend(device.map(|device| (place, device)));
        }
        let has_own = |place: usize| own_policy(spec, place).is_some();
        let compared = devices.iter().filter(|(place, _)| !has_own(*place));
        let limiting = compared.min_by_key(|(_, device)| device.capacity().rate);
        let limiting = limiting.map(|(_, device)| *device);
        if !devices.is_empty() && devices.iter().all(|(place, _)| has_own(*place)) {
            problem!(self.problems, *span => "every device of the path has a policy of its own: none is under those \
                that are compared");
        }
        let later = devices.iter().skip(1);
        let later = later.filter_map(|(place, device)| {
            let (name, _) = spec.devices.0.get(*place)?;
            Some((name.span, *device))
        });
        let later: Vec<_> = later.collect();
        self.check_priorities_of_path(&later);
        Some(Path { devices, limiting })
    }

    /// Devices that no frame passes.
    fn check_unused(&mut self, spec: &StudySpec, path: &[At<Reference>]) {
        for (name, _) in spec.devices.iter() {
            if path.iter().all(|hop| hop.value.as_ref() != name.value) {
                problem!(self.problems, name.span => "device `{}` is not on the path", name.value;
                    "name it in `path`, or leave it out");
            }
        }
    }

    /// The place of each device of a path among `devices`.
    fn places(&mut self, spec: &StudySpec, path: &[At<Reference>]) -> Vec<usize> {
        let known = spec.devices.names();
        let mut places = Vec::new();
        for (index, hop) in path.iter().enumerate() {
            let name = hop.value.as_ref();
            let mut before = path.iter().take(index);
            if before.any(|before| before.value.as_ref() == name) {
                problem!(self.problems, hop.span => "the path comes back to device `{name}`: frames would go round in \
                    a loop");
                continue;
            }
            places.extend(self.index_of(Table::DEVICES, hop, &known));
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
                Some(_) => self.own(spec, *place, device).map(|(own, params)| {
                    let policies = vec![params; policies.len()];
                    (Some(own), policies)
                }),
                None => (self.compared(spec, name, device, policies)).map(|params| (None, params)),
            };
            hops.extend(of_device.map(|(own, policies)| HopParams {
                name: name.value.clone(),
                device: *device,
                policies,
                own,
            }));
        }
        hops
    }

    /// A device's own policy, as written and as it runs it.
    fn own(
        &mut self,
        spec: &StudySpec,
        place: usize,
        device: &DutParams,
    ) -> Option<(PolicySpec, PolicyParams)> {
        let (name, written) = spec.devices.0.get(place)?;
        let policy = written.value.policy.as_ref()?;
        let path = ["devices", &name.value, "policy"];
        let understood =
            self.understand(name, &path, policy, &spec.slices, device.port_rate.rate)?;
        self.refuse_loop(policy);
        match device::fitting(&understood.spec, device) {
            Ok(params) => {
                self.warn_of_thresholds(&understood, &path, name.span, &params);
                Some((understood.spec, params))
            }
            Err(error) => {
                problem!(self.problems, policy.span => "on device `{}`: {}", name.value, error.problem);
                None
            }
        }
    }

    /// The policies that are compared, on a device.
    fn compared(
        &mut self,
        spec: &StudySpec,
        device: &At<String>,
        params: &DutParams,
        policies: &[StudyPolicy],
    ) -> Option<Vec<PolicyParams>> {
        let mut resolved = Vec::new();
        for policy in policies {
            match device::fitting(&policy.spec, params) {
                Ok(policy) => resolved.push(policy),
                Err(error) => {
                    let at = spec.policies.entry(&policy.name);
                    let at = at.map_or(device.span, |(name, _)| name.span);
                    problem!(self.problems, at => "on device `{}`: {}", device.value, error.problem);
                }
            }
        }
        (resolved.len() == policies.len()).then_some(resolved)
    }
}

/// Where the policy of a device's own is written.
fn own_policy(spec: &StudySpec, place: usize) -> Option<Span> {
    let (_, device) = spec.devices.0.get(place)?;
    device.place("policy")
}
