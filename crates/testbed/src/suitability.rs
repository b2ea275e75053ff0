//! Rejects traffic a testbed cannot send, before anything is built.

use crate::applications;
use crate::error::AttemptError;
use crate::hosts::Plan;
use crate::iperf3;
use crate::sender::SendingFlow;
use slicewise_study::{SourceParams, Study};
use slicewise_traffic::Sources;
use slicewise_wire::{Headers, PROTOCOL_UDP};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Something of a policy that a device cannot do; as text, a message for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct UnsupportedSetting {
    /// The class, with those around it before it (`outer/inner`); `None` where it is the policy's.
    pub class: Option<String>,
    /// The setting, in the words of a study file.
    pub setting: &'static str,
    /// Why not, with class and setting.
    pub why: String,
}

/// Why a testbed cannot send the sources of a scenario: a message for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scenario {scenario}: {why}")]
pub struct Unsendable {
    /// The scenario.
    pub scenario: String,
    /// The source, where it is one alone.
    pub source_name: Option<String>,
    /// Why not, and what to do.
    pub why: String,
}

/// Checks that a testbed can send the sources of a scenario, by its place in the study.
///
/// # Errors
/// The first reason why not.
pub fn check_sources(study: &Study, scenario: usize) -> Result<(), Unsendable> {
    let offered = Offering::of(study, scenario);
    let Some(scenario) = study.scenarios.get(scenario) else {
        return Ok(());
    };
    let located = |source_name: Option<&str>| {
        let source_name = source_name.map(str::to_owned);
        move |error: AttemptError| Unsendable {
            scenario: scenario.name.clone(),
            source_name,
            why: error.to_string(),
        }
    };
    Plan::of(scenario).map_err(located(None))?;
    applications::check(scenario).map_err(located(None))?;
    let own: Vec<&SourceParams> = offered.own.iter().filter_map(|sent| sent.first()).collect();
    own.iter()
        .try_for_each(|source| sent_by_us(source).map_err(located(Some(&source.name))))?;
    let constant: Vec<&SourceParams> = offered.constant.iter().collect();
    ports_are_free(&constant, &own).map_err(located(None))
}

/// The sources of a scenario by who sends them.
pub(crate) struct Offering {
    /// Sources for iperf3.
    pub(crate) constant: Vec<SourceParams>,
    /// Sources for our own sender: what each sends, in order of time.
    pub(crate) own: Vec<Vec<SourceParams>>,
}

impl Offering {
    pub(crate) fn of(study: &Study, scenario: usize) -> Self {
        let sources = study.scenarios.get(scenario).map_or(0, |s| s.sources.len());
        let (mut constant, mut own) = (Vec::new(), Vec::new());
        for source in 0..sources {
            let sent = study.sends(scenario, source);
            match sent.as_slice() {
                [only] if iperf3::can_be(only, study.duration) => constant.push(only.clone()),
                _ => own.push(sent),
            }
        }
        Self { constant, own }
    }

    /// Everything that is sent.
    pub(crate) fn all(&self) -> impl Iterator<Item = &SourceParams> {
        self.constant.iter().chain(self.own.iter().flatten())
    }
}

/// Checks that our own sender can send the source.
pub(crate) fn sent_by_us(source: &SourceParams) -> Result<(), AttemptError> {
    if source.headers.protocol == PROTOCOL_UDP {
        return Ok(());
    }
    Err(AttemptError::Unsupported(format!(
        "source {} has IP protocol {}: the testbed sends UDP in all patterns, and TCP only with \
         iperf3 at a constant rate",
        source.name, source.headers.protocol
    )))
}

/// No one else can listen on the port of an iperf3 server.
fn ports_are_free(constant: &[&SourceParams], own: &[&SourceParams]) -> Result<(), AttemptError> {
    let mut servers: BTreeMap<(IpAddr, u16), &str> = BTreeMap::new();
    let end = |source: &SourceParams| {
        let headers = source.headers.outermost();
        (headers.destination, headers.destination_port)
    };
    let taken = |source: &SourceParams, other: &str| {
        let (address, port) = end(source);
        Err(AttemptError::Unsupported(format!(
            "sources {other} and {} both send to port {port} of {address}: iperf3 needs the port \
             for itself, so give one another port",
            source.name
        )))
    };
    for source in constant {
        if let Some(other) = servers.insert(end(source), &source.name) {
            return taken(source, other);
        }
    }
    for source in own {
        if let Some(other) = servers.get(&end(source)) {
            return taken(source, other);
        }
    }
    Ok(())
}

/// A flow for our own sender, of what a source sends in order of time; `None` where it sends nothing.
pub(crate) fn sending_flow(
    study: &Study,
    sources: &Sources,
    sent: &[SourceParams],
    seed: u64,
) -> Result<Option<SendingFlow>, AttemptError> {
    // Of packets of several sizes the sender needs the longest.
    let longest = sent.iter().max_by_key(|source| source.largest.l2_bytes);
    let departures = sources
        .sequence(sent, &study.hosts, seed)
        .map_err(|error| AttemptError::Failed(error.to_string()))?;
    let Some((source, departures)) = longest.zip(departures) else {
        return Ok(None);
    };
    sent_by_us(source)?;
    let headers = source.headers.outermost();
    Ok(Some(SendingFlow {
        name: source.name.clone(),
        source: departures,
        local: SocketAddr::new(headers.source, headers.source_port),
        remote: SocketAddr::new(headers.destination, headers.destination_port),
        dscp: headers.dscp,
        header_bytes: source.largest.l2_bytes - source.largest.payload_bytes,
        payload_bytes: source.largest.payload_bytes,
        inner: (source.headers.tunnel).map(|_| Headers::from(&source.headers)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use insta::assert_snapshot;
    use slicewise_study::{Pacing, StudyFile, TestbedError};

    fn said(change: impl FnOnce(&mut Vec<SourceParams>)) -> String {
        let mut study = example::study();
        let scenario = &mut study.scenarios[0];
        change(&mut scenario.sources);
        check_sources(&study, 0).map_or_else(|why| why.to_string(), |()| "suitable".to_owned())
    }

    #[test]
    fn unsendable_sources_are_reported_with_their_scenario() {
        assert_snapshot!(said(|_| ()), @"suitable");
        assert_snapshot!(said(|sources| sources[1].headers.protocol = 6), @"scenario one: source video has IP protocol 6: the testbed sends UDP in all patterns, and TCP only with iperf3 at a constant rate");
        assert_snapshot!(said(|sources| sources[0].headers.vlan = None), @"suitable");
        let again = |sources: &mut Vec<SourceParams>| {
            let mut again = sources[0].clone();
            again.name = "again".to_owned();
            sources.push(again);
        };
        assert_snapshot!(said(again), @"scenario one: sources voice and again both send to port 5201 of 10.0.10.3: iperf3 needs the port for itself, so give one another port");
        let paused = |sources: &mut Vec<SourceParams>| {
            again(sources);
            sources[3].on_off = sources[1].on_off;
        };
        assert_snapshot!(said(paused), @"scenario one: sources voice and again both send to port 5201 of 10.0.10.3: iperf3 needs the port for itself, so give one another port");
        let both_paused = |sources: &mut Vec<SourceParams>| {
            paused(sources);
            sources[0].on_off = sources[1].on_off;
        };
        assert_snapshot!(said(both_paused), @"suitable");
    }

    #[test]
    fn shipped_studies_for_real_packets_can_be_sent_in_every_case() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        for (name, pacing) in [
            ("dpdk-hqos.yaml", Pacing::Bursts),
            ("dpdk-hqos.yaml", Pacing::Departures),
            ("p4-tins-100m.yaml", Pacing::Departures),
            ("p4-tins-tunnels.yaml", Pacing::Departures),
            ("p4-tins-tunnels.yaml", Pacing::TokenBucket),
            ("router-mechanisms.yaml", Pacing::Departures),
            ("router-mechanisms.yaml", Pacing::TokenBucket),
            ("tcp-and-slices.yaml", Pacing::Departures),
            ("tcp-linux.yaml", Pacing::Departures),
            ("upgrade.yaml", Pacing::Departures),
        ] {
            let studies = match StudyFile::load(&folder.join(name)).unwrap() {
                StudyFile::Study(study) => vec![*study],
                StudyFile::Series(series) => series.cases,
            };
            for study in studies {
                let study = match study.into_quick().into_testbed(pacing) {
                    Ok(study) => study,
                    // The command leaves such cases out.
                    Err(
                        TestbedError::PolicyChange(_)
                        | TestbedError::Propagation(_)
                        | TestbedError::Tunnel(_),
                    ) => continue,
                    Err(other) => panic!("{name}: {other}"),
                };
                for scenario in 0..study.scenarios.len() {
                    let sent = check_sources(&study, scenario);
                    assert_eq!(sent, Ok(()), "{}", study.name);
                }
            }
        }
    }
}
