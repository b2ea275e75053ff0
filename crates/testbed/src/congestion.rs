//! Congestion controls by the names that Linux gives them.

use slicewise_live::sys::socket;
use slicewise_traffic::transport::CongestionControl;
use std::os::fd::AsFd;

/// Its name in `tcp_available_congestion_control`.
pub(crate) const fn name(control: CongestionControl) -> &'static str {
    match control {
        CongestionControl::NewReno => "reno",
        CongestionControl::Cubic => "cubic",
        CongestionControl::Dctcp => "dctcp",
        CongestionControl::Bbr => "bbr",
        CongestionControl::Prague => "prague",
    }
}

/// Returns true if this kernel has the congestion control; root has it loaded where it is a module.
pub(crate) fn is_available(control: CongestionControl) -> bool {
    let stream = socket::open(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP);
    stream.is_ok_and(|stream| socket::set_congestion(stream.as_fd(), name(control)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_reno() {
        assert!(is_available(CongestionControl::NewReno));
    }
}
