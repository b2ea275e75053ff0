//! Reading arbitrary bytes ends without panic: every file of the fuzz corpus, and thousands of mutations
//! of them.

use crate::support::robust::{check_capture, check_frame};
use proptest::prelude::*;
use slicewise_wire::LinkType;
use std::path::Path;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut paths: Vec<_> = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 5, "the corpus is missing");
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// xorshift (Marsaglia, 2003): the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 1).unwrap() % limit.max(1)
    }
}

fn mutate(seed: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        match numbers.below(5) {
            0 => bytes.truncate(at),
            1 => bytes
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|b| *b ^= 1 << numbers.below(8)),
            2 => bytes
                .iter_mut()
                .skip(at & !3)
                .take(4)
                .for_each(|b| *b = 0xff),
            3 => bytes.iter_mut().skip(at & !3).take(4).for_each(|b| *b = 0),
            _ => {
                let piece: Vec<u8> = bytes.iter().skip(at).take(64).copied().collect();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

fn check_mutated(target: &str) {
    let mut numbers = Numbers(0x5eed);
    let mut packets = 0;
    for seed in seeds(target) {
        packets += check_capture(&seed);
        for _ in 0..300 {
            packets += check_capture(&mutate(&seed, &mut numbers));
        }
    }
    assert!(packets > 1000, "most mutations leave something to read");
}

#[test]
fn any_pcap_file_is_read_or_refused() {
    check_mutated("pcap");
}

#[test]
fn any_pcapng_file_is_read_or_refused() {
    check_mutated("pcapng");
}

/// The link type in two bytes, and the frame.
fn check_linked(bytes: &[u8]) {
    if let Some((&link, frame)) = bytes.split_first_chunk() {
        let wire_bytes = u32::try_from(frame.len()).unwrap();
        check_frame(LinkType(u16::from_be_bytes(link)), frame, wire_bytes);
        check_frame(
            LinkType(u16::from_be_bytes(link)),
            frame,
            wire_bytes * 2 + 100,
        );
    }
}

#[test]
fn any_frame_of_the_corpus_is_parsed_however_changed_or_cut() {
    let mut numbers = Numbers(0x5eed);
    for seed in seeds("frame") {
        for bytes in 0..seed.len() {
            check_linked(&seed[..bytes]);
        }
        for _ in 0..2000 {
            check_linked(&mutate(&seed, &mut numbers));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_parsed_as_a_frame(
        link in prop::sample::select(vec![0u16, 1, 12, 101, 108, 113, 228, 229, 276, 999]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        wire_bytes in 0u32..3000,
    ) {
        let wire_bytes = wire_bytes.max(u32::try_from(bytes.len()).unwrap());
        check_frame(LinkType(link), &bytes, wire_bytes);
    }

    #[test]
    fn any_bytes_behind_a_magic_are_read_or_refused(
        magic in prop::sample::select(vec![
            [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x0a, 0x0d, 0x0d, 0x0a],
            [0x1f, 0x8b, 8, 0], [0x28, 0xb5, 0x2f, 0xfd],
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        check_capture(&[magic.as_slice(), &bytes].concat());
    }
}
