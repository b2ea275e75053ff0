//! What reading costs per packet: pcap record, headers, key and flow, to sightings.
//!
//! `cargo bench -p slicewise-capture`. Writes a capture of a million packets of 100 flows, UDP and
//! TCP, to a temporary file and reads it from the page cache, cut off at 96 bytes and whole. With an argument: that
//! many packets (for callgrind).

use slicewise_capture::{CaptureFile, Point, Sighting};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

const PACKETS: u32 = 1_000_000;
const FLOWS: u32 = 100;
const FRAME_BYTES: u16 = 1514;
const REPETITIONS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let packets = std::env::args()
        .find_map(|a| a.parse().ok())
        .unwrap_or(PACKETS);
    let folder = tempfile::tempdir()?;
    println!("fastest of {REPETITIONS}, {packets} packets, from page cache, one core");
    for snap_bytes in [96, 1514] {
        let path = folder.path().join(format!("snap-{snap_bytes}.pcap"));
        write(&path, packets, snap_bytes)?;
        let count = fastest(packets, || {
            let mut file = CaptureFile::open(&path)?;
            let mut bytes = 0;
            while let Some(packet) = file.next_packet() {
                bytes += packet.bytes.len();
            }
            assert_eq!(bytes, packets as usize * usize::from(snap_bytes));
            Ok(())
        })?;
        let sight = fastest(packets, || {
            let mut point = Point::open(std::slice::from_ref(&path))?;
            let mut out: Vec<Sighting> = Vec::new();
            let mut seen = 0;
            while point.read(&mut out, 4096)? {
                seen += out.len();
            }
            assert_eq!(seen + out.len(), packets as usize);
            Ok(())
        })?;
        println!(
            "captured {snap_bytes:>4} bytes: records alone {count:6.1} ns, sightings {sight:6.1} \
             ns per packet"
        );
    }
    Ok(())
}

fn fastest(
    packets: u32,
    mut run: impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut fastest = f64::INFINITY;
    for _ in 0..REPETITIONS {
        let begin = Instant::now();
        run()?;
        fastest = fastest.min(begin.elapsed().as_secs_f64());
    }
    Ok(fastest * 1e9 / f64::from(packets))
}

fn write(path: &Path, packets: u32, snap_bytes: u16) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let header = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, snap_bytes.into(), 1];
    for word in header {
        file.write_all(&word.to_le_bytes())?;
    }
    let mut frame = vec![0u8; FRAME_BYTES.into()];
    frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
    frame[16..18].copy_from_slice(&(FRAME_BYTES - 14).to_be_bytes());
    frame[22] = 64;
    for packet in 0..packets {
        let flow = packet.wrapping_mul(0x9e37_79b1) % FLOWS;
        let is_tcp = flow.is_multiple_of(2);
        frame[18..20].copy_from_slice(&packet.to_be_bytes()[2..]);
        frame[23] = if is_tcp { 6 } else { 17 };
        frame[26..30].copy_from_slice(&(0x0a00_0000 + flow).to_be_bytes());
        frame[30..34].copy_from_slice(&0x0a01_0001_u32.to_be_bytes());
        frame[34..38].copy_from_slice(&(flow << 16 | 5201).to_be_bytes());
        frame[38..42].copy_from_slice(&packet.to_be_bytes());
        frame[46] = 0x80;
        frame[54..58].copy_from_slice(&packet.to_be_bytes());
        let record = [
            1_700_000_000 + packet / 1_000_000,
            packet % 1_000_000 * 1000,
            snap_bytes.into(),
            FRAME_BYTES.into(),
        ];
        for word in record {
            file.write_all(&word.to_le_bytes())?;
        }
        file.write_all(&frame[..snap_bytes.into()])?;
    }
    file.flush()
}
