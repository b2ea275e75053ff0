//! Rows of short texts, fitted to a terminal.

use slicewise_report::terminal::{Colours, Column, Listing, wrapped};

fn table() -> Listing {
    let mut table = Listing::new([
        Column::Name("Slice"),
        Column::Text("State"),
        Column::Number("Sent"),
        Column::Number("Most\nallowed"),
        Column::Name("Path"),
        Column::Number("Waiting"),
    ]);
    for (name, state, sent, path, waiting) in [
        ("voice", "installed".to_owned(), "10 Mbit/s", "berlin", "2"),
        (
            "video-of-a-customer-with-a-long-name",
            Listing::bad("✗ refused"),
            "999.5 kbit/s",
            "berlin-mitte-access-7, core-1",
            "1234",
        ),
    ] {
        let cells = [name, &state, sent, "", path, waiting];
        table.add(cells.map(str::to_owned));
    }
    table
}

fn fitted(width: u16) -> String {
    let text = table().fitted(width, "see --json", Colours::None);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(width.into()), "{text}");
    text
}

#[test]
fn a_table_with_room_shows_everything_that_there_is() {
    insta::assert_snapshot!(fitted(120), @"
    ───────────────────────────────────────────────────────────────────────────────────────────────────────
     Slice                                 State              Sent  Path                           Waiting
    ═══════════════════════════════════════════════════════════════════════════════════════════════════════
     voice                                 installed     10 Mbit/s  berlin                               2
     video-of-a-customer-with-a-long-name  ✗ refused  999.5 kbit/s  berlin-mitte-access-7, core-1     1234
    ───────────────────────────────────────────────────────────────────────────────────────────────────────
    ");
}

#[test]
fn names_are_shortened_in_the_middle_before_columns_are_left_out() {
    insta::assert_snapshot!(fitted(80), @"
    ────────────────────────────────────────────────────────────────────────────────
     Slice             State              Sent  Path                        Waiting
    ════════════════════════════════════════════════════════════════════════════════
     voice             installed     10 Mbit/s  berlin                            2
     video-of…ng-name  ✗ refused  999.5 kbit/s  berlin-mitte-…ss-7, core-1     1234
    ────────────────────────────────────────────────────────────────────────────────
    Not shown: whole names (see --json)
    ");
}

#[test]
fn the_last_columns_are_left_out_and_named_where_short_names_take_too_much() {
    insta::assert_snapshot!(fitted(50), @"
    ──────────────────────────────────────────────────
     Slice                    State              Sent
    ══════════════════════════════════════════════════
     voice                    installed     10 Mbit/s
     video-of-a-…a-long-name  ✗ refused  999.5 kbit/s
    ──────────────────────────────────────────────────
    Not shown: Path, Waiting, whole names (see --json)
    ");
    insta::assert_snapshot!(fitted(30), @"
    ──────────────────────────────
     Slice              State
    ══════════════════════════════
     voice              installed
     video-of…ong-name  ✗ refused
    ──────────────────────────────
    Not shown: Sent, Path,
      Waiting, whole names (see
      --json)
    ");
}

#[test]
fn a_cell_that_reports_something_bad_is_coloured_and_stays_in_its_column() {
    let coloured = table().fitted(120, "", Colours::Ansi);
    assert!(coloured.contains("\u{1b}[1;31m✗ refused\u{1b}[0m"));
    let plain = coloured
        .replace("\u{1b}[1;31m", "")
        .replace("\u{1b}[0m", "");
    assert_eq!(plain, fitted(120));
}

#[test]
fn a_line_is_broken_between_words_and_a_long_word_is_kept() {
    let text = "one two three a-word-longer-than-a-line four";
    assert_eq!(
        wrapped(text, 12),
        "one two\n  three\n  a-word-longer-than-a-line\n  four"
    );
    assert_eq!(wrapped("one\ntwo three", 7), "one\ntwo\n  three");
    assert_eq!(wrapped(text, usize::MAX), text);
}
