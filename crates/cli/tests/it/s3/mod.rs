//! Results in object storage, end to end: with a server of S3 and several "machines", which share nothing else.

mod storage;

use crate::shards::{assert_same, records_in, run_whole};
use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, text, words};
use crate::transactions::WEB;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use storage::{OWNER, READER, SECRET, STRANGER, Storage};

/// A server, and a folder to call the command in, by several machines: each has its own copies.
struct World {
    storage: Storage,
    sandbox: Sandbox,
}

impl World {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("small.yaml", STUDY);
        Self {
            storage: Storage::start(),
            sandbox,
        }
    }

    fn command(&self, machine: &str, user: &str, arguments: &str) -> Command {
        let mut command = self.sandbox.command(&words(arguments));
        command
            .env("XDG_CACHE_HOME", self.sandbox.path(machine))
            .env("AWS_ENDPOINT_URL", &self.storage.endpoint)
            .env("AWS_ACCESS_KEY_ID", user)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("SLICEWISE_PUT_SECONDS", "1");
        command
    }

    fn succeeded(&self, machine: &str, arguments: &str) -> (String, String) {
        let output = self.command(machine, OWNER, arguments).output().unwrap();
        let error = text(&output.stderr);
        assert!(output.status.success(), "{arguments}: {error}");
        (text(&output.stdout), error)
    }

    /// Standard error of a call that ends with a code.
    fn refused(&self, code: i32, user: &str, arguments: &str) -> String {
        refused(code, self.command("one", user, arguments).output().unwrap())
    }

    fn records(&self, prefix: &str) -> usize {
        records_in(&self.storage.path(prefix))
    }

    /// The objects below a prefix.
    fn objects(&self, prefix: &str) -> BTreeSet<PathBuf> {
        let mut folders = vec![self.storage.path(prefix)];
        let mut found = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => drop(found.insert(path)),
                }
            }
        }
        found
    }

    /// The only copy of a machine.
    fn copy_of(&self, machine: &str) -> PathBuf {
        let copies = self.sandbox.path(machine).join("slicewise/s3");
        let of_address = fs::read_dir(copies).unwrap().next().unwrap().unwrap();
        of_address.path().join("0")
    }

    /// Copies the objects below a prefix into a folder of the sandbox.
    fn download(&self, prefix: &str, folder: &str) {
        let from = self.storage.path(prefix);
        let copied = Command::new("cp")
            .arg("-r")
            .arg(from)
            .arg(self.sandbox.path(folder))
            .status();
        assert!(copied.unwrap().success());
    }
}

fn refused(code: i32, output: Output) -> String {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

/// A study whose runs take long enough to be put one by one.
fn long() -> String {
    STUDY
        .replace("duration: 4 s", "duration: 1200 s")
        .replace("bin: 50 ms", "bin: 1 s")
}

#[test]
fn results_in_storage_have_the_bytes_of_a_folder_and_are_reported_by_any_machine() {
    let world = World::new();
    run_whole(&world.sandbox);
    let (printed, noted) = world.succeeded("one", "run small.yaml --out s3://results/a/study");
    contains(&printed, "Report: s3://results/a/study/report.html");
    contains(
        &noted,
        "s3://results/a/study: 0 files fetched into its copy ",
    );
    contains(&noted, "changes are put every 1 s and at the end");
    let objects = world.storage.path("a/study");
    // The report states how long runs took.
    fs::remove_file(objects.join("host.json")).unwrap();
    fs::remove_dir_all(objects.join("figures")).unwrap();
    let (printed, _) = world.succeeded("two", "report s3://results/a/study");
    contains(&printed, "Report: s3://results/a/study/report.html");
    world.download("a/study", "downloaded");
    assert_same(&world.sandbox, "whole", "downloaded");
    // Nothing has changed since: nothing is fetched.
    let (_, noted) = world.succeeded("two", "report s3://results/a/study/");
    contains(&noted, "s3://results/a/study: 0 files fetched");
    let (_, noted) = world.succeeded("three", "compare s3://results/a/study whole");
    contains(&noted, "s3://results/a/study: 5 files fetched");
    // The second one has everything, of which the copy that is compared needs a part.
    fs::remove_file(objects.join("report.html")).unwrap();
    let (_, noted) = world.succeeded("two", "compare s3://results/a/study whole");
    contains(&noted, "s3://results/a/study: 0 files fetched");
    let (_, noted) = world.succeeded("two", "report s3://results/a/study");
    contains(&noted, "s3://results/a/study: 0 files fetched");
    assert!(!noted.contains("dropped"), "{noted}");
}

#[test]
fn a_killed_run_goes_on_from_what_was_put_on_another_machine_and_from_everything_on_its_own() {
    let world = World::new();
    world.sandbox.write("small.yaml", long());
    let run = "run small.yaml --jobs 1 --out s3://results/study";
    let mut child = start(&world, "one", run);
    wait_until("no run is put", || world.records("study") > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let put = world.records("study");
    assert!(put < 12, "killed too late");
    let (_, noted) = world.succeeded("two", run);
    let line = noted
        .lines()
        .find(|line| line.ends_with("runs were finished before and are kept"));
    let kept: usize = line.unwrap().split(' ').next().unwrap().parse().unwrap();
    // Objects on their way when the command was killed may have arrived.
    assert!((put..12).contains(&kept), "{kept} of {put}");
    assert_eq!(world.records("study"), 12);
    // What the first machine had not put is given up for what the second one put.
    let (_, noted) = world.succeeded("one", run);
    contains(&noted, "12 of 12 runs were finished before");
    run_whole(&world.sandbox);
    fs::remove_file(world.storage.path("study/host.json")).unwrap();
    world.succeeded("one", "report s3://results/study");
    world.download("study", "downloaded");
    assert_same(&world.sandbox, "whole", "downloaded");
}

fn start(world: &World, machine: &str, arguments: &str) -> Child {
    let mut command = world.command(machine, OWNER, arguments);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{otherwise}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stopped_run_puts_what_it_has_finished() {
    let world = World::new();
    world.sandbox.write("small.yaml", long());
    let mut command = world.command(
        "one",
        OWNER,
        "run small.yaml --jobs 1 --verbose --out s3://results/study",
    );
    command
        .env("SLICEWISE_PUT_SECONDS", "3600")
        .stdout(Stdio::null());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_until("no copy is made", || {
        world.storage.path("study/study.json").exists()
    });
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let error = refused(130, output);
    let done = error.matches(": done in ").count();
    contains(&error, &format!("stopped: {done} of 12 runs are on disk"));
    assert_eq!(world.records("study"), done);
}

#[test]
fn a_copy_that_was_cleaned_or_lost_its_state_is_fetched_and_removes_no_object() {
    let world = World::new();
    let run = "run small.yaml --out s3://results/study";
    world.succeeded("one", run);
    let objects = world.objects("study");
    let copy = world.copy_of("one");
    for folder in ["files/runs", "files/data", "files"] {
        fs::remove_dir_all(copy.join(folder)).unwrap();
        let (_, noted) = world.succeeded("one", "report s3://results/study");
        assert!(!noted.contains("dropped"), "{noted}");
        assert_eq!(world.objects("study"), objects, "{folder}");
    }
    fs::write(copy.join("state.json"), "{}").unwrap();
    let (_, noted) = world.succeeded("one", run);
    contains(&noted, "12 of 12 runs were finished before");
    assert!(!noted.contains("dropped"), "{noted}");
    assert_eq!(world.objects("study"), objects);
}

#[test]
fn shards_in_storage_are_collected_into_storage() {
    let world = World::new();
    run_whole(&world.sandbox);
    for shard in ["1", "2"] {
        let run = format!("run small.yaml --shard {shard}/2 --out s3://results/shards/{shard}");
        let (printed, _) = world.succeeded(shard, &run);
        contains(
            &printed,
            &format!("Shard {shard}/2 is in s3://results/shards/{shard};"),
        );
    }
    let collect = "collect s3://results/all s3://results/shards/1 s3://results/shards/2";
    let (printed, noted) = world.succeeded("three", collect);
    contains(&printed, "Report: s3://results/all/report.html");
    contains(&noted, "s3://results/shards/2: 6 runs");
    world.download("all", "downloaded");
    assert_same(&world.sandbox, "whole", "downloaded");
    let missing = "collect s3://results/part s3://results/shards/2";
    let error = world.refused(1, OWNER, missing);
    contains(&error, "`slicewise run small.yaml --out s3://results/part`");
    assert_eq!(world.records("part"), 6);
}

#[test]
fn transactions_of_shards_in_storage_are_collected_with_their_runs() {
    let world = World::new();
    world.sandbox.write("web.yaml", WEB);
    for shard in ["1", "2"] {
        let run = format!("run web.yaml --transactions --shard {shard}/2");
        world.succeeded(shard, &format!("{run} --out s3://results/shards/{shard}"));
    }
    let collect = "collect s3://results/all s3://results/shards/1 s3://results/shards/2";
    let (_, noted) = world.succeeded("three", collect);
    contains(&noted, "transactions of 8 runs were copied with them");
    assert_eq!(world.objects("all/transactions").len(), 8);
}

#[test]
fn of_two_writers_one_is_told_and_overwrites_nothing() {
    let world = World::new();
    world.sandbox.write("small.yaml", long());
    let run = "run small.yaml --jobs 1 --out s3://results/study";
    let one = start(&world, "one", run);
    wait_until("no run is put", || world.records("study") > 0);
    let two = start(&world, "two", run);
    let outputs = [one, two].map(|child| child.wait_with_output().unwrap());
    let codes = outputs.each_ref().map(|output| output.status.code());
    assert!(codes.contains(&Some(1)), "{codes:?}");
    for output in outputs
        .into_iter()
        .filter(|output| !output.status.success())
    {
        let error = refused(1, output);
        contains(
            &error,
            "was changed by another command since it was read, and was not overwritten",
        );
        contains(
            &error,
            "let one command at a time write into `s3://results/study`",
        );
    }
    let before = world.records("study");
    let (_, noted) = world.succeeded("one", run);
    contains(&noted, &format!("{before} of 12 runs were finished before"));
    assert!(!noted.contains("left out"), "{noted}");
    assert_eq!(world.records("study"), 12);
}

#[test]
fn what_the_user_may_not_do_is_told_with_what_to_ask_for() {
    let world = World::new();
    world.succeeded("one", "run small.yaml --out s3://results/study");
    let run = "run small.yaml --out s3://results/new";
    let error = world.refused(2, READER, run);
    contains(
        &error,
        "`s3://results/new/study.json`: no permission to write (s3:PutObject)",
    );
    contains(&error, "the same command goes on with it");
    let error = world.refused(2, STRANGER, run);
    contains(
        &error,
        "`s3://results/new`: no permission to list objects (s3:ListBucket)",
    );
    assert!(!world.storage.path("new").exists());
    // With the permission, nothing is computed again.
    let (_, noted) = world.succeeded("one", run);
    contains(&noted, "12 of 12 runs were finished before");
    let compare = "compare s3://results/study s3://results/new";
    let output = world.command("two", READER, compare).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    // A report is for everybody who may read.
    fs::remove_file(world.storage.path("study/report.html")).unwrap();
    let report = world
        .command("three", READER, "report s3://results/study")
        .output();
    let (code, error) = report
        .map(|output| (output.status.code(), text(&output.stderr)))
        .unwrap();
    assert_eq!(code, Some(0), "{error}");
    contains(&error, "s3:PutObject");
    contains(&error, "the report is in the copy on this machine alone");
    let mut command = world.command("one", OWNER, "report s3://results/study");
    command.env("AWS_SECRET_ACCESS_KEY", "other");
    let error = refused(2, command.output().unwrap());
    contains(
        &error,
        "refuses these credentials (SignatureDoesNotMatch): check AWS_ACCESS_KEY_ID",
    );
}

#[test]
fn a_run_that_cannot_be_put_is_stopped_early() {
    let world = World::new();
    world.sandbox.write("small.yaml", long());
    let run = "run small.yaml --jobs 1 --out s3://results/study";
    let error = world.refused(2, READER, run);
    contains(
        &error,
        "changes cannot be put any more: finishing the runs in progress",
    );
    contains(&error, "stopped: ");
    contains(&error, "no permission to write");
}

#[test]
fn a_bucket_or_a_prefix_that_is_none_is_told() {
    let world = World::new();
    for arguments in [
        "run small.yaml --out s3://other/study",
        "report s3://other/study",
    ] {
        let error = world.refused(2, OWNER, arguments);
        contains(
            &error,
            "`s3://other/study`: there is no bucket of that name",
        );
    }
    let error = world.refused(2, OWNER, "report s3://results/study");
    contains(&error, "`s3://results/study` does not exist");
    fs::create_dir_all(world.storage.path("photos")).unwrap();
    fs::write(world.storage.path("photos/one.jpeg"), "x").unwrap();
    let error = world.refused(2, OWNER, "run small.yaml --out s3://results/photos");
    contains(
        &error,
        "holds objects, but neither `study.json` nor `series.json`",
    );
    for (arguments, said) in [
        ("report gs://results/study", "expected `s3://BUCKET/PREFIX`"),
        (
            "report s3://results/../study",
            "expected `s3://BUCKET/PREFIX`",
        ),
        (
            "run small.yaml --captures s3://results/c",
            "`--captures` writes no results",
        ),
        (
            "run small.yaml --seeds 2 --out s3://results/c",
            "`--seeds` writes no results",
        ),
    ] {
        contains(&world.refused(2, OWNER, arguments), said);
    }
    assert!(!world.storage.path("c").exists());
}

#[test]
fn storage_that_cannot_be_reached_is_told_in_time() {
    let world = World::new();
    let mut command = world.command("one", OWNER, "run small.yaml --out s3://results/study");
    command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    let begin = Instant::now();
    let error = refused(1, command.output().unwrap());
    assert!(begin.elapsed() < Duration::from_secs(60));
    contains(&error, "`s3://results/study`: cannot list objects: ");
    contains(&error, "Connection refused");
    contains(&error, "are AWS_ENDPOINT_URL and AWS_REGION right?");
}

#[test]
fn settings_that_are_wrong_are_told_with_their_names() {
    let world = World::new();
    let with_tls = world.storage.endpoint.replace("http:", "https:");
    for (variable, value, said) in [
        (
            "AWS_ENDPOINT_URL",
            "nonsense",
            "AWS_ENDPOINT_URL is `nonsense`: expected",
        ),
        (
            "AWS_ENDPOINT_URL",
            &with_tls,
            "use http:// instead of https://",
        ),
        ("AWS_SECRET_ACCESS_KEY", "", "AWS_SECRET_ACCESS_KEY is not"),
        (
            "SLICEWISE_PUT_SECONDS",
            "0",
            "expected seconds, from 1 to 86400",
        ),
    ] {
        let mut command = world.command("one", OWNER, "report s3://results/study");
        match value {
            "" => command.env_remove(variable),
            value => command.env(variable, value),
        };
        let output = command.output().unwrap();
        assert!(!output.status.success());
        contains(&text(&output.stderr), said);
    }
}

#[test]
fn a_damaged_record_is_left_out_and_its_run_repeated() {
    let world = World::new();
    world.succeeded("one", "run small.yaml --out s3://results/study");
    let object = world.storage.path("study/runs/first/calm.jsonl");
    let whole = fs::read(&object).unwrap();
    fs::write(&object, &whole[..whole.len() - 100]).unwrap();
    let (_, noted) = world.succeeded("two", "report s3://results/study");
    contains(&noted, "made from 11 of 12 runs");
    let (_, noted) = world.succeeded("two", "run small.yaml --out s3://results/study");
    contains(&noted, "11 of 12 runs were finished before");
    assert_eq!(fs::read(&object).unwrap(), whole);
    // A description that is cut off.
    let object = world.storage.path("study/study.json");
    let whole = fs::read(&object).unwrap();
    fs::write(&object, &whole[..whole.len() / 2]).unwrap();
    let mut command = world.command("three", OWNER, "report s3://results/study");
    let error = refused(1, command.output().unwrap());
    contains(&error, "`s3://results/study/study.json` is damaged");
}
