//! Stores, servers and requests for tests.

use crate::cluster::Cluster;
use serde_json::{Value, json};
use slicewise_api::{
    Acknowledgement, Batch, Change, Client, ClientError, ClientParams, Counts, GatewayAnnouncement,
    Guarantee, LinkAnnouncement, LinkDirection, Match, NewToken, Precondition, Scope, Slice,
    SliceRecord, Terms, Versioned,
};
use slicewise_controller::{
    Clock, Location, ServeParams, Store, SystemClock, TlsParams, run_token_add, serve_on,
};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use tempfile::TempDir;
use tokio::sync::oneshot;

static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();

/// For all tests of this process.
fn cluster() -> Option<&'static Cluster> {
    CLUSTER.get_or_init(Cluster::start).as_ref()
}

/// A store of its own for a test.
pub struct TestStore {
    pub location: Location,
    _folder: Option<TempDir>,
}

impl TestStore {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(folder.path().join("store.sqlite"));
        Self {
            location,
            _folder: Some(folder),
        }
    }

    pub fn at(location: Location) -> Self {
        Self {
            location,
            _folder: None,
        }
    }

    /// `None` where there is no PostgreSQL.
    pub fn postgres() -> Option<Self> {
        let url = cluster()?.database();
        Some(Self::at(Location::Postgres(url)))
    }

    /// Every kind of store there is.
    pub fn each() -> Vec<Self> {
        std::iter::once(Self::sqlite())
            .chain(Self::postgres())
            .collect()
    }
}

/// A controller in this process.
pub struct Server {
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

pub fn params(listen: SocketAddr) -> ServeParams {
    ServeParams {
        listen,
        tls: None,
        requests_per_second: 1_000_000,
    }
}

impl Server {
    pub fn start(store: &TestStore) -> Self {
        Self::with(store, |params| params)
    }

    pub fn with(store: &TestStore, change: impl FnOnce(ServeParams) -> ServeParams) -> Self {
        Self::launch(store, Arc::new(SystemClock::default()), change)
    }

    /// One that has this clock.
    pub fn with_clock(store: &TestStore, clock: Arc<dyn Clock>) -> Self {
        Self::launch(store, clock, |params| params)
    }

    fn launch(
        store: &TestStore,
        clock: Arc<dyn Clock>,
        change: impl FnOnce(ServeParams) -> ServeParams,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let params = change(params(address));
        let (stop, stopped) = oneshot::channel();
        let location = store.location.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let store = Store::open_with_clock(&location, clock).await.unwrap();
                let stopped = async { drop(stopped.await) };
                serve_on(store, &params, listener, stopped).await.unwrap();
            });
        });
        Self {
            url: format!("http://{address}"),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn client(&self) -> Client {
        client(&self.url, None)
    }

    pub fn client_of(&self, token: &str) -> Client {
        client(&self.url, Some(token))
    }

    /// Any request: status, headers, and body as JSON (null if it is none).
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Reply {
        let body = body.map(Value::to_string);
        ask(&self.url, method, path, headers, body.as_deref())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

pub fn client(url: &str, token: Option<&str>) -> Client {
    Client::new(&ClientParams {
        url: url.to_owned(),
        token: token.map(str::to_owned),
        authorities: None,
    })
    .unwrap()
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub text: String,
    pub json: Value,
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

pub fn ask(
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> Reply {
    ask_with(None, url, method, path, headers, body)
}

/// As [`ask`], of a server that has this certificate.
pub fn ask_with(
    certificate: Option<&Path>,
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> Reply {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None);
    if let Some(certificate) = certificate {
        let pem = std::fs::read(certificate).unwrap();
        let roots = [ureq::tls::Certificate::from_pem(&pem).unwrap()];
        let tls = ureq::tls::TlsConfig::builder()
            .root_certs(ureq::tls::RootCerts::new_with_certs(&roots));
        config = config.tls_config(tls.build());
    }
    let config = config.build();
    let agent = ureq::Agent::from(config);
    let mut request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("{url}{path}"));
    if body.is_some() && headers.iter().all(|(name, _)| *name != "content-type") {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = match body {
        Some(body) => agent.run(request.body(body.to_owned()).unwrap()),
        None => agent.run(request.body(()).unwrap()),
    }
    .unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    Reply {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        json: serde_json::from_str(&text).unwrap_or_default(),
        text,
    }
}

/// 100 Mbit/s in both directions, frames of 1522 B, delays of 10 us to 100 ms.
pub fn link(name: &str) -> LinkAnnouncement {
    let direction = LinkDirection {
        admission: slicewise_api::AdmissionRule::default(),
        rate_bps: 100_000_000,
        counts: Counts::L2,
        slices_count: Counts::L2,
        largest_frame_bytes: 1_522,
        buffer_bytes: None,
        shortest_delay_ns: 10_000,
        longest_delay_ns: 100_000_000,
        reserved: Vec::new(),
    };
    LinkAnnouncement {
        name: name.to_owned(),
        forward: direction.clone(),
        backward: direction,
        classes: Vec::new(),
    }
}

pub fn announcement(links: &[&str]) -> GatewayAnnouncement {
    let links = links.iter().map(|name| link(name)).collect();
    GatewayAnnouncement {
        links,
        reached: None,
    }
}

/// One gateway `gw` with the link `uplink`.
pub fn with_link(store: &TestStore) -> (Server, Client) {
    let server = Server::start(store);
    let client = server.client();
    announce(&client, "gw", "uplink");
    (server, client)
}

/// Tests with every kind of store there is, which have the same snapshots.
pub fn for_each_store(test: impl Fn(&TestStore)) {
    insta::allow_duplicates! {
        TestStore::each().iter().for_each(test);
    }
}

/// Tests with every kind of store there is: [`with_link`] of each.
pub fn each_with_link(test: impl Fn(&TestStore, Server, Client)) {
    for_each_store(|store| {
        let (server, client) = with_link(store);
        test(store, server, client);
    });
}

pub fn guarantee(rate_mbps: u64, delay_ms: Option<u64>) -> Terms {
    Terms {
        guarantee: Some(Guarantee {
            rate_bps: rate_mbps * 1_000_000,
            burst_bytes: 3_044,
            delay_ns: delay_ms.map(|delay| delay * 1_000_000),
            ..Guarantee::default()
        }),
        ..Terms::default()
    }
}

/// A slice of VLAN `vlan` with a guarantee of so many Mbit/s forward.
pub fn slice(name: &str, vlan: u16, rate_mbps: u64) -> Slice {
    Slice {
        name: name.to_owned(),
        tenant: "default".to_owned(),
        matches: vec![Match {
            vlan: Some(vlan),
            ..Match::default()
        }],
        forward: Some(guarantee(rate_mbps, Some(50))),
        ..Slice::default()
    }
}

/// Puts a slice that is admitted.
pub fn put(client: &Client, slice: &Slice) -> Versioned<SliceRecord> {
    try_put(client, slice).unwrap()
}

pub fn try_put(client: &Client, slice: &Slice) -> Result<Versioned<SliceRecord>, ClientError> {
    client.put_slice(slice, Precondition::None, None)
}

/// Announces a gateway with one link.
pub fn announce(client: &Client, gateway: &str, link: &str) {
    client.announce(gateway, &announcement(&[link])).unwrap();
}

/// All changes up to a generation are in force.
pub fn said(generation: u64) -> Acknowledgement {
    Acknowledgement {
        generation,
        ..Acknowledgement::default()
    }
}

pub fn remove(client: &Client, name: &str) {
    client.remove_slice(name, Precondition::None, None).unwrap();
}

/// Acknowledges a generation as a gateway, and slices of which no frame waits.
pub fn acknowledge(client: &Client, gateway: &str, generation: u64, gone: &[&str]) {
    let gone = gone.iter().map(|&name| name.to_owned()).collect();
    let said = Acknowledgement {
        gone,
        ..said(generation)
    };
    client.acknowledge(gateway, &said).unwrap();
}

pub fn batch(changes: Vec<Change>) -> Batch {
    Batch {
        changes,
        reason: None,
    }
}

pub fn slice_json(name: &str, vlan: u16, rate_mbps: u64) -> Value {
    json!(slice(name, vlan, rate_mbps))
}

/// Wait until the sessions of a controller that was killed have ended: PostgreSQL completes what it had been told to commit.
pub fn wait_for_sessions(store: &TestStore) {
    if let Location::Postgres(_) = store.location {
        let others = "SELECT FROM pg_stat_activity WHERE datname = current_database() \
                      AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let wait = format!(
            "DO $$ BEGIN WHILE EXISTS ({others}) LOOP \
             PERFORM pg_sleep(0.005), pg_stat_clear_snapshot(); END LOOP; END $$"
        );
        execute(store, wait).unwrap();
    }
}

/// Carry out statements of SQL, beside the controller.
pub fn execute(store: &TestStore, sql: String) -> Result<(), sqlx::Error> {
    let url = match &store.location {
        Location::Sqlite(path) => format!("sqlite://{}?mode=rwc", path.display()),
        Location::Postgres(url) => url.clone(),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        sqlx::any::install_default_drivers();
        let pool = sqlx::AnyPool::connect(&url).await?;
        let statements = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
        let done = statements.execute(&pool).await.map(drop);
        pool.close().await;
        done
    })
}

/// A certificate of 127.0.0.1 and its key; `None` without openssl.
pub fn certificate(folder: &Path) -> Option<TlsParams> {
    certificate_for(folder, "127.0.0.1", "CA:FALSE")
}

/// A certificate of an address with these basic constraints (RFC 5280, section 4.2.1.9).
pub fn certificate_for(folder: &Path, address: &str, constraints: &str) -> Option<TlsParams> {
    let params = TlsParams {
        certificate: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
    };
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args([
            "-subj",
            "/CN=controller",
            "-addext",
            &format!("subjectAltName=IP:{address}"),
        ])
        .args([
            "-addext",
            &format!("basicConstraints=critical,{constraints}"),
        ])
        .arg("-keyout")
        .arg(&params.key)
        .arg("-out")
        .arg(&params.certificate)
        .output();
    made.is_ok_and(|made| made.status.success())
        .then_some(params)
}

/// A token of this scope, made beside the running controller.
pub fn token(store: &TestStore, name: &str, scope: &str) -> String {
    let (name, scope) = (name.to_owned(), scope.parse::<Scope>().unwrap());
    run_token_add(&store.location, NewToken { name, scope })
        .unwrap()
        .token
}
