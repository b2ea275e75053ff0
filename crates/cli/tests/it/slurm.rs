//! The scripts of docs/shards.md on a real Slurm: controller and two nodes on this machine. Needs root, Slurm and MUNGE; says so and
//! passes where they are missing.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, is_installed, records_below, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PAGE: &str = include_str!("../../../../docs/shards.md");
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
    fn start(sandbox: &'a Sandbox) -> Option<Self> {
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
        let port = 20_000 + std::process::id() % 10_000 * 3;
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

    fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
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
        for folder in ["", "slurm"] {
            let files = fs::read_dir(self.sandbox.path(folder)).unwrap();
            let paths = files.map(|file| file.unwrap().path());
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
        self.kill_where(&format!("SLURMD_NODENAME={node}\0"), |_| true);
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

    /// Starts what waits for two minutes because it was put back into the queue.
    fn start_what_waits(&self) {
        let waiting = self.ask("squeue -h -r -t PENDING -o %i");
        for job in waiting.lines().filter(|job| job.contains('_')) {
            self.ask(&format!("scontrol update JobId={job} StartTime=now"));
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

/// A script of the page by its first line, for as many shards as the test has, on one processor each.
fn script(first: &str) -> String {
    let script = PAGE
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let found = script
        .into_iter()
        .find(|script| script.contains(first))
        .unwrap();
    let few = format!("1-{SHARDS}");
    found
        .replace("1-8", &few)
        .replace("/8", &format!("/{SHARDS}"))
        .replace("-of-8", &format!("-of-{SHARDS}"))
        .replace("--cpus-per-task=16", "--cpus-per-task=1")
}

#[test]
fn a_job_array_survives_a_killed_shard_and_a_lost_node() {
    let sandbox = Sandbox::new();
    let Some(mut slurm) = Slurm::start(&sandbox) else {
        return;
    };
    // Long enough to be interrupted.
    let study = STUDY.replace("repetitions: 3", "repetitions: 40");
    let study = study.replace("duration: 4 s", "duration: 60 s");
    let study = study.replace("name: small", "name: study");
    sandbox.write("study.yaml", study);
    sandbox.write("shards.sh", script("--array"));
    sandbox.write("collect.sh", script("slicewise collect"));
    let submit = script("sbatch --parsable");
    let submitted = slurm.command("sh").args(["-ec", &submit]).status().unwrap();
    assert!(submitted.success());

    let runs_of = |shard: usize| {
        let folder = sandbox.path(&format!("results/study-shard-{shard}-of-{SHARDS}/runs"));
        records_below(&folder).len()
    };
    slurm.wait_until("every shard has begun", |_| {
        (1..=SHARDS).all(|shard| runs_of(shard) > 0)
    });
    let on_n1 = slurm.ask("squeue -h -r -t RUNNING -w n1 -o %K");
    let killed = on_n1.lines().next().unwrap_or_default().to_owned();
    let of_shard = format!("SLURM_ARRAY_TASK_ID={killed}\0");
    slurm.kill_where(&of_shard, |program| program == "slicewise");
    slurm.lose("n2");
    slurm.wait_until("all is done", |slurm| {
        slurm.start_what_waits();
        slurm.ask("squeue -h").is_empty()
    });

    let collected = sandbox.path("results/study");
    assert!(collected.join("report.html").is_file(), "{}", slurm.state());
}
