//! Options of `slicewise slice`.

use super::terms::TermsOptions;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Options of all commands for slices.
#[derive(Debug, Args)]
pub struct SliceOptions {
    #[command(subcommand)]
    pub command: SliceCommand,
    #[command(flatten)]
    pub controller: ConnectionOptions,
    /// Print JSON, as the controller answers it, instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
}

/// Which controller, and who asks.
#[derive(Debug, Args)]
pub struct ConnectionOptions {
    /// The controller's address [default: SLICEWISE_CONTROLLER of the environment, or http://127.0.0.1:9650].
    #[arg(long, global = true, value_name = "URL")]
    pub controller: Option<String>,
    /// A file with the token [default: the token in SLICEWISE_TOKEN of the environment, if any].
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) of authorities to trust instead of those of the system.
    #[arg(long, global = true, value_name = "FILE")]
    pub authorities: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum SliceCommand {
    /// List slices with their state and what they are promised.
    List(ListOptions),
    /// Show one slice, its bounds, and what gateways counted last.
    Show(NameOptions),
    /// Create a slice.
    ///
    /// For example: `slicewise slice add voice --match protocol=udp,destination_port=5060 --rate "10 Mbit/s" --delay "2 ms"`.
    ///
    /// Exit codes: 0 created; 1 refused by the admission test or something failed; 2 a mistake in the request.
    Add(DefinitionOptions),
    /// Change a slice: what is not given stays as it is. `none` takes a rate, delay or maximum away.
    ///
    /// Exit codes as those of `add`. If somebody else changes the slice at the same moment, nothing is changed.
    Change(DefinitionOptions),
    /// Remove slices, all or none. Their capacity is free once their frames have left.
    Remove(NamesOptions),
    /// End slices that were removed and whose frames do not leave: their gateways drop and count these. For operators.
    ///
    /// Slices are purged one after the other, until one is refused.
    ///
    /// Exit codes: 0 purged; 1 a slice is still in force or something failed; 2 there is no such slice, or another mistake.
    Purge(NamesOptions),
    /// Ask what would be accepted, without changing anything: for a new slice as with `add`, for one that exists as with `change`.
    ///
    /// Exit codes: 0 it would be accepted; 1 it would be refused; 2 a mistake in the request.
    Offer(DefinitionOptions),
}

#[derive(Debug, Args)]
pub struct ListOptions {
    /// Slices of this tenant.
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Slices in this state.
    #[arg(long, value_enum, value_name = "STATE")]
    pub state: Option<StateName>,
    /// Slices that pass this link.
    #[arg(long, value_name = "NAME")]
    pub link: Option<String>,
    /// Slices that have this in their name.
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// At most so many [default: all].
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// A state of slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StateName {
    /// Promised, and not in force everywhere yet.
    Admitted,
    /// In force at every gateway of the path.
    Installed,
    /// Removed; its last frames have not left yet.
    Draining,
}

#[derive(Debug, Args)]
pub struct NameOptions {
    /// The slice.
    pub name: String,
}

#[derive(Debug, Args)]
pub struct NamesOptions {
    /// The slices.
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// A slice, or what changes of it.
#[derive(Debug, Args)]
pub struct DefinitionOptions {
    /// The slice.
    pub name: String,
    /// Begin with this file, the slice as JSON (as `slice show --json` prints it); `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The tenant [default: that of the token, or `default`].
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// The links that it passes, in order, with commas between them [default: the only link].
    #[arg(long, value_name = "LINKS", value_delimiter = ',')]
    pub path: Option<Vec<String>>,
    /// Packets of the slice in the forward direction, as `protocol=udp,destination_port=5201`: `source` and `destination`
    /// (prefixes), `protocol`, `source_port`, `destination_port` (a port or `80-90`), `dscp`, `vlan`, `inner_vlan`, `teid`.
    /// May be given several times: a packet belongs to the slice if any of them matches. `change` drops no packet for other
    /// matches, and reorders none: packets that change to another slice wait until those before them have left. For most ranges of
    /// more than 16 ports, the slice is best effort until its older packets have left.
    #[arg(long = "match", value_name = "FIELDS")]
    pub matches: Vec<String>,
    #[command(flatten)]
    pub terms: TermsOptions,
    /// Take a direction away.
    #[arg(long, value_enum, value_name = "DIRECTION")]
    pub without: Option<DirectionName>,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DirectionName {
    /// From the first interface of the gateway to the second.
    Forward,
    /// The opposite.
    Backward,
}
