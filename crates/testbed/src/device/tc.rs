//! The kernel as the device: what arrives at one interface leaves by the other, and the policy is the queueing
//! disciplines there.

use super::DeviceFacts;
use crate::command::{self, Tool};
use crate::error::AttemptError;
use crate::hosts::{Hosts, LEFT, RIGHT, within};
use serde::Deserialize;
use slicewise_formats::tc::{self, Feature};
use slicewise_live::patch;
use slicewise_model::{PolicyParams, Rate};
use slicewise_stats::record::DropCount;

#[derive(Debug)]
pub(crate) struct TcDevice {}

/// Why the kernel cannot do what a policy asks for.
pub(super) fn supports(
    policy: &PolicyParams,
    link: Rate,
    missing: &[Feature],
) -> Result<(), String> {
    let config = tc::write(policy, link, RIGHT).map_err(|error| error.to_string())?;
    let absent: Vec<String> = config
        .needs
        .iter()
        .filter(|need| missing.contains(need))
        .map(|need| format!("{} ({})", need.name(), need.kernel_symbol()))
        .collect();
    if absent.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "not supported by this kernel: it has no {}",
            absent.join(", no ")
        ))
    }
}

impl TcDevice {
    pub(super) fn start(
        hosts: &Hosts,
        policy: &PolicyParams,
        link: Rate,
    ) -> Result<Self, AttemptError> {
        let config = tc::write(policy, link, RIGHT)
            .map_err(|error| AttemptError::Unsupported(error.to_string()))?;
        within(hosts.device(), || patch::join(LEFT, RIGHT)).map_err(AttemptError::Failed)?;
        for command in &config.commands {
            let mut arguments = vec!["-n", hosts.device()];
            arguments.extend(command.arguments.iter().map(String::as_str));
            command::output(Tool::Tc, &arguments).map_err(AttemptError::Failed)?;
        }
        Ok(Self {})
    }

    pub(super) fn facts(&self, hosts: &Hosts) -> Result<DeviceFacts, AttemptError> {
        let show = [
            "-n",
            hosts.device(),
            "-s",
            "-j",
            "qdisc",
            "show",
            "dev",
            RIGHT,
        ];
        let told = command::output(Tool::Tc, &show).map_err(AttemptError::Failed)?;
        let disciplines: Vec<Discipline> = serde_json::from_str(&told)
            .map_err(|error| AttemptError::Failed(format!("tc qdisc show: {error}: {told}")))?;
        // Those above tell what those below them dropped, too.
        let parents: Vec<&str> = (disciplines.iter())
            .filter_map(|one| Some(one.parent.as_deref()?.split(':').next()?))
            .collect();
        let is_leaf = |one: &&Discipline| !parents.contains(&one.handle.trim_end_matches(':'));
        let drops = disciplines.iter().filter(is_leaf).map(|one| DropCount {
            class: one.parent.clone().unwrap_or_else(|| "root".to_owned()),
            reason: one.kind.clone(),
            frames: one.drops,
        });
        Ok(DeviceFacts {
            description: "Linux tc".to_owned(),
            departures: None,
            drops: drops.filter(|drop| drop.frames > 0).collect(),
            missed_frames: 0,
        })
    }
}

/// What `tc -s -j qdisc show` tells of one.
#[derive(Debug, Deserialize)]
struct Discipline {
    kind: String,
    handle: String,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    drops: u64,
}
