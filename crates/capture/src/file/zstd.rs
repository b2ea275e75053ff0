//! Zstandard (RFC 8878): consecutive frames, skippable ones included, with checksums verified.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{BufRead, Error, ErrorKind, Read};

/// A frame with a larger window than this is rejected: it would need that much memory.
const MOST_WINDOW_BYTES: u64 = 128 << 20;

pub(super) struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    pub fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MOST_WINDOW_BYTES);
        Self {
            source,
            decoder,
            in_frame: false,
        }
    }

    /// Begins the next frame; false at the end.
    fn begin(&mut self) -> std::io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut frame = (&mut self.source).take(length.into());
                    std::io::copy(&mut frame, &mut std::io::sink())?;
                }
                Err(error) => return Err(damaged(error)),
            }
        }
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.in_frame = false;
        match self.decoder.get_checksum_from_data() {
            Some(stated) if self.decoder.get_calculated_checksum() != Some(stated) => {
                Err(damaged("checksum mismatch"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(damaged)?;
            }
            let read = self.decoder.read(bytes)?;
            if read > 0 || bytes.is_empty() {
                return Ok(read);
            }
            self.finish()?;
        }
    }
}

fn damaged(why: impl std::fmt::Display) -> Error {
    let why = why.to_string();
    // The decoder wraps the error of its source as text.
    if why.contains("UnexpectedEof") {
        return Error::new(ErrorKind::UnexpectedEof, "the zstd data ends early");
    }
    Error::new(ErrorKind::InvalidData, format!("damaged zstd data: {why}"))
}
