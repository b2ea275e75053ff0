//! Offset between the clocks of two hosts, by the two-way method: a packet there and one back, each stamped at both
//! ends. Whatever the delays are, the error is at most half of the round trip; the shortest of many bounds it best.

use crate::error::AttemptError;
use serde::{Deserialize, Serialize};
use slicewise_stats::record::RunRecord;
use slicewise_stats::testbed::ClockOffset;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// Exchanges of a comparison, and the pause between them.
const EXCHANGES: u64 = 64;
const PAUSE: Duration = Duration::from_millis(2);
/// Longest wait for an answer, and how often a comparison waits in vain.
const PATIENCE: Duration = Duration::from_millis(200);
const MAX_UNANSWERED: u32 = 10;
/// Begins each packet of a comparison.
const MAGIC: [u8; 4] = *b"SlcC";
/// Magic number, number of the exchange, and two times.
const BYTES: usize = 28;

/// Offset of another clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Comparison {
    /// When, on the own clock, ns since 1970.
    pub(super) at_ns: u64,
    /// How far the other clock is ahead, ns.
    pub(super) offset_ns: i64,
    /// Largest error of that, ns.
    pub(super) bound_ns: u64,
}

impl Comparison {
    /// Of one exchange: sent by the own clock, received and answered by the other one, and back by the own one. `None`
    /// where a clock was set meanwhile.
    fn of(sent_ns: u64, received_ns: u64, answered_ns: u64, back_ns: u64) -> Option<Self> {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let there = signed(received_ns).saturating_sub(signed(sent_ns));
        let back = signed(answered_ns).saturating_sub(signed(back_ns));
        let away = back_ns.checked_sub(sent_ns)?;
        let held = answered_ns.checked_sub(received_ns)?;
        let round_trip = away.checked_sub(held)?;
        Some(Self {
            at_ns: sent_ns,
            offset_ns: there.midpoint(back),
            bound_ns: round_trip.div_ceil(2),
        })
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

fn packet(number: u64, times: [u64; 2]) -> [u8; BYTES] {
    let fields = [number, times[0], times[1]].map(u64::to_be_bytes);
    let mut bytes = MAGIC.into_iter().chain(fields.into_iter().flatten());
    std::array::from_fn(|_| bytes.next().unwrap_or(0))
}

/// Number and times of a packet; `None` for one of others.
fn fields(packet: &[u8]) -> Option<[u64; 3]> {
    let (chunks, []) = packet.strip_prefix(&MAGIC)?.as_chunks() else {
        return None;
    };
    let numbers: Vec<u64> = chunks
        .iter()
        .map(|&chunk| u64::from_be_bytes(chunk))
        .collect();
    numbers.try_into().ok()
}

/// Compares the clock with the one that answers at `with`.
pub(super) fn compare(address: IpAddr, with: SocketAddr) -> Result<Comparison, AttemptError> {
    let failed =
        |error| AttemptError::Failed(format!("clocks, UDP from {address} to {with}: {error}"));
    let socket = UdpSocket::bind((address, 0)).map_err(failed)?;
    socket.connect(with).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let (mut best, mut unanswered): (Option<Comparison>, u32) = (None, 0);
    for number in 0..EXCHANGES {
        match exchange(&socket, number) {
            Some(one) if best.is_none_or(|best| one.bound_ns < best.bound_ns) => best = Some(one),
            Some(_) => {}
            None => unanswered += 1,
        }
        if unanswered == MAX_UNANSWERED {
            break;
        }
        thread::sleep(PAUSE);
    }
    best.ok_or_else(|| {
        AttemptError::Retryable(format!(
            "clocks cannot be compared: no answer from {with} to UDP from {address}; the device has to forward UDP \
             between both in both directions"
        ))
    })
}

fn exchange(socket: &UdpSocket, number: u64) -> Option<Comparison> {
    let sent_ns = now_ns();
    socket.send(&packet(number, [0, 0])).ok()?;
    let mut buffer = [0; BYTES + 1];
    loop {
        let length = socket.recv(&mut buffer).ok()?;
        let back_ns = now_ns();
        // Answers to earlier packets may be late.
        match fields(buffer.get(..length)?) {
            Some([answered, received_ns, answered_ns]) if answered == number => {
                return Comparison::of(sent_ns, received_ns, answered_ns, back_ns);
            }
            _ => {}
        }
    }
}

/// Answers comparisons until dropped.
#[derive(Debug)]
pub(super) struct Answering {
    is_over: Arc<AtomicBool>,
    port: u16,
}

impl Answering {
    pub(super) fn start(address: IpAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let port = socket.local_addr()?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("clocks".to_owned());
        thread.spawn(move || {
            let mut buffer = [0; BYTES + 1];
            while !over.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                let received_ns = now_ns();
                let asked = buffer.get(..length).and_then(fields);
                if let Some([number, ..]) = asked {
                    // One that is lost is not waited for.
                    let _ = socket.send_to(&packet(number, [received_ns, now_ns()]), from);
                }
            }
        })?;
        Ok(Self { is_over, port })
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Offset of the receiver's clock during a run: between two comparisons it changes evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offsets {
    pub(super) before: Comparison,
    pub(super) after: Comparison,
}

impl Offsets {
    /// Offset when the receiver's clock shows `time_ns`.
    fn at(&self, time_ns: u64) -> i64 {
        let Self { before, after } = self;
        let own_ns = i128::from(time_ns) - i128::from(before.offset_ns);
        let passed = own_ns - i128::from(before.at_ns);
        let whole = i128::from(after.at_ns.saturating_sub(before.at_ns)).max(1);
        let change = i128::from(after.offset_ns) - i128::from(before.offset_ns);
        let offset = i128::from(before.offset_ns) + change * passed.clamp(0, whole) / whole;
        i64::try_from(offset).unwrap_or(i64::MAX)
    }

    /// The record of a run.
    pub(super) fn record(&self) -> ClockOffset {
        let Self { before, after } = self;
        ClockOffset {
            is_measured: true,
            offset_ns: before.offset_ns,
            change_ns: after.offset_ns.saturating_sub(before.offset_ns),
            bound_ns: before.bound_ns.max(after.bound_ns),
        }
    }

    /// Put the times of a capture of tcpdump, made by the receiver's clock, on the sender's.
    pub(super) fn correct(&self, file: &Path) -> Result<(), AttemptError> {
        let shown = file.display().to_string();
        let corrected = file.with_extension("corrected");
        let failed = |error: io::Error| AttemptError::Failed(format!("{shown}: {error}"));
        let input = BufReader::new(File::open(file).map_err(failed)?);
        let output = File::create_new(&corrected).map_err(failed)?;
        self.rewrite(input, BufWriter::new(output))
            .map_err(failed)?;
        fs::rename(&corrected, file).map_err(failed)
    }

    fn rewrite(&self, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
        let mut header = [0; 24];
        input.read_exact(&mut header)?;
        output.write_all(&header)?;
        let is_big = match header.first_chunk() {
            Some([0xa1, 0xb2, 0x3c, 0x4d]) => true,
            Some([0x4d, 0x3c, 0xb2, 0xa1]) => false,
            _ => return Err(invalid("not a capture with nanoseconds of tcpdump")),
        };
        let number = |bytes| match is_big {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        };
        let mut packet = Vec::new();
        loop {
            // Seconds, nanoseconds, captured and original length.
            let mut fields = [[0; 4]; 4];
            if input.fill_buf()?.is_empty() {
                return output.flush();
            }
            input.read_exact(fields.as_flattened_mut())?;
            let [seconds, nanos, captured, _] = fields.map(number);
            let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(nanos);
            let time_ns = time_ns.saturating_add_signed(self.at(time_ns).saturating_neg());
            let time = [time_ns / 1_000_000_000, time_ns % 1_000_000_000];
            for (field, value) in fields.iter_mut().zip(time) {
                let value = u32::try_from(value).map_err(|_| invalid("a time after 2106"))?;
                *field = match is_big {
                    true => value.to_be_bytes(),
                    false => value.to_le_bytes(),
                };
            }
            packet.clear();
            let length = u64::from(captured);
            if input.by_ref().take(length).read_to_end(&mut packet)? as u64 != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            output.write_all(fields.as_flattened())?;
            output.write_all(&packet)?;
        }
    }
}

/// Make all times of a capture of tcpdump later by `ns`.
pub(crate) fn make_later(file: &Path, ns: u64) -> Result<(), AttemptError> {
    let behind = Comparison {
        at_ns: 0,
        offset_ns: 0_i64.saturating_sub_unsigned(ns),
        bound_ns: 0,
    };
    let offsets = Offsets {
        before: behind,
        after: behind,
    };
    offsets.correct(file)
}

/// By how much packets arrived before they were sent, ns, where the error of the clocks' offset may be as large: then it is
/// at least that. `None` where none did, or no such error explains it.
pub(crate) fn early_within(records: [&RunRecord; 2], clocks: &ClockOffset) -> Option<u64> {
    let captures = records.iter().flat_map(|record| &record.capture);
    let clock = captures.map(|capture| &capture.clock);
    if clock
        .clone()
        .any(|clock| clock.was_set || clock.alignment_ns != 0)
    {
        return None;
    }
    let smallest_ns = clock.filter_map(|clock| clock.smallest_delay_ns).min()?;
    let early_ns = smallest_ns.min(0).unsigned_abs();
    (1..=clocks.bound_ns)
        .contains(&early_ns)
        .then_some(early_ns)
}

/// Check that no packet arrived before it was sent.
pub(crate) fn agree(record: &RunRecord, clocks: &ClockOffset) -> Result<(), AttemptError> {
    let mut captures = record.capture.iter();
    if !captures.any(|capture| capture.clock.leaves_no_delays()) {
        return Ok(());
    }
    let known = if clocks.is_measured {
        "measured"
    } else {
        "stated"
    };
    Err(AttemptError::Retryable(format!(
        "packets arrived before they were sent: the clocks of sender and receiver differ by more than the {} µs {known}, or one \
         was set during the run",
        clocks.bound_ns / 1_000
    )))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slicewise_stats::flow::{CaptureRecord, ClockRecord};

    const SECOND_NS: u64 = 1_000_000_000;
    /// 2026.
    const START_NS: u64 = 1_790_000_000 * SECOND_NS;

    proptest! {
        #[test]
        fn the_offset_is_within_its_bound_whatever_the_delays(
            offset_ns in -3_600_000_000_000_i64..3_600_000_000_000,
            there_ns in 0_u64..50_000_000,
            held_ns in 0_u64..50_000_000,
            back_ns in 0_u64..50_000_000,
        ) {
            let other = |own_ns: u64| own_ns.saturating_add_signed(offset_ns);
            let arrived = START_NS + there_ns;
            let left = arrived + held_ns;
            let found = Comparison::of(START_NS, other(arrived), other(left), left + back_ns).unwrap();
            prop_assert_eq!(found.bound_ns, (there_ns + back_ns).div_ceil(2));
            prop_assert!(found.offset_ns.abs_diff(offset_ns) <= found.bound_ns);
        }

        #[test]
        fn an_exchange_during_which_a_clock_was_set_is_none(
            step_ns in 100_000_001_u64..SECOND_NS,
            there_ns in 0_u64..50_000_000,
            back_ns in 0_u64..50_000_000,
        ) {
            let arrived = START_NS + there_ns;
            let back = arrived + back_ns;
            // The own clock back, the other one ahead or back.
            prop_assert_eq!(Comparison::of(START_NS, arrived, arrived, back - step_ns), None);
            prop_assert_eq!(Comparison::of(START_NS, arrived, arrived + step_ns, back), None);
            prop_assert_eq!(Comparison::of(START_NS, arrived, arrived - step_ns, back), None);
        }

        #[test]
        fn a_clock_that_runs_evenly_is_corrected_anywhere_in_a_run(
            offset_ns in -1_000_000_000_i64..1_000_000_000,
            drift_ppm in -200_i64..200,
            at_s in 0_u64..=60,
        ) {
            let drifted = |own_ns: u64| offset_ns + drift_ppm * i64::try_from(own_ns / 1_000_000).unwrap();
            let comparison = |own_ns| Comparison {
                at_ns: START_NS + own_ns,
                offset_ns: drifted(own_ns),
                bound_ns: 0,
            };
            let offsets = Offsets { before: comparison(0), after: comparison(60 * SECOND_NS) };
            let own_ns = at_s * SECOND_NS;
            let shown = (START_NS + own_ns).saturating_add_signed(drifted(own_ns));
            let corrected = shown.saturating_add_signed(-offsets.at(shown));
            // Of the drift within the offset itself.
            prop_assert!(corrected.abs_diff(START_NS + own_ns) < 3_000, "{}", corrected.abs_diff(START_NS + own_ns));
        }
    }

    #[test]
    fn clocks_of_one_machine_agree_and_nobody_is_waited_for_in_vain() {
        let address = IpAddr::from([127, 0, 0, 1]);
        let answering = Answering::start(address).unwrap();
        let found = compare(address, SocketAddr::new(address, answering.port())).unwrap();
        assert!(
            found.offset_ns.unsigned_abs() <= found.bound_ns,
            "{found:?}"
        );
        let silent = UdpSocket::bind((address, 0)).unwrap();
        let error = compare(address, silent.local_addr().unwrap()).unwrap_err();
        assert!(error.to_string().contains("no answer from"), "{error}");
    }

    fn capture(times_ns: &[u64], is_big: bool) -> Vec<u8> {
        let number = |value: u64| {
            let value = u32::try_from(value).unwrap();
            if is_big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        };
        let mut bytes = number(0xa1b2_3c4d).to_vec();
        bytes.extend([7; 20]);
        for time in times_ns {
            for field in [time / SECOND_NS, time % SECOND_NS, 3, 99] {
                bytes.extend(number(field));
            }
            bytes.extend(b"abc");
        }
        bytes
    }

    fn with_smallest_delay(ns: i64, was_set: bool) -> RunRecord {
        let clock = ClockRecord {
            negative_delays: u64::from(ns < 0),
            smallest_delay_ns: Some(ns),
            was_set,
            ..ClockRecord::default()
        };
        RunRecord {
            capture: Some(CaptureRecord {
                clock,
                ..CaptureRecord::default()
            }),
            ..RunRecord::default()
        }
    }

    #[test]
    fn packets_that_arrive_early_show_how_far_the_offset_is_off_within_its_bound() {
        let clocks = ClockOffset::stated(10);
        let early = |run, idle| {
            let records = [run, idle].map(|ns| with_smallest_delay(ns, false));
            early_within(records.each_ref(), &clocks)
        };
        assert_eq!(early(0, 5), None);
        assert_eq!(early(-3, 5), Some(3));
        assert_eq!(early(2, -10), Some(10));
        // The bound does not explain it.
        assert_eq!(early(-3, -11), None);
        let set = with_smallest_delay(-3, true);
        assert_eq!(
            early_within([&set, &with_smallest_delay(1, false)], &clocks),
            None
        );
        let disagreement = agree(&with_smallest_delay(-11, false), &clocks).unwrap_err();
        assert!(
            disagreement.to_string().contains("differ by more than"),
            "{disagreement}"
        );
    }

    #[test]
    fn times_of_a_capture_are_made_later() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("received.pcap");
        let times = [START_NS, START_NS + SECOND_NS - 1];
        fs::write(&file, capture(&times, false)).unwrap();
        make_later(&file, 37).unwrap();
        let later = capture(&times.map(|time| time + 37), false);
        assert_eq!(fs::read(&file).unwrap(), later);
    }

    #[test]
    fn only_the_times_of_a_capture_are_corrected() {
        let comparison = |at_ns, offset_ns| Comparison {
            at_ns,
            offset_ns,
            bound_ns: 5,
        };
        let offsets = Offsets {
            before: comparison(START_NS, 2 * 1_500_000_000),
            after: comparison(START_NS + 10, 2 * 1_500_000_000),
        };
        for is_big in [true, false] {
            let times = [START_NS + SECOND_NS * 5, START_NS + SECOND_NS * 5 + 1];
            let mut corrected = Vec::new();
            offsets
                .rewrite(capture(&times, is_big).as_slice(), &mut corrected)
                .unwrap();
            assert_eq!(
                corrected,
                capture(&times.map(|time| time - 3 * SECOND_NS), is_big)
            );
            let mut cut_off = capture(&times, is_big);
            cut_off.pop();
            assert!(offsets.rewrite(cut_off.as_slice(), Vec::new()).is_err());
        }
        assert!(offsets.rewrite(&[0_u8; 24][..], Vec::new()).is_err());
    }
}
