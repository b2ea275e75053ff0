//! Objects of the page's script, and estimates as it reads them.

use slicewise_stats::estimate::Estimate;
use slicewise_stats::summary::SliceSummary;
use std::collections::BTreeMap;

/// An object of the script: `NAME: TYPE = VALUE` describes each field once, for the type and for its making.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? ($($of:tt: $of_type:ty),*) {
        $($(#[$attribute:meta])* $field:ident: $type:ty = $value:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Serialize)]
        pub(crate) struct $name $(<$life>)? {
            $($(#[$attribute])* $field: $type,)*
        }

        impl $(<$life>)? $name $(<$life>)? {
            pub(crate) fn of($($of: $of_type),*) -> Self {
                Self { $($field: $value,)* }
            }
        }
    };
}
pub(crate) use object;

/// Mean and interval.
pub(crate) type EstimateView = (f64, Option<f64>, Option<f64>);

/// Estimates of the quantities over a span, by name.
pub(crate) type SliceFigures = BTreeMap<&'static str, EstimateView>;

pub(crate) fn slice_figures(slice: &SliceSummary) -> SliceFigures {
    let estimates = slice.steady.iter();
    let figures = estimates.map(|(quantity, of)| Some((quantity.name(), estimate(Some(of))?)));
    figures.flatten().collect()
}

pub(crate) fn estimate(estimate: Option<&Estimate>) -> Option<EstimateView> {
    estimate.map(|e| (e.mean, e.interval.low, e.interval.high))
}
