//! Shards as an Indexed Job of Kubernetes, whose pods share the folder through a persistent volume claim.

use super::script::{fill, yaml};
use super::submission::{Submission, call, tail, text_of};
use crate::exit::Exit;
use crate::{Failure, errln, noteln, outln};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Component, Path};

/// Exit codes that another try does not change: a mistake in the study, and no `slicewise` in the image.
const FINAL_CODES: [u64; 3] = [2, 126, 127];
/// Characters of the study's name in the name of a Job: with index and the rest it stays below 63.
const MAX_NAME: usize = 30;

/// Returns the manifests, by their names.
pub fn files(submission: &Submission<'_>) -> Result<Vec<(&'static str, String)>, Failure> {
    for path in [&submission.options.selection.study, &submission.results] {
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(is_below) {
            return Err(Failure::mistake(format!(
                "`{}` is not below the current folder, whose contents the claim holds: call the command in a folder that \
                 has the study and its results, and name them from there",
                path.display()
            )));
        }
    }
    let run = submission.run_command()?;
    let run = format!("shard=$((JOB_COMPLETION_INDEX + 1)); exec {run}");
    let collect = format!("exec {}", submission.collect_command()?);
    let [shards_job, collect_job] = jobs(submission)?;
    let shards = submission.options.shards.get();
    Ok(vec![
        (
            "shards.yaml",
            manifest(submission, &shards_job, shards, &run),
        ),
        (
            "collect.yaml",
            manifest(submission, &collect_job, 1, &collect),
        ),
    ])
}

fn manifest(submission: &Submission<'_>, job: &str, count: u32, command: &str) -> String {
    let options = submission.options;
    let text = |option: &Option<String>| yaml(option.as_deref().unwrap_or_default());
    let namespace = options.namespace.as_ref();
    let namespace = namespace.map(|name| format!("\n  namespace: {}", yaml(name)));
    let values = [
        ("NAME", yaml(job)),
        ("NAMESPACE", namespace.unwrap_or_default()),
        ("COUNT", count.to_string()),
        ("IMAGE", text(&options.image)),
        // Kubernetes replaces `$(NAME)`, and makes one `$` of two.
        ("COMMAND", yaml(&command.replace('$', "$$"))),
        ("CPUS", options.cpus.to_string()),
        ("CLAIM", text(&options.claim)),
    ];
    fill(include_str!("job.yaml"), &values)
}

/// Returns the names of the Jobs that run shards and collect them: others for another submission of the same study.
fn jobs(submission: &Submission<'_>) -> Result<[String; 2], Failure> {
    let options = submission.options;
    let name = submission.name.to_lowercase();
    let name = name.chars().take(MAX_NAME);
    let name = name.map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let made_of = (submission.run_command()?, &options.image, &options.claim);
    let digest = Sha256::digest(format!("{made_of:?}"));
    let digest: String = (digest.iter().take(4))
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let job = format!("slicewise-{}-{digest}", name.collect::<String>());
    let collect = format!("{job}-collect");
    Ok([job, collect])
}

/// Applies the manifest of the shards, waits, and has them collected.
pub fn run(submission: &Submission<'_>) -> Result<Exit, Failure> {
    let cluster = Cluster {
        namespace: submission.options.namespace.as_deref(),
    };
    let (jobs, folder) = (jobs(submission)?, &submission.folder);
    let [shards, collect] = &jobs;
    let how = format!(
        "`kubectl get job {shards}` shows the shards, `kubectl delete job {shards}` cancels them; once it is complete, the \
         same command collects them"
    );
    for job in &jobs {
        let found = cluster.json(&["get", "job", job, "--ignore-not-found"])?;
        if ended(&found).is_some() {
            cluster.kubectl(&["delete", "job", job])?;
        } else if !found.is_null() {
            return Err(Failure::mistake(format!(
                "Job {job} is still at work: {how}"
            )));
        }
    }
    cluster.apply(&folder.join("shards.yaml"))?;
    noteln!(
        "Job {shards} submitted; manifests are in {}",
        folder.display()
    );
    if submission.options.no_wait {
        outln!("{how}");
        return Ok(Exit::Success);
    }
    let (mut job, mut outcome) = (shards, Value::Null);
    let is_over = submission.watch(|| {
        let found = cluster.json(&["get", "job", job, "--ignore-not-found"])?;
        if job == shards && matches!(ended(&found), Some(("Complete", _))) {
            cluster.apply(&folder.join("collect.yaml"))?;
            job = collect;
        } else if found.is_null() || ended(&found).is_some() {
            outcome = found;
            return Ok(None);
        }
        let reason = (cluster.pods(job)?.iter()).find_map(waits_for);
        let reason = reason.map_or_else(String::new, |reason| format!("; a pod waits: {reason}"));
        if job == collect {
            return Ok(Some((submission.runs, format!("collecting{reason}"))));
        }
        let number = |key: &str| found["status"][key].as_u64().unwrap_or(0);
        let (done, active) = (number("succeeded"), number("active"));
        let of = u64::from(submission.options.shards.get());
        let state = format!("shards: {done} of {of} done, {active} active{reason}");
        Ok(Some((submission.runs * done / of, state)))
    })?;
    match ended(&outcome) {
        _ if !is_over => {
            errln!("{how}");
            Ok(Exit::Interrupted)
        }
        Some(("Complete", _)) => {
            outln!("{}", cluster.kubectl(&["logs", &format!("job/{job}")])?);
            Ok(Exit::Success)
        }
        Some((_, reason)) => Err(cluster.failure(job, reason)),
        None => Err(Failure::system(format!(
            "Job {job} is gone: somebody has deleted it; the same command starts it again"
        ))),
    }
}

struct Cluster<'a> {
    namespace: Option<&'a str>,
}

impl Cluster<'_> {
    /// Returns the output of kubectl.
    fn kubectl(&self, arguments: &[&str]) -> Result<String, Failure> {
        let namespace = self.namespace.map(|name| ["--namespace", name]);
        let namespace = namespace.as_ref().map_or(&[][..], |words| &words[..]);
        call("kubectl", &[arguments, namespace].concat())
    }

    /// Returns objects; null where there is none.
    fn json(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let text = self.kubectl(&[arguments, &["-o", "json"]].concat())?;
        let text = if text.is_empty() { "null" } else { &text };
        serde_json::from_str(text)
            .map_err(|error| Failure::system(format!("`kubectl` printed no JSON: {error}")))
    }

    fn apply(&self, manifest: &Path) -> Result<(), Failure> {
        self.kubectl(&["apply", "-f", text_of(manifest)?]).map(drop)
    }

    fn pods(&self, job: &str) -> Result<Vec<Value>, Failure> {
        let label = format!("batch.kubernetes.io/job-name={job}");
        let pods = self.json(&["get", "pods", "-l", &label])?;
        Ok(pods["items"].as_array().cloned().unwrap_or_default())
    }

    /// Describes the failure, its reason, and the remedy.
    fn failure(&self, job: &str, reason: &str) -> Failure {
        let pods = self.pods(job).unwrap_or_default();
        let codes = pods.iter().filter_map(|pod| Some((pod, exit_code(pod)?)));
        // Pods that were at work when the Job failed are ended, and fail, too.
        let last = codes.max_by_key(|(_, code)| (FINAL_CODES.contains(code), *code > 0));
        let Some((pod, code)) = last else {
            return Failure::system(format!("Job {job} failed: {reason}"));
        };
        let why = match code {
            126 | 127 => {
                ": its image has no `slicewise` that can be started; name another one (`--image`)"
            }
            _ => "",
        };
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let index = &pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"];
        let index = index.as_str().and_then(|index| index.parse::<u32>().ok());
        let shard = index.map_or_else(String::new, |index| format!(", of shard {},", index + 1));
        let log = self.kubectl(&["logs", name]);
        let log = log.unwrap_or_else(|failure| failure.to_string());
        Failure::system(format!(
            "Job {job} failed: {reason}. Pod {name}{shard} ended with exit code {code}{why}. The same command goes on where shards \
             stopped. The end of `kubectl logs {name}`:{}",
            tail(&log)
        ))
    }
}

/// Returns how a Job has ended, `Complete` or `Failed`, and the message about it.
fn ended(job: &Value) -> Option<(&str, &str)> {
    let conditions = job["status"]["conditions"].as_array()?;
    let is_end = |one: &&Value| {
        one["status"] == "True" && (one["type"] == "Complete" || one["type"] == "Failed")
    };
    let end = conditions.iter().find(is_end)?;
    Some((
        end["type"].as_str()?,
        end["message"].as_str().unwrap_or_default(),
    ))
}

/// Returns why a pod has not started, such as an image that cannot be pulled or a claim that does not exist.
fn waits_for(pod: &Value) -> Option<String> {
    let status = &pod["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let unscheduled =
        conditions.filter(|one| one["type"] == "PodScheduled" && one["status"] == "False");
    let waiting = &status["containerStatuses"][0]["state"]["waiting"];
    let mut messages = unscheduled
        .chain([waiting])
        .filter_map(|one| one["message"].as_str());
    messages.next().map(str::to_owned)
}

fn exit_code(pod: &Value) -> Option<u64> {
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_u64()
}
