//! The page in a real browser, where there is one.

use crate::support::{Size, fill, fill_live, live_study, record, study, three_back_ends};
use slicewise_results::host::HostFacts;
use slicewise_results::{Force, ResultsFolder};
use slicewise_stats::description::DelayBound;
use slicewise_stats::objective::{DelayLimit, Objective, Percentile};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The page's elements after its script has run, and what the browser's console said; `None` where
/// no Chromium is installed.
fn load(page: &Path) -> Option<(String, String)> {
    let profile = tempfile::tempdir().unwrap();
    for browser in ["chromium", "chromium-browser", "google-chrome"] {
        let output = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args([
                "--enable-logging=stderr",
                "--virtual-time-budget=10000",
                "--window-size=1300,2000",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("--dump-dom")
            .arg(format!("file://{}", page.display()))
            .output();
        if let Ok(output) = output {
            assert!(output.status.success(), "{browser} failed: {output:?}");
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            return Some((text(output.stdout), text(output.stderr)));
        }
    }
    eprintln!("skipped: no Chromium is installed, so the page was not loaded");
    None
}

fn complaints(console: &str) -> Vec<&str> {
    console
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect()
}

#[test]
fn draws_all_charts_without_a_complaint() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = fill(temporary.path(), &study(Size::SMALL));
    folder
        .write_host(&HostFacts {
            processor: "a <fast> one".to_owned(),
            ..HostFacts::default()
        })
        .unwrap();
    let page = slicewise_report::write(&folder).unwrap().html;
    let Some((dom, console)) = load(&page) else {
        return;
    };

    assert_eq!(complaints(&console), [""; 0]);
    assert!(!dom.contains("data-script-error"));
    // Throughput, loss, delay and its distribution for two slices; time, trade-off, arrivals.
    assert!(dom.contains(r#"data-charts="11""#));
    assert_eq!(dom.matches(r#"role="img""#).count(), 10);
    assert!(
        dom.matches("<path").count() > 300,
        "charts are drawn, not only framed"
    );
    assert_eq!(dom.matches(r#"class="verdict-row""#).count(), 3);
    assert!(
        dom.contains("<title>Synthetic study"),
        "no name became a script"
    );
    assert!(dom.contains("a &lt;fast&gt; one"));
}

#[test]
fn bears_every_choice_and_every_button() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = fill(
        temporary.path(),
        &study(Size {
            policies: 2,
            ..Size::SMALL
        }),
    );
    fs::remove_file(temporary.path().join("runs/priority/2.jsonl")).unwrap();
    let page = slicewise_report::write(&folder).unwrap().html;
    let html = fs::read_to_string(&page).unwrap();
    let press_everything = "<script>\
        document.querySelectorAll('button').forEach((button) => button.click());\
        document.querySelectorAll('details').forEach((details) => { details.open = true; });\
        document.querySelectorAll('select').forEach((select) => {\
          for (const option of select.options) {\
            select.value = option.value;\
            select.dispatchEvent(new Event('change'));\
          }\
        });\
        const legends = () => document.querySelectorAll('.paper-legend').length;\
        window.dispatchEvent(new Event('beforeprint'));\
        const onPaper = legends();\
        window.dispatchEvent(new Event('afterprint'));\
        const charts = document.querySelectorAll('.charted .charts > figure > .chart:not(.sentence), #trade-off-chart');\
        document.documentElement.dataset.legends = charts.length > 5 && onPaper === charts.length && legends() === 0;\
        document.documentElement.dataset.pressed = 'all';\
        </script></body>";
    let (head, tail) = html.rsplit_once("</body>").unwrap();
    fs::write(&page, format!("{head}{press_everything}{tail}")).unwrap();
    let Some((dom, console)) = load(&page) else {
        return;
    };

    assert_eq!(complaints(&console), [""; 0]);
    assert!(dom.contains(r#"data-pressed="all""#));
    assert!(
        dom.contains(r#"data-legends="true""#),
        "a legend with each chart, on paper only"
    );
    assert!(dom.contains("This run is not finished."));
    assert!(dom.contains("The same command runs the rest"));
}

#[test]
fn shows_back_ends_side_by_side() {
    let temporary = tempfile::tempdir().unwrap();
    let [simulator, live @ ..] = three_back_ends(temporary.path(), Size::SMALL);
    let beside = live.map(|folder| folder.path().to_owned());
    let page = slicewise_report::write_beside(&simulator, &beside)
        .unwrap()
        .html;
    let Some((dom, console)) = load(&page) else {
        return;
    };

    assert_eq!(complaints(&console), [""; 0]);
    // Delay and loss of the critical slice, beside what one folder has.
    assert!(dom.contains(r#"data-charts="13""#));
    for text in [
        "≠ published",
        "not supported",
        "this kernel has no HTB queueing discipline",
        "2026-11-22 05:38",
        "figures of gateway were predicted",
        "1 attempt was rejected and repeated",
        "steal of 4.2",
        "iperf3 3.12",
    ] {
        assert!(dom.contains(text), "{text}");
    }
}

#[test]
fn bears_a_folder_in_which_no_policy_is_supported() {
    let temporary = tempfile::tempdir().unwrap();
    let whole = study(Size::SMALL);
    let live = live_study(&whole, "tc", "Linux 6.1.0");
    let all: Vec<_> = live
        .policies
        .iter()
        .map(|p| (p.name.as_str(), "no qdisc"))
        .collect();
    let page = slicewise_report::write(&fill_live(temporary.path(), &live, &whole, &all))
        .unwrap()
        .html;
    let Some((dom, console)) = load(&page) else {
        return;
    };

    assert_eq!(complaints(&console), [""; 0]);
    assert!(!dom.contains("data-script-error"));
    assert!(dom.contains("no policy, priority and shaping are not supported here."));
}

/// What a script finds in a page that is `width` pixels wide; `None` where no Chromium is installed.
fn measured(page: &Path, width: u32, script: &str) -> Option<String> {
    let html = fs::read_to_string(page).unwrap();
    let inner = html.replace('&', "&amp;").replace('"', "&quot;");
    let outer = format!(
        "<body style=\"margin:0\"><iframe srcdoc=\"{inner}\" style=\"width:{width}px;height:844px;border:0\"></iframe>\
         <script>addEventListener('load', () => {{\
         const page = document.querySelector('iframe').contentDocument;\
         const found = ((page) => {{ {script} }})(page);\
         document.body.innerHTML = '<p id=found>' + found + '</p>'; }});</script></body>"
    );
    fs::write(page, outer).unwrap();
    let (dom, _) = load(page)?;
    let (_, found) = dom.split_once("<p id=\"found\">").unwrap();
    Some(found.split_once("</p>").unwrap().0.to_owned())
}

#[test]
fn nothing_is_cut_off_or_overprinted_on_a_phone() {
    let temporary = tempfile::tempdir().unwrap();
    let whole = study(Size {
        repetitions: 2,
        ..Size::FULL
    });
    let page = slicewise_report::write(&fill(temporary.path(), &whole))
        .unwrap()
        .html;
    let script = "const faults = [];\
        const width = page.documentElement.clientWidth;\
        if (page.documentElement.scrollWidth > width) faults.push('the page scrolls sideways');\
        for (const row of page.querySelectorAll('.verdict-row')) {\
          if (row.getBoundingClientRect().height > 29) faults.push('a row of the matrix has more than one line');\
          if (row.cells[0].textContent.length > 60 || row.cells[1].getBoundingClientRect().right > width) faults.push('no verdict is in view');\
        }\
        for (const section of page.querySelectorAll('main section')) {\
          section.scrollIntoView({ behavior: 'instant' });\
          const heading = section.querySelector('h2').getBoundingClientRect();\
          const legend = page.querySelector('.bar').getBoundingClientRect();\
          if (heading.top < legend.bottom && heading.bottom > legend.top) faults.push('covered: ' + section.id);\
        }\
        for (const chart of page.querySelectorAll('.chart')) {\
          const pages = (text) => text.textContent.includes('/') && text.textContent.length < 6;\
          const labels = [...chart.querySelectorAll('text')].filter((text) => !pages(text)).map((text) => text.getBoundingClientRect());\
          labels.forEach((a, i) => labels.slice(0, i).forEach((b) => {\
            const [x, y] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];\
            if (x > 2 && y > 4) faults.push('overprinted: ' + chart.getAttribute('aria-label'));\
          }));\
        }\
        return faults.join('; ') || 'none';";
    let Some(found) = measured(&page, 390, script) else {
        return;
    };
    assert_eq!(found, "none");
}

#[test]
fn the_first_screen_answers_the_question_and_has_the_whole_matrix() {
    let temporary = tempfile::tempdir().unwrap();
    let mut whole = study(Size {
        repetitions: 2,
        ..Size::FULL
    });
    whole.slices[0].objective = Some(Objective {
        delay: Some(DelayLimit {
            limit_ns: 5_000_000,
            at: Percentile::P999,
        }),
        ..Objective::default()
    });
    let page = slicewise_report::write(&fill(temporary.path(), &whole))
        .unwrap()
        .html;
    let script = "const bottom = (node) => node.getBoundingClientRect().bottom;\
        const rows = [...page.querySelectorAll('.verdict-row')];\
        const numbers = rows.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent));\
        const reason = page.querySelector(page.querySelector('.verdict-row a').getAttribute('href'));\
        return [rows.length, bottom(page.querySelector('.finding')) < 250, bottom(rows[rows.length - 1]) < 844,\
          page.querySelector('#verdict-table').scrollWidth <= page.querySelector('#verdict-table').clientWidth,\
          numbers.flat().every((text) => !text.includes('∞') && !/\\d.* \\d/.test(text)),\
          reason.closest('details.why') !== null && reason.id === 'why-0'].join(' ');";
    let Some(found) = measured(&page, 1440, script) else {
        return;
    };
    assert_eq!(found, "7 true true true true true");
}

/// Figures of estimates: every sign is at its value, and every limit of the quantity is there with its name.
const SIGNS_AND_LIMITS: &str = "const data = JSON.parse(page.getElementById('results').textContent);\
    const faults = []; let signs = 0; let lines = 0; let sentences = 0;\
    for (const name of ['throughput', 'loss_ratio', 'delay']) {\
      page.querySelectorAll('[data-metric=' + name + '] .chart').forEach((node, slice) => {\
        const chart = page.defaultView.echarts.getInstanceByDom(node);\
        const top = node.getBoundingClientRect().top;\
        const metric = name === 'delay' ? 'delay_max' : name;\
        data.bases.forEach((base, policy) => {\
          if (node.classList.contains('sentence')) { sentences += data.cells[policy].every((cell) => cell.slices[slice][metric][0] === 0) ? 1 : 100; return; }\
          const colour = data.signs.policies[policy];\
          const found = [...node.querySelectorAll('path')].filter((path) => path.getAttribute('fill') === colour).map((path) => path.getBoundingClientRect())\
            .filter((box) => box.width < 16).map((box) => (box.top + box.bottom) / 2 - top).sort((a, b) => a - b);\
          const wanted = data.cells[policy].map((cell) => chart.convertToPixel({ yAxisIndex: 0 }, cell.slices[slice][metric][0])).sort((a, b) => a - b);\
          signs += wanted.length;\
          if (wanted.length !== found.length || wanted.some((y, i) => Math.abs(y - found[i]) > 1.5)) faults.push(name + ' ' + base + ': ' + found + ' for ' + wanted);\
        });\
        if (node.classList.contains('sentence')) return;\
        const texts = [...node.querySelectorAll('text')].map((text) => text.textContent);\
        for (const limit of data.limits.filter((it) => it.slice === slice && it.label && it.metric === name)) {\
          const y = chart.convertToPixel({ yAxisIndex: 0 }, limit.value);\
          lines += 1;\
          if (!texts.includes(limit.label) || !(y > 0 && y < node.clientHeight)) faults.push('no ' + limit.label + ' in ' + name);\
        }\
      });\
    }\
    page.querySelectorAll('#distribution-charts .chart').forEach((node, slice) => {\
      const texts = [...node.querySelectorAll('text')].map((text) => text.textContent);\
      for (const limit of data.limits.filter((it) => it.slice === slice && it.metric === 'delay')) if (!texts.includes(limit.label)) faults.push('no ' + limit.label + ' in the distribution');\
    });\
    const legend = [...page.querySelectorAll('#legend .marker path')].map((path) => path.getAttribute('fill') + path.getAttribute('d'));\
    if (new Set(legend).size !== data.bases.length) faults.push('two policies of one colour and shape');\
    return faults.join('; ') || signs + ' signs, ' + sentences / 3 + ' sentence, ' + lines + ' limits';";

#[test]
fn a_sign_is_at_its_value_and_every_limit_is_in_its_figure() {
    let temporary = tempfile::tempdir().unwrap();
    let mut whole = study(Size::SMALL);
    whole.slices[0].objective = Some(Objective {
        delay: Some(DelayLimit {
            limit_ns: 50_000_000,
            at: Percentile::P999,
        }),
        loss_ratio: Some(0.001),
        throughput_bits_per_second: Some(15_000_000),
        ..Objective::default()
    });
    let bound = DelayBound {
        scheduler_ns: 900_000_000,
        outside_ns: 100_000_000,
    };
    let bounds = &mut whole.policies[1].delay_bounds;
    bounds.insert("critical".to_owned(), bound);
    let page = slicewise_report::write(&fill(temporary.path(), &whole))
        .unwrap()
        .html;
    let Some(found) = measured(&page, 1300, SIGNS_AND_LIMITS) else {
        return;
    };
    // Three figures of two slices, three policies in three scenarios; nothing critical is lost. Shares, two objectives and a bound.
    assert_eq!(found, "45 signs, 1 sentence, 5 limits");
}

#[test]
fn scenarios_that_are_numbers_stand_where_they_are_on_an_axis_with_its_unit() {
    let script = "const data = JSON.parse(page.getElementById('results').textContent);\
        const node = page.querySelector('[data-metric=throughput] .chart');\
        const chart = page.defaultView.echarts.getInstanceByDom(node);\
        const [axis] = chart.getOption().xAxis;\
        const left = node.getBoundingClientRect().left;\
        const found = [...node.querySelectorAll('path')].filter((path) => path.getAttribute('fill') === data.signs.policies[0]).map((path) => path.getBoundingClientRect())\
          .filter((box) => box.width < 16).map((box) => (box.left + box.right) / 2 - left).sort((a, b) => a - b);\
        const wanted = data.x_axis.values.map((value) => chart.convertToPixel({ xAxisIndex: 0 }, value)).sort((a, b) => a - b);\
        const lines = chart.getOption().series.filter((series) => series.type === 'line' && series.data.length === 3).length;\
        return [axis.type, axis.name, lines, wanted.every((x, i) => Math.abs(x - found[i]) < 1.5)].join(', ');";
    for (places, expected) in [
        ([100, 30_000, 1000], "log, requests/s, 3, true"),
        ([90, 130, 105], "value, requests/s, 3, true"),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let mut whole = study(Size::SMALL);
        for (scenario, place) in whole.scenarios.iter_mut().zip(places) {
            scenario.x = format!("{place} requests/s");
        }
        let page = slicewise_report::write(&fill(temporary.path(), &whole))
            .unwrap()
            .html;
        let Some(found) = measured(&page, 1300, script) else {
            return;
        };
        assert_eq!(found, expected);
    }
}

/// The labels of the time series that lie over each other.
const OVERPRINTED: &str = "const labels = [...page.querySelectorAll('#time-chart text')].map((text) => [text.textContent, text.getBoundingClientRect()]);\
    const over = labels.flatMap(([a, one], i) => labels.slice(0, i).filter(([, other]) =>\
      Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2 && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 2)\
      .map(([b]) => b + ' and ' + a));\
    return labels.some(([text]) => text.startsWith('transient ends')) + ' ' + over.join('; ');";

#[test]
fn the_end_of_an_early_or_a_late_transient_is_not_printed_over_axes() {
    let whole = study(Size {
        policies: 1,
        scenarios: 1,
        repetitions: 1,
        seconds: 4,
    });
    for end_ns in [50_000_000, 250_000_000, 3_900_000_000] {
        let temporary = tempfile::tempdir().unwrap();
        let folder = ResultsFolder::create(temporary.path(), &whole, Force::Refuse).unwrap();
        let mut run = record(&whole, 0, 0, 0);
        run.transient.end_ns = end_ns;
        folder.write_run(&run).unwrap();
        let page = slicewise_report::write(&folder).unwrap().html;
        let Some(found) = measured(&page, 1200, OVERPRINTED) else {
            return;
        };
        assert_eq!(found, "true ", "{end_ns}");
    }
}

#[test]
fn a_run_without_packets_says_so_instead_of_drawing_an_empty_distribution() {
    let whole = study(Size {
        policies: 1,
        scenarios: 1,
        repetitions: 1,
        seconds: 4,
    });
    let temporary = tempfile::tempdir().unwrap();
    let folder = ResultsFolder::create(temporary.path(), &whole, Force::Refuse).unwrap();
    let mut run = record(&whole, 0, 0, 0);
    for slice in &mut run.slices {
        slice.delay_cdf.clear();
    }
    folder.write_run(&run).unwrap();
    let page = slicewise_report::write(&folder).unwrap().html;
    let Some((dom, console)) = load(&page) else {
        return;
    };
    assert_eq!(complaints(&console), [""; 0]);
    assert!(dom.contains("no packet with a known delay"));
}

#[test]
fn a_single_run_of_many_slices_has_a_short_page() {
    let temporary = tempfile::tempdir().unwrap();
    let mut whole = study(Size {
        policies: 1,
        scenarios: 1,
        repetitions: 1,
        seconds: 4,
    });
    let mut run = record(&whole, 0, 0, 0);
    for index in 2..40 {
        let name = format!("flow {index}");
        let mut slice = whole.slices[1].clone();
        slice.name.clone_from(&name);
        whole.slices.push(slice);
        let mut slice = run.slices[1].clone();
        slice.slice = name;
        run.slices.push(slice);
    }
    let folder = ResultsFolder::create(temporary.path(), &whole, Force::Refuse).unwrap();
    folder.write_run(&run).unwrap();
    let page = slicewise_report::write(&folder).unwrap().html;
    let script = "return page.documentElement.scrollHeight + ' ' + page.querySelectorAll('.chart').length\
         + ' ' + page.querySelectorAll('#slices-table tbody tr').length;";
    let Some(found) = measured(&page, 1300, script) else {
        return;
    };
    let numbers: Vec<u32> = found.split(' ').map(|n| n.parse().unwrap()).collect();
    let [height, charts, rows] = numbers[..] else {
        panic!("{found}")
    };
    assert!(height < 6_100, "{height} pixels");
    assert!(charts <= 3, "{charts} charts");
    assert_eq!(rows, 40);
}
