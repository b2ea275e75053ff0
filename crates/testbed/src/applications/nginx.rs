//! A real server: nginx, with one long file of which clients ask for ranges.

use super::exchange::http::FILE;
use crate::command::Tool;
use crate::error::AttemptError;
use crate::hosts::within;
use crate::process::Process;
use slicewise_live::sys::scheduling;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
/// Length of the file, which is a hole: no response is longer.
const FILE_BYTES: u64 = 1 << 40;

/// Start it; it listens when this returns.
pub(super) fn start(
    namespace: &str,
    name: &str,
    folder: &Path,
    address: SocketAddr,
    connections: u32,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Process, AttemptError> {
    let files = format!("the files of nginx in {}", folder.display());
    let failed = AttemptError::failed(&files);
    let configuration = folder.join("nginx.conf");
    let prepare = || -> io::Result<()> {
        fs::create_dir(folder)?;
        File::create_new(folder.join(FILE))?.set_len(FILE_BYTES)?;
        fs::write(&configuration, configured(folder, address, connections))
    };
    prepare().map_err(failed)?;
    let mut command = Command::new(Tool::Nginx.name());
    command.arg("-p").arg(folder).arg("-c").arg(&configuration);
    command.args(["-e", "stderr"]);
    // Otherwise it waits for other programs, repeatedly for some milliseconds.
    scheduling::be_prompt_before_exec(&mut command);
    let mut process = Process::start(format!("nginx of {name}"), command, Some(namespace))?;
    let began = Instant::now();
    while within(namespace, || TcpStream::connect_timeout(&address, PATIENCE)).is_err() {
        process.check()?;
        if is_interrupted() {
            return Err(AttemptError::Interrupted);
        }
        if began.elapsed() > PATIENCE {
            return Err(AttemptError::Retryable(format!(
                "nginx of {name} was not ready within {} s",
                PATIENCE.as_secs()
            )));
        }
        thread::sleep(POLL);
    }
    Ok(process)
}

/// One process, which keeps connections for as long as clients do, writes nothing down, and sends heads together with
/// what follows.
fn configured(folder: &Path, address: SocketAddr, connections: u32) -> String {
    let folder = folder.display();
    let most = connections.saturating_mul(2).saturating_add(64);
    format!(
        "daemon off;\n\
         master_process off;\n\
         worker_rlimit_nofile {files};\n\
         pid {folder}/pid;\n\
         events {{ worker_connections {most}; }}\n\
         http {{\n\
             access_log off;\n\
             etag off;\n\
             sendfile on;\n\
             tcp_nopush on;\n\
             keepalive_timeout 1d;\n\
             keepalive_requests 1000000000;\n\
             large_client_header_buffers 4 64k;\n\
             client_body_temp_path {folder}/1;\n\
             proxy_temp_path {folder}/2;\n\
             fastcgi_temp_path {folder}/3;\n\
             uwsgi_temp_path {folder}/4;\n\
             scgi_temp_path {folder}/5;\n\
             server {{ listen {address} backlog=65535; root {folder}; }}\n\
         }}\n",
        files = most.saturating_mul(2).saturating_add(64)
    )
}
