//! What is not known is not shown as health, and what is no breach is not shown as one.

use super::*;
use std::time::Instant;

/// Signs of the first slice in the list that are seen, one a line.
const SIGNS: &str = "return [...document.querySelectorAll('tr[data-index=\"0\"] .verdict:not([hidden])')].map((sign) => sign.innerText).join('\\n')";

/// Signs of health anywhere in the page.
const HEALTH: &str = "return [...document.querySelectorAll('main .verdict:not([hidden])')].filter((sign) => /holds|installed/.test(sign.innerText)).length";

fn signs(browser: &Browser) -> String {
    browser
        .script(SIGNS)
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Send a signal to a process.
fn signal(process: &Child, signal: &str) {
    let id = process.id().to_string();
    let sent = std::process::Command::new("kill")
        .args([signal, &id])
        .status();
    assert!(sent.unwrap().success());
}

/// Seconds until the script returns true.
fn seconds_until(browser: &Browser, script: &str) -> f64 {
    let from = Instant::now();
    browser.wait_for(script);
    from.elapsed().as_secs_f64()
}

/// A page of a controller with the slice `gold`, which holds.
fn with_gold(browser: &Browser) -> (Controller, Gateway) {
    let controller = Controller::start();
    let gateway = Gateway::start(controller.client());
    add(&controller.client(), &slice("gold", 5201, 30));
    browser.open(&controller.url);
    browser.wait_for(&format!("{SIGNS} === 'holds'"));
    (controller, gateway)
}

#[test]
fn a_slice_of_a_gateway_without_counters_is_unknown_and_not_healthy() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let (controller, gateway) = with_gold(&browser);
    drop(gateway);
    let unknown = format!("{SIGNS}.startsWith('unknown since ')");
    let waited = seconds_until(&browser, &unknown);
    assert!((8.0..20.0).contains(&waited), "after {waited} s");
    assert_eq!(browser.script(HEALTH), 0, "{}", signs(&browser));
    browser.wait_for_text("No counters of gateway edge since ");
    browser.wait_for_text("– of 30 Mbit/s");
    for view in ["#/slices/gold", "#/links"] {
        browser.open(&format!("{}/{view}", controller.url));
        browser.wait_for("return document.querySelector('main .verdict.is-unknown')?.innerText.startsWith('unknown since ')");
        assert_eq!(browser.script(HEALTH), 0, "{view}: {}", browser.text());
    }
    browser.open(&format!("{}/#/slices", controller.url));
    let _gateway = Gateway::start(controller.client());
    browser.wait_for(&format!("{SIGNS} === 'holds'"));
    browser.wait_for("return document.getElementById('silent').hidden");
}

#[test]
fn a_controller_that_hangs_is_seen_after_three_seconds_in_every_view() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let (controller, _gateway) = with_gold(&browser);
    let away = "return !document.getElementById('away').hidden";
    for view in ["#/slices", "#/events"] {
        browser.open(&format!("{}/{view}", controller.url));
        browser.wait_for(&format!(
            "return document.title.startsWith('{}')",
            if view == "#/slices" {
                "Slices"
            } else {
                "Events"
            }
        ));
        browser.wait_for("return document.getElementById('away').hidden");
        signal(&controller.process, "-STOP");
        let waited = seconds_until(&browser, away);
        assert!((1.5..8.0).contains(&waited), "{view}: after {waited} s");
        browser.wait_for_text("Everything is unknown since ");
        if view == "#/slices" {
            assert!(
                signs(&browser).starts_with("unknown since "),
                "{}",
                signs(&browser)
            );
            assert_eq!(browser.script(HEALTH), 0);
        }
        signal(&controller.process, "-CONT");
        browser.wait_for("return document.getElementById('away').hidden");
    }
    browser.open(&format!("{}/#/slices", controller.url));
    browser.wait_for(&format!("{SIGNS} === 'holds'"));
}

/// `late` sends within its guarantee, `more` beyond it; frames of both take 40 ms where 20 ms are the bound.
fn delayed(slices: &[String]) -> CounterReport {
    let mut report = counted(slices);
    for slice in &mut report.slices {
        let direction = slice.forward.as_mut().unwrap();
        direction.delay_ns = Some(DelayPercentiles {
            p50: 30_000_000,
            p99: 40_000_000,
            largest: 41_000_000,
        });
        if slice.name == "more" {
            direction.sent_bytes = 1_550_000;
        }
    }
    report
}

#[test]
fn a_delay_is_red_only_where_the_bound_applies() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let controller = Controller::start();
    let _gateway = Gateway::start_with(controller.client(), delayed);
    add(&controller.client(), &slice("late", 5201, 30));
    add(&controller.client(), &slice("more", 5202, 6));
    browser.open(&controller.url);
    browser.wait_for_text("12.4 of 6 Mbit/s");
    let row = |name: &str, script: &str| {
        let found = format!(
            "const row = [...document.querySelectorAll('tr[data-index]')].find((one) => one.querySelector('a').innerText === '{name}'); {script}"
        );
        let found = browser.script(&found);
        found.as_str().unwrap_or_default().replace('\u{a0}', " ")
    };
    let verdict = "return row.querySelector('.verdict:last-child').innerText";
    assert_eq!(row("late", verdict), "beyond its bound");
    assert_eq!(row("more", verdict), "above its guarantee");
    let red = "return String(row.querySelectorAll('.delay [data-sign=\"beyond\"]').length)";
    assert_eq!(
        (row("late", red), row("more", red)),
        ("1".to_owned(), "0".to_owned())
    );
    let line = "const line = row.querySelector('.delay .line'); return `${line.querySelector('.value').innerText} | ${line.title}`";
    assert_eq!(
        row("more", line),
        "40 ms, bound does not apply | bound does not apply: sends 12.4 of 6 Mbit/s"
    );
    let colours = "const of = (node) => getComputedStyle(node).color; return String(of(row.querySelector('.delay .value')) === of(row.querySelector('.quiet')))";
    assert_eq!(row("more", colours), "true");
    browser.open(&format!("{}/#/slices/more", controller.url));
    browser.wait_for_text("40 ms (bound does not apply: sends 12.4 of 6 Mbit/s)");
    assert_eq!(browser.complaints(), [""; 0]);
}
