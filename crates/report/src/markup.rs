//! Pieces of markup that several sections are made of.

use crate::text_table::TextTable;
use crate::unbroken::unbroken;
use maud::{Markup, Render, html};

/// A section of the page, and its line in the contents.
pub(crate) struct Section {
    pub(crate) id: &'static str,
    title: &'static str,
    heading: &'static str,
    body: Markup,
}

impl Section {
    pub(crate) const fn new(id: &'static str, title: &'static str, body: Markup) -> Self {
        Self {
            id,
            title,
            heading: title,
            body,
        }
    }

    /// With another heading than its line in the contents.
    pub(crate) fn headed(self, heading: &'static str) -> Self {
        Self { heading, ..self }
    }

    /// Its line in the contents. Nothing else is left of a section that only a script can fill.
    pub(crate) fn link(&self) -> Markup {
        html! { a.scripted[self.is_scripted()] href=(format!("#{}", self.id)) { (self.title) } }
    }

    pub(crate) fn markup(&self) -> Markup {
        let heading = format!("{}-heading", self.id);
        html! {
            section.scripted[self.is_scripted()] id=(self.id) aria-labelledby=(heading) {
                h2 id=(heading) { (self.heading) }
                (self.body)
            }
        }
    }

    fn is_scripted(&self) -> bool {
        ["time", "trade-off", "arrivals"].contains(&self.id)
    }
}

/// Text of a study or a message: what stands between backticks is code, and a number stays on one line with
/// its unit.
pub(crate) struct Prose<'a>(pub(crate) &'a str);

impl Render for Prose<'_> {
    fn render(&self) -> Markup {
        let parts: Vec<&str> = self.0.split('`').collect();
        // A backtick without a partner is a backtick.
        let paired = parts.len() - 1 + parts.len() % 2;
        html! {
            @for (index, part) in parts.iter().enumerate() {
                @if index % 2 == 1 && index < paired { code { (part) } }
                @else { @if index > 0 && index >= paired { "`" } (unbroken(part)) }
            }
        }
    }
}

/// One of the symbols of the template.
pub(crate) fn icon(name: &str) -> Markup {
    html! { svg aria-hidden="true" { use href=(format!("#icon-{name}")) {} } }
}

/// An outcome as a symbol and a word.
pub(crate) fn outcome(sign: &str, word: &str) -> Markup {
    html! { span class=(format!("verdict {sign}")) { (icon(sign)) (unbroken(word)) } }
}

/// Names and values.
pub(crate) fn facts<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in entries.into_iter().filter(|(_, value)| !value.is_empty()) {
                div { dt { (name) } dd { (Prose(value)) } }
            }
        }
    }
}

/// A list of texts.
pub(crate) fn list(texts: &[String]) -> Markup {
    html! { ul { @for text in texts { li { (Prose(text)) } } } }
}

/// A table whose rows become cards where there is no room for its columns.
pub(crate) fn cards(head: &[&str], rows: &Markup) -> Markup {
    html! { table.cards role="table" {
        thead role="rowgroup" { tr role="row" { @for text in head { th scope="col" role="columnheader" { (text) } } } }
        tbody role="rowgroup" { (rows) }
    } }
}

/// A table that scrolls sideways where there is no room for it. Names that are those of the row above are not
/// repeated.
pub(crate) fn table(table: &TextTable) -> Markup {
    let same = |row: usize, column: usize| {
        let above = row.checked_sub(1).and_then(|above| table.rows.get(above));
        let names = |row: &[String]| row.get(..=column).map(<[String]>::to_vec);
        above.is_some_and(|above| names(above) == table.rows.get(row).and_then(|r| names(r)))
    };
    let begins = |row: usize| table.names > 1 && !same(row, table.names - 2);
    html! {
        div.table-frame {
            table {
                thead { tr {
                    @for (column, text) in table.head.iter().enumerate() {
                        th scope="col" class=[(column >= table.names).then_some("number")] { (text) }
                    }
                } }
                tbody {
                    @for (index, row) in table.rows.iter().enumerate() {
                        tr class=[begins(index).then_some("begins")] {
                            @for (column, text) in row.iter().enumerate() {
                                @if column < table.names {
                                    th scope="row" { @if !same(index, column) || column + 1 == table.names { (text) } }
                                } @else {
                                    td.number { (unbroken(text)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code_and_nothing_is_markup() {
        let html = |text: &str| Prose(text).render().into_string();
        assert_eq!(
            html("source `a<b` is Poisson"),
            "source <code>a&lt;b</code> is Poisson"
        );
        assert_eq!(html("`a` and `b`"), "<code>a</code> and <code>b</code>");
        assert_eq!(html("one ` only"), "one ` only");
        assert_eq!(html("`a` and ` b"), "<code>a</code> and ` b");
    }
}
