//! Address prefixes and conditions as written.

use insta::assert_snapshot;
use slicewise_model::{Condition, IpPrefix};
use std::net::IpAddr;

fn prefix(text: &str) -> Result<IpPrefix, String> {
    text.parse()
}

#[test]
fn host_bits_of_a_prefix_are_cleared() {
    let shown = [
        "10.0.10.77/24",
        "10.1.2.3",
        "255.255.255.255/0",
        "2001:db8::1/32",
        "::1",
        "ffff::/0",
    ]
    .map(|text| prefix(text).unwrap().to_string());
    assert_snapshot!(shown.join("\n"), @r"
    10.0.10.0/24
    10.1.2.3/32
    0.0.0.0/0
    2001:db8::/32
    ::1/128
    ::/0
    ");
    assert_eq!(prefix("1.2.3.4/0"), Ok(IpPrefix::ALL_IPV4));
    assert_eq!(prefix("1::/0"), Ok(IpPrefix::ALL_IPV6));
}

#[test]
fn a_written_prefix_reads_back_the_same() {
    for text in [
        "10.0.10.0/24",
        "0.0.0.0/0",
        "192.168.1.1/32",
        "2001:db8::/33",
        "::/0",
    ] {
        assert_eq!(prefix(text).unwrap().to_string(), text);
    }
}

#[test]
fn rejects_what_is_not_a_prefix() {
    for text in [
        "",
        "10.0.0/8",
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/",
        "10.0.0.0/+8",
        "10.0.0.0/8/8",
        "/8",
        "10.0.0.0 /8",
    ] {
        assert!(prefix(text).is_err(), "`{text}`");
    }
    assert_snapshot!(prefix("10.0.0.0/33").unwrap_err(), @"`10.0.0.0/33` is not an address prefix: write for example `10.0.10.0/24` or `2001:db8::/32`");
}

#[test]
fn a_prefix_has_an_address_and_a_length() {
    let prefix = prefix("10.0.10.77/24").unwrap();
    assert_eq!(prefix.address(), "10.0.10.0".parse::<IpAddr>().unwrap());
    assert_eq!(prefix.length(), 24);
}

#[test]
fn a_precedence_is_eight_code_points() {
    assert_eq!(Condition::precedence(0), Condition::Dscp(0xff));
    assert_eq!(Condition::precedence(5), Condition::Dscp(0xff << 40));
    let all = (0..8).fold(0, |all, precedence| {
        match Condition::precedence(precedence) {
            Condition::Dscp(set) => all | set,
            _ => all,
        }
    });
    assert_eq!(all, u64::MAX);
}
