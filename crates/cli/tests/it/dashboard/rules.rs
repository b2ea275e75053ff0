//! The view of rules.

use super::*;
use slicewise_api::Maximum;

#[test]
fn rules_are_added_seen_lending_changed_and_removed_by_keys_alone_on_a_phone() {
    let Some(browser) = Browser::start(360, 740) else {
        return;
    };
    let controller = Controller::start();
    let client = controller.client();
    let _gateway = Gateway::start(controller.client());
    add(&client, &slice("cameras", 5201, 50));
    let mut backup = slice("backup", 5202, 5);
    backup.forward.as_mut().unwrap().maximum = Some(Maximum {
        rate_bps: 10_000_000,
        burst_bytes: 100_000,
    });
    add(&client, &backup);
    browser.open(&controller.url);
    browser.look(360, 740, "dark");
    browser.tab_to("Rules");
    browser.press(&ENTER.to_string());
    browser.wait_for_text("There is no rule yet.");

    let open = || {
        browser.tab_to("New rule");
        browser.press(&ENTER.to_string());
        browser.wait_for("return document.activeElement.labels?.[0]?.innerText === 'Name'");
    };
    let fill = |fields: &[(&str, &str)]| {
        for (field, text) in fields {
            browser.tab_to(field);
            browser.press(text);
        }
        browser.press(&ENTER.to_string());
    };
    open();
    browser.press("night");
    fill(&[
        ("Lender", "cameras"),
        ("Borrower", "backup"),
        ("Unused rate", "40 Mbit/s"),
        ("Weight while it borrows", "8"),
    ]);
    browser.wait_for_text("Rule night is added.");
    browser.wait_for_text("1 rule, of which 1 lends now.");
    browser.wait_for_text(
        "slice cameras leaves 40 Mbit/s of its guarantee unused: 8 Mbit/s of 50 Mbit/s sent",
    );
    browser.wait_for_text("lent to backup: slice cameras leaves");
    let widths = browser.script("return document.documentElement.scrollWidth <= innerWidth");
    assert_eq!(widths, true, "the page is wider than the phone");

    browser.tab_to("Change rule night");
    browser.press(&ENTER.to_string());
    browser.wait_for("return document.activeElement.closest('dialog') !== null");
    fill(&[("Weight while it borrows", "9")]);
    browser.wait_for_text("Rule night is changed.");
    browser.wait_for_text("with weight 9");
    assert_eq!(client.rules().unwrap()[0].rule.weight, Some(9));
    assert_eq!(browser.complaints(), [""; 0]);

    // What is wrong is said in the form, and nothing is added.
    open();
    browser.press("other");
    fill(&[
        ("Lender", "cameras"),
        ("Borrower", "cameras"),
        ("Unused rate", "40"),
        ("Weight while it borrows", "1"),
    ]);
    browser.wait_for_text("a rate needs a unit");
    browser.wait_for("return document.activeElement.labels?.[0]?.innerText === 'Unused rate'");
    browser.press(" Mbit/s");
    browser.press(&ENTER.to_string());
    browser.wait_for_text("a slice cannot lend to itself");
    browser.press(&ESCAPE.to_string());
    browser.wait_for("return document.querySelector('dialog') === null");

    browser.tab_to("Remove rule night");
    browser.press(&SPACE.to_string());
    browser.wait_for("return document.activeElement.innerText === 'Cancel'");
    browser.press(&TAB.to_string());
    browser.press(&ENTER.to_string());
    browser.wait_for_text("There is no rule yet.");
    assert_eq!(client.rules().unwrap().len(), 0);
    let terms = client.slice("backup").unwrap().slice.forward.unwrap();
    assert_eq!(terms.maximum.unwrap().rate_bps, 10_000_000);
}
