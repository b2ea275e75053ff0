//! State that the engine keeps of each class: its share of the memory, and how long its frames waited.

use crate::frame_memory::{ShareId, Wanted};
use crate::histogram::Histogram;
use slicewise_units::Duration;

/// Histograms per segment.
const SEGMENT: usize = 256;
/// No place.
const NOWHERE: u32 = u32::MAX;

/// By the number of its class.
#[derive(Debug, Default)]
pub(super) struct PerClass {
    classes: Vec<OfClass>,
    /// Of the classes that have sent a frame, in segments, all full but the last: what is there does not move when one is added.
    delays: Vec<Vec<Histogram>>,
    /// Places of histograms that no class has.
    free: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct OfClass {
    /// None if the class was removed.
    share: Option<ShareId>,
    /// Place of its histogram; [`NOWHERE`] while it has sent nothing.
    delays: u32,
}

impl OfClass {
    const NONE: Self = Self {
        share: None,
        delays: NOWHERE,
    };
}

impl PerClass {
    /// For so many classes, without shares.
    pub(super) fn new(classes: usize) -> Self {
        Self {
            classes: vec![OfClass::NONE; classes],
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    #[inline]
    pub(super) fn share(&self, class: u32) -> Option<ShareId> {
        self.classes.get(class as usize)?.share
    }

    /// A class has no share any more.
    pub(super) fn take_share(&mut self, class: u32) -> Option<ShareId> {
        self.classes.get_mut(class as usize)?.share.take()
    }

    /// A class begins, which has this share.
    pub(super) fn begin(&mut self, class: u32, share: ShareId) {
        self.forget(class);
        self.go_on(class, share);
    }

    /// A class that had been removed goes on with this share.
    pub(super) fn go_on(&mut self, class: u32, share: ShareId) {
        let index = class as usize;
        if self.classes.len() <= index {
            self.classes.resize(index + 1, OfClass::NONE);
        }
        if let Some(place) = self.classes.get_mut(index) {
            place.share = Some(share);
        }
    }

    /// How long frames of a class waited is needed no longer.
    fn forget(&mut self, class: u32) {
        if let Some(place) = self.classes.get_mut(class as usize) {
            let before = std::mem::replace(place, OfClass::NONE);
            self.release(before);
        }
    }

    /// A frame of a class has waited for so long.
    #[inline]
    pub(super) fn record(&mut self, class: u32, delay: Duration) {
        let place = self.place_of(class);
        if let Some(delays) = place.and_then(|place| self.at_mut(place)) {
            delays.record(delay);
        }
    }

    /// Where the histogram of a class is.
    #[inline]
    fn place_of(&mut self, class: u32) -> Option<u32> {
        let place = self.classes.get(class as usize)?.delays;
        Some(if place == NOWHERE {
            self.take_place(class)
        } else {
            place
        })
    }

    #[inline]
    fn at_mut(&mut self, place: u32) -> Option<&mut Histogram> {
        let place = place as usize;
        self.delays
            .get_mut(place / SEGMENT)?
            .get_mut(place % SEGMENT)
    }

    /// How long frames of a class waited.
    pub(super) fn delays(&self, class: u32) -> &Histogram {
        static NOTHING: Histogram = Histogram::EMPTY;
        let class = self.classes.get(class as usize);
        let place = class.map(|class| class.delays);
        let place = place.filter(|&place| place != NOWHERE);
        let delays = place.and_then(|place| {
            let place = place as usize;
            self.delays.get(place / SEGMENT)?.get(place % SEGMENT)
        });
        delays.unwrap_or(&NOTHING)
    }

    /// Classes have other numbers: for each that there was, in order, that from here on. No two have one.
    pub(super) fn renumber(&mut self, classes: usize, numbers: impl Iterator<Item = Option<u32>>) {
        let none = vec![OfClass::NONE; classes];
        let before = std::mem::replace(&mut self.classes, none);
        for (class, number) in before.into_iter().zip(numbers) {
            let place = number.and_then(|number| self.classes.get_mut(number as usize));
            match place {
                Some(place) => {
                    debug_assert_eq!((place.share, place.delays), (None, NOWHERE));
                    *place = class;
                }
                None => self.release(class),
            }
        }
    }

    /// Let the queues of a direction go on with the shares that their classes have.
    pub(super) fn offer_shares(&self, queues: &[Option<u32>], wanted: &mut [Wanted]) {
        for (class, queue) in self.classes.iter().zip(queues) {
            let wanted = queue.and_then(|queue| wanted.get_mut(queue as usize));
            if let Some(wanted) = wanted {
                wanted.share = wanted.share.or(class.share);
            }
        }
    }

    /// Let the classes of a direction have the shares of their queues. Slices that were added keep theirs. Those behind were removed,
    /// and only have frames that wait.
    pub(super) fn set_shares(&mut self, queues: &[Option<u32>], wanted: &[Wanted]) {
        for (class, queue) in self.classes.iter_mut().zip(queues) {
            let wanted = queue.and_then(|queue| wanted.get(queue as usize));
            if let Some(wanted) = wanted {
                class.share = wanted.share;
            }
        }
        for class in self.classes.iter_mut().skip(queues.len()) {
            class.share = None;
        }
    }

    /// The histogram of a class is needed no longer.
    fn release(&mut self, class: OfClass) {
        if class.delays != NOWHERE {
            self.free.push(class.delays);
        }
    }

    /// A class sends its first frame.
    #[cold]
    fn take_place(&mut self, class: u32) -> u32 {
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(delays) = self.at_mut(place) {
                    *delays = Histogram::EMPTY;
                }
                place
            }
            None => self.add_place(),
        };
        if let Some(class) = self.classes.get_mut(class as usize) {
            class.delays = place;
        }
        place
    }

    fn add_place(&mut self) -> u32 {
        if self.delays.last().is_none_or(|last| last.len() == SEGMENT) {
            self.delays.push(Vec::with_capacity(SEGMENT));
        }
        let full = self.delays.len().saturating_sub(1);
        let Some(last) = self.delays.last_mut() else {
            return NOWHERE;
        };
        last.push(Histogram::EMPTY);
        u32::try_from(full * SEGMENT + last.len() - 1).unwrap_or(NOWHERE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_memory::Shares;
    use proptest::prelude::*;

    /// A share that no other class has.
    fn share() -> impl FnMut() -> ShareId {
        let mut shares = Shares::default();
        move || shares.add("a class", 1)
    }

    #[derive(Debug, Clone)]
    enum Event {
        Begin(u32),
        Record(u32),
        End(u32),
        GoOn(u32),
        /// So many classes, and the number of each that there was; no two have one.
        Renumber(usize, Vec<Option<u32>>),
    }

    fn event() -> impl Strategy<Value = Event> {
        let class = 0u32..6;
        let numbers = Just((0u32..9).map(Some).collect::<Vec<_>>()).prop_shuffle();
        let numbers = numbers.prop_map(|numbers| {
            let kept = numbers
                .into_iter()
                .map(|number| number.filter(|&number| number < 6));
            kept.collect()
        });
        prop_oneof![
            2 => class.clone().prop_map(Event::Begin),
            4 => class.clone().prop_map(Event::Record),
            1 => class.clone().prop_map(Event::End),
            1 => class.prop_map(Event::GoOn),
            1 => (6usize..9, numbers).prop_map(|(n, to)| Event::Renumber(n, to)),
        ]
    }

    proptest! {
        /// Compared with a list of what each class has.
        #[test]
        fn each_class_has_what_is_its_own_whatever_its_number(events in prop::collection::vec(event(), 1..80)) {
            let mut share = share();
            let mut all = PerClass::new(6);
            let mut expected: Vec<(Option<ShareId>, u64)> = vec![(None, 0); 6];
            for event in events {
                match event {
                    Event::Begin(class) => {
                        let share = share();
                        all.begin(class, share);
                        expected[class as usize] = (Some(share), 0);
                    }
                    Event::Record(class) => {
                        all.record(class, Duration::from_micros(1));
                        expected[class as usize].1 += 1;
                    }
                    Event::End(class) => {
                        let ended = expected[class as usize].0.take();
                        prop_assert_eq!(all.take_share(class), ended);
                    }
                    Event::GoOn(class) => {
                        let share = share();
                        all.go_on(class, share);
                        expected[class as usize].0 = Some(share);
                    }
                    Event::Renumber(classes, numbers) => {
                        all.renumber(classes, numbers.iter().copied());
                        let mut after = vec![(None, 0); classes];
                        for (class, number) in expected.iter().zip(numbers) {
                            if let Some(number) = number {
                                after[number as usize] = *class;
                            }
                        }
                        expected = after;
                    }
                }
                prop_assert_eq!(all.len(), expected.len());
                for (class, (share, count)) in (0..).zip(&expected) {
                    prop_assert_eq!(all.share(class), *share);
                    prop_assert_eq!(all.delays(class).count(), *count);
                }
                let places: usize = all.delays.iter().map(Vec::len).sum();
                let in_use = expected.iter().filter(|(_, count)| *count > 0).count();
                prop_assert_eq!(places - all.free.len(), in_use, "none is lost");
            }
        }
    }

    #[test]
    fn segments_follow_each_other() {
        let most = 2 * u32::try_from(SEGMENT).unwrap();
        let mut all = PerClass::new(2 * SEGMENT + 1);
        for class in (0..=most).rev() {
            all.record(class, Duration::from_nanos(class.into()));
        }
        assert!((0..=most).all(|class| all.delays(class).sum().nanos() == u64::from(class)));
        assert_eq!(all.delays(most + 1).count(), 0, "there is no such class");
    }
}
