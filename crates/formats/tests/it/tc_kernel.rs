//! The kernel of this machine takes what is written. Needs root, `ip` and `tc`; says so where one is
//! missing, and tests nothing then.
#![cfg(target_os = "linux")]

use crate::support::any_policy;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::support::shipped::{LICENCE, NAMES, no_policy, parse, policy, resolve};
use slicewise_formats::tc::{self, Feature, TcConfig};
use slicewise_model::{PolicyParams, QueueManager, Rate};
use std::collections::BTreeSet;
use std::process::Command;

const INTERFACE: &str = "swtc0";

/// A network namespace with one end of a veth pair, deleted when dropped.
struct Scratch {
    name: String,
}

impl Scratch {
    /// `None`, with the reason printed, where this machine has no such thing.
    fn new(test: &str) -> Option<Self> {
        let name = format!("swtc-{}-{test}", std::process::id());
        if let Err(reason) = run("ip", &["netns", "add", &name]) {
            println!("skipped: no network namespace can be made: {reason}");
            return None;
        }
        let scratch = Self { name };
        let name = &scratch.name;
        let link = [
            "-n", name, "link", "add", INTERFACE, "type", "veth", "peer", "name", "swtc1",
        ];
        if let Err(reason) = run("ip", &link).and_then(|()| scratch.tc(&["qdisc", "show"])) {
            println!("skipped: no interface pair, or no tc: {reason}");
            return None;
        }
        for end in [INTERFACE, "swtc1"] {
            run("ip", &["-n", name, "link", "set", end, "up"]).unwrap();
        }
        Some(scratch)
    }

    fn tc<S: AsRef<str>>(&self, arguments: &[S]) -> Result<(), String> {
        let mut all = vec!["netns", "exec", &self.name, "tc"];
        all.extend(arguments.iter().map(AsRef::as_ref));
        run("ip", &all)
    }

    fn has(&self, feature: Feature) -> bool {
        feature
            .probe_commands(INTERFACE)
            .iter()
            .all(|arguments| self.tc(arguments).is_ok())
    }

    fn features(&self) -> BTreeSet<Feature> {
        let there = Feature::ALL.into_iter().filter(|&f| self.has(f)).collect();
        let _ = self.tc(&["qdisc", "del", "dev", INTERFACE, "root"]);
        there
    }

    /// Run all commands; the first that fails.
    fn configure(&self, config: &TcConfig) -> Result<(), String> {
        config.commands.iter().try_for_each(|command| {
            self.tc(&command.arguments)
                .map_err(|reason| format!("{command}: {reason}"))
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = run("ip", &["netns", "del", &self.name]);
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// Policies that need one thing or another beyond those that ship.
fn others() -> Vec<PolicyParams> {
    let texts = [
        // A minimum beside priorities with and without a rate, weights, and every kind of match.
        "ip access-list extended web\n permit tcp 10.0.0.0 0.255.255.255 any eq 443\n \
         deny udp any any\n permit ip any 192.0.2.0 0.0.0.255 dscp ef\n!\n\
         class-map match-all voice\n match dscp ef\n match not vlan inner 5\n\
         class-map match-any signals\n match access-group name web\n match protocol ipv6\n\
         class-map match-all bulk\n match precedence 1\n\
         policy-map p\n class voice\n  priority level 1 5000\n class signals\n  priority level 2\n \
         class bulk\n  bandwidth 4000\n class class-default\n  shape average 20000000\n",
        // Shares within shares.
        "class-map match-any a\n match vlan 1 2\nclass-map match-any b\n match dscp ef\n\
         class-map match-any c\n match dscp af11\n\
         policy-map inner\n class b\n  priority 1000\n class c\n  bandwidth remaining ratio 3\n\
         policy-map outer\n class a\n  shape average 10000000\n  service-policy inner\n \
         class class-default\n  bandwidth remaining ratio 2\n",
        "class-map match-any a\n match vlan 1\npolicy-map early\n class a\n  shape average 8000000\n  \
         random-detect precedence-based\n",
    ];
    let early = |params: &mut PolicyParams| {
        let class = params.classes.first_mut();
        let Some(QueueManager::Red(wred)) = class.map(|class| &mut class.queue.manager) else {
            return;
        };
        let curve = wred.curves[0];
        wred.curves.fill(curve);
    };
    texts
        .iter()
        .map(|text| {
            let mut params = resolve(&parse(text));
            early(&mut params);
            params
        })
        .collect()
}

#[test]
fn the_kernel_takes_every_command_whose_features_it_has() {
    let Some(scratch) = Scratch::new("policies") else {
        return;
    };
    let features = scratch.features();
    assert!(scratch.has(Feature::Fifo), "no kernel is without");
    let _ = scratch.tc(&["qdisc", "del", "dev", INTERFACE, "root"]);
    let shipped = NAMES.into_iter().map(policy);
    for params in shipped.chain([no_policy()]).chain(others()) {
        let config = match tc::write(&params, LICENCE, INTERFACE) {
            Ok(config) => config,
            Err(error) if params.name == "wred" => {
                println!("{error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let missing: Vec<&str> = config
            .needs
            .difference(&features)
            .map(|f| f.name())
            .collect();
        let outcome = scratch.configure(&config);
        if missing.is_empty() {
            assert_eq!(outcome, Ok(()), "policy `{}`", params.name);
            scratch.tc(&config.removal().arguments).unwrap();
        } else {
            let missing = missing.join(", ");
            println!(
                "policy `{}`: not supported by this kernel: {missing}",
                params.name
            );
            assert!(outcome.is_err(), "the probes find {missing} missing");
            let _ = scratch.tc(&config.removal().arguments);
        }
    }
}

#[test]
fn the_longest_program_fits_in_one_request() {
    let Some(scratch) = Scratch::new("filter") else {
        return;
    };
    if !scratch.has(Feature::Clsact) || !scratch.has(Feature::ClsBpf) {
        println!("skipped: the kernel has no cls_bpf");
        return;
    }
    let length = tc::INSTRUCTIONS_MAX;
    let program = format!("{length}{}{}", ",0 0 0 0".repeat(length - 1), ",6 0 0 0");
    let filter = [
        "filter", "add", "dev", INTERFACE, "egress", "prio", "2", "bpf", "bytecode",
    ];
    let mut filter = filter.to_vec();
    filter.push(&program);
    assert_eq!(scratch.tc(&filter), Ok(()));
}

#[test]
fn the_kernel_takes_size_tables_of_every_link() {
    let Some(scratch) = Scratch::new("tables") else {
        return;
    };
    let features = scratch.features();
    for counts in ["L1 - 4 B", "L2 + 8 B", "L3 + 40 B in ATM cells"] {
        let link = Rate {
            accounting: counts.parse().unwrap(),
            ..LICENCE
        };
        let config = tc::write(&no_policy(), link, INTERFACE).unwrap();
        if config.needs.is_subset(&features) {
            assert_eq!(scratch.configure(&config), Ok(()), "{counts}");
            scratch.tc(&config.removal().arguments).unwrap();
        }
    }
}

#[test]
fn the_kernel_takes_policies_of_every_shape() {
    let Some(scratch) = Scratch::new("any") else {
        return;
    };
    let features = scratch.features();
    let mut runner = TestRunner::deterministic();
    let strategy = any_policy::policy(true);
    let mut taken = 0;
    for _ in 0..400 {
        let spec = strategy.new_tree(&mut runner).unwrap().current();
        let Ok(params) = spec.resolve(LICENCE.rate) else {
            continue;
        };
        let Ok(config) = tc::write(&params, LICENCE, INTERFACE) else {
            continue;
        };
        if config.needs.is_subset(&features) {
            assert_eq!(scratch.configure(&config), Ok(()), "{params:#?}");
            scratch.tc(&config.removal().arguments).unwrap();
            taken += 1;
        }
        if taken == 25 {
            return;
        }
    }
    assert!(taken > 0 || !features.contains(&Feature::Htb));
}
