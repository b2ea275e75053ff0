//! `police` and its actions.

use super::code_point;
use super::definition::WithoutEffect;
use super::number::{self, BURST_MILLIS_MAX, BYTES_MAX, Burst};
use super::policy_map::{ClassText, OTHER_FIELD};
use super::words::Words;
use crate::error::{Span, TextError, quoted, suggestion};
use slicewise_model::{Action, BurstSpec, PolicerSpec, RateSpec};
use slicewise_units::{BitRate, ByteCount, Duration};

/// The lines that may follow `police`.
pub(super) const ACTIONS: [&str; 3] = ["conform-action", "exceed-action", "violate-action"];
/// Largest QoS group (IOS).
pub(super) const QOS_GROUP_MAX: u8 = 99;

/// Of the policer that `drop` is read as: any rate will do.
const RATE_OF_DROP: BitRate = BitRate::new(8_000);

const RATE_EXPECTED: &str = "a rate in bit/s, `cir`, `rate` or `percent`";
const OPTIONS_EXPECTED: &str = "`bc`, `pir`, `be`, `conform-action`, `exceed-action`, \
                                `violate-action` or the end of the line";

/// Reads the rest of a line after `police`, up to and with the actions on it.
pub(super) fn police(words: &mut Words<'_, '_>, class: &mut ClassText) -> Result<(), TextError> {
    let span = words.last_span();
    // Action lines that follow belong to this policer, even if something is wrong with it.
    let previous = class
        .spec
        .police
        .replace(PolicerSpec::new(RateSpec::Absolute(BitRate::ZERO)));
    if previous.is_some() {
        return class.once("police", span);
    }
    class.once("police", span)?;
    let mut policer = PolicerSpec::new(RateSpec::Absolute(BitRate::ZERO));
    policer.cir = committed_rate(words)?;
    parameters(words, &mut policer)?;
    class.unmodelled.extend(number::account(words, &ACTIONS));
    actions(words, &mut policer, &mut class.without_effect)?;
    class.spec.police = Some(policer);
    Ok(())
}

/// `drop`: a policer that lets nothing pass.
pub(super) fn drop_all(words: &mut Words<'_, '_>, class: &mut ClassText) -> Result<(), TextError> {
    let span = words.last_span();
    words.end()?;
    class.once("police", span)?;
    class.spec.police = Some(PolicerSpec {
        conform: Some(Action::Drop),
        exceed: Some(Action::Drop),
        ..PolicerSpec::new(RateSpec::Absolute(RATE_OF_DROP))
    });
    Ok(())
}

/// A line of actions under `police`.
pub(super) fn action_line(
    words: &mut Words<'_, '_>,
    class: &mut ClassText,
) -> Result<(), TextError> {
    match &mut class.spec.police {
        Some(policer) => actions(words, policer, &mut class.without_effect),
        None => Err(words.missing("`police` first")),
    }
}

/// `RATE`, `cir RATE`, `cir percent P`, `percent P`, `rate RATE [bps]` or `rate percent P`.
fn committed_rate(words: &mut Words<'_, '_>) -> Result<RateSpec, TextError> {
    if words.take_if("rate").is_some() {
        return rate_with_unit(words);
    }
    if words.take_if("cir").is_none() && words.peek_number().is_none() {
        if words.take_if("percent").is_some() {
            return number::percent(words);
        }
        return Err(words.missing(RATE_EXPECTED));
    }
    let rate = number::rate_or_percent(words)?;
    in_bits(words).map(|()| rate)
}

/// Refuse packets/s as the unit of a rate.
fn in_bits(words: &Words<'_, '_>) -> Result<(), TextError> {
    match words.peek().filter(|word| word.is("pps")) {
        Some(word) => Err(
            TextError::at(word.span, "rates in packets/s are not supported")
                .unmodelled()
                .expected("a rate in bit/s"),
        ),
        None => Ok(()),
    }
}

/// A rate with the unit that the `rate` form takes.
fn rate_with_unit(words: &mut Words<'_, '_>) -> Result<RateSpec, TextError> {
    let rate = number::rate_or_percent(words)?;
    in_bits(words).map(|()| rate)
}

/// Bursts and the peak rate, in any order, each once; bare numbers are Bc and then Be.
fn parameters(words: &mut Words<'_, '_>, policer: &mut PolicerSpec) -> Result<(), TextError> {
    let percent = matches!(policer.cir, RateSpec::PercentMilli(_));
    let (mut committed, mut excess) = (None, None);
    let mut keyword_seen = false;
    loop {
        let span = words.span();
        let slot = if words.peek_number().is_some() && !keyword_seen {
            if committed.is_none() {
                &mut committed
            } else {
                &mut excess
            }
        } else if words.take_if("bc").is_some() || words.take_if("burst").is_some() {
            &mut committed
        } else if words.take_if("be").is_some() || words.take_if("peak-burst").is_some() {
            &mut excess
        } else if words.take_if("pir").is_some() || words.take_if("peak-rate").is_some() {
            if policer.pir.is_some() {
                return Err(
                    TextError::at(span, "the peak rate is given twice").expected(OPTIONS_EXPECTED)
                );
            }
            policer.pir = Some(peak_rate(words, percent)?);
            keyword_seen = true;
            continue;
        } else {
            break;
        };
        keyword_seen |= span != words.span();
        if slot.is_some() {
            return Err(TextError::at(span, "this burst is given twice").expected(OPTIONS_EXPECTED));
        }
        let place = words.span();
        *slot = Some((number::burst(words, "a burst", 1..=BYTES_MAX)?, place));
    }
    policer.cbs = committed
        .map(|burst| sized(burst, policer.cir))
        .transpose()?;
    let excess = excess.map(|burst| sized(burst, policer.pir.unwrap_or(policer.cir)));
    match policer.pir {
        Some(_) => policer.pbs = excess.transpose()?,
        None => policer.ebs = excess.transpose()?,
    }
    Ok(())
}

fn peak_rate(words: &mut Words<'_, '_>, percent: bool) -> Result<RateSpec, TextError> {
    let expected = if percent {
        "`percent`, as the committed rate is"
    } else {
        "a rate in bit/s, as the committed rate is"
    };
    if words
        .peek()
        .is_none_or(|word| word.is("percent") != percent)
    {
        return Err(words.missing(expected));
    }
    rate_with_unit(words)
}

/// A burst beside `rate`: in bytes or in time; a plain number is of bytes, or of milliseconds where the rate is a
/// percentage, as in IOS.
fn sized((burst, place): (Burst, Span), rate: RateSpec) -> Result<BurstSpec, TextError> {
    let is_percent = matches!(rate, RateSpec::PercentMilli(_));
    let time = match burst {
        Burst::Bytes(size) if !is_percent => return Ok(size.into()),
        Burst::Plain(bytes) if !is_percent => return Ok(ByteCount::new(bytes).into()),
        Burst::Plain(millis) if millis <= BURST_MILLIS_MAX => Some(Duration::from_millis(millis)),
        Burst::Time(time) => Some(time),
        Burst::Bytes(_) | Burst::Plain(_) => None,
    };
    match (time, rate) {
        (Some(time), RateSpec::Absolute(rate)) => Ok(BurstSpec::Time(time).size(rate).into()),
        (Some(time), RateSpec::PercentMilli(_)) if number::is_whole_millis(time) => Ok(time.into()),
        _ => Err(TextError::at(place, "the burst of a percentage is a time")
            .expected(format!("whole milliseconds, 1 to {BURST_MILLIS_MAX}"))
            .help("write `bc N ms`, or the rate in bit/s and the burst in bytes")),
    }
}

/// The rest of a line: an action for each outcome named.
fn actions(
    words: &mut Words<'_, '_>,
    policer: &mut PolicerSpec,
    without_effect: &mut Vec<WithoutEffect>,
) -> Result<(), TextError> {
    while let Some(word) = words.peek() {
        let slot = if word.is("conform-action") {
            &mut policer.conform
        } else if word.is("exceed-action") {
            &mut policer.exceed
        } else if word.is("violate-action") {
            &mut policer.violate
        } else if word.is("conform-color") || word.is("exceed-color") {
            return Err(TextError::at(
                word.span,
                "colour-aware policing by class is not supported",
            )
            .unmodelled()
            .expected(OPTIONS_EXPECTED));
        } else {
            let help = suggestion(word.text, ACTIONS.into_iter());
            return Err(words.missing(OPTIONS_EXPECTED).maybe_help(help));
        };
        words.take();
        if let Some(found) = marks_another_field(words) {
            slot.get_or_insert(Action::Transmit);
            without_effect.push(found);
            continue;
        }
        let action = action(words)?;
        // A packet may be marked in several fields; a marking also transmits it.
        let adds = *slot == Some(Action::Transmit)
            && matches!(action, Action::SetDscp(_) | Action::SetQosGroup(_));
        if slot.is_some() && !adds {
            let message = format!("{} is given twice", quoted(word.text));
            return Err(TextError::at(word.span, message)
                .expected("one action for each outcome")
                .help("a packet gets one code point"));
        }
        *slot = Some(action);
    }
    Ok(())
}

/// The action that comes next, if it marks what no class can match: the packet is transmitted.
fn marks_another_field(words: &mut Words<'_, '_>) -> Option<WithoutEffect> {
    const FIELDS: [&str; 8] = [
        "set-clp-transmit",
        "set-cos-inner-transmit",
        "set-cos-transmit",
        "set-discard-class-transmit",
        "set-frde-transmit",
        "set-mpls-exp-transmit",
        "set-mpls-exp-imposition-transmit",
        "set-mpls-exp-topmost-transmit",
    ];
    let word = words.peek()?;
    let command = FIELDS.into_iter().find(|field| word.is(field))?;
    words.take();
    if words.peek_number().is_some() {
        words.take();
    }
    Some(WithoutEffect {
        command: command.to_owned(),
        why: OTHER_FIELD,
        span: word.span,
    })
}

fn action(words: &mut Words<'_, '_>) -> Result<Action, TextError> {
    #[derive(Clone, Copy)]
    enum Verb {
        Transmit,
        Drop,
        Dscp,
        Precedence,
        QosGroup,
    }
    let verbs = [
        ("transmit", Verb::Transmit),
        ("drop", Verb::Drop),
        ("set-dscp-transmit", Verb::Dscp),
        ("set-prec-transmit", Verb::Precedence),
        ("set-qos-transmit", Verb::QosGroup),
    ];
    Ok(match words.choose(&verbs)? {
        Verb::Transmit => Action::Transmit,
        Verb::Drop => Action::Drop,
        Verb::Dscp => Action::SetDscp(code_point::dscp(words)?),
        Verb::Precedence => {
            Action::SetDscp(code_point::class_selector(code_point::precedence(words)?))
        }
        Verb::QosGroup => Action::SetQosGroup(words.small("a QoS group", 0..=QOS_GROUP_MAX)?),
    })
}
