//! `slicewise submit`, and the scripts of docs/captures.md, on a real Slurm: controller and two nodes on this machine. Needs root,
//! Slurm and MUNGE; says so and passes where they are missing.

use crate::analyse_shards;
use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, is_installed, records_below, text, words};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Folder of the study, whose name a script has to quote.
const WORK: &str = "a user's study";
const CAPTURES: &str = include_str!("../../../../docs/captures.md");
/// Longer than anything here takes: only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(240);
const SHARDS: usize = 4;

/// A cluster of two nodes, gone when this is dropped.
struct Slurm<'a> {
    sandbox: &'a Sandbox,
    /// Processes by name, in the order in which they were started.
    processes: Vec<(&'static str, Child)>,
}

impl<'a> Slurm<'a> {
    /// Clusters that exist at the same time have different numbers, from 0 to 1.
    fn start(sandbox: &'a Sandbox, number: u32) -> Option<Self> {
        for program in ["munged", "slurmctld", "slurmd", "sbatch"] {
            if !is_installed(program) {
                println!("skipped: {program} is not installed");
                return None;
            }
        }
        let id = Command::new("id").arg("-u").output().unwrap();
        if text(&id.stdout).trim() != "0" {
            println!("skipped: Slurm's nodes start jobs as root only");
            return None;
        }
        let host = text(&Command::new("hostname").arg("-s").output().unwrap().stdout);
        let folder = sandbox.path("slurm");
        let (at, host) = (folder.display(), host.trim());
        let port = 20_000 + (std::process::id() % 5_000 * 2 + number) * 3;
        let nodes = ["n1", "n2"].into_iter().zip(1..).map(|(node, offset)| {
            let port = port + offset;
            format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2\n")
        });
        let nodes: String = nodes.collect();
        sandbox.write(
            "slurm/slurm.conf",
            format!(
                "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nSlurmUser=root\n\
                 AuthInfo=socket={at}/munge/socket\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/%n\n\
                 SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/%n.pid\nProctrackType=proctrack/linuxproc\n\
                 TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nMpiDefault=none\n\
                 JobAcctGatherType=jobacct_gather/none\nKillWait=2\nSchedulerParameters=sched_interval=2,bf_interval=2\nSlurmdParameters=config_overrides\nReturnToService=2\n{nodes}\
                 PartitionName=all Nodes=n1,n2 Default=YES State=UP\n"
            ),
        );
        for name in ["state", "n1", "n2", "munge"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let mut slurm = Self {
            sandbox,
            processes: Vec::new(),
        };
        slurm.start_munge(&folder.join("munge"));
        slurm.spawn("slurmctld", &["-D", "-L", "slurm/slurmctld.log"]);
        slurm.spawn("n1", &["-D", "-N", "n1", "-L", "slurm/n1.log"]);
        slurm.spawn("n2", &["-D", "-N", "n2", "-L", "slurm/n2.log"]);
        slurm.wait_until("both nodes are idle", |slurm| {
            slurm.ask("sinfo -h -t idle -o %D").trim() == "2"
        });
        Some(slurm)
    }

    fn start_munge(&mut self, folder: &Path) {
        use std::os::unix::fs::PermissionsExt;
        // Anything that nobody guesses does for a cluster that lives a minute.
        let key = format!("{:?}{:?}", Instant::now(), folder).repeat(8);
        let file = folder.join("key");
        fs::write(&file, key).unwrap();
        for (path, mode) in [(&file, 0o600), (&folder.to_owned(), 0o700)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let at = folder.display();
        let [key, socket, pid, log, seed] = ["key", "socket", "pid", "log", "seed"]
            .map(|file| format!("{}={at}/{file}", option_of(file)));
        self.spawn(
            "munged",
            &["--foreground", "--force", &key, &socket, &pid, &log, &seed],
        );
    }

    fn spawn(&mut self, name: &'static str, arguments: &[&str]) {
        let program = if name.starts_with('n') {
            "slurmd"
        } else {
            name
        };
        let child = self.command(program).args(arguments).spawn().unwrap();
        self.processes.push((name, child));
    }

    fn command(&self, program: &str) -> Command {
        let bin = Path::new(env!("CARGO_BIN_EXE_slicewise")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(program);
        command
            .current_dir(self.sandbox.path(""))
            .env("SLURM_CONF", self.sandbox.path("slurm/slurm.conf"))
            .env("PATH", format!("{}:{path}:/usr/sbin", bin.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Returns the output of a command of Slurm.
    fn ask(&self, line: &str) -> String {
        let mut words = line.split(' ');
        let mut command = self.command(words.next().unwrap());
        let output = command.args(words).stdout(Stdio::piped()).output();
        text(&output.unwrap().stdout).trim().to_owned()
    }

    fn wait_until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            let waited = start.elapsed();
            assert!(waited < PATIENCE, "never: {what}\n{}", self.state());
            sleep(Duration::from_millis(100));
        }
    }

    /// Returns queue and logs, to see why a test fails.
    fn state(&self) -> String {
        let mut logs: Vec<PathBuf> = Vec::new();
        for folder in [&format!("{WORK}/results/study-slurm"), "slurm", ""] {
            let files = fs::read_dir(self.sandbox.path(folder));
            let paths = files.into_iter().flatten().map(|file| file.unwrap().path());
            logs.extend(paths.filter(|path| {
                path.extension()
                    .is_some_and(|end| end == "log" || end == "out")
            }));
        }
        let logs = logs
            .iter()
            .map(|log| fs::read_to_string(log).unwrap_or_default());
        let logs: Vec<String> = logs.collect();
        format!("{}\n{}", self.ask("squeue"), logs.join("\n"))
    }

    /// Takes a node away, with all that it does.
    fn lose(&mut self, node: &str) {
        self.ask(&format!(
            "scontrol update NodeName={node} State=DOWN Reason=lost"
        ));
        for (name, process) in &mut self.processes {
            if *name == node {
                process.kill().unwrap();
                process.wait().unwrap();
            }
        }
        // At once, as far as can be: a script that outlives its shard would put it back, too.
        let of_node = format!("SLURMD_NODENAME={node}\0");
        self.kill_where(&of_node, |program| program != "slicewise");
        self.kill_where(&of_node, |_| true);
    }

    /// Kills processes of this cluster's jobs in whose environment `variable` is, where `is_killed` says so of their program.
    fn kill_where(&self, variable: &str, is_killed: impl Fn(&str) -> bool) {
        let conf = self.sandbox.path("slurm/slurm.conf");
        let of_cluster = format!("SLURM_CONF={}\0", conf.display());
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let read = |file: &str| text(&fs::read(process.path().join(file)).unwrap_or_default());
            let environment = read("environ");
            if environment.contains(&of_cluster)
                && environment.contains(variable)
                && is_killed(read("comm").trim())
            {
                let killed = process.file_name();
                let _ = Command::new("kill").arg("-9").arg(killed).status();
            }
        }
    }

    /// Lets shards start that wait for two minutes because they were put back into the queue, but not at once: a node refuses a job
    /// that it ended in the same second.
    fn start_what_waits(&self, started: &mut BTreeMap<String, Instant>) {
        let waiting = self.ask("squeue -h -r -t PENDING -o %i");
        for job in waiting.lines().filter(|job| job.contains('_')) {
            let is_recent = |at: &Instant| at.elapsed() < Duration::from_secs(6);
            if !started.get(job).is_some_and(is_recent) {
                started.insert(job.to_owned(), Instant::now());
                self.ask(&format!("scontrol update JobId={job} StartTime=now+3"));
            }
        }
    }
}

impl Drop for Slurm<'_> {
    fn drop(&mut self) {
        self.ask("scancel --user=root");
        for (_, process) in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
        self.kill_where("", |_| true);
    }
}

/// Option of munged that names a file.
fn option_of(file: &str) -> String {
    match file {
        "socket" => "--socket".to_owned(),
        file => format!("--{file}-file"),
    }
}

/// A script of docs/captures.md by what is in it, for as many shards as the test has, on one processor each.
fn script(part: &str) -> String {
    let script = CAPTURES
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let found = script
        .into_iter()
        .find(|script| script.contains(part))
        .unwrap();
    let few = format!("1-{SHARDS}");
    found
        .replace("1-8", &few)
        .replace("/8", &format!("/{SHARDS}"))
        .replace("-of-8", &format!("-of-{SHARDS}"))
        .replace("--cpus-per-task=3", "--cpus-per-task=1")
}

#[test]
fn a_submitted_study_survives_a_killed_shard_and_a_lost_node() {
    let sandbox = Sandbox::new();
    let Some(mut slurm) = Slurm::start(&sandbox, 0) else {
        return;
    };
    // Long enough to be interrupted.
    let study = STUDY.replace("repetitions: 3", "repetitions: 40");
    let study = study.replace("duration: 4 s", "duration: 60 s");
    let study = study.replace("bin: 50 ms", "bin: 1 s");
    sandbox.write(
        &format!("{WORK}/study.yaml"),
        study.replace("name: small", "name: study"),
    );
    let submit = format!("submit study.yaml --to slurm --shards {SHARDS} -- --nice=1");
    let submit = || {
        let mut command = slurm.command(env!("CARGO_BIN_EXE_slicewise"));
        command.args(words(&submit)).current_dir(sandbox.path(WORK));
        command
    };
    let log = |name: &str| Stdio::from(fs::File::create(sandbox.path(name)).unwrap());
    let mut submitted = submit();
    submitted.stdout(log("out.log")).stderr(log("err.log"));
    let mut submitted = submitted.spawn().unwrap();

    let runs_of = |shard: usize| {
        let folder = format!("{WORK}/results/study-shard-{shard}-of-{SHARDS}/runs");
        records_below(&sandbox.path(&folder)).len()
    };
    slurm.wait_until("every shard has begun", |_| {
        (1..=SHARDS).all(|shard| runs_of(shard) > 0)
    });
    let refused = submit().stderr(Stdio::piped()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    contains(&text(&refused.stderr), "this study is still queued");
    let on_n1 = slurm.ask("squeue -h -r -t RUNNING -w n1 -o %K");
    let killed = on_n1.lines().next().unwrap_or_default().to_owned();
    let of_shard = format!("SLURM_ARRAY_TASK_ID={killed}\0");
    slurm.kill_where(&of_shard, |program| program == "slicewise");
    slurm.lose("n2");
    let mut started = BTreeMap::new();
    slurm.wait_until("all is done", |slurm| {
        slurm.start_what_waits(&mut started);
        slurm.ask("squeue -h").is_empty()
    });

    let ended = submitted.wait().unwrap();
    let printed = sandbox.read("out.log");
    assert!(ended.success(), "{printed}{}", slurm.state());
    contains(&printed, "Report: results/study/report.html");
    contains(&sandbox.read("err.log"), "/160 runs: ");
    let folder = sandbox.path(&format!("{WORK}/results/study-slurm"));
    let log = fs::read_to_string(folder.join(format!("shard-{killed}.log"))).unwrap();
    contains(&log, " runs were finished before and are kept");
}

#[test]
fn a_job_array_analyses_captures() {
    let sandbox = analyse_shards::sandbox();
    let Some(slurm) = Slurm::start(&sandbox, 1) else {
        return;
    };
    let study = sandbox.read("lab.yaml").replace("name: lab", "name: study");
    sandbox.write("study.yaml", study);
    sandbox.write("captures.sh", script("--array"));
    let submit = script("sbatch --parsable");
    let submitted = slurm.command("sh").args(["-ec", &submit]).status().unwrap();
    assert!(submitted.success());
    let collected = sandbox.path("results/study");
    slurm.wait_until("all is done", |slurm| {
        slurm.ask("squeue -h").is_empty() && collected.join("report.html").is_file()
    });
    assert_eq!(records_below(&collected.join("runs")).len(), 8);
}
