//! Applications: sources that react to what they get.

use super::Checker;
use super::application::{
    ApplicationSpec, Bytes, Count, EventRate, TransferSizeForm, TransferSizeSpec,
};
use super::headers::{Defaults, TCP};
use super::traffic::{Network, Place, Slice, SourceSpec};
use crate::file::{Placed, Settings, Span};
use crate::params::{
    ApplicationParams, ApplicationSourceParams, BulkParams, FlowArrivals, RequestsParams,
    ServerParams, ShortFlowsParams, SourceHeaders, TransferSizes, VideoParams,
};
use crate::problem;
use crate::spec::{ApplicationKind, Name, PassingRate, Positive, word_for};
use slicewise_traffic::application::KILOSECOND_NS;
use slicewise_traffic::scenario::Ecn;
use slicewise_units::{BitRate, ByteCount, Duration};

/// Most connections of all applications of a scenario: as many as there are ports for one pair of addresses,
/// from the first ephemeral one on.
const MAX_CONNECTIONS: u32 = 16_000;
/// Most qualities of a video.
const MAX_LADDER: usize = 64;
/// A request with few fields (RFC 9112).
const DEFAULT_REQUEST: u32 = 100;
/// Connections that wrk2 opens.
const DEFAULT_CONNECTIONS: u32 = 10;
const DEFAULT_SEGMENT: Duration = Duration::from_secs(4);
/// Buffer that dash.js keeps at the best quality.
const DEFAULT_BUFFER: Duration = Duration::from_secs(30);
/// Shortest interval from which starts of connections are drawn, unless a study says otherwise: longer than round
/// trips, and longer than transports that begin together take to part.
const DEFAULT_SPREAD: Duration = Duration::from_millis(100);
/// Settings of a source whose packets leave when a pattern says.
const OF_PATTERNS: [&str; 6] = ["flows", "rate", "counts", "payload", "on_off", "pcap"];

/// An application as it is written, and what it has to do with.
struct Written<'a> {
    placed: &'a Placed<ApplicationSpec>,
    kind: ApplicationKind,
    /// Where to say what is missing.
    at: Span,
    network: &'a Network,
    /// Propagation delay of the link of its host.
    link: Duration,
    /// How long its source lasts.
    lasts: Duration,
}

impl Written<'_> {
    /// Where a setting is written, or else the application.
    fn place(&self, key: &str) -> Span {
        self.placed.place(key).unwrap_or(self.at)
    }
}

impl Checker<'_> {
    /// A source with an `application`, beside the `others` of its scenario.
    pub(super) fn application_source(
        &mut self,
        place: &Place<'_>,
        source: &Placed<SourceSpec>,
        others: &[ApplicationSourceParams],
    ) -> Option<ApplicationSourceParams> {
        self.check_no_pattern(source);
        let slice = self.slice_of(place, source);
        let (start, stop) = self.span_of_time(source, place.network.duration);
        let placed = &source.value.application.as_ref()?.value;
        let at = source.place("application").unwrap_or(place.name.span);
        let Some(kind) = placed.value.kind else {
            if placed.place("kind").is_none() {
                problem!(self.problems, at => "`kind` is missing: is it `bulk`, `requests`, `short_flows` or `video`?");
            }
            return None;
        };
        let hosts = place.spec.hosts.as_ref();
        let own = hosts
            .zip(source.value.host.as_ref())
            .and_then(|(hosts, Name(host))| hosts.value.propagation.get(host));
        let written = Written {
            link: own.map_or(place.network.link.propagation, |own| own.value),
            placed,
            kind,
            at,
            network: place.network,
            lasts: Duration::from_nanos(stop.nanos().saturating_sub(start.nanos())),
        };
        self.check_settings(&written);
        let application = match kind {
            ApplicationKind::Bulk => self.bulk(&written),
            ApplicationKind::Requests => self.requests(&written)?,
            ApplicationKind::ShortFlows => self.short_flows(&written)?,
            ApplicationKind::Video => self.video(&written)?,
        };
        self.check_connections(&written, &application, others);
        let slice = slice?;
        let headers = self.application_headers(place, source, &slice, &application)?;
        Some(ApplicationSourceParams {
            name: place.name.value.clone(),
            host: source.value.host.clone().map(|Name(host)| host),
            slice: slice.index,
            headers,
            transport: self.transport(
                source.value.transport.as_ref(),
                at,
                &headers,
                &place.network.link,
            ),
            start,
            start_spread: self.application_spread(source, &application, (start, stop)),
            stop,
            application,
        })
    }

    /// The random part of the start of each connection.
    fn application_spread(
        &mut self,
        source: &Placed<SourceSpec>,
        application: &ApplicationParams,
        (start, stop): (Duration, Duration),
    ) -> Duration {
        if let Some(spread) = source.value.start_spread {
            self.check_spread(source.place("start_spread"), spread, (start, stop));
            return spread;
        }
        let lasts = stop.nanos().saturating_sub(start.nanos());
        let brief = DEFAULT_SPREAD.min(Duration::from_nanos(lasts / 10));
        match application {
            ApplicationParams::Requests(requests) => requests.period().min(brief),
            ApplicationParams::Bulk(bulk) => match bulk.arrivals {
                FlowArrivals::Staggered(stagger) => stagger.max(brief),
                FlowArrivals::Poisson(_) => Duration::ZERO,
            },
            ApplicationParams::Video(video) => video.stagger.max(brief),
            ApplicationParams::ShortFlows(_) => brief,
        }
    }

    /// Reports settings of packet times and lengths: only sources with a pattern have them.
    fn check_no_pattern(&mut self, source: &Placed<SourceSpec>) {
        if let Some(at) = source.place("pattern") {
            problem!(self.problems, at => "a source has a `pattern` or an `application`, not both";
                "in a scenario, `without` leaves out a source that all scenarios have");
            return;
        }
        for key in OF_PATTERNS {
            if let Some(at) = source.place(key) {
                problem!(self.problems, at => "`{key}` is of sources with a `pattern`: what this one sends follows \
                    from its `application`";
                    "leave it out");
            }
        }
    }

    /// An application has settings of its kind only.
    fn check_settings(&mut self, written: &Written<'_>) {
        let own = written.kind.settings();
        for field in ApplicationSpec::FIELDS {
            if field.key == "kind" || own.contains(&field.key) {
                continue;
            }
            if let Some(at) = written.placed.place(field.key) {
                let kind = word_for(written.kind);
                problem!(self.problems, at => "`{}` is no setting of `kind: {kind}`", field.key;
                    "it has {}", own.join(", "));
            }
        }
    }

    fn bulk(&mut self, written: &Written<'_>) -> ApplicationParams {
        let spec = &written.placed.value;
        let bytes = self.transfer_sizes(written, ("bytes", "transfer"), spec.bytes.as_ref());
        if bytes.is_some()
            && let Some(at) = written.placed.place("bitrate")
        {
            problem!(self.problems, at => "`bitrate` is of transfers that send until the source stops: leave out \
                `bytes`");
        }
        let (flows, arrivals) = match spec.arrivals {
            Some(EventRate(rate)) => (
                self.arriving(written, rate, bytes.as_ref()),
                FlowArrivals::Poisson(rate),
            ),
            None => (number(spec.flows, 1), FlowArrivals::Staggered(spec.stagger)),
        };
        ApplicationParams::Bulk(BulkParams {
            flows,
            bytes,
            bitrate: spec.bitrate.map(|PassingRate(rate)| rate),
            arrivals,
        })
    }

    /// Connections of flows that arrive at random: so many that hardly a run has more.
    fn arriving(
        &mut self,
        written: &Written<'_>,
        per_kilosecond: u64,
        bytes: Option<&TransferSizes>,
    ) -> u32 {
        for key in ["flows", "stagger"] {
            if let Some(at) = written.placed.place(key) {
                problem!(self.problems, at => "`{key}` is of a given number of flows, and `arrivals` of flows that begin at random: leave out one of \
                    them");
            }
        }
        if written.placed.place("bytes").is_none() {
            problem!(self.problems, written.place("arrivals") => "flows that arrive and never end are ever more: how much \
                does each transfer?"; "give `bytes`, such as `100 kB` or `{{exponential: 100 kB}}`");
        }
        let Written { network, lasts, .. } = written;
        let mean_bytes = bytes.map_or(0, TransferSizes::mean_bytes);
        let offered = u128::from(mean_bytes) * 8 * u128::from(per_kilosecond) / 1_000;
        let offered = BitRate::new(u64::try_from(offered).unwrap_or(u64::MAX));
        let capacity = network.dut.capacity().rate.min(network.link.rate.rate);
        if network.is_known && offered > capacity {
            let message = format!(
                "flows of {offered} arrive, and the device forwards {capacity}: there are more and more of them for as long as the \
                 source lasts",
            );
            self.problems.warn(written.place("arrivals"), message);
        }
        let mean = u128::from(per_kilosecond) * u128::from(lasts.nanos());
        let mean = mean.div_ceil(KILOSECOND_NS.into());
        // One run of 10^8 has more.
        u32::try_from(mean + 6 * (mean.isqrt() + 1) + 10).unwrap_or(u32::MAX)
    }

    fn requests(&mut self, written: &Written<'_>) -> Option<ApplicationParams> {
        let spec = &written.placed.value;
        let response = self.response(written);
        if written.placed.place("rate").is_none() {
            problem!(self.problems, written.at => "`rate` is missing: how many requests are due, for example `1000 \
                /s`?");
        }
        let EventRate(per_kilosecond) = spec.rate?;
        let requests = RequestsParams {
            per_kilosecond,
            connections: number(spec.connections, DEFAULT_CONNECTIONS),
            request_bytes: self.request(written),
            response: response?,
            server: server(spec),
        };
        self.check_server(written, &requests);
        Some(ApplicationParams::Requests(requests))
    }

    fn short_flows(&mut self, written: &Written<'_>) -> Option<ApplicationParams> {
        let spec = &written.placed.value;
        Some(ApplicationParams::ShortFlows(ShortFlowsParams {
            clients: number(spec.clients, 1),
            request_bytes: self.request(written),
            response: self.response(written)?,
            pause: spec.pause,
            server: server(spec),
        }))
    }

    fn video(&mut self, written: &Written<'_>) -> Option<ApplicationParams> {
        let spec = &written.placed.value;
        let ladder = self.ladder(written);
        let segment = spec.segment.map_or(DEFAULT_SEGMENT, |Positive(time)| time);
        let buffer = spec.buffer.as_ref().map(|buffer| buffer.value.0);
        let buffer = buffer.unwrap_or(DEFAULT_BUFFER);
        if buffer < segment {
            let at = written
                .placed
                .place("buffer")
                .or(written.placed.place("segment"));
            problem!(self.problems, at.unwrap_or(written.at) => "a buffer of {buffer} does not hold a segment of \
                {segment}");
        }
        if let Some(lowest) = ladder.first() {
            let bytes = lowest.bytes_in(segment).bytes();
            self.check_completes(written, "segment", "a segment of the lowest quality", bytes);
        }
        (!ladder.is_empty()).then(|| {
            ApplicationParams::Video(VideoParams {
                clients: number(spec.clients, 1),
                ladder,
                segment,
                buffer,
                rule: spec.rule,
                stagger: spec.stagger,
                server: server(spec),
            })
        })
    }

    /// The qualities of a video: some, and each better than the one before it.
    fn ladder(&mut self, written: &Written<'_>) -> Vec<BitRate> {
        let ladder = &written.placed.value.ladder.0;
        if written.placed.place("ladder").is_none() {
            problem!(self.problems, written.at => "`ladder` is missing: which bit rates is the video offered in?");
        } else if self.problems.is_empty() && ladder.is_empty() {
            problem!(self.problems, written.place("ladder") => "a ladder without a bit rate: there is nothing to play");
        }
        if let Some(first) = ladder.get(MAX_LADDER) {
            problem!(self.problems, first.span => "a ladder may have at most {MAX_LADDER} bit rates");
        }
        for pair in ladder.windows(2) {
            if let [before, it] = pair
                && it.value <= before.value
            {
                problem!(self.problems, it.span => "{} is not above {}, the quality before it: a ladder goes from the \
                    lowest bit rate to the highest", it.value.0, before.value.0);
            }
        }
        ladder.iter().map(|rate| rate.value.0).collect()
    }

    fn request(&mut self, written: &Written<'_>) -> u32 {
        let Some(Bytes(size)) = written.placed.value.request else {
            return DEFAULT_REQUEST;
        };
        self.check_completes(written, "request", "a request", size.bytes());
        u32::try_from(size.bytes()).unwrap_or_else(|_| {
            problem!(self.problems, written.place("request") => "a request of {size} is above 4 GiB, the largest");
            u32::MAX
        })
    }

    /// The sizes of what an application is sent.
    fn response(&mut self, written: &Written<'_>) -> Option<TransferSizes> {
        if written.placed.place("response").is_none() {
            problem!(self.problems, written.at => "`response` is missing: how large is a response?");
        }
        let spec = written.placed.value.response.as_ref();
        self.transfer_sizes(written, ("response", "response"), spec)
    }

    /// Sizes of a setting, each of which a `what` may have.
    fn transfer_sizes(
        &mut self,
        written: &Written<'_>,
        (key, what): (&str, &str),
        spec: Option<&TransferSizeSpec>,
    ) -> Option<TransferSizes> {
        let at = written.place(key);
        let sizes = match &spec?.value {
            TransferSizeForm::One(size) => TransferSizes::Equal(size.value.0.bytes()),
            TransferSizeForm::Exponential(mean) => TransferSizes::Exponential(mean.value.0.bytes()),
            TransferSizeForm::Mix(mix) => {
                TransferSizes::Mix(self.mix(mix, at, Self::transfer_bytes)?)
            }
        };
        let what = match &sizes {
            TransferSizes::Exponential(_) => format!("a mean {what}"),
            _ => format!("a {what}"),
        };
        self.check_completes(written, key, &what, sizes.largest_bytes());
        Some(sizes)
    }

    fn transfer_bytes(&mut self, size: ByteCount, at: Span) -> Option<u64> {
        if size == ByteCount::ZERO {
            problem!(self.problems, at => "a size of zero: nothing would be sent");
        }
        (size > ByteCount::ZERO).then_some(size.bytes())
    }

    /// Reports a transfer that cannot complete while the source lasts.
    fn check_completes(&mut self, written: &Written<'_>, key: &str, what: &str, bytes: u64) {
        let Written { network, lasts, .. } = written;
        let rate = network.dut.capacity().rate.min(network.link.rate.rate);
        let size = ByteCount::new(bytes);
        let takes = rate.time_to_send(size);
        if !network.is_known || takes.is_some_and(|takes| takes <= *lasts) {
            return;
        }
        let takes = takes.map_or_else(|| "centuries".to_owned(), |takes| takes.to_string());
        problem!(self.problems, written.place(key) => "{what} of {size} takes {takes} at the {rate} that the device \
            forwards, and the source lasts {lasts}: it would not be complete";
            "choose a smaller size, or let the source last longer");
    }

    /// A server, or connections, that cannot answer as many requests as there are: what is asked for, but worth saying.
    fn check_server(&mut self, written: &Written<'_>, requests: &RequestsParams) {
        let Network { link, dut, .. } = written.network;
        let service = requests.server.service_time.nanos();
        let way = (written.link.nanos()).saturating_add(link.propagation.nanos());
        let there_and_back = way
            .saturating_add(dut.processing_delay.nanos())
            .saturating_add(way);
        let slots = [
            ("workers", requests.server.workers, service, "server"),
            (
                "connections",
                Some(requests.connections),
                service.saturating_add(there_and_back),
                "client",
            ),
        ];
        for (key, slots, nanos, who) in slots {
            let Some(slots) = slots.filter(|_| nanos > 0) else {
                continue;
            };
            let most = u128::from(slots) * 1_000_000_000_000 / u128::from(nanos);
            if most < u128::from(requests.per_kilosecond) {
                let message = format!(
                    "{} requests/s are due, and with {slots} {key} that each take {} for one, the {who} manages {}: latency \
                     grows for as long as the source lasts",
                    in_a_second(requests.per_kilosecond.into()),
                    Duration::from_nanos(nanos),
                    in_a_second(most),
                );
                self.problems.warn(written.place("rate"), message);
            }
        }
    }

    /// All applications of a scenario together have no more connections than can be.
    fn check_connections(
        &mut self,
        written: &Written<'_>,
        application: &ApplicationParams,
        others: &[ApplicationSourceParams],
    ) {
        let taken = others.iter().map(|other| other.application.connections());
        let left = taken.fold(MAX_CONNECTIONS, u32::saturating_sub);
        let (key, what) = match written.placed.place("arrivals") {
            Some(_) => ("arrivals", "flows that arrive"),
            None => (written.kind.connections(), written.kind.connections()),
        };
        if application.connections() > left {
            problem!(self.problems, written.place(key) => "with {} {what} of this source, the applications of the \
                scenario have more than {MAX_CONNECTIONS} connections", application.connections();
                "{left} are left for it: lower `{key}`");
        }
    }

    /// Header fields of the packets that the sender of an application sends on its first connection. Each connection has
    /// a port of its own, and all of them are its slice's.
    fn application_headers(
        &mut self,
        place: &Place<'_>,
        source: &Placed<SourceSpec>,
        slice: &Slice<'_>,
        application: &ApplicationParams,
    ) -> Option<SourceHeaders> {
        let own = &source.value.headers;
        let protocol = own.protocol.as_ref().or(slice.headers.protocol.as_ref());
        if let Some(protocol) = protocol.filter(|protocol| protocol.value.0 != TCP) {
            problem!(self.problems, protocol.span => "the application of source `{}` runs over TCP, and these packets \
                have another protocol", place.name.value;
                "give the source `headers: {{protocol: tcp}}`, or leave `protocol` out");
            return None;
        }
        if own.ecn.is_some()
            && let Some(at) = source.place("headers")
        {
            problem!(self.problems, at => "whether packets of an application are ECN-capable is up to its transport";
                "leave `ecn` out of `headers`, and give the source `transport: {{ecn: yes}}`");
        }
        let opens = application.sender_opens();
        let defaults = if opens {
            Defaults::CLIENT
        } else {
            Defaults::SERVER
        };
        let headers = SourceHeaders {
            ecn: Ecn::NotEct,
            ..self.headers(own, slice.headers, defaults)
        };
        let mut last = headers;
        let (port, key) = match opens {
            true => (&mut last.source_port, "source_port"),
            false => (&mut last.destination_port, "destination_port"),
        };
        let first = *port;
        let further = application.ports(first).saturating_sub(1);
        let Some(end) = u16::try_from(further)
            .ok()
            .and_then(|n| first.checked_add(n))
        else {
            if application.connections() <= MAX_CONNECTIONS {
                let at = source.place("application").unwrap_or(place.name.span);
                problem!(self.problems, at => "every connection has a port of its own, and there are not {} of them \
                    from {first} on", application.connections();
                    "give the source a lower `{key}` in its `headers`");
            }
            return None;
        };
        *port = end;
        self.check_match(place, slice, &headers);
        self.check_match(place, slice, &last);
        Some(headers)
    }
}

fn number(count: Option<Count>, default: u32) -> u32 {
    count.map_or(default, |Count(count)| count)
}

fn server(spec: &ApplicationSpec) -> ServerParams {
    ServerParams {
        service_time: spec.service_time,
        workers: spec.workers.map(|Count(count)| count),
    }
}

/// Formats a rate of events per 1000 s as events per second, to a thousandth.
fn in_a_second(per_kilosecond: u128) -> String {
    let (whole, part) = (per_kilosecond / 1_000, per_kilosecond % 1_000);
    match part {
        0 => whole.to_string(),
        _ => format!("{whole}.{part:03}")
            .trim_end_matches('0')
            .to_owned(),
    }
}
