//! Policies given as slice requests of P4-TINS.

use super::Checker;
use super::foreign::ForeignPlace;
use super::policies::Understood;
use crate::spec::{At, Verbatim};
use slicewise_formats::p4_tins::{self, DataPlane};

impl Checker<'_> {
    /// What `plane` runs for the requests of `text`.
    pub(super) fn p4_tins_policy(
        &mut self,
        name: &At<String>,
        text: &At<Verbatim>,
        plane: DataPlane,
    ) -> Option<Understood> {
        let text = self.foreign_text(text)?;
        let requests = match p4_tins::parse(&text.text) {
            Ok(requests) => requests,
            Err(errors) => {
                self.report_foreign(&text, errors);
                return None;
            }
        };
        let policy = requests.policy(plane);
        self.note_foreign(&text, policy.notes);
        let places = policy.places.into_iter().map(|(class, at)| ForeignPlace {
            class,
            field: "police",
            at,
        });
        Some(Understood::foreign(
            name,
            policy.spec,
            text,
            places.collect(),
        ))
    }
}
