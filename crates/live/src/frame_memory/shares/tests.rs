//! Shares alone.

use super::*;
use proptest::prelude::*;

/// Divide among shares that want so many chunks, and go on with these.
fn divide(
    shares: &mut Shares,
    total: u32,
    chunks: &[u64],
    before: &[Option<ShareId>],
) -> Vec<ShareId> {
    let named = chunks.iter().enumerate();
    let wanted = named.map(|(i, &chunks)| Wanted {
        name: i.to_string(),
        chunks,
        is_common: false,
        share: before.get(i).copied().flatten(),
    });
    let mut wanted: Vec<Wanted> = wanted.collect();
    shares.divide(total, &mut wanted);
    wanted.iter().filter_map(|wanted| wanted.share).collect()
}

#[test]
fn a_flood_leaves_the_part_of_every_other_share_alone() {
    let mut shares = Shares::default();
    let ids = divide(&mut shares, 1_000, &[200_000, 65, 400], &[]);
    let fill = |shares: &mut Shares, id| (0..2_000).filter(|_| shares.try_use(id, 1)).count();
    // Its own part, what is left of half the memory, and the common half.
    assert_eq!(fill(&mut shares, ids[0]), 218 + 500);
    assert_eq!(fill(&mut shares, ids[1]), 65);
    assert_eq!(fill(&mut shares, ids[2]), 217);
    assert_eq!(shares.most_refused(), "1");
    shares.release(ids[0], 100);
    assert_eq!(fill(&mut shares, ids[2]), 100);
}

#[test]
fn where_memory_suffices_every_share_has_all_that_it_wants() {
    let mut shares = Shares::default();
    let ids = divide(&mut shares, 1_000, &[600, 400], &[]);
    for (id, own) in ids.into_iter().zip([600, 400]) {
        assert!((0..own).all(|_| shares.try_use(id, 1)));
        assert!(!shares.try_use(id, 1));
    }
}

#[test]
fn shares_that_are_added_get_what_they_want_until_memory_is_short_and_then_equal_parts() {
    let mut shares = Shares::default();
    let default = divide(&mut shares, 1_000, &[100], &[]);
    let fill = |shares: &mut Shares, id| (0..2_000).filter(|_| shares.try_use(id, 1)).count();
    let first = shares.add("first", 500);
    let second = shares.add("second", 400);
    assert_eq!(fill(&mut shares, first), 500);
    shares.release(first, 500);
    // Of half the memory 400 are left: 128 for each of these three.
    let third = shares.add("third", 10_000);
    let reserved: Vec<u32> = shares.shares.iter().map(|share| share.own).collect();
    assert_eq!(reserved, [100, 128, 128, 128]);
    assert_eq!(fill(&mut shares, third), 128 + (1_000 - 100 - 3 * 128));
    assert_eq!(fill(&mut shares, first), 128);
    assert_eq!(fill(&mut shares, second), 128);
    assert_eq!(fill(&mut shares, default[0]), 100);
    shares.remove(third);
    assert_eq!(shares.shares[1].own, 128, "what it used is not there yet");
    shares.release(third, 644);
    let fourth = shares.add("fourth", 5);
    assert_eq!(fourth, third, "the place is used again");
    assert_eq!(fill(&mut shares, fourth), 5 + 1_000 - 100 - 2 * 128 - 5);
}

#[derive(Debug, Clone)]
enum Event {
    Use(usize, u32),
    Release(usize, u32),
    /// In all, what each wants, and with which share it is to go on.
    Divide(u32, Vec<(u64, usize)>),
    Add(u64),
    Join(u64),
    Want(usize, u64),
    Remove(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let share = (1u64..200, 0usize..12);
    let divide = (20u32..200, proptest::collection::vec(share, 1..6));
    prop_oneof![
        5 => (0usize..6, 1u32..6).prop_map(|(share, chunks)| Event::Use(share, chunks)),
        3 => (0usize..6, 1u32..6).prop_map(|(share, chunks)| Event::Release(share, chunks)),
        1 => divide.prop_map(|(total, wanted)| Event::Divide(total, wanted)),
        2 => (1u64..200).prop_map(Event::Add),
        2 => (1u64..200).prop_map(Event::Join),
        1 => (0usize..6, 1u64..200).prop_map(|(share, chunks)| Event::Want(share, chunks)),
        1 => (0usize..6).prop_map(Event::Remove),
    ]
}

proptest! {
    #[test]
    fn shares_together_never_use_more_than_there_is_and_each_gets_its_own_part(
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let mut shares = Shares::default();
        let mut divided = divide(&mut shares, 100, &[50, 500, 30], &[]);
        let mut added: Vec<ShareId> = Vec::new();
        let mut gone: Vec<ShareId> = Vec::new();
        let mut is_divided_anew = false;
        for event in events {
            let ids = [divided.clone(), added.clone()].concat();
            match event {
                Event::Use(at, chunks) if at < ids.len() => {
                    let share = &shares.shares[ids[at].0 as usize];
                    let has_own = share.used + chunks <= share.own;
                    let used = shares.used;
                    let is_taken = shares.try_use(ids[at], chunks);
                    prop_assert!(is_taken || !has_own || is_divided_anew);
                    prop_assert_eq!(shares.used, used + if is_taken { chunks } else { 0 });
                    prop_assert!(shares.used <= shares.total || !is_taken);
                }
                Event::Release(at, chunks) if at < ids.len() => {
                    let used = shares.shares[ids[at].0 as usize].used;
                    shares.release(ids[at], chunks.min(used));
                }
                Event::Divide(total, wanted) => {
                    // The same more than once, ones that were added, and ones that are gone.
                    let before = wanted.iter().map(|(_, at)| ids.get(*at).or(gone.last()).copied());
                    let before: Vec<Option<ShareId>> = before.collect();
                    let chunks: Vec<u64> = wanted.iter().map(|(chunks, _)| *chunks).collect();
                    let after = divide(&mut shares, total, &chunks, &before);
                    for (place, id) in after.iter().enumerate() {
                        prop_assert!(!after[..place].contains(id) && !added.contains(id));
                        let first = before.iter().position(|before| *before == Some(*id));
                        prop_assert!(first.is_none_or(|first| first == place || !divided.contains(id)));
                    }
                    let goes_on = |id: &ShareId| before.contains(&Some(*id));
                    prop_assert!(divided.iter().filter(|id| goes_on(id)).all(|id| after.contains(id)));
                    gone.extend(divided.iter().filter(|id| !goes_on(id)));
                    divided = after;
                    is_divided_anew = true;
                }
                Event::Add(chunks) => {
                    let id = shares.add("added", chunks);
                    prop_assert!(!ids.contains(&id));
                    added.push(id);
                    // What others use beyond their parts may be what it is given.
                    is_divided_anew = true;
                }
                Event::Want(at, chunks) if at < ids.len() => {
                    shares.want(ids[at], chunks);
                    is_divided_anew = true;
                }
                Event::Join(chunks) => {
                    let id = shares.join("joined", chunks);
                    prop_assert!(!ids.contains(&id));
                    divided.push(id);
                    is_divided_anew = true;
                }
                Event::Remove(at) if at < ids.len() => {
                    let id = ids[at];
                    divided.retain(|other| *other != id);
                    added.retain(|other| *other != id);
                    let used = shares.shares[id.0 as usize].used;
                    shares.remove(id);
                    shares.release(id, used);
                }
                _ => {}
            }
            let used: u32 = shares.shares.iter().map(|share| share.used).sum();
            let beyond: u32 = shares.shares.iter().map(Share::beyond).sum();
            let own: u32 = shares.shares.iter().map(|share| share.own).sum();
            // From here on each gets its own part again.
            is_divided_anew &= own > shares.total || beyond > 0;
            let of_added: u32 = added.iter().map(|id| shares.shares[id.0 as usize].own).sum();
            prop_assert_eq!(used, shares.used);
            prop_assert_eq!(beyond, shares.common_used);
            prop_assert_eq!(of_added, shares.added.reserved);
            let of_division = shares.shares.iter().filter_map(|share| match share.origin {
                Origin::Divided(wanted) => Some((wanted, share.own)),
                _ => None,
            });
            let sum = of_division.fold((0, 0), |(a, b), (wanted, own)| (a + wanted, b + own));
            prop_assert_eq!(sum, shares.divided);
            let level = shares.level;
            let is_at_level = |id: &ShareId| match shares.shares[id.0 as usize] {
                Share { origin: Origin::Divided(wanted), own, .. } => own == at_most(wanted, level),
                _ => false,
            };
            let is_divided = divided.iter().all(is_at_level);
            prop_assert!(is_divided);
            // Divided shares that want more may have reserved more than there is, for a while.
            prop_assert_eq!(shares.common, shares.total.saturating_sub(own));
        }
    }
}
