//! Places of scenarios on the axis of charts.

use super::Checker;
use crate::problem;
use crate::spec::At;
use slicewise_stats::description::number_and_unit;

impl Checker<'_> {
    /// All scenarios state a number of their own in one unit, or none states any.
    pub(super) fn check_places<'n>(
        &mut self,
        scenarios: impl Iterator<Item = (&'n At<String>, Option<&'n At<String>>)>,
    ) {
        let scenarios: Vec<_> = scenarios.collect();
        let mut known: Vec<(f64, &str)> = Vec::new();
        for place in scenarios.iter().filter_map(|(_, place)| *place) {
            let Some((number, unit)) =
                number_and_unit(&place.value).filter(|(_, unit)| !unit.is_empty())
            else {
                problem!(self.problems, place.span => "`{}` is no number with a unit", place.value;
                    "write a number, then its quantity and unit: `30000 requests/s`");
                return;
            };
            if let Some((_, first)) = known.first().filter(|(_, first)| *first != unit) {
                problem!(self.problems, place.span => "`{unit}` is not the unit of the scenarios before: `{first}`";
                    "give all scenarios numbers in one unit");
                return;
            }
            if known.iter().any(|(other, _)| *other == number) {
                problem!(self.problems, place.span => "another scenario is at {number} {unit} already");
                return;
            }
            known.push((number, unit));
        }
        let missing = scenarios.iter().find(|(_, place)| place.is_none());
        if let (Some((name, _)), false) = (missing, known.is_empty()) {
            problem!(self.problems, name.span => "scenario `{}` states no `x`, and others do", name.value;
                "state one for every scenario, or for none");
        }
    }
}
