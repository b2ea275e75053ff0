//! The report in a real browser.

use crate::figures::declared;
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

#[test]
fn a_declared_figure_has_the_drawing_that_fits_the_window_and_numbers_to_copy() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let sandbox = declared(&["--repetitions", "1"]);
    let shown = "return ['.wide', '.narrow'].map(name => \
        document.querySelector(`.declared ${name} > svg`).getBoundingClientRect().height > 50)";
    for page in ["out/report.html", "out/small-a/report.html"] {
        for (width, expected) in [(390, [false, true]), (1280, [true, false])] {
            browser.look(width, 900, "light");
            browser.open(&format!("file://{}", sandbox.path(page).display()));
            browser.wait_for("return document.querySelector('.declared')");
            let found = browser.script(shown);
            assert_eq!(found, serde_json::json!(expected), "{page} at {width} px");
        }
    }
    let button = "return document.querySelector('.declared .copy')?.textContent";
    assert_eq!(browser.wait_for(button), "Copy as CSV");
}
