//! The machine that runs classic BPF (McCanne and Jacobson 1993), as Linux runs it on a packet at
//! egress, for programs without the rare operations.

use slicewise_formats::tc::Program;

/// A packet as a filter at egress sees it.
pub struct Packet {
    /// From the destination address on.
    pub bytes: Vec<u8>,
    /// The outer tag's control information, where Linux keeps it beside the packet.
    pub tag_beside: Option<u16>,
}

const EXTENSIONS_FROM: u32 = 0xffff_f000;

impl Packet {
    fn load(&self, at: u32, bytes: u32) -> Option<u32> {
        if at >= EXTENSIONS_FROM {
            return Some(match at - EXTENSIONS_FROM {
                44 => self.tag_beside.unwrap_or(0).into(),
                48 => self.tag_beside.is_some().into(),
                other => panic!("no extension {other}"),
            });
        }
        let at = usize::try_from(at).unwrap();
        let end = at.checked_add(usize::try_from(bytes).unwrap())?;
        let loaded = self.bytes.get(at..end)?;
        Some(loaded.iter().fold(0, |word, b| word << 8 | u32::from(*b)))
    }
}

/// What the program returns. Panics on what the kernel refuses to load: scratch memory read before
/// it is written on the way taken, an unknown operation, a run past the end.
pub fn run(program: &Program, packet: &Packet) -> u32 {
    let (mut a, mut x, mut scratch) = (0u32, 0u32, [None::<u32>; 16]);
    let mut at = 0;
    loop {
        let i = program.instructions()[at];
        let k = i.operand;
        let slot = usize::try_from(k & 15).unwrap();
        at += 1;
        let mut jump = |holds: bool| {
            at += usize::from(if holds { i.jump_true } else { i.jump_false });
        };
        match i.code {
            0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 => {
                let bytes = [4, 2, 1][usize::from(i.code >> 3 & 3)];
                let from = if i.code & 0xe0 == 0x40 {
                    x.wrapping_add(k)
                } else {
                    k
                };
                match packet.load(from, bytes) {
                    Some(value) => a = value,
                    None => return 0,
                }
            }
            0x00 => a = k,
            0x80 => a = u32::try_from(packet.bytes.len()).unwrap(),
            0x60 => a = scratch[slot].expect("written before it is read"),
            0x01 => x = k,
            0x61 => x = scratch[slot].expect("written before it is read"),
            0x02 => scratch[slot] = Some(a),
            0x03 => scratch[slot] = Some(x),
            0x04 => a = a.wrapping_add(k),
            0x0c => a = a.wrapping_add(x),
            0x1c => a = a.wrapping_sub(x),
            0x54 => a &= k,
            0x64 => a <<= k,
            0x74 => a >>= k,
            0x07 => x = a,
            0x05 => at += usize::try_from(k).unwrap(),
            0x15 => jump(a == k),
            0x25 => jump(a > k),
            0x35 => jump(a >= k),
            0x45 => jump(a & k != 0),
            0x3d => jump(a >= x),
            0x06 => return k,
            other => panic!("no operation {other:#x}"),
        }
    }
}
