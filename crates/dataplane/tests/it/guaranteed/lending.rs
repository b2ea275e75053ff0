//! A slice that lends what it leaves unused has its guarantee back within the time of one packet, whatever is still lent.

use super::rig::{LARGEST_FRAME, Rig, arrival, best_effort, guaranteed, params, with_maximum};
use proptest::prelude::*;
use slicewise_dataplane::guaranteed::SliceId;
use slicewise_units::{Duration, Instant};

const LINK: u64 = 100_000_000;
/// The lender: half of the link, and four of its largest frames at once.
const RATE: u64 = 50_000_000;
const BURST: u64 = 4 * LARGEST_FRAME;
/// The borrower: so much is its maximum, of its own and while it borrows.
const MAXIMUM: u64 = 40_000_000;
const LENT: u64 = 90_000_000;
/// What one frame takes at most.
const FRAME_NANOS: u64 = LARGEST_FRAME * 8 * 1_000_000_000 / LINK;

proptest! {
    /// The borrower is never idle, and what was lent is taken back long after the lender uses it again, or never. No frame of
    /// the excess begins while a frame of the lender waits that is within its guarantee: at most the one that is being sent then
    /// goes on.
    #[test]
    fn a_lender_waits_for_the_one_frame_that_is_being_sent(
        pauses in prop::collection::vec((0u64..2_000_000, 1u64..=4, 64u64..=LARGEST_FRAME), 1..30),
        lent_at in 0usize..30,
        taken_back_at in 0usize..60,
    ) {
        let lender = guaranteed(RATE, BURST, Duration::from_millis(2));
        let borrower = |rate| with_maximum(best_effort(1), rate, 100_000);
        let mut rig = Rig::new(&params(&[1]), &[lender, borrower(MAXIMUM)], LINK);
        // It conforms: after each burst it is idle until its bucket is full again.
        let refill = BURST * 8 * 1_000_000_000 / RATE;
        let (mut at, mut flooded) = (0, 0);
        for (index, (pause, frames, bytes)) in pauses.into_iter().enumerate() {
            at += refill + pause;
            while flooded < at {
                rig.send_until(flooded);
                rig.arrive(arrival(flooded, 1, LARGEST_FRAME)).unwrap();
                flooded += FRAME_NANOS;
            }
            rig.send_until(at);
            // The controller's decisions come when they come.
            let now = Instant::from_nanos(at);
            if index == lent_at {
                rig.scheduler.change_slice(SliceId::new(1), &borrower(LENT), &rig.pool, now).unwrap();
            }
            if index == taken_back_at {
                rig.scheduler.change_slice(SliceId::new(1), &borrower(MAXIMUM), &rig.pool, now).unwrap();
            }
            rig.arrive_all(vec![arrival(at, 0, bytes); frames as usize]);
        }
        rig.send_until(u64::MAX);
        let mut own_before = 0;
        for sent in rig.sent.iter().filter(|sent| sent.slice == 0) {
            prop_assert!(sent.guaranteed);
            let overtakers = rig.sent.iter().filter(|other| {
                other.slice == 1 && other.start >= sent.arrival && other.start < sent.start
            });
            prop_assert_eq!(overtakers.count(), 0, "frames of the excess in between");
            let in_flight = rig.sent.iter().filter(|other| {
                other.slice == 1 && other.start < sent.arrival && other.end > sent.arrival
            });
            prop_assert!(in_flight.count() <= 1);
            // Its first frame waits for at most one, the others behind it for their own as well.
            own_before = if own_before == sent.arrival { own_before } else {
                prop_assert!(sent.start - sent.arrival <= FRAME_NANOS, "{} ns", sent.start - sent.arrival);
                sent.arrival
            };
        }
    }
}
