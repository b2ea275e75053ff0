//! Every view, on a phone and on a screen, in light and in dark.

use super::*;
use slicewise_api::{ElephantTerms, FlowTerms};

/// What is cut off or wider than the window, and texts with less contrast than 4.5:1 (WCAG 2.1, 1.4.3).
const PROBLEMS: &str = "
const parse = (text) => (text.match(/[0-9.]+/g) ?? []).map(Number);
const channel = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const behind = (node) => {
    for (let one = node; one; one = one.parentElement) {
        const found = parse(getComputedStyle(one).backgroundColor);
        if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
};
const found = [];
if (document.documentElement.scrollWidth > innerWidth) found.push(`${document.documentElement.scrollWidth} px wide`);
for (const node of document.querySelectorAll('body *')) {
    const text = [...node.childNodes].filter((child) => child.nodeType === 3 && child.data.trim() !== '').map((child) => child.data.trim()).join(' ');
    if (text === '' || !node.checkVisibility({ visibilityProperty: true }) || node.closest('.spoken, thead, noscript, .skip')) continue;
    const [front, back] = [luminance(parse(getComputedStyle(node).color)), luminance(behind(node))];
    const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (contrast < 4.5) found.push(`${contrast.toFixed(2)}:1 ${text.slice(0, 40)}`);
    if (node.matches('.value') && node.scrollWidth > node.clientWidth) found.push(`shortened: ${text}`);
    const box = node.getBoundingClientRect();
    if (box.right > innerWidth + 1 && box.width > 1 && !node.closest('.table-frame')) found.push(`cut off: ${text.slice(0, 40)}`);
}
return found.join('\\n')";

#[test]
fn every_view_fits_a_phone_and_a_screen_and_can_be_read_in_light_and_dark() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let controller = Controller::start();
    let client = controller.client();
    let _gateway = Gateway::start(controller.client());
    add(&client, &slice("cameras-of-the-building", 5201, 50));
    let mut backup = slice("backup", 5202, 5);
    backup.forward.as_mut().unwrap().flows = FlowTerms {
        weight_per_flow: true,
        flow_queueing: true,
        elephants: Some(ElephantTerms {
            rate_bps: 2_000_000,
            interval_ms: 100,
            times: 2,
        }),
    };
    add(&client, &backup);
    client
        .put_rule(
            "night",
            &slicewise_api::Rule {
                from: "cameras-of-the-building".to_owned(),
                to: "backup".to_owned(),
                direction: slicewise_units::Way::Forward,
                unused_bps: 40_000_000,
                for_ms: 0,
                weight: Some(8),
            },
        )
        .unwrap();
    let views = [
        ("#/slices", "2 slices"),
        (
            "#/slices/backup",
            "weighed by active flows, a queue each, reported above 2 Mbit/s",
        ),
        ("#/links", "77 Mbit/s reserved of 100 Mbit/s"),
        ("#/rules", "Lent since"),
        ("#/history", "Generation 3"),
        ("#/events", "lent to backup"),
    ];
    let mut problems = Vec::new();
    browser.open(&controller.url);
    for (width, height, scheme) in [
        (360, 740, "light"),
        (360, 740, "dark"),
        (1024, 768, "light"),
        (1280, 900, "light"),
        (1280, 900, "dark"),
    ] {
        browser.look(width, height, scheme);
        let mut check = |what: &str| {
            let found = browser.script(PROBLEMS);
            let found = found.as_str().unwrap().replace('\u{a0}', " ");
            let axe = browser.accessibility().unwrap_or_default();
            for found in [found, axe] {
                if !found.is_empty() {
                    problems.push(format!("{what}, {width} px, {scheme}: {found}"));
                }
            }
        };
        for (view, text) in views {
            browser.open(&format!("{}/{view}", controller.url));
            browser.wait_for_text(text);
            check(view);
        }
        for (view, opens, text) in [
            ("#/slices", "new-slice", "Weight in the excess"),
            ("#/rules", "new-rule", "Weight while it borrows"),
        ] {
            browser.open(&format!("{}/{view}", controller.url));
            browser.wait_for(&format!(
                "return document.getElementById('{opens}') !== null"
            ));
            browser.script(&format!("document.getElementById('{opens}').click()"));
            browser.wait_for_text(text);
            check(opens);
            browser.press(&ESCAPE.to_string());
        }
    }
    assert_eq!(problems.join("\n"), "");
    assert_eq!(browser.complaints(), [""; 0]);
}
