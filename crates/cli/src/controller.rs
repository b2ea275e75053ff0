//! `slicewise controller`: slices as a service.

use crate::Failure;
use crate::arguments::{ControllerAction, ControllerOptions, TokenAction};
use crate::exit::Exit;
use crate::{noteln, outln};
use slicewise_api::NewToken;
use slicewise_controller::{
    self as controller, CHECK_ADVICE, ControllerError, Location, ServeParams, TlsParams,
};

pub fn controller(options: &ControllerOptions) -> Result<Exit, Failure> {
    let location = match &options.store {
        Some(text) => text
            .parse()
            .map_err(|error| Failure::mistake(format!("--store {text}: {error}")))?,
        None => Location::default_place().map_err(Failure::mistake)?,
    };
    match &options.action {
        None => {
            let tls = options.tls_certificate.clone().zip(options.tls_key.clone());
            let params = ServeParams {
                listen: options.listen,
                tls: tls.map(|(certificate, key)| TlsParams { certificate, key }),
                requests_per_second: options.requests_per_second,
            };
            controller::run(&location, &params).map_err(failure)?;
        }
        Some(ControllerAction::Backup { file }) => {
            existing(&location)?;
            let rows = controller::run_backup(&location, file).map_err(failure)?;
            noteln!("{}: {rows} rows of {location}", file.display());
        }
        Some(ControllerAction::Restore { file }) => {
            let restored = controller::run_restore(&location, file).map_err(failure)?;
            for finding in &restored.findings {
                noteln!("warning: the backup was wrong: {finding}");
            }
            noteln!("{location}: {} rows of {}", restored.rows, file.display());
        }
        Some(ControllerAction::Check) => {
            existing(&location)?;
            let findings = controller::run_check(&location).map_err(failure)?;
            for finding in &findings {
                outln!("{finding}");
            }
            if !findings.is_empty() {
                noteln!("{location}: {} findings: {CHECK_ADVICE}", findings.len());
                return Ok(Exit::Failure);
            }
            outln!("{location}: no mistakes found");
        }
        Some(ControllerAction::Adopt { gateways }) => {
            existing(&location)?;
            controller::run_adopt(&location, gateways.clone()).map_err(failure)?;
            noteln!("{}: adopted by {location}", gateways.join(", "));
        }
        Some(ControllerAction::Token { action }) => {
            // The first token may come before the first start, which needs one where others can reach the controller.
            match (action, &options.store) {
                (TokenAction::Add { .. }, Some(_)) if !location.exists() => {
                    noteln!("{location} is new");
                }
                _ => existing(&location)?,
            }
            token(&location, action)?;
        }
    }
    Ok(Exit::Success)
}

/// Checks that the store exists: a request to a store that no controller uses is a mistake.
fn existing(location: &Location) -> Result<(), Failure> {
    match location.exists() {
        true => Ok(()),
        false => Err(Failure::mistake(format!(
            "there is no store {location}: state that of the controller with `--store`, as its service does, or start the controller once, which makes it"
        ))),
    }
}

fn token(location: &Location, action: &TokenAction) -> Result<(), Failure> {
    match action {
        TokenAction::Add { name, scope } => {
            let scope = scope
                .parse()
                .map_err(|error| Failure::mistake(format!("--scope: {error}")))?;
            let name = name.clone();
            let created = controller::run_token_add(location, NewToken { name, scope });
            let created = created.map_err(failure)?;
            noteln!(
                "token `{}` with scope `{}`; it is not shown again:",
                created.name,
                created.scope
            );
            outln!("{}", created.token);
        }
        TokenAction::List => {
            for token in controller::run_token_list(location).map_err(failure)? {
                outln!(
                    "{}  {}  made by {}",
                    token.name,
                    token.scope,
                    token.created_by
                );
            }
        }
        TokenAction::Remove { name } => {
            controller::run_token_remove(location, name.clone()).map_err(failure)?;
            noteln!("token `{name}` is revoked");
        }
    }
    Ok(())
}

fn failure(error: ControllerError) -> Failure {
    match error.is_mistake() {
        true => Failure::mistake(error),
        false => Failure::system(error),
    }
}
