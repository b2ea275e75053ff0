use super::*;
use proptest::prelude::*;
use slicewise_units::ByteCount;

const GIGABIT: BitRate = BitRate::new(1_000_000_000);

fn control(per_priority: bool) -> FlowControl {
    let params = FlowControlParams {
        per_priority,
        buffer: ByteCount::new(10_000),
        high: ByteCount::new(6_000),
        low: ByteCount::new(3_000),
        host_queue: 10,
    };
    FlowControl::new(params, GIGABIT, 0, 1, 0)
}

const fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn a_pause_is_heeded_two_quanta_after_it_arrived_and_lasts_65535_quanta() {
    let mut control = control(false);
    assert_eq!(control.on_queued(3, 6_000), None);
    assert_eq!(control.on_queued(3, 1_000), Some((0, Wish::Pause)));
    control.on_sent(0, Wish::Pause, at(0), at(1_000));
    // It is not asked for twice.
    assert_eq!(control.on_queued(5, 1_000), None);
    assert_eq!(control.next_event(), at(2_024));
    assert_eq!(control.next_heeded(at(2_023)), None);
    let pause = control.next_heeded(at(2_024)).unwrap();
    assert_eq!(pause.until, at(1_000 + 65_535 * 512));
    // Sent again after half of that.
    assert_eq!(control.next_event(), at(65_535 * 256));
    assert_eq!(control.next_repeated(at(65_535 * 256)), Some(0));
    assert_eq!(control.on_left(3, 4_000), None);
    assert_eq!(control.on_left(3, 1_000), Some((0, Wish::Resume)));
    control.on_sent(0, Wish::Resume, at(20_000_000), at(20_001_000));
    let end = control.next_heeded(Instant::MAX).unwrap();
    assert_eq!(end.until, end.at);
    assert_eq!(control.next_event(), Instant::MAX);
}

#[test]
fn priorities_are_counted_apart_where_they_are_paused_apart() {
    let mut control = control(true);
    assert_eq!(control.on_queued(3, 6_500), Some((3, Wish::Pause)));
    assert_eq!(control.on_queued(5, 5_000), None);
    assert!(control.has_room(5, 5_000));
    assert!(!control.has_room(3, 5_000));
}

#[test]
fn ports_that_pause_each_other_for_three_longest_pauses_never_send_again() {
    let mut control = control(false);
    let longest = 65_535 * 512;
    assert!(!control.on_paused(true, at(5)));
    assert!(!control.on_paused(true, at(4 + 3 * longest)));
    assert!(control.on_paused(true, at(5 + 3 * longest)));
    assert!(!control.on_paused(false, at(6 + 3 * longest)));
    assert!(!control.on_paused(true, at(7 + 3 * longest)));
}

proptest! {
    /// Between two marks nothing changes, and a sender is never told the same twice.
    #[test]
    fn a_sender_is_told_to_pause_above_the_high_mark_and_to_go_on_at_the_low_one(
        steps in prop::collection::vec((any::<bool>(), 60u32..1_500), 1..200),
    ) {
        let mut control = control(false);
        let mut waiting: Vec<u32> = Vec::new();
        let mut paused = false;
        for (arrives, bytes) in steps {
            let wish = if arrives && control.has_room(0, bytes) {
                waiting.push(bytes);
                control.on_queued(0, bytes)
            } else if let Some(bytes) = waiting.pop() {
                control.on_left(0, bytes)
            } else {
                continue;
            };
            let sum: u32 = waiting.iter().sum();
            prop_assert!(sum <= 10_000);
            let expected = match (paused, sum) {
                (false, 6_001..) => Some(Wish::Pause),
                (true, ..=3_000) => Some(Wish::Resume),
                _ => None,
            };
            prop_assert_eq!(wish.map(|(_, wish)| wish), expected);
            if let Some(wish) = expected {
                paused = wish == Wish::Pause;
                control.on_sent(0, wish, at(0), at(0));
            }
        }
    }
}
