#![expect(clippy::cast_possible_truncation, reason = "positions of a test")]

use super::*;
use proptest::prelude::*;

/// The obvious model: the fate of each position by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    sent_at: u64,
    sacked: bool,
    lost: bool,
    resent: bool,
    was_resent: bool,
}

#[derive(Debug, Default)]
struct Model {
    una: usize,
    positions: Vec<Position>,
}

impl Model {
    fn open(&self) -> &[Position] {
        &self.positions[self.una..]
    }

    fn count(&self, of: fn(&Position) -> bool) -> u64 {
        self.open().iter().filter(|position| of(position)).count() as u64
    }

    fn next_lost(&self) -> Option<usize> {
        let open = self.open().iter();
        let mut lost = open.enumerate().filter(|(_, p)| p.lost && !p.resent);
        lost.next().map(|(index, _)| self.una + index)
    }

    /// RFC 8985, section 6.2, step 5, position by position.
    fn lose(&mut self, newest: (u64, usize), before: u64) {
        for (index, position) in self.positions.iter_mut().enumerate().skip(self.una) {
            let is_open = !position.sacked && position.resent == position.lost;
            let is_earlier = (position.sent_at, index + 1) <= newest;
            if is_open && is_earlier && position.sent_at <= before {
                (position.lost, position.resent) = (true, false);
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Send(u64),
    Acknowledge(u64),
    Sack(u64, u64),
    LoseSentBefore(u64),
    TimeOut(u64),
    LoseNothing,
    Resend(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..12).prop_map(Step::Send),
        3 => (0u64..12).prop_map(Step::Acknowledge),
        6 => (0u64..40, 1u64..8).prop_map(|(start, bytes)| Step::Sack(start, bytes)),
        4 => (0u64..8).prop_map(Step::LoseSentBefore),
        1 => (0u64..8).prop_map(Step::TimeOut),
        1 => Just(Step::LoseNothing),
        6 => (1u64..6).prop_map(Step::Resend),
    ]
}

const fn at(time: u64) -> Instant {
    Instant::from_nanos(time)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn agrees_with_the_fate_of_each_position(steps in prop::collection::vec(step(), 1..120)) {
        let (mut board, mut model) = (Scoreboard::default(), Model::default());
        for (time, step) in (1u64..).zip(steps) {
            let mut delivered = Delivered::default();
            let before: u64 = model.count(|p| !p.sacked);
            match step {
                Step::Send(bytes) => {
                    board.send(bytes, at(time));
                    let sent = Position { sent_at: time, sacked: false, lost: false, resent: false, was_resent: false };
                    model.positions.extend((0..bytes).map(|_| sent));
                }
                Step::Acknowledge(bytes) => {
                    let una = (model.una + bytes as usize).min(model.positions.len());
                    board.acknowledge(una as u64, &mut delivered);
                    model.una = una;
                    prop_assert_eq!(delivered.bytes, before - model.count(|p| !p.sacked));
                }
                Step::Sack(start, bytes) => {
                    let start = model.una + start as usize;
                    let end = (start + bytes as usize).min(model.positions.len());
                    if start < end {
                        board.sack(start as u64, end as u64, &mut delivered);
                        for position in &mut model.positions[start..end] {
                            (position.sacked, position.lost, position.resent) = (true, false, false);
                        }
                    }
                    prop_assert_eq!(delivered.bytes, before - model.count(|p| !p.sacked));
                }
                Step::LoseSentBefore(ago) => {
                    // What was delivered last is something sacked, as with RACK.
                    let sacked = model.positions.iter().enumerate().filter(|(_, p)| p.sacked);
                    let newest = sacked.map(|(index, p)| (p.sent_at, index + 1)).max();
                    if let Some((sent_at, end)) = newest {
                        let limit = time.saturating_sub(ago);
                        let newest = Newest { sent_at: at(sent_at), end: end as u64, was_resent: false, is_sacked: true };
                        let lost = model.count(|p| p.lost && !p.resent);
                        model.lose((sent_at, end), limit);
                        let (bytes, _) = board.lose(newest, |sent_at| sent_at.nanos() <= limit);
                        prop_assert_eq!(bytes, model.count(|p| p.lost && !p.resent) - lost);
                    }
                }
                Step::TimeOut(ago) => {
                    let limit = time.saturating_sub(ago);
                    board.lose_on_timeout(|sent_at| sent_at.nanos() <= limit);
                    let una = model.una;
                    let unsacked = || model.positions.iter().skip(una).filter(|p| !p.sacked);
                    let first = unsacked().next().map(|p| p.sent_at);
                    let positions = model.positions.iter_mut().skip(una);
                    for position in positions.filter(|p| !p.sacked) {
                        if Some(position.sent_at) == first || position.sent_at <= limit {
                            (position.lost, position.resent) = (true, false);
                        }
                    }
                }
                Step::LoseNothing => {
                    board.lose_nothing();
                    for position in &mut model.positions {
                        (position.lost, position.resent) = (false, false);
                    }
                }
                Step::Resend(most) => {
                    let next = board.next_lost(most);
                    prop_assert_eq!(next.map(|(start, _)| start as usize), model.next_lost());
                    if let Some((start, end)) = next {
                        prop_assert!(end > start && end - start <= most);
                        for position in &mut model.positions[start as usize..end as usize] {
                            prop_assert!(position.lost && !position.resent);
                            (position.resent, position.was_resent, position.sent_at) = (true, true, time);
                        }
                        board.resend(start, end, at(time));
                    }
                }
            }
            board.check();
            prop_assert_eq!(board.una(), model.una as u64);
            prop_assert_eq!(board.sacked_bytes(), model.count(|p| p.sacked));
            prop_assert_eq!(board.lost_bytes(), model.count(|p| p.lost));
            let under_way = model.count(|p| !p.sacked && (!p.lost || p.resent));
            prop_assert_eq!(board.in_flight(), under_way);
        }
    }
}
