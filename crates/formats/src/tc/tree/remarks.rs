//! How what HTB does differs from what a policy asks for.

use super::{Htb, Writer, path_of};
use slicewise_model::ClassParams;
use slicewise_units::Accounting;

impl Writer<'_> {
    /// Rates of a class that count what the kernel does not.
    pub(super) fn rate_differences(&mut self, class: &ClassParams, path: &str) {
        let rates = [
            (
                "priority rate",
                class.priority.and_then(|p| p.police).map(|(r, _)| r),
            ),
            ("minimum", class.minimum.map(|(rate, _)| rate)),
            ("shaper", class.shape.map(|shape| shape.rate)),
        ];
        for (what, rate) in rates {
            if let Some(rate) = rate {
                self.rate_difference(&format!("The {what} of class `{path}`"), rate.accounting);
            }
        }
    }

    pub(super) fn rate_difference(&mut self, what: &str, accounting: Accounting) {
        if let Some(difference) = self.counting.difference(what, accounting, true) {
            self.differs(difference);
        }
    }

    /// How HTB differs, where that matters for this policy.
    pub(super) fn remarks(&mut self, htb: &Htb<'_>) {
        let classes = &htb.policy.classes;
        let frame = self.counting.largest_frame().bytes();
        if classes
            .iter()
            .any(|c| c.priority.is_some() || c.minimum.is_some())
            && classes
                .iter()
                .any(|c| c.priority.is_none() && c.minimum.is_none())
        {
            self.differs(
                "HTB gives every class a rate: a class without one gets the smallest, 8 bit/s, and \
                 sends one frame per minute as if it were within a minimum (behind priority \
                 classes within their rates)."
                    .to_owned(),
            );
        }
        for class in classes {
            let path = path_of(htb.place.path, class);
            if let Some((rate, burst)) = class.priority.and_then(|p| p.police) {
                self.differs(format!(
                    "Frames of priority class `{path}` beyond {} and {} bytes of burst are not dropped \
                     while others wait: they wait behind what is kept for the others, in the queue of \
                     the class, so that the others lose nothing by it, and its own frames are late \
                     before they are lost.",
                    rate.rate,
                    burst.bytes()
                ));
            }
            if let Some(shape) = class.shape {
                self.differs(format!(
                    "The shaper of class `{path}` lets a frame go while there is any credit, not once \
                     there is enough for it; its bucket is one frame of {frame} bytes smaller for that, so \
                     that no more leaves in any time than {} bytes of burst and the rate. A burst of \
                     shorter frames is up to {frame} bytes smaller.",
                    shape.burst.bytes()
                ));
            }
        }
    }
}
