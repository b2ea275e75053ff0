//! The end that answers requests.

use slicewise_traffic::application::ServerParams;
use slicewise_units::Instant;
use std::collections::VecDeque;

/// A server: it works on each request for its service time, on so many at once as it has workers. Others wait in order
/// of arrival.
///
/// Every request takes the same time, so responses are finished in the order of requests, and the time of each is known
/// when the request arrives: a server that is polled late does not become slower by it.
#[derive(Debug, Clone)]
pub struct Server {
    params: ServerParams,
    /// Requests in order of arrival.
    requests: VecDeque<Request>,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    finished: Instant,
    /// `None` where its connection failed.
    connection: Option<u32>,
    response: u64,
}

impl Server {
    /// A server without requests. It has at least one worker.
    #[must_use]
    pub fn new(params: ServerParams) -> Self {
        Self {
            params,
            requests: VecDeque::new(),
        }
    }

    /// A request for `response` bytes arrived as a whole.
    pub fn on_request(&mut self, connection: u32, response: u64, now: Instant) {
        // A worker is free once all but `workers` − 1 of the requests before this one are finished.
        let before_it = self.params.workers.and_then(|workers| {
            let workers = usize::try_from(workers.max(1)).unwrap_or(usize::MAX);
            let place = self.requests.len().checked_sub(workers)?;
            self.requests.get(place)
        });
        let begun = before_it.map_or(now, |request| request.finished.max(now));
        self.requests.push_back(Request {
            finished: begun + self.params.service_time,
            connection: Some(connection),
            response,
        });
    }

    /// The connection failed: its requests are worked on, but nobody gets the responses.
    pub fn on_failed(&mut self, connection: u32) {
        for request in &mut self.requests {
            if request.connection == Some(connection) {
                request.connection = None;
            }
        }
    }

    /// When the next response is ready.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.requests.front().map(|request| request.finished)
    }

    /// A response that is ready, as connection and bytes; call again while there is one.
    pub fn poll_response(&mut self, now: Instant) -> Option<(u32, u64)> {
        while self.poll_at()? <= now {
            let request = self.requests.pop_front()?;
            if let Some(connection) = request.connection {
                return Some((connection, request.response));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slicewise_units::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn server(service_ms: u64, workers: Option<u32>) -> Server {
        Server::new(ServerParams {
            service_time: Duration::from_millis(service_ms),
            workers,
        })
    }

    /// Responses with the times in ms at which they were ready.
    fn served(server: &mut Server) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| {
            let ready = server.poll_at()?;
            let response = server.poll_response(ready).unwrap();
            Some((ready.nanos() / 1_000_000, response.0))
        })
        .collect()
    }

    #[test]
    fn requests_wait_for_a_worker_in_order_of_arrival() {
        let mut server = server(10, Some(2));
        for (connection, millis) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 40)] {
            server.on_request(connection, 100, at(millis));
        }
        let expected = [(10, 0), (11, 1), (20, 2), (21, 3), (50, 4)];
        assert_eq!(served(&mut server), expected);
    }

    #[test]
    fn without_a_limit_of_workers_none_waits() {
        let mut server = server(10, None);
        for connection in 0..5 {
            server.on_request(connection, 1, at(u64::from(connection)));
        }
        assert_eq!(served(&mut server)[4], (14, 4));
    }

    #[test]
    fn a_server_that_is_polled_late_is_not_slower() {
        let mut server = server(10, Some(1));
        server.on_request(0, 7, at(0));
        server.on_request(1, 8, at(5));
        assert_eq!(server.poll_response(at(9)), None);
        // Its worker was free at 20 ms.
        server.on_request(2, 9, at(25));
        assert_eq!(server.poll_response(at(26)), Some((0, 7)));
        assert_eq!(server.poll_response(at(26)), Some((1, 8)));
        assert_eq!(server.poll_response(at(26)), None);
        assert_eq!(server.poll_at(), Some(at(35)));
    }

    #[test]
    fn nobody_gets_the_response_to_a_request_whose_connection_failed() {
        let mut server = server(10, Some(1));
        server.on_request(0, 7, at(0));
        server.on_request(1, 8, at(0));
        server.on_failed(0);
        // The number is in use again.
        server.on_request(0, 9, at(1));
        assert_eq!(server.poll_response(at(15)), None);
        assert_eq!(server.poll_response(at(30)), Some((1, 8)));
        assert_eq!(server.poll_response(at(30)), Some((0, 9)));
    }

    proptest! {
        #[test]
        fn a_server_is_never_above_its_workers_nor_idle_while_a_request_waits(
            gaps in prop::collection::vec(0u64..20, 1..60),
            workers in 1u32..5,
        ) {
            let mut server = server(10, Some(workers));
            let mut now = 0;
            let mut arrivals = Vec::new();
            for (gap, connection) in gaps.iter().zip(0..) {
                now += gap;
                arrivals.push(now);
                server.on_request(connection, 1, at(now));
            }
            let finished = served(&mut server);
            let begins: Vec<u64> = finished.iter().map(|(ready, _)| ready - 10).collect();
            for (place, &begin) in begins.iter().enumerate() {
                prop_assert!(begin >= arrivals[place]);
                let busy = begins.iter().filter(|&&other| other <= begin && begin < other + 10);
                prop_assert!(busy.count() <= workers as usize);
                if begin > arrivals[place] {
                    let busy_before = begins.iter().filter(|&&other| other < begin && begin <= other + 10);
                    prop_assert_eq!(busy_before.count(), workers as usize);
                }
            }
        }
    }
}
