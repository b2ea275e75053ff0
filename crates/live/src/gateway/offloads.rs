//! Offloads that merge several frames into one, or remove parts of frames: off while the gateway runs.

use crate::log;
use crate::sys::interface::{Interfaces, Offload};

/// Offloads that were changed at an interface.
#[derive(Debug, Default)]
pub(super) struct Changed(Vec<Offload>);

const IN_THE_WAY: [(Offload, &str); 3] = [
    (Offload::Gro, "gro"),
    (Offload::Lro, "lro"),
    (Offload::VlanReceive, "rxvlan"),
];

impl Changed {
    /// Turn off the offloads that are on. VLAN offload is turned off only where the tags cannot be put back.
    pub(super) fn turn_off(&mut self, system: &Interfaces, name: &str, keeps_tags: bool) {
        for (offload, word) in IN_THE_WAY {
            if (offload == Offload::VlanReceive && keeps_tags)
                || !system.offload(name, offload).unwrap_or(false)
            {
                continue;
            }
            match system.set_offload(name, offload, false) {
                Ok(()) => {
                    if !self.0.contains(&offload) {
                        self.0.push(offload);
                    }
                    log::info("offload_off", &[("interface", &name), ("offload", &word)]);
                }
                Err(error) => {
                    let help = format!("run `ethtool -K {name} {word} off`");
                    log::warn(
                        "offload_stays_on",
                        &[
                            ("interface", &name),
                            ("offload", &word),
                            ("reason", &error),
                            ("so", &help),
                        ],
                    );
                }
            }
        }
    }

    /// Turn on again what was on.
    pub(super) fn restore(&mut self, system: &Interfaces, name: &str) {
        for offload in self.0.drain(..) {
            // The interface may be gone, and then has nothing to restore.
            let _ = system.set_offload(name, offload, true);
        }
    }
}
