//! Digests of what runs depend on: equal ones mean the same run, whatever else the studies around it say.

use crate::params::{HopParams, ScenarioParams, StudySlice};
use crate::study::{Phase, Study, StudyPolicy};
use sha2::{Digest, Sha256};
use slicewise_traffic::scenario::PatternParams;
use std::fmt::{self, Write};
use std::path::PathBuf;

/// Bytes of a digest, of those of SHA-256.
const DIGEST_BYTES: usize = 16;

struct Hashed(Sha256);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

impl Study {
    /// Digest of everything that runs of a policy under a scenario depend on but their repetition: network, traffic,
    /// measurement, `seed` and the version of this program, and no titles, margins or other policies. In hexadecimal;
    /// `None` where there is no such policy or scenario.
    #[must_use]
    pub fn inputs(&self, policy: usize, scenario: usize, seed: u64) -> Option<String> {
        let mut hashed = Hashed(Sha256::new());
        let version = env!("CARGO_PKG_VERSION");
        write!(hashed, "slicewise/run-inputs/1 {version} {seed} ").ok()?;
        self.write_inputs(policy, scenario, &mut hashed)?;
        let mut digest = String::new();
        for byte in hashed.0.finalize().iter().take(DIGEST_BYTES) {
            write!(digest, "{byte:02x}").ok()?;
        }
        Some(digest)
    }

    /// Digests of what all runs depend on, by policy, then by scenario.
    pub(crate) fn all_inputs(&self) -> Vec<Vec<String>> {
        let of_policy = |policy| {
            let scenarios = 0..self.scenarios.len();
            let digests = scenarios.filter_map(|scenario| self.inputs(policy, scenario, self.seed));
            digests.collect()
        };
        (0..self.policies.len()).map(of_policy).collect()
    }

    /// Writes values as `Debug` shows them: a field that is added anywhere counts, and one that this names no longer
    /// compiles.
    fn write_inputs(&self, policy: usize, scenario: usize, to: &mut Hashed) -> Option<()> {
        let Self {
            link,
            dut,
            port_series,
            path,
            hosts,
            host_propagation,
            slices,
            populations,
            policies,
            scenarios,
            duration,
            measure,
            phases,
            // Texts, what is judged, and what is run.
            name: _,
            case: _,
            title: _,
            description: _,
            source: _,
            file_name: _,
            assumptions: _,
            repetitions: _,
            seed: _,
            margins: _,
            is_resolution_declared: _,
            published: _,
            coordinates: _,
            plots: _,
            quick: _,
            limits: _,
            statements: _,
            warnings: _,
            is_quick: _,
            digest: _,
        } = self;
        let StudyPolicy {
            name,
            params,
            reallocation,
            device,
            // Texts, what `params` were made of, and what is judged.
            title: _,
            configuration: _,
            spec: _,
            policy_map: _,
            scalability: _,
            scalability_is_of_device: _,
            not_judged: _,
            published_verdict: _,
            rests_on: _,
        } = policies.get(policy)?;
        write!(
            to,
            "{link:?} {dut:?} {hosts:?} {populations:?} {duration:?} {measure:?} {name:?} {params:?} {reallocation:?} \
             {device:?} {:?}",
            sent(scenarios.get(scenario)?)
        )
        .ok()?;
        if !host_propagation.is_empty() {
            write!(to, " {host_propagation:?}").ok()?;
        }
        if let Some(series) = port_series {
            // Written out for each run, a trace would take longer than its simulation.
            write!(to, " {:?}", series.sha256()).ok()?;
        }
        for HopParams {
            name,
            device,
            policies,
            own: _,
        } in path
        {
            write!(to, " {name:?} {device:?} {:?}", policies.get(policy)).ok()?;
        }
        for StudySlice {
            name,
            matches,
            objective,
            share: _,
            guaranteed: _,
        } in slices
        {
            let delay = objective.as_ref().and_then(|objective| objective.delay);
            write!(to, " {name:?} {matches:?} {delay:?}").ok()?;
        }
        for Phase {
            name,
            begins,
            measured_from,
            ends,
            study,
            title: _,
            changes: _,
        } in phases
        {
            write!(to, " {name:?} {begins:?} {measured_from:?} {ends:?} ").ok()?;
            study.write_inputs(policy, scenario, to)?;
        }
        Some(())
    }
}

/// The scenario without what is for people, and captures by their contents alone.
fn sent(scenario: &ScenarioParams) -> ScenarioParams {
    let mut sent = ScenarioParams {
        title: String::new(),
        x: String::new(),
        reference: false,
        ..scenario.clone()
    };
    for source in &mut sent.sources {
        if let PatternParams::Replay { pcap, .. } = &mut source.pattern {
            *pcap = PathBuf::new();
        }
    }
    sent
}
