//! Numbers and addresses as Open vSwitch writes them.

use super::lexer::Word;
use crate::error::TextError;
use slicewise_model::IpPrefix;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

/// A whole number, decimal or hexadecimal (`0x…`), within `range`.
pub(super) fn number(
    word: &Word<'_>,
    what: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, TextError> {
    let text = word.text();
    let value = match text.strip_prefix("0x") {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u64::from_str_radix(hex, 16).ok()
        }
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    value.filter(|value| range.contains(value)).ok_or_else(|| {
        let expected = format!("{what}, {} to {}", range.start(), range.end());
        word.error("is not valid here").expected(expected)
    })
}

/// As [`number`], for a narrower type.
pub(super) fn small<T: Copy + TryFrom<u64> + Into<u64>>(
    word: &Word<'_>,
    what: &str,
    range: RangeInclusive<T>,
) -> Result<T, TextError> {
    let number = number(word, what, (*range.start()).into()..=(*range.end()).into())?;
    // The range keeps the number within T.
    Ok(T::try_from(number).unwrap_or(*range.end()))
}

/// An address of IP, with a prefix length or (IPv4) a mask that is one.
pub(super) fn prefix(word: &Word<'_>, is_ipv4: bool) -> Result<IpPrefix, TextError> {
    let text = word.text();
    let expected = match is_ipv4 {
        true => "an IPv4 address or prefix such as `10.0.1.0/24`",
        false => "an IPv6 address or prefix such as `2001:db8::/32`",
    };
    let masked = text.split_once('/').and_then(|(address, mask)| {
        let mask = u32::from(mask.parse::<Ipv4Addr>().ok()?);
        let length = mask.leading_ones();
        let is_prefix = length + mask.trailing_zeros().min(32) >= 32;
        let address: IpAddr = address.parse::<Ipv4Addr>().ok()?.into();
        is_prefix.then(|| IpPrefix::new(address, u8::try_from(length).ok()?))?
    });
    let prefix = masked.or_else(|| text.parse().ok());
    prefix
        .filter(|prefix| prefix.address().is_ipv4() == is_ipv4)
        .ok_or_else(|| word.error("is not a prefix").expected(expected))
}

/// A port, or the ports that agree with it in the bits of a mask.
pub(super) fn ports(word: &Word<'_>) -> Result<RangeInclusive<u16>, TextError> {
    const WHAT: &str = "a port";
    let Some((port, mask)) = word.split_once(|c| c == '/') else {
        let port = small(word, WHAT, 0..=u16::MAX)?;
        return Ok(port..=port);
    };
    let (port, bits) = (
        small(&port, WHAT, 0..=u16::MAX)?,
        small(&mask, "a mask of ports", 0..=u16::MAX)?,
    );
    if bits.leading_ones() + bits.trailing_zeros().min(16) < 16 {
        let expected = "a mask of leading ones such as `0xfff0`";
        return Err(mask.error("does not stand for a range").expected(expected));
    }
    let first = port & bits;
    Ok(first..=first | !bits)
}
