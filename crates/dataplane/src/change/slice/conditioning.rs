//! Traffic conditioning of a slice: what happens to its frames before they are queued.

use super::{Changing, SliceChangeError, SliceChanged};
use crate::build::Ingress;
use crate::change::terms::Conditioning;
use crate::meter::policer::PolicerState;

impl Changing<'_> {
    /// Other conditioning for a slice. A policer keeps the credit or debt of the one before, if the algorithm is the same.
    pub(super) fn change_conditioning(
        &mut self,
        name: &str,
        conditioning: Conditioning,
    ) -> Result<SliceChanged, SliceChangeError> {
        let (class, _) = self.find(name)?;
        let ingress = self.ingress(class, name, &conditioning);
        let state = &mut self.path.built.classes[class as usize];
        let mut special = state.special.take().unwrap_or_default();
        special.ingress = ingress;
        state.special = special.boxed();
        self.ledger.slice_mut(class).set_conditioning(conditioning);
        self.own.version += 1;
        Ok(SliceChanged { class, waiting: 0 })
    }

    /// The steps at ingress of a class, whose policer is the one that it has now, if it has one.
    pub(super) fn ingress(
        &mut self,
        class: u32,
        name: &str,
        conditioning: &Conditioning,
    ) -> Vec<Ingress> {
        let mark = conditioning.set_dscp.map(Ingress::SetDscp);
        let Some(params) = &conditioning.police else {
            self.free_policer(class);
            return mark.into_iter().collect();
        };
        let before = self.policer(class);
        let now = self.now;
        let mut policer = PolicerState::new(params, now);
        let policers = &mut self.path.built.policers;
        if let Some(before) = before
            && let Some((_, before)) = policers.get(before as usize)
        {
            policer.resume_from(before, now);
        }
        let index = before.or_else(|| self.ledger.free_policers.pop());
        let index = index.unwrap_or_else(|| u32::try_from(policers.len()).unwrap_or(u32::MAX));
        let policer = (name.to_owned(), policer);
        match policers.get_mut(index as usize) {
            Some(place) => *place = policer,
            None => policers.push(policer),
        }
        mark.into_iter().chain([Ingress::Police(index)]).collect()
    }

    /// The policer of a class, if it has one, is free for another.
    pub(super) fn free_policer(&mut self, class: u32) {
        let freed = self.policer(class);
        self.ledger.free_policers.extend(freed);
        if let Some(freed) = freed
            && let Some((path, _)) = self.path.built.policers.get_mut(freed as usize)
        {
            // A whole policy would find it by that.
            path.clear();
        }
    }

    /// Where the policer of a class is, if it has one.
    pub(super) fn policer(&self, class: u32) -> Option<u32> {
        let state = self.path.built.classes.get(class as usize)?;
        let mut ingress = state.special.as_ref()?.ingress.iter();
        ingress.find_map(|step| match step {
            Ingress::Police(index) => Some(*index),
            Ingress::SetDscp(_) | Ingress::Removed => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Pipeline, PipelineParams, SliceChange};
    use slicewise_model::{
        ClassMap, ClassSpec, Condition, Discipline, MatchMode, PolicerSpec, PolicyParams,
        PolicySpec, RateSpec,
    };
    use slicewise_units::{BitRate, Instant};

    fn policed(vlans: std::ops::Range<u16>) -> PolicyParams {
        let class = |vlan: u16| ClassSpec {
            police: Some(PolicerSpec::new(RateSpec::Absolute(BitRate::new(
                1_000_000,
            )))),
            ..ClassSpec::new(ClassMap {
                name: format!("vlan{vlan}"),
                mode: MatchMode::All,
                conditions: vec![Condition::OuterVlan(vlan..=vlan)],
            })
        };
        let spec = PolicySpec {
            name: "policed".to_owned(),
            classes: vlans.map(class).collect(),
            discipline: Discipline::Guaranteed,
            guaranteed: None,
            queues: Vec::new(),
        };
        spec.resolve(BitRate::new(10_000_000)).unwrap()
    }

    #[test]
    fn the_place_of_a_policer_is_used_again() {
        let params = PipelineParams {
            policy: policed(1..1),
            port_shaper: None,
            seed: 1,
        };
        let mut pipeline = Pipeline::new(&params, Instant::ZERO).unwrap();
        for first in 1..10 {
            let steps = pipeline.basis().diff(&policed(first..first + 3));
            for step in steps.unwrap() {
                let crate::Step::Slice(change) = step else {
                    panic!("{step:?}")
                };
                pipeline.change_slice(change, Instant::ZERO).unwrap();
            }
            let kept = SliceChange::Conditioning {
                name: format!("vlan{first}"),
                conditioning: Box::default(),
            };
            pipeline.change_slice(kept, Instant::ZERO).unwrap();
        }
        assert_eq!(pipeline.path.built.policers.len(), 3);
    }
}
