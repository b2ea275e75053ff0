//! Stores, servers and requests for tests.

use serde_json::{Value, json};
use slicewise_api::{
    Batch, Change, Client, ClientParams, Counts, GatewayAnnouncement, Guarantee, LinkAnnouncement,
    LinkDirection, Match, Slice, Terms,
};
use slicewise_controller::{Location, ServeParams, Store, serve_on};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use tempfile::TempDir;
use tokio::sync::oneshot;

const POSTGRES: &str = "/usr/lib/postgresql/15/bin/postgres";

/// Ends with the process that holds its standard input, and then removes what it made.
const SCRIPT: &str = r#"
cd "$1" || exit 1
as=""; [ "$(id -u)" = 0 ] && { chown postgres "$1"; as="runuser -u postgres --"; }
bin=/usr/lib/postgresql/15/bin
$as $bin/initdb -D "$1/data" -A trust -U postgres --no-sync > "$1/initdb.log" 2>&1 || exit 1
$as $bin/postgres -D "$1/data" -k "$1" -c listen_addresses= -c max_connections=200 > "$1/postgres.log" 2>&1 < /dev/null &
until $bin/pg_isready -q -h "$1" -U postgres; do sleep 0.1; done
echo ready
read -r _
$as $bin/pg_ctl -D "$1/data" -m immediate stop > /dev/null 2>&1
cd /; rm -rf "$1"
"#;

/// A cluster of PostgreSQL for all tests of this process.
struct Cluster {
    folder: PathBuf,
    _process: Mutex<Child>,
}

static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

fn cluster() -> Option<&'static Cluster> {
    let start = || {
        if !Path::new(POSTGRES).exists() {
            println!(
                "{POSTGRES} is missing: nothing is tested on PostgreSQL (Debian: postgresql-15)"
            );
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("slicewise-pg")
            .tempdir()
            .unwrap()
            .keep();
        let mut process = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(
            line,
            "ready\n",
            "PostgreSQL did not start: see {}",
            folder.display()
        );
        Some(Cluster {
            folder,
            _process: Mutex::new(process),
        })
    };
    CLUSTER.get_or_init(start).as_ref()
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
        let cluster = cluster()?;
        let name = format!("test{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let made = Command::new("/usr/lib/postgresql/15/bin/createdb")
            .args(["-U", "postgres", "-h"])
            .arg(&cluster.folder)
            .arg(&name)
            .status();
        assert!(made.unwrap().success());
        let host = cluster.folder.to_str().unwrap().replace('/', "%2F");
        Some(Self {
            location: Location::Postgres(format!(
                "postgres://postgres@localhost/{name}?host={host}"
            )),
            _folder: None,
        })
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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let params = change(params(address));
        let (stop, stopped) = oneshot::channel();
        let location = store.location.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let store = Store::open(&location).await.unwrap();
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
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .build();
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
        rate_bps: 100_000_000,
        counts: Counts::L2,
        slices_count: Counts::L2,
        largest_frame_bytes: 1_522,
        buffer_bytes: None,
        shortest_delay_ns: 10_000,
        longest_delay_ns: 100_000_000,
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
    client.announce("gw", &announcement(&["uplink"])).unwrap();
    (server, client)
}

pub fn guarantee(rate_mbps: u64, delay_ms: Option<u64>) -> Terms {
    Terms {
        guarantee: Some(Guarantee {
            rate_bps: rate_mbps * 1_000_000,
            burst_bytes: 3_044,
            delay_ns: delay_ms.map(|delay| delay * 1_000_000),
        }),
        ..Terms::default()
    }
}

/// A slice of VLAN `vlan` with a guarantee of so many Mbit/s forward.
pub fn slice(name: &str, vlan: u16, rate_mbps: u64) -> Slice {
    Slice {
        name: name.to_owned(),
        tenant: "default".to_owned(),
        path: Vec::new(),
        matches: vec![Match {
            vlan: Some(vlan),
            ..Match::default()
        }],
        forward: Some(guarantee(rate_mbps, Some(50))),
        backward: None,
    }
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
