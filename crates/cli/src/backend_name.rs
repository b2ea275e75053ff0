//! Back ends as the command line names them.

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command, ValueEnum};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Back ends that can carry out the runs of a study.
#[derive(Debug, Clone, Default, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// The simulator.
    #[default]
    Sim,
    /// The gateway of this program, between two namespaces.
    Gateway,
    /// The kernel: queueing disciplines of Linux traffic control.
    Tc,
    /// DPDK's scheduler, librte_sched, in a program that is compiled here: policies that are profile files.
    Dpdk,
    /// Hosts of a lab, which this file describes.
    #[value(skip)]
    Lab(PathBuf),
}

impl BackendName {
    /// Returns the name in folders of results.
    pub const fn id(&self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Gateway => "gateway",
            Self::Tc => "tc",
            Self::Dpdk => "dpdk",
            Self::Lab(_) => "lab",
        }
    }

    /// How the port of the device is paced; `None` for the simulator, whose study says so.
    #[cfg(feature = "linux")]
    pub const fn pacing(&self) -> Option<slicewise_study::Pacing> {
        use slicewise_study::Pacing;
        match self {
            Self::Tc => Some(Pacing::TokenBucket),
            Self::Dpdk => Some(Pacing::Bursts),
            Self::Gateway | Self::Lab(_) => Some(Pacing::Departures),
            Self::Sim => None,
        }
    }
}

/// Parser of back ends: a name, or the path of a YAML file.
#[derive(Debug, Clone)]
pub struct BackendParser;

impl TypedValueParser for BackendParser {
    type Value = BackendName;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, Error> {
        let path = Path::new(value);
        let extension = path.extension().and_then(OsStr::to_str);
        if matches!(extension, Some("yaml" | "yml")) {
            return Ok(BackendName::Lab(path.to_owned()));
        }
        EnumValueParser::<BackendName>::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = BackendName::value_variants().iter();
        Some(Box::new(names.filter_map(BackendName::to_possible_value)))
    }
}
