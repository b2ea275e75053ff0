//! Short constructors for links and requests.

use slicewise_model::{Admission, AdmissionParams, DelayRange, GuaranteeRequest, Rate};
use slicewise_units::{Accounting, ByteCount, Duration};

/// A link with delays from 10 us to 100 ms and frames of up to 1500 B.
pub(crate) fn params(link: &str) -> AdmissionParams {
    AdmissionParams {
        link: Rate::l2(link.parse().unwrap()),
        accounting: Accounting::L2,
        largest_frame: "1500 B".parse().unwrap(),
        buffer: None,
        delays: DelayRange::new(Duration::from_micros(10), Duration::from_millis(100)),
    }
}

pub(crate) fn link(rate: &str) -> Admission {
    Admission::new(params(rate))
}

pub(crate) fn request(rate: &str, burst: &str, delay: &str) -> GuaranteeRequest {
    GuaranteeRequest {
        delay: Some(delay.parse().unwrap()),
        ..without_objective(rate, burst)
    }
}

pub(crate) fn without_objective(rate: &str, burst: &str) -> GuaranteeRequest {
    GuaranteeRequest {
        rate: rate.parse().unwrap(),
        burst: burst.parse().unwrap(),
        delay: None,
        smallest_frame: ByteCount::ZERO,
    }
}
