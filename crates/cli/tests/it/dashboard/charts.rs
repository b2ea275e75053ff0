//! What charts draw stands at its value on their axes, and is there before the page was opened.

use super::*;
use slicewise_api::LinkCounters;

/// Keys that are no characters.
const HOME: char = '\u{e011}';
const LEFT: char = '\u{e012}';

/// `gold` sends 8 Mbit/s in 1000 frames of 1000 B each second and `silver` half of that, with a drop; 500 kB each second are of no slice.
fn on_a_link(slices: &[String]) -> CounterReport {
    let mut report = counted(slices);
    for slice in &mut report.slices {
        if slice.name == "silver" {
            let direction = slice.forward.as_mut().unwrap();
            (direction.sent_frames, direction.sent_bytes) = (500, 500_000);
            direction.dropped.insert("queue_full".to_owned(), 7);
        }
    }
    report.links = vec![LinkCounters {
        name: "uplink".to_owned(),
        forward: DirectionCounters {
            sent_frames: 2000,
            sent_bytes: 2_000_000,
            dropped: [("queue_full".to_owned(), 7)].into(),
            ..DirectionCounters::default()
        },
        backward: DirectionCounters::default(),
    }];
    report
}

/// Two slices, whose past has at least two bins.
fn with_past() -> (Controller, Gateway) {
    let controller = Controller::start();
    let client = controller.client();
    announce(&client);
    add(&client, &slice("gold", 5201, 30));
    add(&client, &slice("silver", 5202, 20));
    let gateway = Gateway::start_with(controller.client(), on_a_link);
    let bins = || {
        client.slice_history("gold").unwrap().hops[0]
            .bins
            .counted_ns
            .len()
    };
    while bins() < 2 {
        thread::sleep(Duration::from_millis(200));
    }
    (controller, gateway)
}

/// Functions of a chart's drawing: the value at a height, by the ticks of its axis, and the first and last place of a path.
const READING: &str = "
const charts = [...document.querySelectorAll('.chart svg.plot')];
const ticks = (chart) => [...chart.querySelectorAll('[data-value]')].map((tick) => [Number(tick.dataset.value), Number(tick.getAttribute('y')) - 4]);
const between = (one, other, share) => (isLog ? one * (other / one) ** share : one + (other - one) * share);
let isLog = false;
const valueAt = (chart, y) => {
    const all = ticks(chart);
    const [[one, low], [other, high]] = [all[0], all.at(-1)];
    return between(one, other, (y - low) / (high - low));
};
const numbers = (text) => text.match(/-?[0-9.]+/g).map(Number);
const path = (chart, name, kind = '') => chart.querySelector(`path${kind}[data-name=\"${name}\"]`)?.getAttribute('d') ?? '';
const endOf = (chart, name) => { const d = path(chart, name); return valueAt(chart, numbers(d.slice(d.lastIndexOf(' ')))[0]); };
const edges = (chart, name) => {
    const points = path(chart, name).split('M').at(-1).split('Z')[0].split('L').map(numbers);
    return [points.length / 2, points.length / 2 - 1].map((index) => valueAt(chart, points[index][1]));
};
";

fn read(browser: &Browser, script: &str) -> Vec<f64> {
    let found = browser.wait_for(&format!("{READING} {script}"));
    serde_json::from_value(found).unwrap()
}

/// Both are within a pixel of each other on an axis of so much.
fn near(found: &[f64], expected: &[f64], within: f64) {
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() <= within, "{found:?} {expected:?}");
    }
}

#[test]
fn a_link_shows_its_slices_stacked_under_capacity_and_promises() {
    let Some(browser) = Browser::start(1440, 900) else {
        return;
    };
    let (controller, _gateway) = with_past();
    browser.open(&format!("{}/#/links", controller.url));
    browser.wait_for("return document.querySelectorAll('.area[data-name=silver]').length");
    // In the bytes of the link, L1: 24 more for each frame.
    let [gold, silver, total] = [1_024_000.0, 512_000.0, 2_048_000.0].map(|bytes| bytes * 8.0);
    let pixel = 106e6 / 200.0;
    let stack = read(
        &browser,
        "return ['gold', 'silver', 'others'].flatMap((name) => edges(charts[0], name))",
    );
    let sums = [0.0, gold, gold, gold + silver, gold + silver, total];
    near(&stack, &sums, pixel);
    let promised = controller.client().link("uplink").unwrap().forward;
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    let levels = [promised.rate_bps, promised.promised.link_rate_bps].map(|rate| rate as f64);
    let drawn = read(
        &browser,
        "return ['capacity', 'promised'].map((name) => endOf(charts[0], name))",
    );
    near(&drawn, &levels, pixel);
    // Drops of a link are in its strip; there are none backward.
    let strips = "return [0, 1].map((index) => path(charts[index], 'dropped', '.drops').length > 0 ? 1 : -1)";
    assert_eq!(read(&browser, strips), [1.0, -1.0]);
    // Each name stands beside what it names.
    browser.wait_for_text("gold: 8.19 Mbit/s");
    let labels = browser.script("return [...document.querySelector('.chart').querySelectorAll('.label')].map((one) => one.textContent).sort().join(' ')");
    assert_eq!(labels, "capacity gold others promised silver");

    browser.tab_to("uplink forward: traffic of slices");
    browser.press(&LEFT.to_string());
    let said = "return document.querySelector('.chart [aria-live]').textContent.replaceAll('\\u00a0', ' ')";
    let first = browser.wait_for(said).as_str().unwrap().to_owned();
    contains(
        &first,
        "gold 8.19 Mbit/s, silver 4.1 Mbit/s, others 4.1 Mbit/s, capacity 100 Mbit/s, promised ",
    );
    browser.press(&HOME.to_string());
    browser.wait_for(&format!("{said} !== {}", Value::from(first)));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_slice_shows_its_past_and_its_bound_on_a_logarithmic_axis_as_large_on_any_screen() {
    let Some(browser) = Browser::start(1440, 900) else {
        return;
    };
    let (controller, _gateway) = with_past();
    browser.open(&format!("{}/#/slices/gold", controller.url));
    browser.wait_for("return document.querySelectorAll('.curve').length === 2");
    let bound = controller.client().slice("gold").unwrap().bound_ns.forward;
    #[expect(clippy::cast_precision_loss, reason = "a delay")]
    let bound = bound.unwrap() as f64;
    let drawn = read(
        &browser,
        "isLog = true; const logs = ['forward', 'bound forward'].map((name) => endOf(charts[1], name)); \
         isLog = false; return [...logs, endOf(charts[0], 'forward'), endOf(charts[0], 'guarantee forward')]",
    );
    near(&drawn[..2], &[200_000.0, bound], bound * 0.03);
    near(&drawn[..1], &[200_000.0], 10_000.0);
    near(&drawn[2..], &[8e6, 30e6], 32e6 / 200.0);
    // The past begins before the page was opened.
    let past = "const [first] = numbers(path(charts[0], 'forward')); const grid = charts[0].querySelector('.axis').getBBox(); \
                return [(grid.x + grid.width - first) / grid.width * 300 * 1000 - performance.now()]";
    let before = read(&browser, past)[0];
    assert!(before > 1_000.0, "{before} ms before the page was opened");
    let heights: Vec<Value> = [1440, 1024, 390]
        .into_iter()
        .map(|width| {
            browser.look(width, 900, "light");
            thread::sleep(Duration::from_millis(1500));
            browser.script("return [...document.querySelectorAll('.plot')].map((one) => one.getBoundingClientRect().height).join()")
        })
        .collect();
    assert!(heights.iter().all(|one| *one == heights[0]), "{heights:?}");
    browser.script("document.querySelectorAll('.spans button')[1].click()");
    browser.wait_for("return document.querySelectorAll('.spans button')[1].getAttribute('aria-pressed') === 'true'");
    assert_eq!(browser.complaints(), [""; 0]);
}
