//! `slicewise submit` with stand-ins for the programs of a cluster; `slurm.rs` has a real one.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, text, words};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SLURM: [&str; 10] = [
    "submit",
    "small.yaml",
    "--to",
    "slurm",
    "--shards",
    "3",
    "--",
    "--account",
    "it's",
    "--time=1:00",
];
const KUBERNETES: &str =
    "submit small.yaml --to kubernetes --shards 2 --image registry/slicewise --claim work";

/// Carries out scripts at once. `queued` says that the jobs are still there, `no-binary` that nodes have no `slicewise`.
const SBATCH: &str = r#"
case "$*" in --version) exit ;; *--bogus*) echo "sbatch: unrecognized option '--bogus'" >&2; exit 1 ;; esac
printf '<%s>' "$@" >>"$SANDBOX/calls"
for script; do :; done
[ -e "$SANDBOX/no-binary" ] && PATH=/usr/bin:/bin
if [ "$script" = collect.sh ]; then
    grep -qvx 0 shard-*.code || sh collect.sh >>collect.log 2>&1
    echo "42;cluster"
else
    for shard in $(seq "$(sed -n 's/#SBATCH --array=1-//p' shards.sh)"); do
        SLURM_RESTART_COUNT=3 SLURM_ARRAY_JOB_ID=41 SLURM_ARRAY_TASK_ID=$shard sh shards.sh >>shard-$shard.log 2>&1
    done
    echo "41;cluster"
fi
"#;
const SQUEUE: &str = r#"[ -e "$SANDBOX/queued" ] && printf '41 R None\n42 PD Dependency\n41 PD Resources\n7 R None\n'; exit 0"#;
/// Jobs end at once with the status in `outcome`.
const KUBECTL: &str = r#"
echo "$*" >>"$SANDBOX/calls"
cd "$SANDBOX" || exit 1
case "$1 $2" in
"apply -f") cat outcome >"$(sed -n 's/^  name: "\(.*\)"/\1/p' "$3").job" ;;
"get job") cat "$3.job" 2>/dev/null || true ;;
"delete job") rm "$3.job" ;;
"get pods") cat pods ;;
"logs "*) echo "log of $2" ;;
*) exit 9 ;;
esac
"#;
const COMPLETE: &str =
    r#"{"status": {"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}}"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("small.yaml", STUDY);
    for (name, script) in [("sbatch", SBATCH), ("squeue", SQUEUE), ("kubectl", KUBECTL)] {
        install(&sandbox, name, script);
    }
    sandbox.write("outcome", COMPLETE);
    sandbox.write("pods", r#"{"items": []}"#);
    sandbox
}

fn install(sandbox: &Sandbox, name: &str, script: &str) {
    let path = format!("bin/{name}");
    sandbox.write(&path, format!("#!/bin/sh\n{script}"));
    fs::set_permissions(sandbox.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
}

fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_slicewise")).parent().unwrap();
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        sandbox.path("bin").display(),
        bin.display()
    );
    let mut command = sandbox.command(arguments);
    command.env("PATH", path).env("SANDBOX", sandbox.path(""));
    command
}

fn submit(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    command(sandbox, arguments).output().unwrap()
}

/// Standard output and standard error of a submission that must end with `code`.
#[track_caller]
fn ends(sandbox: &Sandbox, code: i32, arguments: &[&str]) -> (String, String) {
    let output = submit(sandbox, arguments);
    let (printed, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{printed}{error}");
    assert!(!error.contains("panicked"), "{error}");
    (printed, error)
}

#[test]
fn a_study_is_submitted_collected_and_judged_and_again_from_where_it_stopped() {
    let sandbox = sandbox();
    let (printed, noted) = ends(&sandbox, 0, &SLURM);
    contains(&noted, "12 runs in 3 shards");
    contains(
        &noted,
        "Jobs 41 (shards) and 42 submitted; scripts and logs are in results/small-slurm",
    );
    contains(&printed, "isolation");
    contains(&printed, "Report: results/small/report.html");
    let calls = sandbox.read("calls");
    contains(
        &calls,
        "<--parsable><--account><it's><--time=1:00><shards.sh>",
    );
    contains(
        &calls,
        "<--dependency=afterok:41><--kill-on-invalid-dep=yes><--account><it's>",
    );
    contains(
        &sandbox.read("results/small-slurm/shard-3.log"),
        "shard 3/3: 4 of 12 runs",
    );

    let judged = [
        "submit",
        "small.yaml",
        "--json",
        "--to",
        "slurm",
        "--shards",
        "3",
        "--fail-on",
        "broken",
    ];
    let again = [&judged[..], &SLURM[6..]].concat();
    let (printed, _) = ends(&sandbox, 3, &again);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["finished_runs"], 12);
    let log = sandbox.read("results/small-slurm/shard-3.log");
    contains(&log, "4 of 4 runs were finished before and are kept");
}

#[test]
fn scripts_run_whatever_is_in_the_names_of_folders_and_options() {
    let sandbox = sandbox();
    let name = "it's \"a\" $(touch bad) `touch bad` %a \\n";
    sandbox.write(&format!("{name}/-{name}.yaml"), STUDY);
    let (study, out) = (format!("./-{name}.yaml"), format!("--out=-{name}/"));
    let options = words("--to slurm --shards 2 --quick --seed 9 --repetitions 2 --policy first");
    let arguments = [&["submit", &study, &out][..], &options].concat();
    let output = command(&sandbox, &arguments)
        .current_dir(sandbox.path(name))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let folder = format!("{name}/-{name}");
    let description = sandbox.read(&format!("{folder}/study.json"));
    let description: Value = serde_json::from_str(&description).unwrap();
    assert_eq!(description["study"]["seed"], 9);
    assert_eq!(description["study"]["repetitions"], 2);
    let runs = sandbox.path(&format!("{folder}-shard-2-of-2/runs"));
    assert!(runs.join("first").is_dir() && !runs.join("shared").exists());
    let bad = fs::read_dir(sandbox.path(name))
        .unwrap()
        .any(|entry| entry.unwrap().file_name() == "bad");
    assert!(!bad);
}

#[test]
fn a_cluster_without_the_binary_is_told_with_what_to_do() {
    let sandbox = sandbox();
    sandbox.write("no-binary", "");
    let (_, error) = ends(&sandbox, 1, &SLURM);
    contains(
        &error,
        "error: 3 of 3 shards failed: shard-1, shard-2, shard-3. shard-1 cannot start `slicewise`",
    );
    contains(
        &error,
        "install it there, or put a folder that all nodes share into PATH",
    );
    contains(
        &error,
        "The end of results/small-slurm/shard-1.log:\n  shards.sh: ",
    );
    // An image without it.
    let failed = r#"[{"type": "Failed", "status": "True", "message": "matching FailJob rule"}]"#;
    sandbox.write(
        "outcome",
        format!(r#"{{"status": {{"conditions": {failed}}}}}"#),
    );
    let pod = |name: &str, index: &str, code: u32| {
        let state = json!({"terminated": {"exitCode": code}});
        json!({
            "metadata": {"name": name, "labels": {"batch.kubernetes.io/job-completion-index": index}},
            "status": {"containerStatuses": [{"state": state}]}
        })
    };
    let pods = json!({"items": [pod("lost", "1", 127), pod("stopped", "0", 130)]});
    sandbox.write("pods", pods.to_string());
    let (_, error) = ends(&sandbox, 1, &words(KUBERNETES));
    contains(
        &error,
        " failed: matching FailJob rule. Pod lost, of shard 2, ended with exit code 127: its image has no",
    );
    contains(&error, "The end of `kubectl logs lost`:\n  log of lost");
}

#[test]
fn shards_that_fail_or_are_ended_are_named_with_the_end_of_a_log() {
    let sandbox = sandbox();
    sandbox.write("other.yaml", STUDY.replace("name: small", "name: other"));
    let other = "run other.yaml --shard 2/3 --out results/small-shard-2-of-3";
    sandbox.succeeded(&words(other));
    let (_, error) = ends(&sandbox, 1, &SLURM);
    contains(
        &error,
        "error: 1 of 3 shards failed: shard-2. shard-2 ended with exit code 2. The same command goes on",
    );
    contains(&error, "  error: `results/small-shard-2-of-3");
}

#[test]
fn a_cluster_that_is_not_there_or_refuses_is_told_with_what_to_do() {
    let sandbox = sandbox();
    let (_, error) = ends(
        &sandbox,
        1,
        &words("submit small.yaml --to slurm --shards 3 --out bogus -- --bogus"),
    );
    contains(
        &error,
        "error: `sh -- bogus-slurm/submit.sh` failed: sbatch: unrecognized option '--bogus'",
    );
    for (arguments, said) in [
        (
            SLURM.to_vec(),
            "error: there is no `sbatch` here: call the command where there is",
        ),
        (
            words(KUBERNETES),
            "error: there is no `kubectl` here: call the command where there is",
        ),
    ] {
        let output = command(&sandbox, &arguments)
            .env("PATH", sandbox.path("nothing"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        contains(&text(&output.stderr), said);
    }
    install(
        &sandbox,
        "kubectl",
        "echo 'error: You must be logged in' >&2; exit 1",
    );
    let (_, error) = ends(&sandbox, 1, &words(KUBERNETES));
    contains(&error, "failed: error: You must be logged in");
}

#[test]
fn leaving_keeps_the_jobs_and_they_are_not_submitted_twice() {
    let sandbox = sandbox();
    sandbox.write("queued", "");
    let mut child = command(&sandbox, &SLURM)
        .stderr(File::create(sandbox.path("noted")).unwrap())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while !sandbox
        .read("noted")
        .contains("12/12 runs: jobs: 1 active, 2 waiting (Resources)")
    {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{}",
            sandbox.read("noted")
        );
        sleep(Duration::from_millis(20));
    }
    let stopped = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(stopped.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    contains(
        &sandbox.read("noted"),
        "`squeue --jobs=41,42` shows the jobs, `scancel 41 42` cancels them",
    );
    let calls = sandbox.read("calls");
    let (_, error) = ends(&sandbox, 2, &SLURM);
    contains(
        &error,
        "this study is still queued: wait until `squeue --jobs=41,42` shows nothing",
    );
    assert_eq!(sandbox.read("calls"), calls);
    fs::remove_file(sandbox.path("queued")).unwrap();
    let not_waited = [&["submit", "small.yaml", "--no-wait"], &SLURM[2..]].concat();
    let (printed, _) = ends(&sandbox, 0, &not_waited);
    contains(
        &printed,
        "`scancel 41 42` cancels them; the report will be in results/small",
    );

    sandbox.write("outcome", r#"{"status": {"active": 2}}"#);
    let (printed, _) = ends(
        &sandbox,
        0,
        &[&words(KUBERNETES)[..], &["--no-wait"]].concat(),
    );
    contains(
        &printed,
        "once it is complete, the same command collects them",
    );
    let (_, error) = ends(&sandbox, 2, &words(KUBERNETES));
    contains(
        &error,
        "is still at work: `kubectl get job slicewise-small-",
    );
}

#[test]
fn other_scripts_in_the_folder_are_kept() {
    let sandbox = sandbox();
    let write = "submit small.yaml --to slurm --write-only --shards";
    let (printed, _) = ends(&sandbox, 0, &words(&format!("{write} 2")));
    contains(
        &printed,
        "Scripts are in results/small-slurm; `submit.sh` submits them",
    );
    assert!(!sandbox.path("calls").exists());
    ends(&sandbox, 0, &words(&format!("{write} 2")));
    let script = sandbox.read("results/small-slurm/shards.sh");
    let (_, error) = ends(&sandbox, 2, &words(&format!("{write} 3")));
    contains(
        &error,
        "`results/small-slurm/shards.sh` is of another submission, or changed by hand",
    );
    assert_eq!(sandbox.read("results/small-slurm/shards.sh"), script);
    symlink(sandbox.path("elsewhere"), sandbox.path("linked-slurm")).unwrap();
    ends(&sandbox, 2, &words(&format!("{write} 2 --out linked")));
    assert!(!sandbox.path("elsewhere").exists());
}

#[test]
fn what_cannot_be_submitted_is_refused_before_anything_is_written() {
    let sandbox = sandbox();
    sandbox.write("wrong.yaml", STUDY.replace("port_rate", "prot_rate"));
    sandbox.write("points.yaml", format!("{STUDY}sweep: {{axes: {{port: {{path: dut.port_rate, values: [10 Mbit/s, 0 Mbit/s]}}}}}}\n"));
    for (arguments, said) in [
        ("wrong.yaml --to slurm --shards 2", "prot_rate"),
        (
            "points.yaml --to slurm --shards 2",
            "(in point `port-0Mbit-s`)",
        ),
        (
            "small.yaml --to slurm --shards 13",
            "there are 12 different runs to be carried out, so of 13 shards some",
        ),
        (
            "small.yaml --to slurm --shards 2 --policy none",
            "no policy `none`",
        ),
        (
            "small.yaml --to slurm --shards 2 --case none",
            "leave out `--case`",
        ),
        (
            "small.yaml --to slurm --shards 2 --image i",
            "are for `--to kubernetes`",
        ),
        (
            "small.yaml --to slurm --shards 2 --out ..",
            "names of other folders begin with that of this one",
        ),
        (
            "small.yaml --to slurm --shards 2 --no-wait --json",
            "nothing is judged here",
        ),
        ("small.yaml --to kubernetes --shards 2 --image i", "--claim"),
        (
            "small.yaml --to kubernetes --shards 2 --image i --claim c -- --time=1",
            "options behind `--` are for `sbatch`",
        ),
        (
            "small.yaml --to kubernetes --shards 2 --image i --claim c --out ../x",
            "`../x` is not below the current folder",
        ),
    ] {
        let (_, error) = ends(&sandbox, 2, &words(&format!("submit {arguments}")));
        contains(&error, said);
        assert!(!sandbox.path("results").exists(), "{arguments}");
    }
    assert!(!sandbox.path("calls").exists());
}

/// A manifest as Kubernetes reads it, valid by its schema.
fn manifest(text: &str) -> Value {
    let manifest: Value = serde_saphyr::from_str(text).unwrap();
    let schema: Value = serde_json::from_str(include_str!("submit/job.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&manifest)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    // A field that does not exist is noticed.
    let wrong: Value =
        serde_saphyr::from_str(&text.replace("backoffLimitPerIndex", "backOffLimitPerIndex"))
            .unwrap();
    assert!(!validator.is_valid(&wrong));
    manifest
}

#[test]
fn manifests_are_valid_and_their_commands_do_what_the_scripts_do() {
    let sandbox = sandbox();
    let study = "it's: {\"a\"} $(HOME) $$ #1.yaml";
    sandbox.write(study, STUDY);
    let options =
        words("--to kubernetes --shards 2 --write-only --namespace lab --cpus 2 --out out");
    let names = [
        "--image",
        "registry:5000/s@sha256:0",
        "--claim",
        "a \"claim\"",
    ];
    let arguments = [&["submit", study][..], &options, &names].concat();
    let (printed, _) = ends(&sandbox, 0, &arguments);
    contains(
        &printed,
        "Scripts are in out-kubernetes; apply `shards.yaml`",
    );
    let run = |file: &str, index: &str| {
        let job = manifest(&sandbox.read(&format!("out-kubernetes/{file}")));
        assert_eq!(job["metadata"]["namespace"], "lab");
        let pod = &job["spec"]["template"]["spec"];
        // Kubernetes asks for it where a failure policy decides.
        assert_eq!(pod["restartPolicy"], "Never");
        assert_eq!(
            pod["volumes"][0]["persistentVolumeClaim"]["claimName"],
            "a \"claim\""
        );
        let container = &pod["containers"][0];
        assert_eq!(container["image"], "registry:5000/s@sha256:0");
        let script = container["command"][2].as_str().unwrap().replace("$$", "$");
        let path = command(&sandbox, &[])
            .get_envs()
            .find_map(|(name, value)| (name == "PATH").then(|| value.unwrap().to_owned()));
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(sandbox.path(""))
            .env("PATH", path.unwrap())
            .env("JOB_COMPLETION_INDEX", index)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        job
    };
    run("shards.yaml", "0");
    let job = run("shards.yaml", "1");
    assert_eq!(job["spec"]["completions"], 2);
    let collect = run("collect.yaml", "0");
    assert_ne!(job["metadata"]["name"], collect["metadata"]["name"]);
    assert!(sandbox.path("out/report.html").is_file());
}

#[test]
fn an_indexed_job_is_applied_waited_for_and_collected_by_a_second_one() {
    let sandbox = sandbox();
    let arguments = [&words(KUBERNETES)[..], &["--namespace", "lab"]].concat();
    let output = command(&sandbox, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let calls = sandbox.read("calls");
    let verbs = |calls: &str| -> Vec<String> {
        let lines = calls
            .lines()
            .map(|line| line.strip_suffix(" --namespace lab").unwrap_or(line));
        let changes = lines.filter(|line| !line.starts_with("get "));
        changes.map(str::to_owned).collect()
    };
    let done = verbs(&calls);
    assert_eq!(
        done[..2],
        [
            "apply -f results/small-kubernetes/shards.yaml",
            "apply -f results/small-kubernetes/collect.yaml"
        ]
    );
    let log = done[2].strip_prefix("logs ").unwrap();
    contains(&text(&output.stdout), &format!("log of {log}"));
    // Ended Jobs are replaced: their pods find what is done.
    ends(&sandbox, 0, &arguments);
    let again = verbs(&sandbox.read("calls")[calls.len()..]);
    assert!(
        again[0].starts_with("delete job slicewise-small-") && again[1].ends_with("-collect"),
        "{again:?}"
    );
    assert_eq!(again[2..], done);
}
