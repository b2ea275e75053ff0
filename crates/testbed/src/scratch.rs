//! A temporary network namespace for trials, with a pair of virtual interfaces.

use crate::command::{self, Tool};
use crate::lease::{Lease, PREFIX, delete_namespace};

/// The interface for trials.
pub(crate) const SCRATCH: &str = "scratch";
/// Its other end.
pub(crate) const PEER: &str = "scratch-peer";

/// Deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(String);

impl Scratch {
    /// The namespace, and [`SCRATCH`] in it, up.
    pub(crate) fn new(lease: &Lease) -> Result<Self, String> {
        let scratch = Self::empty(lease)?;
        scratch.join()?;
        Ok(scratch)
    }

    /// The namespace alone.
    pub(crate) fn empty(lease: &Lease) -> Result<Self, String> {
        let name = format!("{PREFIX}{}-probe", std::process::id());
        lease
            .owns(std::slice::from_ref(&name))
            .map_err(|error| error.to_string())?;
        command::output(Tool::Ip, &["netns", "add", &name])?;
        Ok(Self(name))
    }

    /// Create the interfaces in the same way as those of hosts.
    pub(crate) fn join(&self) -> Result<(), String> {
        self.configure(&format!(
            "link set lo up\n\
             link add {SCRATCH} type veth peer name {PEER}\n\
             link set {SCRATCH} addrgenmode none up\n\
             link set {PEER} addrgenmode none up\n"
        ))
    }

    /// Lines for `ip -batch`.
    pub(crate) fn configure(&self, batch: &str) -> Result<(), String> {
        command::run(Tool::Ip, &["-n", &self.0, "-batch", "-"], batch).map(drop)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If deletion fails, it stays on the list for the next testbed.
        let _ = delete_namespace(&self.0);
    }
}
