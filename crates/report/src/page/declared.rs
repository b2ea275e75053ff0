//! Figures that a study declares, each with its data: complete without a script.

use crate::figures::DeclaredFigure;
use crate::markup::{Prose, Section, table};
use maud::{Markup, PreEscaped, html};

/// `None` where there is none.
pub(super) fn section(figures: &[DeclaredFigure]) -> Option<Section> {
    if figures.is_empty() {
        return None;
    }
    let body = html! {
        @for figure in figures { (drawn(figure)) }
    };
    Some(Section::new("figures", "Figures", body).headed("Figures of the study"))
}

fn drawn(figure: &DeclaredFigure) -> Markup {
    let files = [
        ("SVG", ".svg"),
        ("PDF", ".pdf"),
        ("PGF for LaTeX", ".pgf"),
        ("one column wide", "@85mm.pdf"),
        ("CSV", ".csv"),
        ("caption", ".txt"),
    ];
    html! { figure.declared {
        figcaption { (Prose(&figure.title)) }
        @match &figure.svgs {
            Some([wide, narrow]) => {
                div.chart.drawn.wide { (PreEscaped(wide)) }
                div.chart.drawn.narrow { (PreEscaped(narrow)) }
            }
            None => { p.quiet { "Too large to be drawn here." } }
        }
        p.note { (Prose(&figure.how)) }
        p.key { "Files: "
            @for (index, (name, end)) in files.into_iter().enumerate() {
                @if index > 0 { ", " }
                // A name is of an address, in which `%` begins an escape.
                a href=(format!("figures/{}{end}", figure.name.replace('%', "%25"))) { (name) }
            }
        }
        details.numbers {
            summary { "Numbers of this figure" }
            (table(&figure.table))
        }
    } }
}
