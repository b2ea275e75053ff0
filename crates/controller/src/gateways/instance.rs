//! Which process of a name is the gateway.

use crate::refusal::Refusal;
use crate::store::{EventNote, Failed, Row, RowExt, Tx};
use slicewise_api::{EventKind, Problem};

/// The process that a request comes from, as far as it says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instance(pub(crate) Option<String>);

/// The kind of the refusal of a second process.
const KIND: &str = "gateway-taken";

impl Instance {
    fn is_other(&self, known: &Row) -> Result<bool, sqlx::Error> {
        let known = known.maybe_text("instance")?;
        Ok(known.is_some_and(|known| self.0.as_ref().is_some_and(|own| *own != known)))
    }

    /// What another process of this name asks and says does not count.
    pub(super) fn check(&self, gateway: &str, known: &Row) -> Result<(), Failed> {
        match self.is_other(known)? {
            true => Err(refusal(gateway).into()),
            false => Ok(()),
        }
    }

    /// As long as one of this name is connected, another one does not take its place.
    pub(super) fn may_announce(&self, gateway: &str, known: &Row) -> Result<(), Failed> {
        match self.is_other(known)? && known.integer("connected")? != 0 {
            true => Err(refusal(gateway).into()),
            false => Ok(()),
        }
    }

    /// Note that this process was refused because of another one, if that is why. Whether it was.
    pub(super) async fn note_refused(
        &self,
        tx: &mut Tx,
        gateway: &str,
        problem: &Problem,
    ) -> Result<bool, Failed> {
        let Some(own) = self.0.clone().filter(|_| problem.kind.ends_with(KIND)) else {
            return Ok(false);
        };
        let update = "UPDATE gateways SET rival = $1 WHERE name = $2 AND rival <> $1";
        let update = sqlx::query(update).bind(own).bind(gateway.to_owned());
        if update.execute(tx.connection()).await?.rows_affected() > 0 {
            let note = EventNote {
                gateway: gateway.to_owned(),
                reason: problem.detail.clone(),
                ..EventNote::default()
            };
            tx.note(EventKind::AnnouncementRefused, note).await?;
        }
        Ok(true)
    }
}

fn refusal(gateway: &str) -> Refusal {
    let detail = format!(
        "another gateway of the name `{gateway}` is connected: give each gateway a name of its own; one that has lost its state file, or \
         replaces the other, is taken 10 s after the other was heard of last"
    );
    Refusal::new(409, KIND, "Another gateway has this name", detail)
}
