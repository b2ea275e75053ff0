//! `slicewise export`: a policy of a study as a device's configuration.

use crate::Failure;
use crate::arguments::{ExportOptions, Language};
use crate::check::load_study;
use crate::exit::Exit;
use slicewise_formats::ios;

pub fn export(options: &ExportOptions) -> Result<Exit, Failure> {
    let study = load_study(&options.study)?;
    let Some(policy) = study
        .policies
        .iter()
        .find(|policy| policy.name == options.policy)
    else {
        let names: Vec<&str> = study.policies.iter().map(|p| p.name.as_str()).collect();
        return Err(Failure::mistake(format!(
            "the study has no policy `{}`: it has {}",
            options.policy,
            names.join(", ")
        )));
    };
    let text = match options.to {
        Language::Ios => ios::write(&policy.spec).map_err(Failure::mistake)?,
    };
    print!("{text}");
    Ok(Exit::Success)
}
