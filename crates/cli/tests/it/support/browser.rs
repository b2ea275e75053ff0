//! A real browser, driven by the WebDriver protocol (W3C) over chromedriver: what the tests need of it.

use super::Sandbox;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use ureq::Agent;

/// Keys that are no characters (WebDriver, 17.4.2).
pub const TAB: char = '\u{e004}';
pub const ENTER: char = '\u{e007}';
pub const SPACE: char = ' ';
pub const ESCAPE: char = '\u{e00c}';

/// Environment variable with the file of axe-core (`axe.min.js`), which checks pages against WCAG 2.1.
const AXE: &str = "SLICEWISE_AXE";

/// How long is waited for something that must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Chromium gives up what it loads when an interface comes or goes, as those of other tests do: it does not learn of them.
const NO_NETLINK: &str = r"
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int socket(int domain, int type, int protocol) {
    if (domain != AF_NETLINK) return syscall(SYS_socket, domain, type, protocol);
    errno = EAFNOSUPPORT;
    return -1;
}
";

pub struct Browser {
    driver: Child,
    agent: Agent,
    session: String,
    /// Holds what is preloaded.
    _sandbox: Sandbox,
}

/// Chromedriver and its port; `None` where it ends at once.
fn start_driver(preloaded: Option<&(&str, PathBuf)>) -> Option<(Child, String)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .envs(preloaded.map(|(name, library)| (name, library)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        Some(port.trim_end_matches('.').to_owned())
    });
    if port.is_none() {
        let _ = driver.wait();
    }
    Some((driver, port?))
}

impl Browser {
    /// `None`, with a message, where there is no chromedriver or no Chromium.
    pub fn start(width: u32, height: u32) -> Option<Self> {
        let programs = ["chromedriver", "chromium"];
        if let Some(missing) = programs.into_iter().find(|name| !super::is_installed(name)) {
            eprintln!("skipped: {missing} is not installed (Debian: chromium, chromium-driver)");
            return None;
        }
        let sandbox = Sandbox::new();
        let preloaded = sandbox.preload(NO_NETLINK).map(|it| ("LD_PRELOAD", it));
        // It takes a free port of IPv4 and ends where somebody has that of IPv6.
        let started = (0..5).find_map(|_| start_driver(preloaded.as_ref()));
        let (driver, port) = started.expect("chromedriver says on which port it listens");
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None);
        let mut browser = Self {
            driver,
            agent: config.build().into(),
            session: format!("http://127.0.0.1:{port}/session"),
            _sandbox: sandbox,
        };
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--no-first-run".to_owned(),
            format!("--window-size={width},{height}"),
        ];
        let answer = browser.post(
            "",
            &json!({"capabilities": {"alwaysMatch": {
                "acceptInsecureCerts": true,
                "goog:chromeOptions": {"args": arguments},
                "goog:loggingPrefs": {"browser": "ALL"}
            }}}),
        );
        let id = answer["sessionId"].as_str().unwrap();
        browser.session = format!("{}/{id}", browser.session);
        Some(browser)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.agent.post(format!("{}{path}", self.session));
        let request = request.header("content-type", "application/json");
        let mut answer = request.send(body.to_string()).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(
            answer["value"]["error"].is_null(),
            "{path} {body}: {answer:#}"
        );
        answer["value"].take()
    }

    pub fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// Show pages at this size, in pixels, and in this colour scheme (`light` or `dark`), as the settings of a person would.
    pub fn look(&self, width: u32, height: u32, scheme: &str) {
        let command = |name: &str, parameters: Value| {
            let body = json!({"cmd": name, "params": parameters});
            self.post("/goog/cdp/execute", &body);
        };
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        command("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme});
        let features = json!({"features": [scheme]});
        command("Emulation.setEmulatedMedia", features);
    }

    /// Load the page again.
    pub fn reload(&self) {
        self.post("/refresh", &json!({}));
    }

    /// Press keys one after another, as a person would: whatever has the focus gets them.
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [
                    json!({"type": "keyDown", "value": key}),
                    json!({"type": "keyUp", "value": key}),
                ]
            })
            .collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.post("/actions", &json!({"actions": [keyboard]}));
    }

    /// The value of a script's `return`.
    pub fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Wait until a script returns something that is true in its language.
    pub fn wait_for(&self, script: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.script(script);
            if !(found.is_null() || found == false || found == "" || found == 0) {
                return found;
            }
            assert!(
                Instant::now() < until,
                "waited for {script}; the page says:\n{}",
                self.text()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Wait until the page says `text`.
    pub fn wait_for_text(&self, text: &str) {
        let text = Value::from(text);
        self.wait_for(&format!(
            "return document.body.innerText.replaceAll('\\u00a0', ' ').includes({text})"
        ));
    }

    pub fn text(&self) -> String {
        self.script("return document.body.innerText")
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Press Tab until what has the focus is called `name`: its label, or its text.
    pub fn tab_to(&self, name: &str) {
        let called = "const node = document.activeElement; \
            return (node.getAttribute('aria-label') ?? node.labels?.[0]?.innerText ?? node.innerText ?? '').replaceAll('\\u00a0', ' ').trim()";
        let mut seen = Vec::new();
        for _ in 0..80 {
            self.press(&TAB.to_string());
            let focus = self.script(called).as_str().unwrap_or_default().to_owned();
            if focus.starts_with(name) {
                return;
            }
            seen.push(focus);
        }
        panic!(
            "no `{name}` can be reached by Tab, only {seen:?}; the page says:\n{}",
            self.text()
        );
    }

    /// What axe-core finds wrong with the page that is open, one a line; `None`, with a message, where it is not named.
    pub fn accessibility(&self) -> Option<String> {
        let Some(file) = std::env::var_os(AXE) else {
            eprintln!("skipped: {AXE} does not name a file axe.min.js (npm: axe-core)");
            return None;
        };
        self.script(&std::fs::read_to_string(file).unwrap());
        let run = "const done = arguments[0]; axe.run().then(({violations}) => done(violations.flatMap(({id, help, nodes}) => \
            nodes.map((node) => `${id}: ${help}: ${node.target}: ${node.any[0]?.message ?? ''}`)).join('\\n')))";
        let found = self.post("/execute/async", &json!({"script": run, "args": []}));
        Some(found.as_str().unwrap().to_owned())
    }

    /// What the browser complained about, as of scripts that failed or were not allowed.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().unwrap().iter();
        // A slice may be gone by the time that it is read.
        let is_missing = |entry: &Value| {
            entry["message"]
                .as_str()
                .is_some_and(|text| text.contains("status of 404"))
        };
        let severe = entries.filter(|entry| entry["level"] == "SEVERE" && !is_missing(entry));
        severe
            .map(|entry| entry["message"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It closes the browser, too.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
