//! The guarantees of one policy, on every link that has to admit them.

use super::choice::choose;
use super::{Admission, AdmissionParams, GuaranteeParams, GuaranteeRequest, Refusal};
use slicewise_units::Duration;

/// Reservation of one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Its guarantee.
    pub guarantee: GuaranteeParams,
    /// The longest delay of its frames, which is that of the guarantee unless this has just changed. Buffers have room for
    /// what waits so long.
    pub longest: Duration,
}

impl From<GuaranteeParams> for Reservation {
    fn from(guarantee: GuaranteeParams) -> Self {
        Self {
            guarantee,
            longest: guarantee.delay,
        }
    }
}

impl Reservation {
    /// One that has what either has.
    #[must_use]
    pub fn covering(self, guarantee: GuaranteeParams) -> Self {
        let own = self.guarantee;
        Self {
            guarantee: GuaranteeParams {
                rate: own.rate.max(guarantee.rate),
                burst: own.burst.max(guarantee.burst),
                delay: own.delay.min(guarantee.delay),
                smallest_frame: own.smallest_frame.min(guarantee.smallest_frame),
            },
            longest: self.longest.max(guarantee.delay),
        }
    }
}

/// Guarantees admitted on a port and, where a device forwards less than its port could, on what it
/// forwards: a guarantee is admitted on both or on neither. It lives as long as the policy, and each
/// change of a slice updates it in O(1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservations {
    pub(super) admissions: Vec<Admission>,
}

impl Reservations {
    /// Nothing is reserved yet on `links`.
    #[must_use]
    pub fn new(links: &[AdmissionParams]) -> Self {
        Self {
            admissions: links.iter().cloned().map(Admission::new).collect(),
        }
    }

    /// The parameters of the links.
    pub fn links(&self) -> impl Iterator<Item = &AdmissionParams> {
        self.admissions.iter().map(Admission::params)
    }

    /// Reserve what is requested on every link, or nothing. `None` if there is no link.
    ///
    /// # Errors
    /// If not every bound could be met: that of the request, and those already admitted.
    pub fn try_admit(
        &mut self,
        request: &GuaranteeRequest,
    ) -> Result<Option<GuaranteeParams>, Refusal> {
        if self.admissions.is_empty() {
            return Ok(None);
        }
        let delay = choose(&self.admissions, request, 1, None)?;
        let given = request.with_delay(delay);
        self.restore(given);
        Ok(Some(given))
    }

    /// Reserve a guarantee with just its delay on every link, or more, or nothing.
    ///
    /// # Errors
    /// As [`try_admit`](Self::try_admit).
    pub fn try_reserve(&mut self, reservation: impl Into<Reservation>) -> Result<(), Refusal> {
        let reservation = reservation.into();
        let Reservation { guarantee, longest } = reservation;
        // A longer delay takes no more of the link, but more of the buffer.
        let waiting = GuaranteeParams {
            delay: longest,
            ..guarantee
        };
        for admission in &self.admissions {
            admission.test_exactly(&guarantee)?;
            if longest != guarantee.delay {
                admission.test_exactly(&waiting)?;
            }
        }
        self.restore(reservation);
        Ok(())
    }

    /// Reserve what has been admitted before, without another test.
    pub fn restore(&mut self, reservation: impl Into<Reservation>) {
        let reservation = reservation.into();
        for admission in &mut self.admissions {
            admission.take(&reservation);
        }
    }

    /// Release what was reserved here.
    pub fn release(&mut self, reservation: impl Into<Reservation>) {
        let reservation = reservation.into();
        for admission in &mut self.admissions {
            admission.give_back(&reservation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DelayRange, Rate};
    use slicewise_units::{Accounting, BitRate, ByteCount};

    fn link(mbit: u64) -> AdmissionParams {
        AdmissionParams {
            link: Rate::l2(BitRate::new(mbit * 1_000_000)),
            accounting: Accounting::L2,
            largest_frame: ByteCount::new(1_522),
            buffer: None,
            delays: DelayRange::new(Duration::from_micros(10), Duration::from_millis(100)),
        }
    }

    fn request(mbit: u64) -> GuaranteeRequest {
        GuaranteeRequest {
            rate: BitRate::new(mbit * 1_000_000),
            burst: ByteCount::new(3_044),
            delay: Some(Duration::from_millis(50)),
            smallest_frame: ByteCount::ZERO,
        }
    }

    #[test]
    fn a_guarantee_that_one_link_refuses_is_reserved_on_none() {
        let mut both = Reservations::new(&[link(100), link(50)]);
        both.try_admit(&request(20)).unwrap();
        let before = both.clone();
        assert!(both.try_admit(&request(40)).is_err(), "the second has 30");
        assert_eq!(both, before);
    }

    /// 50 ms of 10 Mbit/s are 62.5 kB beside the burst, and 10 ms are 12.5 kB.
    #[test]
    fn buffers_have_room_for_what_waits_longest() {
        let with = |buffer| AdmissionParams {
            buffer: Some(ByteCount::new(buffer)),
            ..link(100)
        };
        let mut reserved = Reservations::new(&[with(70_000)]);
        let guarantee = reserved.try_admit(&request(10)).unwrap().unwrap();
        let sooner = GuaranteeRequest {
            delay: Some(Duration::from_millis(10)),
            ..request(10)
        };
        reserved.release(guarantee);
        let empty = reserved.clone();
        let shorter = reserved.try_admit(&sooner).unwrap().unwrap();
        reserved.release(shorter);
        let both = Reservation::from(guarantee).covering(shorter);
        assert_eq!((both.guarantee, both.longest), (shorter, guarantee.delay));
        reserved.try_reserve(both).unwrap();
        let full = reserved.clone();
        assert!(reserved.try_reserve(shorter).is_err());
        assert!(reserved.try_reserve(both).is_err());
        assert_eq!(reserved, full);
        reserved.release(both);
        assert_eq!(reserved, empty);
    }

    #[test]
    fn what_is_released_can_be_reserved_again() {
        let mut both = Reservations::new(&[link(100), link(50)]);
        let empty = both.clone();
        let given = both.try_admit(&request(40)).unwrap().unwrap();
        assert!(both.try_reserve(given).is_err());
        both.release(given);
        assert_eq!(both, empty);
        both.try_reserve(given).unwrap();
        let reserved = both.clone();
        both.release(given);
        both.restore(given);
        assert_eq!(both, reserved);
    }
}
