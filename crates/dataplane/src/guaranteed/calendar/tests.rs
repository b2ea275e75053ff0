//! The calendar against a list that is searched from end to end.

use super::*;
use crate::guaranteed::Guaranteed;
use proptest::prelude::*;
use slicewise_model::{QueueLimitParams, SliceParams};
use slicewise_units::ByteCount;

const SLICES: u32 = 24;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Put a slice so many buckets after now.
    Insert(u32, u64),
    Remove(u32),
    /// Take what is due so many buckets after now.
    Pop(u64),
    /// Time goes on.
    Advance(u64),
}

fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![0..8u64, PLACE - 8..PLACE + 8, 0..3 * PLACE]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..SLICES, distance()).prop_map(|(id, ahead)| Step::Insert(id, ahead)),
        2 => (0..SLICES).prop_map(Step::Remove),
        2 => distance().prop_map(Step::Pop),
        1 => distance().prop_map(Step::Advance),
    ]
}

/// Slices by bucket, in the order in which they came.
#[derive(Default)]
struct Model {
    slices: Vec<(u64, u32)>,
    last: u64,
}

impl Model {
    fn first(&self) -> Option<u64> {
        self.slices.iter().map(|&(number, _)| number).min()
    }

    fn insert(&mut self, id: u32, number: u64, now: u64) {
        let mut number = number.min(now + PLACE);
        match self.first() {
            None => self.last = number,
            Some(first) => number = number.clamp(self.last.saturating_sub(PLACE), first + PLACE),
        }
        self.last = self.last.max(number);
        self.slices.push((number, id));
    }

    fn until(&self, number: u64) -> Vec<u32> {
        let mut due: Vec<_> = self.slices.clone();
        due.retain(|&(at, _)| at <= number);
        due.sort_by_key(|&(at, _)| at);
        due.into_iter().map(|(_, id)| id).collect()
    }

    fn remove(&mut self, id: u32) {
        self.slices.retain(|&(_, other)| other != id);
    }

    fn number_of(&self, id: u32) -> Option<u64> {
        let found = self.slices.iter().find(|&&(_, other)| other == id);
        found.map(|&(number, _)| number)
    }
}

fn slices() -> Slots<SliceState> {
    let params = SliceParams {
        guarantee: None,
        maximum: None,
        weight: 1,
        tenant: 0,
        queue_limit: QueueLimitParams {
            packets: 1,
            bytes: ByteCount::new(1),
            hysteresis: 0,
        },
    };
    let mut slices = Slots::with_capacity(2);
    (0..SLICES).for_each(|_| slices.push(SliceState::new(&params, 0)));
    slices
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn slices_leave_by_bucket_and_within_one_in_order_of_arrival(
        steps in prop::collection::vec(step(), 1..200)
    ) {
        let mut calendar = Calendar::<TimerChain>::new(0);
        let (mut slices, mut model, mut now) = (slices(), Model::default(), 0);
        for step in steps {
            match step {
                Step::Insert(id, ahead) if model.number_of(id).is_none() => {
                    calendar.insert(&mut slices, id, now + ahead, now);
                    model.insert(id, now + ahead, now);
                    let number = calendar.number_of(&slices[id as usize].timer);
                    prop_assert_eq!(Some(number), model.number_of(id));
                }
                Step::Remove(id) if model.number_of(id).is_some() => {
                    calendar.remove(&mut slices, id);
                    model.remove(id);
                }
                Step::Insert(..) | Step::Remove(_) => {}
                Step::Pop(ahead) => {
                    let due = model.until(now + ahead).first().copied();
                    prop_assert_eq!(calendar.pop_until(&mut slices, now + ahead), due);
                    due.into_iter().for_each(|id| model.remove(id));
                }
                Step::Advance(by) => now += by,
            }
            prop_assert_eq!(calendar.next_time(), model.first());
            prop_assert_eq!(calendar.front(), model.until(u64::MAX).first().copied());
        }
    }
}

#[test]
fn a_calendar_takes_two_words_of_32_bits_and_a_bit_for_each_bucket() {
    let bytes = (1 << 18) * 8 + (1 << 18) / 8;
    assert_eq!(Guaranteed::bytes_of_calendars(), 3 * bytes);
}
