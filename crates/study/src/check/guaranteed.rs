//! Guarantees with a delay bound, of policies and of plans.

use super::Checker;
use crate::file::Span;
use crate::spec::{GuaranteeFileSpec, GuaranteedFileSpec, MaximumFileSpec, Share, Short, Text};
use slicewise_model::{GuaranteeSpec, GuaranteedSpec, MaximumSpec};

impl GuaranteedFileSpec {
    /// Where the setting that the model calls `field` is written.
    pub(super) fn place(&self, field: &str) -> Option<Span> {
        match field {
            "largest_frame" => self.largest_frame.as_ref().map(Text::span),
            "buffer" => self.buffer.as_ref().map(Text::span),
            "tenants" => self.tenants.0.first().map(|(name, _)| name.span()),
            "delays" => {
                let delays = self.delays.as_ref()?;
                let text = delays.shortest.as_ref().or(delays.longest.as_ref());
                text.map(Text::span)
            }
            _ => None,
        }
    }
}

impl Checker<'_> {
    /// What slices have in common, with its defaults; `None` where some of it cannot be read.
    pub(super) fn guaranteed(&mut self, spec: &GuaranteedFileSpec) -> Option<GuaranteedSpec> {
        let default = GuaranteedSpec::default();
        let accounting = self.accounting(spec.counts.as_ref());
        let largest_frame = self.optional(spec.largest_frame.as_ref());
        let delays = spec.delays.clone().unwrap_or_default();
        let shortest = self.optional(delays.shortest.as_ref());
        let longest = self.optional(delays.longest.as_ref());
        let buffer = self.optional(spec.buffer.as_ref());
        self.names(&spec.tenants);
        let mut tenants = Some(Vec::new());
        for (name, weight) in spec.tenants.iter() {
            let weight = weight.read(self.problems).filter(|read| {
                if *read == 0 {
                    let message = "a tenant needs a weight of at least 1";
                    self.problems.add(weight.span(), message);
                }
                *read > 0
            });
            match (weight, &mut tenants) {
                (Some(weight), Some(tenants)) => tenants.push((name.text().to_owned(), weight)),
                _ => tenants = None,
            }
        }
        Some(GuaranteedSpec {
            accounting,
            largest_frame: largest_frame?.unwrap_or(default.largest_frame),
            shortest_delay: shortest?.unwrap_or(default.shortest_delay),
            longest_delay: longest?.unwrap_or(default.longest_delay),
            tenants: tenants?,
            buffer: buffer?,
        })
    }

    pub(super) fn guarantee(
        &mut self,
        guarantee: &Short<Share, GuaranteeFileSpec>,
    ) -> Option<GuaranteeSpec> {
        let spec = match guarantee {
            Short::Value(text) => {
                return Some(GuaranteeSpec {
                    rate: self.share(text)?,
                    burst: None,
                    delay: None,
                });
            }
            Short::Settings(spec) => spec,
        };
        let rate = self.share(&spec.rate);
        let burst = self.burst(spec.burst.as_ref());
        let delay = self.optional(spec.delay.as_ref());
        Some(GuaranteeSpec {
            rate: rate?,
            burst: burst?,
            delay: delay?,
        })
    }

    pub(super) fn maximum(
        &mut self,
        maximum: &Short<Share, MaximumFileSpec>,
    ) -> Option<MaximumSpec> {
        let spec = match maximum {
            Short::Value(text) => {
                return Some(MaximumSpec {
                    rate: self.share(text)?,
                    burst: None,
                });
            }
            Short::Settings(spec) => spec,
        };
        let rate = self.share(&spec.rate);
        let burst = self.burst(spec.burst.as_ref());
        Some(MaximumSpec {
            rate: rate?,
            burst: burst?,
        })
    }
}
