//! Damage of SQLite's write-ahead log.
//!
//! After a crash SQLite takes the frames of the log up to the first one whose checksum is wrong, without a word: after a power failure the last
//! transaction may be torn. But where a frame before that is damaged, transactions that were answered are lost, and pages of before replace
//! newer ones that had been moved to the file. So a log that has two or more ends of transactions behind the first wrong frame is refused
//! (format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>).

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// Bytes of the header of a log, and of a frame.
const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// First number of a log whose checksums are of little-endian numbers; one more where they are of big-endian ones.
const MAGIC: u32 = 0x377f_0682;
/// Page sizes.
const PAGE_BYTES: std::ops::RangeInclusive<usize> = 512..=65_536;
/// Ends of transactions that a torn write can leave behind the first wrong frame.
const TORN_COMMITS: u64 = 1;
/// Between two looks: another process may begin the log anew.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns whether the log of the store at `path` is damaged; a store without a log is not.
pub(super) fn is_damaged(path: &Path) -> io::Result<bool> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log = Path::new(&log);
    let Some(first) = lost_commits(log)?.filter(|found| found.lost > TORN_COMMITS) else {
        return Ok(false);
    };
    std::thread::sleep(PAUSE);
    Ok(lost_commits(log)?.is_some_and(|again| again == first))
}

/// A log that has more behind its last right frame.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    header: [u8; HEADER_BYTES],
    /// Ends of transactions behind the first wrong frame.
    lost: u64,
}

/// `None` without a log, or with one that has not begun.
fn lost_commits(log: &Path) -> io::Result<Option<Found>> {
    let file = match File::open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut file = BufReader::new(file);
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut file, &mut header)? {
        return Ok(None);
    }
    let [magic, _, page, _, salt1, salt2, sum1, sum2] = numbers(&header);
    let little = match magic {
        MAGIC => true,
        _ if magic == MAGIC + 1 => false,
        // Which numbers are summed does not matter: nothing follows from this header.
        _ => true,
    };
    let own = sum([0; 2], &header[..HEADER_BYTES - 8], little);
    let page = usize::try_from(page).unwrap_or_default();
    let is_page = PAGE_BYTES.contains(&page) && page.is_power_of_two();
    let is_right = magic & !1 == MAGIC && is_page && own == [sum1, sum2];
    let mut chain = is_right.then_some(own);
    let mut salts = is_right.then_some([salt1, salt2]);
    let page = if is_page { page } else { 4_096 };
    let mut frame = vec![0; FRAME_HEADER_BYTES + page];
    let mut lost = 0;
    while fill(&mut file, &mut frame)? {
        let [_, commit, salt1, salt2, sum1, sum2] = numbers(&frame);
        // Without a header, the first frame says which are of this log.
        let is_own = *salts.get_or_insert([salt1, salt2]) == [salt1, salt2];
        let (head, content) = (frame.get(..8), frame.get(FRAME_HEADER_BYTES..));
        let next = chain.zip(head.zip(content));
        let next =
            next.map(|(chain, (head, content))| sum(sum(chain, head, little), content, little));
        chain = next.filter(|next| is_own && *next == [sum1, sum2]);
        lost += u64::from(chain.is_none() && is_own && commit != 0);
    }
    Ok(Some(Found { header, lost }))
}

/// Reads all of `buffer`. Returns false at the end, also where it is in the middle.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// The first numbers of a header, which are big-endian.
fn numbers<const COUNT: usize>(bytes: &[u8]) -> [u32; COUNT] {
    let mut found = [0; COUNT];
    for (number, bytes) in found.iter_mut().zip(bytes.chunks_exact(4)) {
        *number = u32::from_be_bytes(bytes.try_into().unwrap_or_default());
    }
    found
}

/// The checksum after `bytes`, as the format defines it.
fn sum([mut a, mut b]: [u32; 2], bytes: &[u8], little: bool) -> [u32; 2] {
    let number = |bytes: &[u8]| {
        let bytes = bytes.try_into().unwrap_or_default();
        if little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        }
    };
    for pair in bytes.chunks_exact(8) {
        let (first, second) = pair.split_at(4);
        a = a.wrapping_add(number(first)).wrapping_add(b);
        b = b.wrapping_add(number(second)).wrapping_add(a);
    }
    [a, b]
}
