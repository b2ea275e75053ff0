//! The list at a glance: tiles that count and filter, worst first, idle rows in one line, equal events in one row.

use super::*;

/// `idle` sends nothing; frames of `late` come after their bound; `more` sends beyond its guarantee.
fn of_each_kind(slices: &[String]) -> CounterReport {
    let mut report = counted(slices);
    report.slices.retain(|slice| slice.name != "idle");
    for slice in &mut report.slices {
        let direction = slice.forward.as_mut().unwrap();
        match slice.name.as_str() {
            "late" => direction.delay_ns.as_mut().unwrap().largest = 41_000_000,
            "more" => direction.sent_bytes = 3_000_000,
            _ => {}
        }
    }
    report
}

const TILES: &str = "return [...document.querySelectorAll('.tile:not([hidden])')].map((tile) => tile.innerText.replace(/\\s+/g, ' ')).join(', ')";
const NAMES: &str = "return [...document.querySelectorAll('tr[data-index] a.name')].map((link) => link.innerText).join(' ')";
const HEIGHTS: &str = "return ['late', 'more', 'gold', 'idle'].map((name) => [...document.querySelectorAll('tr[data-index]')].find((row) => row.querySelector('a').innerText === name).offsetHeight)";
const EVENTS: &str = "return [...document.querySelectorAll('.events tbody tr')].map((row) => [...row.cells].slice(2).map((cell) => cell.innerText).join(': ')).join(', ')";

#[test]
fn tiles_count_and_filter_the_worst_comes_first_and_equal_events_are_one_row() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let controller = Controller::start();
    let client = controller.client();
    let changes = ["gold", "idle", "late", "more"].into_iter().zip(5201..);
    let batch = Batch {
        changes: changes
            .map(|(name, port)| Change::Put(slice(name, port, 15)))
            .collect(),
        reason: None,
    };
    announce(&client);
    client.batch(&batch, None).unwrap();
    let _gateway = Gateway::start_with(controller.client(), of_each_kind);
    browser.open(&controller.url);
    browser.wait_for(&format!("{NAMES} === 'late more gold idle'"));
    let all = "1 holds, 1 above its guarantee, 1 breach, 0 unknown, 1 idle";
    assert_eq!(browser.script(TILES), all);
    let heights = browser.script(HEIGHTS);
    let heights: Vec<u64> = serde_json::from_value(heights).unwrap();
    assert!(
        heights[0] == heights[2] && heights[3] * 3 < heights[0] * 2,
        "{heights:?}"
    );

    browser.tab_to("1\nbreach");
    browser.press(&SPACE.to_string());
    browser.wait_for(&format!("{NAMES} === 'late'"));
    assert_eq!(browser.script(TILES), all);
    browser.wait_for_text("4 slices, of which 1 is shown");
    assert_eq!(
        browser.script("return location.hash"),
        "#/slices?sign=breach"
    );
    browser.reload();
    browser.wait_for(&format!("{NAMES} === 'late'"));
    browser.script("document.querySelector('.tile[aria-pressed=true]').click()");
    browser.wait_for(&format!("{NAMES} === 'late more gold idle'"));

    browser.open(&format!("{}/#/events", controller.url));
    browser.wait_for(&format!(
        "return (() => {{ {EVENTS} }})() === 'installed: 4 slices, admitted by local: 4 slices, gateway came: edge'"
    ));
    assert_eq!(browser.complaints(), [""; 0]);
}
