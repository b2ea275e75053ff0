//! The kernel as the device: frames received on one interface leave by the other, whose queueing
//! disciplines are the policy.

use super::DeviceFacts;
use crate::command::{self, Tool};
use crate::error::AttemptError;
use crate::hosts::{Hosts, LEFT, RIGHT, within};
use crate::suitability::UnsupportedSetting;
use serde::Deserialize;
use slicewise_formats::tc::{self, Feature};
use slicewise_live::patch;
use slicewise_model::{PolicyParams, Rate};
use slicewise_stats::record::DropCount;

#[derive(Debug)]
pub(crate) struct TcDevice {}

/// Why the kernel cannot run a policy.
pub(super) fn supports(
    policy: &PolicyParams,
    link: Rate,
    missing: &[Feature],
) -> Result<(), Vec<UnsupportedSetting>> {
    // The caller adds the policy and the device.
    let config = tc::write(policy, link, RIGHT).map_err(|error| {
        let problems = error.problems.into_iter();
        let problems = problems.map(|problem| UnsupportedSetting {
            why: problem.to_string(),
            class: problem.class,
            setting: problem.what,
        });
        problems.collect::<Vec<_>>()
    })?;
    let absent: Vec<String> = config
        .needs
        .iter()
        .filter(|need| missing.contains(need))
        .map(|need| format!("{} ({})", need.name(), need.kernel_symbol()))
        .collect();
    if absent.is_empty() {
        Ok(())
    } else {
        Err(vec![UnsupportedSetting {
            class: None,
            setting: "classes",
            why: format!(
                "not supported by this kernel: it has no {}",
                absent.join(", no ")
            ),
        }])
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
        let output = command::output(Tool::Tc, &show).map_err(AttemptError::Failed)?;
        Ok(DeviceFacts {
            description: "Linux tc".to_owned(),
            departures: None,
            drops: drops(&output).map_err(AttemptError::Failed)?,
            missed_frames: 0,
        })
    }
}

/// Drops of leaf disciplines; their parents report them too.
fn drops(output: &str) -> Result<Vec<DropCount>, String> {
    let disciplines: Vec<Qdisc> = serde_json::from_str(output)
        .map_err(|error| format!("tc qdisc show: {error}: {output}"))?;
    let parents: Vec<&str> = (disciplines.iter())
        .filter_map(|one| one.parent.as_deref()?.split(':').next())
        .collect();
    let is_leaf = |one: &&Qdisc| !parents.contains(&one.handle.trim_end_matches(':'));
    let drops = disciplines.iter().filter(is_leaf).map(|one| DropCount {
        class: one.parent.clone().unwrap_or_else(|| "root".to_owned()),
        reason: one.kind.clone(),
        frames: one.drops,
    });
    Ok(drops.filter(|drop| drop.frames > 0).collect())
}

/// One entry of `tc -s -j qdisc show`.
#[derive(Debug, Deserialize)]
struct Qdisc {
    kind: String,
    handle: String,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    drops: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn listing(text: &str) -> String {
        let drops = drops(text).unwrap();
        let lines: Vec<String> = drops
            .iter()
            .map(|drop| format!("{} {}: {}", drop.class, drop.reason, drop.frames))
            .collect();
        lines.join("\n")
    }

    #[test]
    fn drops_are_counted_once_where_the_frames_were() {
        // As iproute2 6.1 writes it, shortened.
        let tree = r#"[
            {"kind":"tbf","handle":"1:","root":true,"refcnt":2,"options":{},"packets":9,"drops":35,"overlimits":4},
            {"kind":"htb","handle":"10:","parent":"1:1","options":{},"packets":9,"drops":35,"qlen":0},
            {"kind":"pfifo","handle":"100:","parent":"10:11","options":{"limit":64},"drops":30},
            {"kind":"bfifo","handle":"101:","parent":"10:12","options":{"limit":9000},"drops":5},
            {"kind":"pfifo","handle":"102:","parent":"10:13","options":{"limit":64},"drops":0}
        ]"#;
        assert_snapshot!(listing(tree), @r"
        10:11 pfifo: 30
        10:12 bfifo: 5
        ");
        let alone = r#"[{"kind":"pfifo","handle":"1:","root":true,"drops":7}]"#;
        assert_snapshot!(listing(alone), @"root pfifo: 7");
        assert_snapshot!(listing(r#"[{"kind":"noqueue","handle":"0:","root":true}]"#), @"");
    }

    #[test]
    fn output_that_is_not_a_list_is_quoted() {
        let error = drops("Command line is not complete.").unwrap_err();
        assert!(
            error.ends_with(": Command line is not complete."),
            "{error}"
        );
    }
}
