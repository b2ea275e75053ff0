//! Captures that are damaged, unfinished, or not captures at all: messages, and packets kept.

use slicewise_capture::{CaptureError, CaptureFile, Point, Sighting};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(golden_path(name)).unwrap()
}

fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn open(bytes: impl Into<Vec<u8>>) -> Result<CaptureFile, CaptureError> {
    CaptureFile::from_reader("tx.pcap", Box::new(Cursor::new(bytes.into())))
}

fn refusal(bytes: impl Into<Vec<u8>>) -> String {
    match open(bytes) {
        Ok(_) => "read".into(),
        Err(error) => error.to_string(),
    }
}

/// Number of packets reported, and why no more.
fn end(bytes: impl Into<Vec<u8>>) -> String {
    let mut file = open(bytes).unwrap();
    while file.next_packet().is_some() {}
    let facts = file.facts();
    match &facts.incomplete {
        Some(incomplete) => format!("{} packets; {incomplete}", facts.packets),
        None => format!("{} packets", facts.packets),
    }
}

fn patched(name: &str, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = golden(name);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

/// Offset of the first packet's record in `ethernet.pcap` (142 bytes captured).
const RECORD_AT: usize = 24;
const SECOND_AT: usize = RECORD_AT + 16 + 142;

/// Where the first block of type `kind` begins in a little-endian pcapng file.
fn block_at(file: &[u8], kind: u32) -> usize {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let mut at = 0;
    while word(at) != kind {
        at += word(at + 4) as usize;
    }
    at
}

#[test]
fn rejects_files_that_are_not_captures_and_says_what_they_are() {
    let refused = [
        refusal(""),
        refusal("\0"),
        refusal(*b"\xd4\xc3\xb2"),
        refusal("No.,Time,Source\n1,0.0,10.0.0.1\n"),
        refusal(*b"\x7fELF\x02\x01\x01\x00 and so on"),
        refusal(*b"\xfd7zXZ\0\0\x04"),
        refusal(*b"BZh91AY&SY"),
        refusal(*b"PK\x03\x04\x14\0"),
        refusal(*b"snoop\0\0\0\0\0\0\x02"),
        refusal(golden("modified.pcap")),
        refusal(&golden("ethernet.pcap")[..20]),
        refusal(patched("ethernet.pcap", 4, &[3, 0])),
        refusal(patched("mixed.pcapng", 8, &[0, 0, 0, 0])),
        refusal(patched("mixed.pcapng", 12, &[9, 0])),
        refusal(&golden("mixed.pcapng")[..17]),
    ];
    insta::assert_snapshot!(refused.join("\n"), @r"
    tx.pcap: byte 0: the file is empty; leave it out, or capture again
    tx.pcap: byte 0: neither pcap nor pcapng: a capture begins with d4c3b2a1, a1b2c3d4, 4d3cb2a1, a1b23c4d or 0a0d0d0a, this file with 00
    tx.pcap: byte 0: neither pcap nor pcapng: a capture begins with d4c3b2a1, a1b2c3d4, 4d3cb2a1, a1b23c4d or 0a0d0d0a, this file with d4c3b2
    tx.pcap: byte 0: neither pcap nor pcapng, but text; capture with `tcpdump -w FILE`, which writes pcap
    tx.pcap: byte 0: neither pcap nor pcapng: a capture begins with d4c3b2a1, a1b2c3d4, 4d3cb2a1, a1b23c4d or 0a0d0d0a, this file with 7f454c46
    tx.pcap: byte 0: neither pcap nor pcapng, but compressed by xz; decompress it first with `unxz`
    tx.pcap: byte 0: neither pcap nor pcapng, but compressed by bzip2; decompress it first with `bunzip2`
    tx.pcap: byte 0: neither pcap nor pcapng, but a zip archive; extract the captures from it
    tx.pcap: byte 0: neither pcap nor pcapng, but a snoop capture; convert it with `editcap -F pcapng IN OUT`
    tx.pcap: byte 0: a pcap file of the modified kind (magic a1b2cd34), whose records are longer; convert it with `editcap -F pcap IN OUT`
    tx.pcap: byte 0: the file ends after 20 of the 24 bytes of the pcap header
    tx.pcap: byte 4: unsupported pcap version 3.4 (expected 2.4); convert it with `editcap -F pcap IN OUT`
    tx.pcap: byte 8: a pcapng section without the byte-order mark 1a2b3c4d: not pcapng, or damaged
    tx.pcap: byte 12: unsupported pcapng version 9.0 (expected 1.0)
    tx.pcap: byte 0: the file ends after 17 of the 28 bytes of a section header block
    ");
}

#[test]
fn rejects_a_path_that_is_not_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, expected) in [("", "is a directory"), ("missing.pcap", "cannot be opened")] {
        let path = folder.path().join(name);
        for error in [CaptureFile::open(&path).err(), Point::open(&[path]).err()] {
            let error = error.unwrap().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains(folder.path().to_str().unwrap()), "{error}");
        }
    }
}

#[test]
fn keeps_the_packets_before_damage_of_a_pcap_file() {
    let whole = golden("ethernet.pcap");
    let ends = [
        end(&whole[..24]),
        end(&whole[..RECORD_AT + 3]),
        end(&whole[..SECOND_AT - 1]),
        end(&whole[..SECOND_AT]),
        end(&whole[..SECOND_AT + 15]),
        end(patched("ethernet.pcap", SECOND_AT + 8, &[0xff; 4])),
        end(patched("ethernet.pcap", SECOND_AT + 8, &[1, 0, 4, 0])),
        end([&whole[..SECOND_AT], &[0; 4096]].concat()),
    ];
    insta::assert_snapshot!(ends.join("\n"), @r"
    0 packets
    0 packets; tx.pcap: byte 24: the file ends after 3 of the 16 bytes of a packet header; the packets before that were read
    0 packets; tx.pcap: byte 24: the file ends after 157 of the 158 bytes of a packet; the packets before that were read
    1 packets
    1 packets; tx.pcap: byte 182: the file ends after 15 of the 16 bytes of a packet header; the packets before that were read
    1 packets; tx.pcap: byte 190: a packet header states 4294967295 captured bytes (at most 262144 are possible): the file is damaged from here on; the packets before that were read
    1 packets; tx.pcap: byte 190: a packet header states 262145 captured bytes (at most 262144 are possible): the file is damaged from here on; the packets before that were read
    1 packets; tx.pcap: byte 194: a packet header states 0 bytes on the wire: the file is damaged from here on, or writing it was never finished; the packets before that were read
    ");
}

#[test]
fn keeps_the_packets_before_damage_of_a_pcapng_file() {
    let whole = golden("mixed.pcapng");
    let interface = block_at(&whole, 1);
    let packet = block_at(&whole, 6);
    let unknown = block_at(&whole, 0x7777);
    let bytes = |at: usize| u32::from_le_bytes(whole[at + 4..at + 8].try_into().unwrap()) as usize;
    let without_interfaces = [&whole[..interface], &whole[packet..]].concat();
    let ends = [
        end(without_interfaces),
        end(&whole[..packet + 11]),
        end(&whole[..packet + 100]),
        end(&whole[..unknown + 13]),
        end(patched("mixed.pcapng", packet + 4, &[0xff; 4])),
        end(patched("mixed.pcapng", packet + 4, &[0x1e, 0, 0, 0])),
        end(patched("mixed.pcapng", packet + 20, &[0xff; 4])),
        end(patched("mixed.pcapng", packet + 20, &[0xa0, 0, 0, 0])),
        end(patched(
            "mixed.pcapng",
            packet + bytes(packet) - 4,
            &[0, 0, 0, 0],
        )),
        end(patched("mixed.pcapng", unknown + 4, &[8, 0, 0, 0])),
        end(patched(
            "mixed.pcapng",
            unknown + 4,
            &[0xfc, 0xff, 0xff, 0xff],
        )),
    ];
    insta::assert_snapshot!(ends.join("\n"), @r"
    0 packets; tx.pcap: byte 76: a packet refers to interface 0, but only 0 interfaces were described before it: its link type and time unit are unknown; the packets before that were read
    0 packets; tx.pcap: byte 180: the file ends after 11 of the 12 bytes of a block; the packets before that were read
    0 packets; tx.pcap: byte 180: the file ends after 100 of the 188 bytes of a packet block; the packets before that were read
    2 packets; tx.pcap: byte 752: the file ends within a block of 16 bytes; the packets before that were read
    0 packets; tx.pcap: byte 184: a packet block states a length of 4294967295 bytes (expected a multiple of 4 from 32 to 327680): the file is damaged from here on; the packets before that were read
    0 packets; tx.pcap: byte 184: a packet block states a length of 30 bytes (expected a multiple of 4 from 32 to 327680): the file is damaged from here on; the packets before that were read
    0 packets; tx.pcap: byte 200: a packet block of 188 bytes states 4294967295 captured bytes (at most 262144 are possible, and all must lie within the block): the file is damaged from here on; the packets before that were read
    0 packets; tx.pcap: byte 200: a packet block of 188 bytes states 160 captured bytes (at most 262144 are possible, and all must lie within the block): the file is damaged from here on; the packets before that were read
    0 packets; tx.pcap: byte 180: a packet block states a length of 188 bytes in front and a different one at its end: the file is damaged here; the packets before that were read
    2 packets; tx.pcap: byte 756: a block states a length of 8 bytes (expected a multiple of 4, at least 12): the file is damaged from here on; the packets before that were read
    2 packets; tx.pcap: byte 752: the file ends within a block of 4294967292 bytes; the packets before that were read
    ");
}

#[test]
fn keeps_the_packets_before_damage_of_a_compressed_file() {
    let cut = end(&golden("ethernet.pcap.gz")[..600]);
    insta::assert_snapshot!(cut, @"12 packets; tx.pcap: byte 1682: the rest cannot be read: incomplete deflate stream; the packets before that were read");
    // One block: none of it can be read.
    let cut = refusal(&golden("ethernet.pcap.zst")[..400]);
    insta::assert_snapshot!(cut, @"tx.pcap: byte 0: the file cannot be read: the zstd data ends early");
    // The checksum at the end.
    let mut gzip = golden("ethernet.pcap.gz");
    let at = gzip.len() - 8;
    gzip[at] ^= 1;
    insta::assert_snapshot!(end(gzip), @"15 packets; tx.pcap: byte 1964: the rest cannot be read: corrupt gzip stream does not have a matching checksum; the packets before that were read");
    let mut zstd = golden("ethernet.pcap.zst");
    let at = zstd.len() - 1;
    zstd[at] ^= 1;
    insta::assert_snapshot!(end(zstd), @"15 packets; tx.pcap: byte 1964: the rest cannot be read: damaged zstd data: checksum mismatch; the packets before that were read");
}

#[test]
fn reads_concatenated_compressed_files() {
    let plain = golden("ethernet.pcap");
    let (header, packets) = plain.split_at(24);
    let zstd = |name: &str| golden(name);
    // A skippable frame between two frames; the second one's header is damage to a pcap file, which
    // shows that it was reached.
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let both = [
        zstd("ethernet.pcap.zst"),
        skippable.to_vec(),
        zstd("ethernet.pcap.zst"),
    ]
    .concat();
    assert!(
        end(both).starts_with("15 packets; tx.pcap: byte 1"),
        "the second header"
    );
    let two = [header, packets, packets].concat();
    assert_eq!(end(two), "30 packets");
    let gzip = [golden("ethernet.pcap.gz"), golden("ethernet.pcap.gz")].concat();
    assert!(end(gzip).starts_with("15 packets; tx.pcap: byte 1"));
}

#[test]
fn counts_times_that_go_backwards() {
    let mut file = open(golden("mixed.pcapng")).unwrap();
    while file.next_packet().is_some() {}
    let backwards = file.facts().backwards;
    assert_eq!((backwards.steps, backwards.largest_ns), (1, 2_000_000_000));
    assert!(backwards.first_offset.is_some_and(|at| at > 0));
}

#[test]
fn reads_packets_that_cross_the_window_boundary() {
    // Three windows of packets of uneven lengths, from a source with arbitrary read sizes.
    let mut bytes = golden("ethernet.pcap")[..24].to_vec();
    let mut lengths = Vec::new();
    while bytes.len() < 3 * (512 << 10) {
        let length = 60 + u32::try_from(lengths.len()).unwrap() * 37 % 1400;
        for word in [1u32, 0, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend((0..length).map(|i| (i ^ length).to_le_bytes()[0]));
        lengths.push(length);
    }
    let mut file = CaptureFile::from_reader("slow", Box::new(Slow(Cursor::new(bytes), 1))).unwrap();
    for &length in &lengths {
        let packet = file.next_packet().unwrap();
        assert_eq!(packet.bytes.len(), length as usize);
        let whole = (0..length).all(|i| packet.bytes[i as usize] == (i ^ length).to_le_bytes()[0]);
        assert!(whole, "a packet of {length} bytes");
    }
    assert!(file.next_packet().is_none());
    assert_eq!(file.facts().incomplete, None);
}

/// Returns a different number of bytes at every read.
struct Slow<R>(R, usize);

impl<R: Read> Read for Slow<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.1 = self.1 * 31 % 4093 + 1;
        let most = self.1.min(bytes.len());
        self.0.read(&mut bytes[..most])
    }
}

#[test]
fn reads_a_thousand_rotated_pieces_with_few_files_open() {
    let folder = tempfile::tempdir().unwrap();
    let header = &golden("ethernet.pcap")[..24];
    let frame = &golden("ethernet.pcap")[RECORD_AT + 16..SECOND_AT];
    let mut paths = Vec::new();
    for piece in 0..1000u32 {
        let mut bytes = header.to_vec();
        for packet in 0..2 {
            for word in [2 * piece + packet, 0, 142, 142] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(frame);
        }
        let path = folder.path().join(format!("piece-{piece}"));
        std::fs::write(&path, bytes).unwrap();
        paths.push(path);
    }
    paths.reverse();
    let mut point = Point::open(&paths).unwrap();
    let (mut out, mut batch): (Vec<Sighting>, _) = (Vec::new(), Vec::new());
    while point.read(&mut batch, 10_000).unwrap() {
        out.append(&mut batch);
    }
    out.append(&mut batch);
    let seconds: Vec<u64> = out.iter().map(|s| s.time_ns / 1_000_000_000).collect();
    assert_eq!(seconds, (0..2000).collect::<Vec<u64>>());
    assert_eq!(point.facts().files.len(), 1000);
}

#[test]
fn rejects_more_overlapping_files_than_it_keeps_open() {
    let paths = vec![golden_path("ethernet.pcap"); 65];
    let mut point = Point::open(&paths).unwrap();
    let error = point.read(&mut Vec::new(), 1).unwrap_err();
    assert!(error.why.contains("mergecap"), "{error}");
    assert!(
        Point::open(&paths[..64])
            .unwrap()
            .read(&mut Vec::new(), 1)
            .unwrap()
    );
}

#[test]
fn reports_an_empty_and_a_damaged_file_beside_whole_ones() {
    let folder = tempfile::tempdir().unwrap();
    let whole = golden("ethernet.pcap");
    let (empty, cut) = (folder.path().join("empty"), folder.path().join("cut"));
    std::fs::write(&empty, &whole[..24]).unwrap();
    std::fs::write(&cut, &whole[..SECOND_AT + 20]).unwrap();
    let mut point = Point::open(&[cut, golden_path("ethernet.pcap"), empty]).unwrap();
    let mut out = Vec::new();
    assert!(!point.read(&mut out, 1000).unwrap());
    assert_eq!(out.len(), 12);
    let facts = point.facts();
    assert_eq!(facts.packets(), 16);
    let incomplete: Vec<_> = facts
        .incomplete()
        .map(|i| (i.offset, i.why.clone()))
        .collect();
    assert_eq!(incomplete.len(), 1);
    assert_eq!(incomplete[0].0, SECOND_AT as u64);
}
