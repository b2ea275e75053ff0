//! All of it: a page in a browser, a real controller, a real gateway and real traffic.

use super::*;
use crate::controlled::{Ends, Running, Setup, lost_percent};

/// What the page says about a slice in its list.
fn verdict(name: &str) -> String {
    format!(
        "return [...document.querySelectorAll('tr[data-index]')].find((row) => row.querySelector('a')?.innerText === '{name}')\
         ?.querySelector('.verdict:last-child')?.innerText"
    )
}

#[test]
fn two_slices_are_created_on_the_page_and_it_shows_that_one_holds_while_the_other_is_overloaded() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let Some(ends) = Ends::new("d") else { return };
    let setup = Setup::new(&ends);
    let _controller = setup.controller();
    let _gateway = setup.gateway();
    setup.wait_for_link();
    browser.open(&setup.url());
    browser.wait_for_text("There is no slice yet.");
    for (name, port, rate, burst, delay) in [
        ("gold", "5201", "10 Mbit/s", "60 kB", "60 ms"),
        ("noisy", "5202", "4 Mbit/s", "15 kB", "90 ms"),
    ] {
        fill(&browser, name, port, rate);
        browser.tab_to("Burst");
        browser.press(burst);
        browser.tab_to("Delay at most");
        browser.press(delay);
        browser.wait_for(&format!("{ANSWER} === 'holds'"));
        browser.press(&ENTER.to_string());
        browser.wait_for_text(&format!("{name} is created."));
    }
    setup.wait_until_installed();
    let _servers = [5201, 5202].map(|port| {
        let mut server = ends.iperf3(1, &format!("-s -p {port}"));
        Running(server.stdout(Stdio::null()).spawn().unwrap())
    });
    setup.wait_until("iperf3 listens", || {
        let tried = [5201, 5202].map(|port| {
            let mut client = ends.iperf3(0, &format!("-c 192.0.2.2 -p {port} -u -b 1M -t 1"));
            client.output().unwrap().status.success()
        });
        tried == [true; 2]
    });
    let client = |port: u16, rate: &str, seconds: u32| {
        let arguments = format!("-c 192.0.2.2 -p {port} -u -b {rate} -l 1000 -t {seconds} -J");
        ends.iperf3(0, &arguments).spawn().unwrap()
    };
    let noisy = client(5202, "60M", 16);
    thread::sleep(Duration::from_secs(1));
    let gold = client(5201, "8M", 14);
    let (holds, above) = (verdict("gold"), verdict("noisy"));
    browser.wait_for(&format!(
        "return (() => {{ {holds} }})() === 'holds' && (() => {{ {above} }})() === 'above its guarantee'"
    ));
    browser.script(
        "[...document.querySelectorAll('tr[data-index] a')].find((link) => link.innerText === 'gold').click()",
    );
    browser.wait_for_text("192.0.2.2:5201");
    let [gold, noisy] = [gold, noisy].map(|sender| {
        let report = sender.wait_with_output().unwrap().stdout;
        lost_percent(&report)
    });
    println!("lost: gold {gold} %, noisy {noisy} %");
    assert!(gold < 1.0, "{gold} %");
    assert!(noisy > 30.0, "{noisy} %: it was overloaded");
    assert_eq!(browser.complaints(), [""; 0]);
}
