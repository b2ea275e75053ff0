//! Ends of the connections of a source.

use slicewise_traffic::application::ApplicationSourceParams;
use std::net::SocketAddr;

/// Ports where a study names none, of the end that opens connections and of the other: below those that the system
/// gives out.
const OPENING_PORT: u16 = 20_000;
const LISTENING_PORT: u16 = 5_201;

/// The ends of a source's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The end that opens the first connection; the others have the ports above.
    pub(crate) opening: SocketAddr,
    /// Its last port.
    pub(crate) last_port: u16,
    /// The end that all are opened to.
    pub(crate) listening: SocketAddr,
    /// True if the sender of data opens connections.
    pub(crate) sender_opens: bool,
}

impl Ends {
    pub(crate) fn of(source: &ApplicationSourceParams) -> Self {
        let headers = &source.headers;
        let sender = (headers.source, headers.source_port);
        let receiver = (headers.destination, headers.destination_port);
        let sender_opens = source.application.sender_opens();
        let (opening, listening) = if sender_opens {
            (sender, receiver)
        } else {
            (receiver, sender)
        };
        let or = |port, usual| if port == 0 { usual } else { port };
        let opening = SocketAddr::new(opening.0, or(opening.1, OPENING_PORT));
        let more = source.application.connections().saturating_sub(1);
        let more = u16::try_from(more).unwrap_or(u16::MAX);
        Self {
            opening,
            last_port: opening.port().saturating_add(more),
            listening: SocketAddr::new(listening.0, or(listening.1, LISTENING_PORT)),
            sender_opens,
        }
    }

    pub(crate) fn opens_from(&self, address: SocketAddr) -> bool {
        address.ip() == self.opening.ip()
            && (self.opening.port()..=self.last_port).contains(&address.port())
    }

    /// Why sources with these ends and others cannot be told apart, if they cannot: the address and port.
    pub(crate) fn clash(&self, other: &Self) -> Option<SocketAddr> {
        if self.listening == other.listening {
            return Some(self.listening);
        }
        let starts = [self.opening, other.opening];
        starts
            .into_iter()
            .find(|&at| self.opens_from(at) && other.opens_from(at))
    }
}
