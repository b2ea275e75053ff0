//! `slicewise doctor`: what this machine can do, and how to fix what is missing.

mod text;

use crate::Failure;
use crate::arguments::DoctorOptions;
use crate::execution::on_interrupt;
use crate::exit::Exit;
use crate::output;
use console::Term;
use serde_json::{Map, Value, json};
use slicewise_testbed::doctor::{Examination, Purpose, Readiness, examine};
use std::sync::atomic::Ordering;
use text::Page;

pub fn doctor(options: &DoctorOptions) -> Result<Exit, Failure> {
    let interrupt = on_interrupt("cleaning up")?;
    let Some(examination) = examine(&|| interrupt.load(Ordering::Relaxed)) else {
        return Ok(Exit::Interrupted);
    };
    if options.json {
        output::json(&as_json(&examination));
    } else {
        // Where the output goes to a file, lines are as long as they are.
        let size = Term::stdout().size_checked();
        let page = Page {
            columns: size.map_or(usize::MAX, |(_, columns)| usize::from(columns)),
            colours: console::colors_enabled(),
        };
        output::styled(&page.write(&examination));
    }
    Ok(match examination.readiness(Purpose::RunOnGateway) {
        Readiness::Can => Exit::Success,
        Readiness::Cannot | Readiness::Unknown => Exit::Failure,
    })
}

fn as_json(examination: &Examination) -> Value {
    let verdicts: Map<String, Value> = Purpose::ALL
        .into_iter()
        .map(|purpose| {
            let readiness = json!(examination.readiness(purpose));
            (purpose.command().to_owned(), readiness)
        })
        .collect();
    json!({
        "verdicts": verdicts,
        "install": examination.install_command(),
        "findings": examination.findings,
    })
}
