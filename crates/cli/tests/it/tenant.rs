//! `slicewise tenant`, against a controller.

use crate::dashboard::Controller;
use crate::support::text;

/// Exit code and what is printed of each command, without its borders.
fn said(controller: &Controller, commands: &[&[&str]]) -> String {
    let said = commands.iter().map(|arguments| {
        let all = [&["tenant", "--controller", &controller.url], *arguments].concat();
        let output = controller.sandbox.slicewise(&all);
        let text = text(&output.stdout) + &text(&output.stderr);
        let lines = text
            .lines()
            .filter(|line| line.chars().any(char::is_alphanumeric));
        let lines: Vec<&str> = lines.map(str::trim_end).collect();
        let code = output.status.code().unwrap();
        format!("$ {} -> {code}\n{}", arguments.join(" "), lines.join("\n"))
    });
    said.collect::<Vec<_>>().join("\n")
}

#[test]
fn tenants_are_added_changed_listed_and_removed() {
    let controller = Controller::start();
    let shown = said(
        &controller,
        &[
            &[
                "add",
                "red",
                "--weight",
                "2",
                "--most-slices",
                "5",
                "--most-rate",
                "30 Mbit/s",
            ],
            &["add", "red"],
            &["change", "red", "--most-slices", "none"],
            &["change", "blue", "--weight", "3"],
            &["add", "Blue"],
            &["add", "blue", "--weight", "0"],
            &["list"],
            &["remove", "red"],
            &["remove", "red"],
        ],
    );
    insta::assert_snapshot!(shown);
}
