//! Writes a report of a synthetic study, to look at: `synthetic_report FOLDER [small]`.

#![allow(clippy::unwrap_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use support::{Size, fill, study};

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let size = if std::env::args().nth(2).is_some() {
        Size::SMALL
    } else {
        Size::FULL
    };
    let folder = fill(path.as_ref(), &study(size));
    let begin = std::time::Instant::now();
    let report = slicewise_report::write(&folder).unwrap();
    println!("{} in {:?}", report.html.display(), begin.elapsed());
}
