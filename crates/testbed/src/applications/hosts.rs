//! Settings of the hosts' TCP that an application needs: of a namespace, and of routes.

use crate::ends::Ends;
use crate::error::AttemptError;
use crate::hosts::{Hosts, within};
use slicewise_traffic::application::ApplicationSourceParams;
use std::fs;
use std::io;

/// Returns the settings that a host has once: largest buffers.
fn buffers(source: &ApplicationSourceParams) -> (u64, u64) {
    let transport = &source.transport;
    (transport.receive_buffer_bytes, transport.send_buffer_bytes)
}

/// All sources must ask for the same.
pub(super) fn check(sources: &[ApplicationSourceParams]) -> Result<(), AttemptError> {
    let Some(first) = sources.first() else {
        return Ok(());
    };
    match sources.iter().find(|one| buffers(one) != buffers(first)) {
        Some(other) => Err(AttemptError::Unsupported(format!(
            "sources {} and {} have different buffers (`transport`): the hosts of a testbed have one setting \
             (`tcp_rmem`, `tcp_wmem`), so give both the same",
            first.name, other.name
        ))),
        None => Ok(()),
    }
}

/// Set up both ends.
pub(super) fn set(hosts: &Hosts, sources: &[ApplicationSourceParams]) -> Result<(), AttemptError> {
    let Some(first) = sources.first() else {
        return Ok(());
    };
    let (receive, send) = buffers(first);
    let ports = sources.iter().map(|source| {
        let ends = Ends::of(source);
        let (first, last) = (ends.opening.port(), ends.last_port);
        format!("{first}-{last},{}", ends.listening.port())
    });
    let ports: Vec<String> = ports.collect();
    let settings = [
        // What an earlier connection learnt of the path would start the next one otherwise.
        ("tcp_no_metrics_save", "1".to_owned()),
        ("tcp_rmem", grown_to(receive, 131_072)),
        ("tcp_wmem", grown_to(send, 16_384)),
        // Connections of other programs take others.
        ("ip_local_reserved_ports", ports.join(",")),
    ];
    // A client that opens its connection again has the same port. Without the second of these (before Linux 6.14) it
    // waits a second.
    let reuse = [("tcp_tw_reuse", "1"), ("tcp_tw_reuse_delay", "1")];
    for host in [hosts.generator(), hosts.sink()] {
        within(host, || {
            settings.iter().try_for_each(|(name, value)| {
                let path = format!("/proc/sys/net/ipv4/{name}");
                fs::write(&path, value).map_err(|error| {
                    io::Error::new(error.kind(), format!("{path}: {value}: {error}"))
                })
            })?;
            for (name, value) in reuse {
                let _ = fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
            }
            Ok(())
        })
        .map_err(AttemptError::Failed)?;
    }
    Ok(())
}

/// Least, first and largest size of a buffer, bytes.
fn grown_to(most: u64, usual: u64) -> String {
    format!("{} {} {most}", most.min(4_096), most.min(usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_to_no_more_than_its_largest_size() {
        assert_eq!(grown_to(2_000, 16_384), "2000 2000 2000");
    }
}
