//! Requests to a controller.

use super::{Call, Client, ClientError, Precondition, Versioned, path_of, with_query};
use crate::{
    Acknowledgement, Announced, Batch, BatchAnswer, CounterAnswer, CounterReport, Desired,
    EventPage, GatewayAnnouncement, GatewayRecord, GenerationPage, GenerationRecord,
    LinkCountersRecord, LinkHistory, LinkRecord, OfferAnswer, Slice, SliceCountersRecord,
    SliceHistory, SlicePage, SliceQuery, SliceRecord, SliceState,
};
use std::time::Duration;
use ureq::http::Method;

/// How long a restore may take: it may change every slice there is.
const RESTORE_WAIT: Duration = Duration::from_secs(600);

impl Client {
    /// Every link.
    ///
    /// # Errors
    /// As all methods: [`ClientError`].
    pub fn links(&self) -> Result<Vec<LinkRecord>, ClientError> {
        self.get("/v1/links")
    }

    /// One link.
    ///
    /// # Errors
    /// As all methods.
    pub fn link(&self, name: &str) -> Result<LinkRecord, ClientError> {
        self.get(path_of("links", name))
    }

    /// The newest counters of a link and its slices.
    ///
    /// # Errors
    /// As all methods.
    pub fn link_counters(&self, name: &str) -> Result<LinkCountersRecord, ClientError> {
        self.get(path_of("links", name) + "/counters")
    }

    /// Counters of a link in the last hour, and of those of its slices that sent most.
    ///
    /// # Errors
    /// As all methods.
    pub fn link_history(&self, name: &str) -> Result<LinkHistory, ClientError> {
        self.get(path_of("links", name) + "/counters/history")
    }

    /// A part of the list of slices.
    ///
    /// # Errors
    /// As all methods.
    pub fn slices(&self, query: &SliceQuery) -> Result<SlicePage, ClientError> {
        let limit = query.limit.map(|limit| limit.to_string());
        let state = query.state.map(SliceState::name);
        let path = with_query(
            "/v1/slices",
            &[
                ("after", query.after.as_deref()),
                ("limit", limit.as_deref()),
                ("tenant", query.tenant.as_deref()),
                ("state", state),
                ("link", query.link.as_deref()),
                ("name_contains", query.name_contains.as_deref()),
                ("count", query.count.then_some("true")),
            ],
        );
        self.get(path)
    }

    /// One slice.
    ///
    /// # Errors
    /// As all methods.
    pub fn slice(&self, name: &str) -> Result<SliceRecord, ClientError> {
        self.get(path_of("slices", name))
    }

    /// The newest counters of a slice, with its flows if wanted.
    ///
    /// # Errors
    /// As all methods.
    pub fn slice_counters(
        &self,
        name: &str,
        flows: bool,
    ) -> Result<SliceCountersRecord, ClientError> {
        let path = path_of("slices", name) + "/counters";
        self.get(with_query(&path, &[("flows", flows.then_some("true"))]))
    }

    /// Counters of a slice in the last hour.
    ///
    /// # Errors
    /// As all methods.
    pub fn slice_history(&self, name: &str) -> Result<SliceHistory, ClientError> {
        self.get(path_of("slices", name) + "/counters/history")
    }

    /// Add a slice, or change it. `key`: an idempotency key, with which the same request may be sent again.
    ///
    /// # Errors
    /// As all methods; a refusal by the admission test has status 409 and an offer.
    pub fn put_slice(
        &self,
        slice: &Slice,
        precondition: Precondition,
        key: Option<&str>,
    ) -> Result<Versioned<SliceRecord>, ClientError> {
        let body = self.body(slice)?;
        let call = Call::new(Method::PUT, path_of("slices", &slice.name)).with(&body);
        let (status, value) = self.read(&call.on(precondition, key))?;
        let created = status == 201;
        Ok(Versioned { value, created })
    }

    /// Remove a slice; it drains.
    ///
    /// # Errors
    /// As all methods.
    pub fn remove_slice(
        &self,
        name: &str,
        precondition: Precondition,
        key: Option<&str>,
    ) -> Result<SliceRecord, ClientError> {
        let call = Call::new(Method::DELETE, path_of("slices", name));
        Ok(self.read(&call.on(precondition, key))?.1)
    }

    /// End a slice that drains: its waiting frames are dropped.
    ///
    /// # Errors
    /// As all methods; status 409 if it does not drain.
    pub fn purge_slice(&self, name: &str, key: Option<&str>) -> Result<SliceRecord, ClientError> {
        let call = Call::new(Method::POST, path_of("slices", name) + "/purge");
        Ok(self.read(&call.on(Precondition::None, key))?.1)
    }

    /// Carry out changes, all or none.
    ///
    /// # Errors
    /// As all methods.
    pub fn batch(&self, batch: &Batch, key: Option<&str>) -> Result<BatchAnswer, ClientError> {
        self.post("/v1/batches", batch, key)
    }

    /// Asks whether a slice would be accepted.
    ///
    /// # Errors
    /// As all methods.
    pub fn offer(&self, slice: &Slice) -> Result<OfferAnswer, ClientError> {
        self.post("/v1/offers", slice, None)
    }

    /// A part of the history, newest first: generations before `before`.
    ///
    /// # Errors
    /// As all methods.
    pub fn generations(
        &self,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> Result<GenerationPage, ClientError> {
        let (before, limit) = (before.map(|n| n.to_string()), limit.map(|n| n.to_string()));
        let query = [("before", before.as_deref()), ("limit", limit.as_deref())];
        self.get(with_query("/v1/generations", &query))
    }

    /// One generation.
    ///
    /// # Errors
    /// As all methods.
    pub fn generation(&self, generation: u64) -> Result<GenerationRecord, ClientError> {
        self.get(format!("/v1/generations/{generation}"))
    }

    /// Return to the slices of a generation.
    ///
    /// # Errors
    /// As all methods.
    pub fn restore(&self, generation: u64, key: Option<&str>) -> Result<BatchAnswer, ClientError> {
        let path = format!("/v1/generations/{generation}/restore");
        let call = Call {
            wait: RESTORE_WAIT,
            ..Call::new(Method::POST, path)
        };
        Ok(self.read(&call.on(Precondition::None, key))?.1)
    }

    /// Events after number `after`.
    ///
    /// # Errors
    /// As all methods.
    pub fn events(&self, after: u64, limit: Option<u32>) -> Result<EventPage, ClientError> {
        let (after, limit) = (after.to_string(), limit.map(|n| n.to_string()));
        let query = [("after", Some(after.as_str())), ("limit", limit.as_deref())];
        self.get(with_query("/v1/events", &query))
    }

    /// Every gateway.
    ///
    /// # Errors
    /// As all methods.
    pub fn gateways(&self) -> Result<Vec<GatewayRecord>, ClientError> {
        self.get("/v1/gateways")
    }

    /// Announce a gateway.
    ///
    /// # Errors
    /// As all methods; status 409 if links no longer hold what is promised of them.
    pub fn announce(
        &self,
        gateway: &str,
        announcement: &GatewayAnnouncement,
    ) -> Result<Announced, ClientError> {
        self.put(path_of("gateways", gateway), announcement)
    }

    /// Returns the changes for a gateway after generation `after`; if there are none, waits for some for up to `wait`.
    ///
    /// # Errors
    /// As all methods; status 404 if the gateway has not announced itself to this store.
    pub fn desired(
        &self,
        gateway: &str,
        after: u64,
        wait: Duration,
    ) -> Result<Desired, ClientError> {
        let query = format!("/desired?after={after}&wait_ms={}", wait.as_millis());
        let call = Call {
            wait,
            ..Call::new(Method::GET, path_of("gateways", gateway) + &query)
        };
        Ok(self.read(&call)?.1)
    }

    /// Say what a gateway has in force.
    ///
    /// # Errors
    /// As all methods.
    pub fn acknowledge(
        &self,
        gateway: &str,
        acknowledgement: &Acknowledgement,
    ) -> Result<(), ClientError> {
        let body = self.body(acknowledgement)?;
        let path = path_of("gateways", gateway) + "/acknowledgements";
        self.tell(&Call::new(Method::POST, path).with(&body))
    }

    /// Report what a gateway counted.
    ///
    /// # Errors
    /// As all methods.
    pub fn report_counters(
        &self,
        gateway: &str,
        report: &CounterReport,
    ) -> Result<CounterAnswer, ClientError> {
        self.post(path_of("gateways", gateway) + "/counters", report, None)
    }
}
