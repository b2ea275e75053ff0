//! Clusters of PostgreSQL that tests start, and kill.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

const POSTGRES: &str = "/usr/lib/postgresql/15/bin/postgres";

/// Starts at each line that it reads, says `ready` or why not, and ends with the process that holds its standard input; then it
/// removes what it made. A postmaster that was killed leaves backends, beside which no other one starts: it tries for a minute
/// until they are gone. What a process has written is there after SIGKILL, on the disk or not, so `fsync` would only take time.
const SCRIPT: &str = r#"
end() { cd /; rm -rf "$1"; exit; }
cd "$1" || exit 1
as=""; [ "$(id -u)" = 0 ] && { chown postgres "$1"; as="runuser -u postgres --"; }
bin=/usr/lib/postgresql/15/bin
$as $bin/initdb -D "$1/data" -A trust -U postgres --no-sync > "$1/initdb.log" 2>&1 || { tail -n 5 "$1/initdb.log"; df -h "$1"; end "$1"; }
start() {
    deadline=$(($(date +%s) + 60))
    while [ "$(date +%s)" -lt "$deadline" ]; do
        [ -n "$pid" ] && wait "$pid"
        $as $bin/postgres -D "$1/data" -k "$1" -c listen_addresses= -c max_connections=200 -c fsync=off >> "$1/postgres.log" 2>&1 < /dev/null &
        pid=$!
        while kill -0 "$pid" 2> /dev/null; do
            $bin/pg_isready -q -h "$1" -U postgres && { echo ready; return; }
            sleep 0.05
        done
    done
    tail -n 5 "$1/postgres.log"; end "$1"
}
while read -r _; do start "$1"; done
$as $bin/pg_ctl -D "$1/data" -m immediate stop > /dev/null 2>&1
end "$1"
"#;

/// A cluster that ends with this process, or when it is dropped.
pub struct Cluster {
    pub folder: PathBuf,
    databases: AtomicU32,
    process: Mutex<Process>,
}

struct Process {
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Cluster {
    /// `None`, and a message on the terminal, where there is no PostgreSQL or where it does not run.
    pub fn start() -> Option<Self> {
        if !Path::new(POSTGRES).exists() {
            return Self::skip("it is missing (Debian: postgresql-15)");
        }
        let folder = tempfile::Builder::new()
            .prefix("slicewise-pg")
            .tempdir()
            .unwrap()
            .keep();
        let mut child = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let process = Process {
            _child: child,
            input,
            output: BufReader::new(output),
        };
        let cluster = Self {
            folder,
            databases: AtomicU32::new(0),
            process: Mutex::new(process),
        };
        match cluster.try_start() {
            Ok(()) => Some(cluster),
            Err(why) => Self::skip(&why),
        }
    }

    /// Standard error itself: output of a test that passes is not shown.
    fn skip(why: &str) -> Option<Self> {
        let mut terminal = std::io::stderr();
        let _ = writeln!(
            terminal,
            "nothing is tested on PostgreSQL ({POSTGRES}): {why}"
        );
        None
    }

    /// Start it after it was killed.
    pub fn start_again(&self) {
        if let Err(why) = self.try_start() {
            panic!("PostgreSQL did not start again: {why}");
        }
    }

    /// # Errors
    /// Output of the script instead of `ready`.
    fn try_start(&self) -> Result<(), String> {
        let mut process = self.process.lock().unwrap();
        let mut answer = String::new();
        // The script may have ended already.
        let _ = process.input.write_all(b"\n");
        process.output.read_line(&mut answer).unwrap();
        if answer == "ready\n" {
            return Ok(());
        }
        process.output.read_to_string(&mut answer).unwrap();
        Err(answer)
    }

    /// A new database of it, as a URL.
    pub fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test{number}");
        let made = Command::new("/usr/lib/postgresql/15/bin/createdb")
            .args(["-U", "postgres", "-h"])
            .arg(&self.folder)
            .arg(&name)
            .status();
        assert!(made.unwrap().success());
        let host = self.folder.to_str().unwrap().replace('/', "%2F");
        format!("postgres://postgres@localhost/{name}?host={host}")
    }

    /// The first process of the cluster.
    pub fn postmaster(&self) -> u32 {
        let file = self.folder.join("data/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().next().unwrap().parse().unwrap()
    }

    /// The processes that it has started for connections.
    pub fn backends(&self) -> Vec<u32> {
        let parent = self.postmaster();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let children = children.unwrap_or_default();
        let children = children
            .split_whitespace()
            .map(|pid| pid.parse::<u32>().unwrap());
        // Their titles say so: `postgres: postgres test0 [local] idle`.
        let is_backend = |pid: &u32| {
            let title = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&title).contains("[local]")
        };
        children.filter(is_backend).collect()
    }
}

/// SIGKILL. It may be gone already.
pub fn kill_9(pid: u32) {
    let pid = pid.to_string();
    let _ = Command::new("kill")
        .args(["-9", &pid])
        .stderr(Stdio::null())
        .status();
}
