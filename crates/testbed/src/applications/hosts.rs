//! Settings of the hosts' TCP that an application needs: of a namespace, and of routes.

use super::Ends;
use crate::error::AttemptError;
use crate::hosts::{Hosts, within};
use slicewise_traffic::application::ApplicationSourceParams;
use slicewise_traffic::transport::TransportParams;
use slicewise_units::Duration as Span;
use std::fmt::Write;
use std::fs;
use std::io;

/// Linux's least time-out where nothing else is said.
const USUAL_MIN_RTO: Span = Span::from_millis(200);

/// Settings for each address that packets go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteSettings {
    mtu_bytes: u32,
    ecn: bool,
    min_rto: Span,
}

impl RouteSettings {
    pub(crate) const fn of(transport: &TransportParams) -> Self {
        Self {
            mtu_bytes: transport.mtu_bytes,
            ecn: transport.ecn,
            min_rto: transport.min_rto,
        }
    }

    /// As `ip route` takes them, on a link with this MTU.
    pub(crate) fn words(settings: Option<&Self>, link_mtu_bytes: u32) -> String {
        let Some(settings) = settings else {
            return format!("mtu {link_mtu_bytes}");
        };
        let mut words = format!("mtu {}", settings.mtu_bytes.min(link_mtu_bytes));
        if settings.ecn {
            words.push_str(" features ecn");
        }
        if settings.min_rto != USUAL_MIN_RTO {
            // Writing to a string cannot fail.
            let millis = settings.min_rto.nanos().div_ceil(1_000_000).max(1);
            let _ = write!(words, " rto_min {millis}ms");
        }
        words
    }
}

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
    use slicewise_traffic::transport::TcpProfile;

    #[test]
    fn routes_carry_what_differs_from_a_linux_host() {
        let usual = TransportParams::of(TcpProfile::Linux);
        let words = |transport: TransportParams| {
            RouteSettings::words(Some(&RouteSettings::of(&transport)), 1_500)
        };
        assert_eq!(words(usual), "mtu 1500");
        assert_eq!(RouteSettings::words(None, 9_000), "mtu 9000");
        let other = TransportParams {
            ecn: true,
            mtu_bytes: 1_280,
            min_rto: Span::from_micros(4_500),
            ..usual
        };
        assert_eq!(words(other), "mtu 1280 features ecn rto_min 5ms");
        let large = TransportParams {
            mtu_bytes: 9_000,
            ..usual
        };
        assert_eq!(
            words(large),
            "mtu 1500",
            "longer packets are no packets of this link"
        );
        assert_eq!(grown_to(2_000, 16_384), "2000 2000 2000");
    }
}
