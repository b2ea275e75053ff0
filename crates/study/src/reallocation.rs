//! Policies whose rates a control loop sets.

use crate::device;
use crate::params::DutParams;
use crate::study::StudyPolicy;
use slicewise_model::{PolicyError, PolicyParams};
use slicewise_units::BitRate;

impl StudyPolicy {
    /// Returns the policy as its device runs it, `dut` unless it has its own, when its loop has set these rates of its classes.
    ///
    /// # Errors
    /// If the device cannot run it so, which is checked for the limits of the classes.
    pub fn reallocated(
        &self,
        dut: &DutParams,
        rates: &[BitRate],
    ) -> Result<PolicyParams, PolicyError> {
        let classes = self.reallocation.iter().flat_map(|own| &own.classes);
        let names = classes.map(|class| class.name.as_str());
        let spec = self.spec.with_rates(names.zip(rates.iter().copied()));
        device::fitting(&spec, self.device.as_ref().unwrap_or(dut))
    }
}
