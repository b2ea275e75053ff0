mod submit;

pub use crate::backend_name::{BackendName, BackendParser};
use crate::output::Verbosity;
use crate::shard::Shard;
use crate::slice::SliceOptions;
use crate::tenant::TenantOptions;
use clap::{Args, Parser, Subcommand, ValueEnum};
use slicewise_results::Force;
use slicewise_units::Duration;
use std::num::NonZeroU32;
use std::path::PathBuf;
pub use submit::{Engine, SubmitOptions};

/// Partition a shared link into slices that hold, and prove that they hold.
///
/// Exit codes: 0 done; 1 something failed; 2 a mistake in the arguments, the study or the folder;
/// 3 a verdict that `--fail-on` names; 130 stopped by Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "slicewise", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Print neither progress nor notes on standard error, only warnings and errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print a line on standard error for each run.
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

impl Arguments {
    pub const fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a commented study file to start from; or one of a router's configuration (`--ios`).
    Init(InitOptions),
    /// Run a study: every policy under every load, then verdicts and a report.
    ///
    /// Finished runs are kept in the results folder as they come; the same command goes on where an
    /// earlier one stopped.
    Run(RunOptions),
    /// Put the shards of a study (`run --shard I/N`, `analyse --shard I/N`) into one results folder, and make the report.
    ///
    /// Each run is checked; what the folder has stays. The shards must be of the same study, program version and seed, or
    /// of the same captures.
    /// docs/shards.md shows how several machines share a study.
    ///
    /// Exit codes: 0 all runs are there; 1 runs are missing, or something failed; 2 the folders do not belong together;
    /// 3 a verdict that `--fail-on` names.
    Collect(CollectOptions),
    /// Run a study in shards on a cluster: as an array of jobs of Slurm, or as an Indexed Job of Kubernetes.
    ///
    /// Checks the study, writes scripts beside the results, submits them and waits; the shards are collected, and the verdicts
    /// printed. Ctrl-C leaves the jobs where they are. The same command goes on where shards stopped. docs/shards.md says what
    /// a cluster needs.
    Submit(SubmitOptions),
    /// Check a file without running it: a study, a plan, a measured study, or the configuration of a gateway or of an IOS
    /// router.
    Check(CheckOptions),
    /// Check whether all guarantees with a delay bound fit on a link, and print the unreserved capacity.
    ///
    /// Exit codes: 0 every guarantee can be kept; 1 one of them cannot; 2 a mistake in the file.
    Plan(PlanOptions),
    /// Measure from captures of any testbed: the same figures, verdicts and report as for a simulated run.
    ///
    /// One run: `analyse --sent tx.pcap --received rx.pcap`. Many runs: a study file that names their
    /// captures, or a folder of them with `--runs`. pcap and pcapng, gzip and zstd; `-` is standard
    /// input. docs/captures.md says what is measured.
    Analyse(AnalyseOptions),
    /// Print the JSON Schema of a kind of file, for editors.
    Schema(SchemaOptions),
    /// Make the report again from a results folder.
    Report(ReportOptions),
    /// Say what got worse, or better, from one results folder to another.
    ///
    /// After a change of configuration, program version or back end: every throughput, loss ratio and delay that
    /// both folders have is tested, with the margins and the confidence of A. docs/compare.md says how.
    ///
    /// Exit codes: 0 compared; 1 something failed; 2 a mistake in the folders named; 3 what `--fail-on` names.
    Compare(CompareOptions),
    /// Print a policy of a study as a device's configuration.
    Export(ExportOptions),
    /// Forward real packets between two interfaces, sliced as a configuration says.
    ///
    /// SIGINT and SIGTERM stop it: queues are emptied, and the interfaces left as they were. SIGHUP has
    /// it read the configuration again while packets flow; one that is wrong changes nothing. It needs
    /// root, or CAP_NET_RAW and CAP_NET_ADMIN (for AF_XDP also CAP_BPF, for real time CAP_SYS_NICE).
    Gateway(GatewayOptions),
    /// Create, change, remove and look at slices of a controller.
    Slice(SliceOptions),
    /// Create, change, remove and look at tenants of a controller: whose slices share a part of the excess, and within which quota.
    Tenant(TenantOptions),
    /// Offer slices as a service: an API and a dashboard over gateways.
    ///
    /// Without options it serves this machine at http://127.0.0.1:9650 and keeps its store in $STATE_DIRECTORY (set by systemd), else
    /// in $XDG_DATA_HOME/slicewise or ~/.local/share/slicewise. SIGINT and SIGTERM stop it; gateways forward on without it.
    Controller(ControllerOptions),
    /// Show what a running gateway does: classes, drops, queues and delays.
    Top(TopOptions),
    /// Check what this machine supports of `gateway` and `run --on gateway|tc|dpdk`, and how to fix the rest.
    ///
    /// It takes a second, and changes nothing: what must be tried is tried in a network namespace made
    /// for that. Most checks require root; without it, only the others are made.
    ///
    /// Exit codes: 0 `run --on gateway` can be run; 1 it cannot, or that could not be determined. Missing
    /// features of traffic control alone do not make it 1.
    Doctor(DoctorOptions),
    /// Carry out orders of a study on another machine (`run --on lab.yaml`), as a host of its lab.
    #[command(hide = true)]
    LabHost,
    /// Print a shell's completion script.
    ///
    /// For bash: `slicewise completions bash > ~/.local/share/bash-completion/completions/slicewise`.
    Completions(CompletionsOptions),
    /// Print the manual page, or write those of all commands into a folder.
    Man(ManOptions),
}

#[derive(Debug, Args)]
pub struct InitOptions {
    /// The file to write; one that exists is not overwritten. `-` is standard output.
    #[arg(default_value = "study.yaml")]
    pub file: PathBuf,
    /// Make a study of this IOS configuration: its classes are the slices, and the port has the rate of the interface.
    #[arg(long, value_name = "CONFIGURATION")]
    pub ios: Option<PathBuf>,
    /// The policy map to study, where the configuration attaches several.
    #[arg(long, value_name = "NAME", requires = "ios")]
    pub policy_map: Option<String>,
    /// Write a study of what LibreQoS shapes: DIR holds `ShapedDevices.csv`, and `network.json` where there is one.
    #[arg(long, value_name = "DIR", conflicts_with = "ios")]
    pub libreqos: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManOptions {
    /// Write `slicewise.1` and a page for each command into this folder, which is created.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Output of a command that judges, and the verdicts with which it fails.
#[derive(Debug, Clone, Args)]
pub struct JudgementOptions {
    /// Print the verdicts and published figures as JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Print with each verdict the test and the number that decided it.
    #[arg(long, conflicts_with = "json")]
    pub explain: bool,
    /// Exit with code 3 if isolation or reallocation of a policy is this, or worse.
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub fail_on: Option<FailOn>,
}

impl JudgementOptions {
    /// Returns true if one of them is given.
    pub const fn is_given(&self) -> bool {
        self.json || self.explain || self.fail_on.is_some()
    }
}

/// Verdicts that make the command fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Broken.
    Broken,
    /// Broken or inconclusive; also if nothing could be judged.
    Inconclusive,
}

/// Studies and runs that the command line asks for.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// The study file.
    pub study: PathBuf,
    /// Only this case of a file that holds several; may be given several times.
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// Only this policy; may be given several times.
    #[arg(long = "policy", value_name = "NAME")]
    pub policies: Vec<String>,
    /// Only this scenario; may be given several times.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Repetitions of each policy and scenario, instead of the study's own number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,
    /// The seed that all randomness is derived from, instead of the study's own.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Use the study's quick profile: fewer scenarios and repetitions, shorter runs.
    #[arg(long)]
    pub quick: bool,
}

impl Selection {
    /// Returns the suffix of the study's name in the name of its results folder.
    pub const fn suffix(&self) -> &'static str {
        if self.quick { "-quick" } else { "" }
    }
}

#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    #[command(flatten)]
    pub selection: Selection,
    /// Simulate the study under N seeds, its own and those that follow it (seed + 1, seed + 2, …), and print how often
    /// each verdict comes out. No run is kept; with `--out DIR` the table is written there.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000),
          conflicts_with_all = ["json", "fail_on"])]
    pub seeds: Option<u32>,
    /// Back end that carries out the runs: one of these, or a file that describes a lab (`lab.yaml`). All but the simulator
    /// send real packets, through network namespaces of this machine, which requires root, or between the hosts of the lab.
    #[arg(long, value_parser = BackendParser, default_value = "sim", value_name = "BACKEND")]
    pub on: BackendName,
    /// Only the I-th of N parts of the runs, without a report: each machine of N carries out one, and `slicewise collect`
    /// puts them together.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Runs carried out at a time [default: one per processor; on real packets always one].
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroU32>,
    /// The results folder [default: results/<name of the study>, with `-gateway`, `-tc`, `-dpdk` or `-lab` behind it,
    /// `-quick` behind that, and `-shard-2-of-4` last, as it was run]. Of a file with cases, the folder that holds a results folder for each,
    /// also where one case is run.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Discard results of another study or version in the results folder, and runs whose inputs have changed; of real
    /// packets, and with `--captures`, all runs.
    #[arg(long)]
    pub replace: bool,
    /// Keep every run's packets as real frames, in
    /// DIR/<policy>/<scenario>/rep-<number>/{sent,received}.pcapng (of real packets .pcap).
    #[arg(long, value_name = "DIR")]
    pub captures: Option<PathBuf>,
    /// Bytes kept of each captured frame, simulated runs only [default: 96]. Captures of real packets keep 128.
    #[arg(long, value_name = "BYTES", requires = "captures",
          value_parser = clap::value_parser!(u32).range(64..=262_144))]
    pub snap_length: Option<u32>,
    /// Also write every request, flow and video segment of the applications as Parquet, in simulated runs: below `transactions`
    /// in the results folder. Runs that are finished and lack them are carried out again.
    #[arg(long)]
    pub transactions: bool,
    /// On real packets: also accept runs in which the machine was too noisy. Their
    /// records and the report say what was wrong.
    #[arg(long)]
    pub tolerate_noise: bool,
    #[command(flatten)]
    pub judgement: JudgementOptions,
}

impl RunOptions {
    /// Returns the suffix of the study's name in the name of its results folder.
    pub fn suffix(&self) -> String {
        let on = match &self.on {
            BackendName::Sim => String::new(),
            other => format!("-{}", other.id()),
        };
        format!("{on}{}", self.selection.suffix())
    }

    /// What becomes of results that are there. A simulated run with the same inputs would come out the same, and is
    /// carried out again only for its packets.
    pub fn force(&self) -> Force {
        match self.on {
            _ if !self.replace => Force::Refuse,
            BackendName::Sim if self.captures.is_none() => Force::Replace,
            _ => Force::Discard,
        }
    }
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("captures").required(true).args(["study", "runs", "sent"]))]
pub struct AnalyseOptions {
    /// A measured study: slices, and where the captures of each run are.
    pub study: Option<PathBuf>,
    /// Captures made where packets are sent: several files, or a pattern, of one measuring point.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "received")]
    pub sent: Vec<PathBuf>,
    /// Captures made where they are received.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "sent")]
    pub received: Vec<PathBuf>,
    /// Captures made in between, a file or a pattern for each point, in the order packets pass them.
    #[arg(long, value_name = "FILE", requires = "sent")]
    pub via: Vec<PathBuf>,
    /// A folder of runs: <policy>/<scenario>/rep-000/ with files called sent* and received* in each.
    #[arg(long, value_name = "DIR", requires = "slices")]
    pub runs: Option<PathBuf>,
    /// Which packets belong to which slice: a study, or a file with `slices:` [default: by VLAN, else by flow].
    #[arg(long, value_name = "FILE", conflicts_with = "study")]
    pub slices: Option<PathBuf>,
    /// The reference scenario for isolation: no slice exceeds what was promised.
    #[arg(long, value_name = "SCENARIO")]
    pub reference: Option<String>,
    /// Width of an interval of the time series [default: the study's, or 50 ms].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Duration>,
    /// How long traffic was offered in a run [default: the study's, or as long as there are packets].
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// A packet that has not arrived after this time is lost [default: the study's, or 5 s].
    #[arg(long, value_name = "TIME")]
    pub loss_timeout: Option<Duration>,
    /// If the clocks of the two ends disagree, correct delays by the estimate instead of reporting none.
    #[arg(long)]
    pub accept_clock_estimate: bool,
    /// Match and classify packets inside IP in IP, GRE and VXLAN instead of the outer ones. (GTP-U, PPPoE and MPLS need no option.)
    #[arg(long)]
    pub inner: bool,
    /// Also write every packet as Parquet: `packets/` in the results folder.
    #[arg(long)]
    pub packets: bool,
    /// Only the I-th of N parts of the runs, without a report: each machine of N analyses one, and `slicewise collect`
    /// puts them together.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["sent", "packets"])]
    pub shard: Option<Shard>,
    /// The results folder [default: results/<name of the study, or `captures`>, with `-shard-2-of-4` behind it].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Discard results of other captures in the results folder.
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub judgement: JudgementOptions,
}

#[derive(Debug, Args)]
pub struct CheckOptions {
    /// The file.
    pub study: PathBuf,
    /// Back end for the runs of the study: settings that it cannot carry out are reported, too. A policy, or a case,
    /// that it would leave out is a warning where others remain. Programs, rights and the kernel of this machine are
    /// for `doctor`.
    #[arg(long, value_parser = BackendParser, default_value = "sim", value_name = "BACKEND")]
    pub on: BackendName,
}

#[derive(Debug, Args)]
pub struct SchemaOptions {
    /// The kind of file.
    #[arg(long, value_enum, default_value_t, value_name = "FILES")]
    pub of: SchemaOf,
}

/// Files that have a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// Studies.
    #[default]
    Study,
    /// Plans.
    Plan,
    /// Measured studies.
    Measured,
    /// Configurations of the gateway.
    Gateway,
    /// Labs.
    Lab,
}

#[derive(Debug, Args)]
pub struct PlanOptions {
    /// A plan file; or a study, of which each guaranteed policy is planned on its device.
    pub file: PathBuf,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CollectOptions {
    /// The results folder to put them into: a new one, or one of the same study.
    #[arg(value_name = "DIR")]
    pub results: PathBuf,
    /// Make the report although runs are missing, such as those of policies that no shard was to carry out.
    #[arg(long)]
    pub partial: bool,
    /// Results folders of the shards.
    #[arg(value_name = "SHARD", required = true)]
    pub shards: Vec<PathBuf>,
    #[command(flatten)]
    pub judgement: JudgementOptions,
}

#[derive(Debug, Args)]
pub struct ReportOptions {
    /// The results folder.
    pub results: PathBuf,
    /// Other results of the same study, to show side by side: of a gateway, of Linux tc, of DPDK's scheduler, of the simulator.
    #[arg(long, value_name = "DIR")]
    pub beside: Vec<PathBuf>,
    #[command(flatten)]
    pub judgement: JudgementOptions,
}

#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The results folder to compare with: the baseline.
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The results folder to compare.
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Show every figure, also those that are the same.
    #[arg(long)]
    pub all: bool,
    /// Print every figure as JSON instead of a table.
    #[arg(long, conflicts_with = "all")]
    pub json: bool,
    /// Exit with code 3 where a figure or a verdict of B is this, or worse.
    #[arg(long, value_enum, value_name = "OUTCOME")]
    pub fail_on: Option<CompareFailOn>,
}

/// Outcomes of a comparison that a pipeline does not let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFailOn {
    /// One that is worse.
    Worse,
    /// One that is worse or inconclusive; also where B lacks something that A has.
    Inconclusive,
}

#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The study file.
    pub study: PathBuf,
    /// The case, of a file that holds several; of a sweep also any point, by its coordinates: `load=70 %,flows=4`.
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// The policy; as it is in one phase of a timeline, `POLICY/PHASE` [default: the first phase].
    #[arg(long, value_name = "NAME")]
    pub policy: String,
    /// The device's language.
    #[arg(long, value_enum)]
    pub to: Language,
    /// The interface whose egress is configured, for `--to tc` and `--to ovs` [default: eth0].
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
}

/// A language a policy can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Cisco IOS class-maps and policy-map.
    Ios,
    /// Commands of Linux traffic control, for the link of the study's device.
    Tc,
    /// Commands of Open vSwitch: queues, and the OpenFlow rules that choose them.
    Ovs,
    /// Slice requests of P4-TINS, as JSON.
    P4Tins,
    /// A profile file of DPDK's sample application `qos_sched`.
    Dpdk,
}

#[derive(Debug, Args)]
pub struct GatewayOptions {
    /// The configuration: interfaces, link and policy.
    #[arg(required_unless_present = "study")]
    pub config: Option<PathBuf>,
    /// Instead of a configuration: a study, whose link is emulated with one of its policies.
    #[arg(long, value_name = "STUDY", requires_all = ["policy", "interfaces"], conflicts_with = "config")]
    pub study: Option<PathBuf>,
    /// The case, of a file that holds several; of a sweep also any point, by its coordinates: `load=70 %,flows=4`.
    #[arg(long, value_name = "NAME", requires = "study")]
    pub case: Option<String>,
    /// The policy of the study.
    #[arg(long, value_name = "NAME", requires = "study")]
    pub policy: Option<String>,
    /// Refuse the study unless it has this digest: a testbed's runs must not change
    /// with the file.
    #[arg(long, value_name = "SHA256", requires = "study", hide = true)]
    pub study_digest: Option<String>,
    /// Begin with the first phase of the study's timeline; each reload (SIGHUP) puts the next one in force.
    #[arg(long, requires = "study", hide = true)]
    pub phases: bool,
    /// The two interfaces that it forwards between, where packets are sent first.
    #[arg(long, value_names = ["FROM", "TO"], num_args = 2, requires = "study")]
    pub interfaces: Vec<String>,
    /// The port on 127.0.0.1 that serves metrics, 0 for none [default: 9640].
    #[arg(long, value_name = "PORT", requires = "study")]
    pub metrics_port: Option<u16>,
    /// Never sleep: departures are slightly more punctual, but a processor is always busy.
    #[arg(long)]
    pub busy_poll: bool,
    /// Keep the processors that it may use (see taskset) from halting while it waits: more punctual
    /// on a virtual machine, but each processor draws the power of a busy one.
    #[arg(long, conflicts_with = "busy_poll")]
    pub keep_awake: bool,
    /// Log each decision of `reallocate`, too (`level=debug event=reallocated`).
    #[arg(long)]
    pub debug: bool,
    /// Only check the configuration.
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = false)]
pub struct ControllerOptions {
    #[command(subcommand)]
    pub action: Option<ControllerAction>,
    /// The store: `sqlite:PATH`, or `postgres://USER@HOST/DATABASE` for several controllers [default: controller.sqlite in
    /// $STATE_DIRECTORY or the folder for data of the current user]. A password is better given in $PGPASSWORD.
    #[arg(long, value_name = "STORE", global = true)]
    pub store: Option<String>,
    /// Address and port. Other machines can reach it only with TLS and a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9650")]
    pub listen: std::net::SocketAddr,
    /// The certificate, and those between it and its authority (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// The key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Most requests per second of each token; without tokens, of each address.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_second: u32,
}

/// Other commands for a controller's store.
#[derive(Debug, Subcommand)]
pub enum ControllerAction {
    /// Write everything in the store to a file; the controller may run meanwhile.
    Backup {
        /// The file to write; one that exists is not overwritten.
        file: PathBuf,
    },
    /// Read a backup into an empty store, of either kind. Gateways get every slice anew.
    ///
    /// Sums are counted anew. A gateway that has seen changes which the backup does not have keeps its slices until it is adopted (`adopt`).
    Restore {
        /// The backup.
        file: PathBuf,
    },
    /// Look for contradictions in the store: sums that are not those of its slices, links that cannot hold what is promised, a damaged file.
    ///
    /// The controller may run meanwhile; it does the same when it starts. Exit code 1 if there are any.
    Check,
    /// Let gateways follow this store that follow another one, or that have seen more of it than it has.
    ///
    /// Such a gateway is refused (`slicewise_controller_gateway_refused`), and keeps its slices. From its next announcement on, a few
    /// seconds later, it has those of this store instead; whatever this store does not have is removed from it.
    Adopt {
        /// Their names.
        #[arg(required = true, value_name = "GATEWAY")]
        gateways: Vec<String>,
    },
    /// Make, list and revoke tokens. From the first one on, every request needs one.
    Token {
        #[command(subcommand)]
        action: TokenAction,
    },
}

/// Commands for tokens.
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Make a token and print it. It is not shown again.
    Add {
        /// Its name: who asked, in history and audit log.
        name: String,
        /// Its permissions: admin, operator, viewer, tenant:NAME or gateway:NAME.
        #[arg(long)]
        scope: String,
    },
    /// List tokens, without their secrets.
    List,
    /// Revoke a token.
    Remove {
        /// Its name.
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct TopOptions {
    /// The port on 127.0.0.1 where the gateway serves its metrics.
    #[arg(long, value_name = "PORT", default_value_t = 9640)]
    pub port: u16,
    /// Print one table and end, instead of refreshing it.
    #[arg(long)]
    pub once: bool,
    /// Seconds from one table to the next; rates are measured over them.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub interval: u64,
}

#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// Print JSON instead of a list.
    #[arg(long)]
    pub json: bool,
}
