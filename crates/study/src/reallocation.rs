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
        let device = self.device.as_ref().unwrap_or(dut);
        match &self.reallocation {
            Some(reallocation) => device::fitting(&reallocation.apply(&self.spec, rates), device),
            None => device::fitting(&self.spec, device),
        }
    }
}
