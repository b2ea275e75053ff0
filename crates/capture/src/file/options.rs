//! Options of pcapng blocks: a code, a length and a value each, padded to four bytes
//! (draft-ietf-opsawg-pcapng, section 3.5).

/// One option.
pub(super) struct Field<'a> {
    pub code: u16,
    pub value: &'a [u8],
}

/// Yields every option up to the end mark, or to the first that does not fit into `bytes`.
pub(super) fn each<'a>(mut bytes: &'a [u8], big_endian: bool, mut emit: impl FnMut(Field<'a>)) {
    let short = |bytes| {
        if big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    };
    while let Some((&[a, b, c, d], rest)) = bytes.split_first_chunk() {
        let (code, length) = (short([a, b]), usize::from(short([c, d])));
        let Some(value) = rest.get(..length) else {
            return;
        };
        if code == 0 {
            return;
        }
        emit(Field { code, value });
        bytes = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}
