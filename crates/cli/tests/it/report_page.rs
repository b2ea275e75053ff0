//! The report in a real browser.

use crate::support::Sandbox;
use crate::support::browser::Browser;

#[test]
fn axe_finds_nothing_in_a_report_in_light_and_dark() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    browser.open("about:blank");
    if browser.accessibility().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let study = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../studies/voice-and-bulk.yaml"
    );
    sandbox.succeeded(&["run", study, "--quick", "--out", "out"]);
    for (width, scheme) in [(390, "light"), (1280, "light"), (1280, "dark")] {
        browser.look(width, 900, scheme);
        let page = sandbox.path("out/report.html");
        browser.open(&format!("file://{}", page.display()));
        browser.wait_for(
            "return document.documentElement.dataset.charts || document.querySelector('svg')",
        );
        let found = browser.accessibility().unwrap();
        assert_eq!(found, "", "{width} px, {scheme}");
    }
}
