//! Tokens, and the page while the controller is away.

use super::*;
use crate::support::words;

/// Make a token of an administrator beside the running controller.
fn token(controller: &Controller, name: &str) -> String {
    let made = controller
        .sandbox
        .command(&[
            "controller",
            "token",
            "add",
            name,
            "--scope",
            "admin",
            "--store",
            "sqlite:controller.db",
        ])
        .output()
        .unwrap();
    let said = text(&made.stdout);
    let token = said
        .split_whitespace()
        .find(|word| word.starts_with("slicewise_"));
    token
        .unwrap_or_else(|| panic!("{said}{}", text(&made.stderr)))
        .to_owned()
}

const LISTED: &str = "return document.querySelector('tr[data-index] a')?.innerText === 'gold'";
const ASKED: &str = "return document.activeElement.labels?.[0]?.innerText === 'Token'";

#[test]
fn a_token_is_asked_for_taken_forgotten_and_asked_for_again_when_it_is_revoked() {
    let Some(browser) = Browser::start(360, 740) else {
        return;
    };
    let controller = Controller::start();
    announce(&controller.client());
    add(&controller.client(), &slice("gold", 5201, 20));
    let [first, second] = ["first", "second"].map(|name| token(&controller, name));
    browser.open(&controller.url);
    browser.wait_for(ASKED);
    browser.wait_for_text("This controller wants a token.");
    // What is not known is not said to be nothing.
    let page = browser.text();
    assert!(
        !page.contains("0 slices") && !page.contains("No gateway"),
        "{page}"
    );
    browser.press(&format!("wrong{ENTER}"));
    browser.wait_for_text("this token is not known");
    browser.wait_for(ASKED);
    assert_eq!(browser.script(LISTED), false);
    browser.press(&format!("{first}{ENTER}"));
    browser.wait_for(LISTED);

    browser.tab_to("Forget the token");
    browser.press(&ENTER.to_string());
    browser.wait_for_text("This controller wants a token.");
    browser.wait_for(ASKED);
    let kept = browser.script("return JSON.stringify(sessionStorage)");
    let kept = kept.as_str().unwrap();
    assert!(!kept.contains(&first) && !kept.contains("gold"), "{kept}");

    browser.press(&format!("{first}{ENTER}"));
    browser.wait_for(LISTED);
    // Nothing is asked for in this view, but the stream of events ends.
    browser.tab_to("Events");
    browser.press(&ENTER.to_string());
    browser.wait_for_text("Newest first");
    let client = controller.client_with(Some(second));
    client.remove_token("first").unwrap();
    browser.wait_for(ASKED);
    browser.wait_for_text("revoked");
}

#[test]
fn a_page_that_was_opened_once_opens_again_while_the_controller_is_away() {
    let Some(browser) = Browser::start(360, 740) else {
        return;
    };
    let mut controller = Controller::start();
    announce(&controller.client());
    add(&controller.client(), &slice("gold", 5201, 20));
    browser.open(&controller.url);
    browser.wait_for(LISTED);
    // Links come after slices where the machine is busy.
    browser.wait_for("return JSON.parse(sessionStorage.getItem('slicewise-last')).links.length");
    // The last of the files that are loaded, and the page itself.
    for file in ["/", "/assets/rule_dialog.js", "/assets/dashboard.css"] {
        browser.wait_for(&format!(
            "return caches.match('{file}').then((found) => found !== undefined)"
        ));
    }
    controller.process.kill().unwrap();
    controller.process.wait().unwrap();
    browser.reload();
    browser.wait_for_text("The controller does not answer.");
    browser.wait_for_text("promises are shown as they were then");
    browser.wait_for(LISTED);
    browser.tab_to("Links");
    browser.press(&ENTER.to_string());
    browser.wait_for_text("28 Mbit/s reserved of 100 Mbit/s");
}

#[test]
fn a_gateway_that_follows_another_store_is_shown_until_it_is_adopted() {
    let Some(browser) = Browser::start(360, 740) else {
        return;
    };
    let controller = Controller::start();
    let client = controller.client();
    browser.open(&controller.url);
    browser.wait_for_text("No gateway has announced a link yet.");
    let announcement = GatewayAnnouncement {
        links: Vec::new(),
        reached: Some(7),
    };
    let lost = client.clone().with_store("another");
    assert_eq!(
        lost.announce("edge", &announcement).unwrap_err().status(),
        Some(409)
    );
    browser.wait_for_text("gateway `edge` follows store another");
    browser.wait_for("return document.documentElement.scrollWidth <= innerWidth");
    let adopt = words("controller --store sqlite:controller.db adopt edge");
    let adopted = controller.sandbox.command(&adopt).output().unwrap();
    assert!(adopted.status.success(), "{}", text(&adopted.stderr));
    assert!(lost.announce("edge", &announcement).unwrap().adopted);
    browser.wait_for("return document.querySelector('#refused').hidden");
}
