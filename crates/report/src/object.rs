//! Objects of the page's script, and estimates as it reads them.

use crate::data::quantities;
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

/// Estimates by what the script calls them: `throughput`, `loss`, and all of delay and its variation under
/// their columns' names without the unit.
pub(crate) type SliceFigures = BTreeMap<&'static str, Option<EstimateView>>;

pub(crate) fn slice_figures(slice: &SliceSummary) -> SliceFigures {
    let figures = quantities(&slice.steady).into_iter();
    let figures = figures.filter_map(|(column, value)| {
        let name = match column {
            "throughput_bits_per_second" => "throughput",
            "loss_ratio" => "loss",
            time => time.strip_suffix("_ns")?,
        };
        Some((name, estimate(value)))
    });
    figures.collect()
}

pub(crate) fn estimate(estimate: Option<&Estimate>) -> Option<EstimateView> {
    estimate.map(|e| (e.mean, e.interval.low, e.interval.high))
}
