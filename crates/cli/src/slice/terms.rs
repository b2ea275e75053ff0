//! Terms of a slice in a direction: its options, and the terms that follow from them.

use crate::Failure;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use slicewise_api::{Guarantee, Maximum, Terms};
use slicewise_units::{BitRate, ByteCount, Duration};
use std::str::FromStr;

/// A quantity, or `none` to take it away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrNone<T> {
    Some(T),
    None,
}

impl<T> From<OrNone<T>> for Option<T> {
    fn from(value: OrNone<T>) -> Self {
        match value {
            OrNone::Some(value) => Some(value),
            OrNone::None => None,
        }
    }
}

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        match text {
            "none" => Ok(Self::None),
            quantity => quantity.parse().map(Self::Some),
        }
    }
}

/// Terms of both directions.
#[derive(Debug)]
pub struct TermsOptions {
    pub forward: TermOptions,
    /// The backward direction gets what `forward` says, except for what `backward` says.
    pub both: bool,
    pub backward: TermOptions,
}

/// An option that takes a value.
fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Defines the options of both directions: field, type, name, value and help of each, forward and backward.
macro_rules! term_options {
    ($($field:ident: $type:ty, $name:literal, $value:literal, $forward:literal, $backward:literal;)*) => {
        /// Terms of a direction, as far as options state them.
        #[derive(Debug, Clone, Copy, Default)]
        pub struct TermOptions {
            $(pub $field: Option<$type>,)*
        }

        impl TermOptions {
            /// Returns these, and where they say nothing, `other`.
            pub fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field),)* }
            }

            pub const fn says_nothing(&self) -> bool {
                true $(&& self.$field.is_none())*
            }
        }

        impl Args for TermsOptions {
            fn augment_args(command: Command) -> Command {
                let both = Arg::new("both").long("both").action(ArgAction::SetTrue);
                let both = both.help("Promise the same in the backward direction, except for what the following options say");
                command
                    $(.arg(option($name, $value, $forward).value_parser(value_parser!($type))))*
                    .arg(both)
                    $(.arg(option(concat!("backward-", $name), $value, $backward).value_parser(value_parser!($type))))*
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }

        impl FromArgMatches for TermsOptions {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self {
                    forward: TermOptions { $($field: matches.get_one($name).copied(),)* },
                    both: matches.get_flag("both"),
                    backward: TermOptions { $($field: matches.get_one(concat!("backward-", $name)).copied(),)* },
                })
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

term_options! {
    rate: OrNone<BitRate>, "rate", "RATE", "Guaranteed rate, as \"10 Mbit/s\"", "Guaranteed rate of the backward direction";
    burst: ByteCount, "burst", "SIZE", "Guaranteed burst, as \"15 kB\" [default: two of the largest frames of the links]", "Its burst";
    delay: OrNone<Duration>, "delay", "TIME", "Delay objective from end to end, as \"2 ms\"", "Its delay objective";
    smallest_frame: ByteCount, "smallest-frame", "SIZE",
        "Smallest frame: smaller ones are charged as this, so that less of a link that counts preambles has to be reserved", "Its smallest frame";
    maximum: OrNone<BitRate>, "maximum", "RATE", "The most it may send, as \"20 Mbit/s\"", "The most it may send in the backward direction";
    maximum_burst: ByteCount, "maximum-burst", "SIZE", "Burst of the maximum [default: the guaranteed burst, or two of the largest frames]", "Its burst";
    weight: u32, "weight", "N", "Weight of its share of the excess", "Its weight";
}

impl TermOptions {
    /// Changes `terms` by these. `usual` is the burst where none is given; `prefix` that of the options.
    ///
    /// # Errors
    /// An option that needs another one.
    pub fn apply(
        &self,
        terms: &mut Option<Terms>,
        usual: u64,
        prefix: &str,
    ) -> Result<(), Failure> {
        if self.says_nothing() {
            return Ok(());
        }
        let terms = terms.get_or_insert_with(Terms::default);
        if let Some(weight) = self.weight {
            terms.weight = weight;
        }
        match self.rate {
            Some(OrNone::None) => terms.guarantee = None,
            Some(OrNone::Some(rate)) => {
                let guarantee = terms.guarantee.get_or_insert(Guarantee {
                    burst_bytes: usual,
                    ..Guarantee::default()
                });
                guarantee.rate_bps = rate.bits_per_second();
            }
            None => {}
        }
        let needs = |option: &str, other: &str| {
            Failure::mistake(format!(
                "`{prefix}{option}` needs a rate: add `{prefix}{other} RATE`"
            ))
        };
        if let Some(burst) = self.burst {
            let guarantee = terms.guarantee.as_mut();
            guarantee.ok_or_else(|| needs("burst", "rate"))?.burst_bytes = burst.bytes();
        }
        if let Some(delay) = self.delay {
            let guarantee = terms.guarantee.as_mut();
            guarantee.ok_or_else(|| needs("delay", "rate"))?.delay_ns = match delay {
                OrNone::Some(delay) => Some(delay.nanos()),
                OrNone::None => None,
            };
        }
        if let Some(frame) = self.smallest_frame {
            let guarantee = terms.guarantee.as_mut();
            let guarantee = guarantee.ok_or_else(|| needs("smallest-frame", "rate"))?;
            guarantee.smallest_frame_bytes = Some(frame.bytes());
        }
        let burst = terms.guarantee.map_or(usual, |one| one.burst_bytes);
        match self.maximum {
            Some(OrNone::None) => terms.maximum = None,
            Some(OrNone::Some(rate)) => {
                let maximum = terms.maximum.get_or_insert(Maximum {
                    rate_bps: 0,
                    burst_bytes: burst,
                });
                maximum.rate_bps = rate.bits_per_second();
            }
            None => {}
        }
        if let Some(burst) = self.maximum_burst {
            let maximum = terms.maximum.as_mut();
            maximum
                .ok_or_else(|| needs("maximum-burst", "maximum"))?
                .burst_bytes = burst.bytes();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_without_a_rate_is_refused_and_the_default_is_two_frames() {
        let burst = TermOptions {
            burst: Some(ByteCount::new(1)),
            ..TermOptions::default()
        };
        let error = burst.apply(&mut None, 3028, "--backward-").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`--backward-burst` needs a rate: add `--backward-rate RATE`"
        );
        let rate = TermOptions {
            rate: Some(OrNone::Some(BitRate::new(9))),
            ..TermOptions::default()
        };
        let mut terms = None;
        rate.apply(&mut terms, 3028, "--").unwrap();
        assert_eq!(terms.unwrap().guarantee.unwrap().burst_bytes, 3028);
    }
}
