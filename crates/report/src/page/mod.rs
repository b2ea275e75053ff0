//! The HTML report: one file that needs nothing else.

mod applications;
mod beside;
mod captured;
mod charts;
mod declared;
mod scale;
mod script;
mod series;
mod study;
mod sweep;
mod verdicts;
mod wording;

use crate::error::ReportError;
use crate::figures::Figures;
use crate::findings::Findings;
use crate::markup::Section;
use crate::side::Side;
use crate::{prediction, published, queues, testbed, timeline};
use maud::html;
use script::Script;
pub use series::CaseReport;
pub(crate) use series::write_series_page;
use slicewise_results::{Action, ResultsError, write_file};
use std::path::Path;

/// Write the page of `findings` to `path`, with `figures` for browsers that run no scripts.
pub(crate) fn write_page(
    path: &Path,
    findings: &Findings,
    figures: &Figures,
) -> Result<(), ReportError> {
    let results = serde_json::to_string(&Script::of(findings))
        .map_err(|e| ResultsError::io(Action::Write, path, e.into()))?;
    let [before, charts, after] = sections(findings, figures);
    let several = |sections: &[Section]| html! { @for section in sections { (section.markup()) } };
    let title = title(findings);
    let masthead = study::masthead(findings, title).into_string();
    let contents = html! {
        @for section in before.iter().chain(&charts).chain(&after) { (section.link()) " " }
    };
    let mut all = before.iter().chain(&charts).chain(&after);
    let first = all.next().map_or("method", |section| section.id);
    let main = html! {
        (study::notices(findings))
        (several(&before))
        div.charted { (several(&charts)) }
        (several(&after))
    };
    let version = findings.study().program_version.as_str();
    let head = Head {
        version,
        title,
        masthead,
        contents: contents.into_string(),
        first,
        policy: POLICY,
    };
    let html = fill(
        TEMPLATE,
        &[
            ("head", &head.markup()),
            ("version", &escaped(version)),
            ("echarts_version", ECHARTS_VERSION),
            ("main", &main.into_string()),
            ("results", &script_safe(&results)),
            ("echarts", ECHARTS),
            ("script", &script()),
        ],
    );
    write_file(path, html.as_bytes())?;
    Ok(())
}

/// Part of a page above its sections.
struct Head<'a> {
    version: &'a str,
    title: &'a str,
    masthead: String,
    contents: String,
    /// Identity of the first section.
    first: &'a str,
    /// Sources that the page may load and run (Content Security Policy).
    policy: &'a str,
}

impl Head<'_> {
    fn markup(&self) -> String {
        fill(
            HEAD,
            &[
                ("version", &escaped(self.version)),
                ("policy", self.policy),
                ("title", &escaped(&self.title.replace('`', ""))),
                ("css", CSS),
                ("first", self.first),
                ("icons", ICONS),
                ("masthead", &self.masthead),
                ("contents", &self.contents),
            ],
        )
    }
}

/// Sections before the charts of policies, those charts, and sections after them.
fn sections(findings: &Findings, figures: &Figures) -> [Vec<Section>; 3] {
    let [captures, flows, hops] = captured::sections(&findings.captured);
    let is_by_flow = findings.captured.is_by_flow();
    let before = vec![
        verdicts::section(findings),
        timeline::section(findings.study(), &findings.changes),
        beside::section(findings),
        prediction::section(&findings.sides),
        testbed::section(findings.sides.iter().map(Side::testbed)),
    ];
    let charts = if findings.has_one_cell() {
        vec![
            flows,
            (!is_by_flow).then(|| charts::slices(findings)),
            Some(charts::distributions(findings, figures)),
            captures,
            hops,
            charts::time_series(findings),
        ]
    } else {
        vec![
            scale::section(findings, figures),
            Some(charts::delay(findings, figures)),
            Some(charts::distributions(findings, figures)),
            Some(charts::throughput(findings, figures)),
            Some(charts::loss(findings, figures)),
            charts::time_series(findings),
            charts::trade_off(findings),
            flows,
            captures,
            hops,
        ]
    };
    let after = vec![
        declared::section(&figures.declared),
        applications::section(findings, figures),
        queues::section(findings.study(), &findings.queues),
        charts::arrivals(findings),
        published::section(&findings.published),
        Some(study::method(findings)),
    ];
    [before, charts, after].map(|sections| sections.into_iter().flatten().collect())
}

fn title(findings: &Findings) -> &str {
    if findings.study().title.is_empty() {
        &findings.study().name
    } else {
        &findings.study().title
    }
}

/// The template with each `{{name}}` replaced, in one pass: what is put in is not looked at again.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut html =
        String::with_capacity(template.len() + values.iter().map(|v| v.1.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        html.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            break;
        };
        html.push_str(
            values
                .iter()
                .find(|(key, _)| *key == name)
                .map_or("", |(_, value)| value),
        );
        rest = after;
    }
    html.push_str(rest);
    html
}

/// Text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// JSON that no HTML parser takes for markup: `<` occurs only inside strings, where this escape
/// means the same.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// All parts of the page's own script, in a scope of their own.
fn script() -> String {
    format!("(() => {{\n\"use strict\";\n{}\n}})();", SCRIPTS.join("\n"))
}

const HEAD: &str = include_str!("../../assets/page/head.html");
const TEMPLATE: &str = include_str!("../../assets/page/report.html");
/// Its scripts and styles are in it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";
const ICONS: &str = include_str!("../../assets/page/icons.svg");
const CSS: &str = include_str!("../../assets/page/report.css");
const SCRIPTS: [&str; 8] = [
    include_str!("../../assets/page/base.js"),
    include_str!("../../assets/page/text.js"),
    include_str!("../../assets/page/charts.js"),
    include_str!("../../assets/page/distributions.js"),
    include_str!("../../assets/page/series.js"),
    include_str!("../../assets/page/scale.js"),
    include_str!("../../assets/page/beside.js"),
    include_str!("../../assets/page/main.js"),
];
const ECHARTS: &str = include_str!("../../assets/echarts/echarts.min.js");
const ECHARTS_VERSION: &str = "6.1.0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_every_place_of_the_template_once() {
        let html = fill(HEAD, &[("title", "{{css}}"), ("version", "1")]);
        assert!(
            html.contains("<title>{{css}}</title>"),
            "what is put in is not filled again"
        );
        let of_head = [
            "version", "policy", "title", "css", "first", "icons", "masthead", "contents",
        ];
        let of_page = [
            "head",
            "version",
            "echarts_version",
            "main",
            "results",
            "echarts",
            "script",
        ];
        for (template, places) in [(HEAD, &of_head[..]), (TEMPLATE, &of_page[..])] {
            let mut rest = template;
            while let Some((_, after)) = rest.split_once("{{") {
                let (name, after) = after.split_once("}}").unwrap();
                assert!(places.contains(&name), "{name}");
                rest = after;
            }
        }
    }

    #[test]
    fn no_text_of_a_study_ends_a_script_or_a_title() {
        let json = serde_json::to_string("</script><!--<script>").unwrap();
        assert!(!script_safe(&json).contains('<'));
        let back: String = serde_json::from_str(&script_safe(&json)).unwrap();
        assert_eq!(back, "</script><!--<script>");
        assert_eq!(escaped("</title>&\""), "&lt;/title&gt;&amp;&quot;");
    }

    #[test]
    fn nothing_that_is_embedded_ends_its_element() {
        assert!(!ECHARTS.contains("</script"));
        assert!(!script().contains("</script"));
        assert!(!CSS.contains("</style"));
    }

    #[test]
    fn names_the_version_of_the_library_it_embeds() {
        assert!(ECHARTS.contains(&format!("version=\"{ECHARTS_VERSION}\"")));
    }
}
