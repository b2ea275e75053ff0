//! Another name for a slice.

use super::{Changing, SliceChangeError, SliceChanged};
use crate::build::ClassState;

impl Changing<'_> {
    /// The class of a slice that can get another name.
    pub(super) fn check_rename(&mut self, name: &str, to: &str) -> Result<u32, SliceChangeError> {
        let (class, _) = self.check_remove(name)?;
        self.check_name(to)?;
        let retired = self.pipeline.retired.get(to).copied();
        let retired = retired.and_then(|retired| self.pipeline.classes.get(retired as usize));
        let frames = retired.map_or(0, |retired| retired.counters.queued_frames);
        if frames > 0 {
            let name = to.to_owned();
            return Err(SliceChangeError::Draining { name, frames });
        }
        Ok(class)
    }

    pub(super) fn rename(
        &mut self,
        name: &str,
        to: String,
    ) -> Result<SliceChanged, SliceChangeError> {
        let class = self.check_rename(name, &to)?;
        // By its name, a whole policy finds it.
        if let Some(policer) = self.policer(class)
            && let Some((path, _)) = self.pipeline.policers.get_mut(policer as usize)
        {
            path.clone_from(&to);
        }
        self.ledger.rename(class, &to);
        let retired = self.pipeline.retired.remove(&to);
        let classes = &mut self.pipeline.classes;
        if let Some(state) = classes.get_mut(class as usize) {
            state.counters.class = to;
        }
        // What a class of this name has counted is kept that a whole policy has removed.
        if let Some(retired) = retired
            && let Some(place) = classes.get_mut(retired as usize)
        {
            let before = std::mem::replace(place, ClassState::unused());
            self.ledger.free.push(retired);
            if let Some(state) = classes.get_mut(class as usize) {
                state.counters.absorb(&before.counters);
            }
        }
        self.pipeline.version += 1;
        Ok(SliceChanged { class, waiting: 0 })
    }
}
