//! Policies given as commands of Open vSwitch.

use super::Checker;
use super::foreign::ForeignPlace;
use super::policies::Understood;
use crate::spec::{At, Verbatim};
use slicewise_formats::ovs;
use slicewise_units::BitRate;

impl Checker<'_> {
    /// What the queues and rules of `text` make of a link of rate `link`.
    pub(super) fn ovs_policy(
        &mut self,
        name: &At<String>,
        text: &At<Verbatim>,
        link: BitRate,
    ) -> Option<Understood> {
        let text = self.foreign_text(text)?;
        let policy = match ovs::read(&text.text, link) {
            Ok(policy) => policy,
            Err(errors) => {
                self.report_foreign(&text, errors);
                return None;
            }
        };
        self.note_foreign(&text, policy.notes);
        let places = policy.places.into_iter().map(|place| ForeignPlace {
            class: place.name,
            field: place.field,
            at: place.span,
        });
        Some(Understood::foreign(
            name,
            policy.spec,
            text,
            places.collect(),
        ))
    }
}
