//! `slicewise slice`: slices of a controller, from the command line.

mod arguments;
mod definition;
mod terms;
mod text;

pub use arguments::{ConnectionOptions, SliceOptions};
pub use terms::OrNone;
pub use text::Page;

use crate::exit::Exit;
use crate::{Failure, errln, output};
use arguments::{DefinitionOptions, ListOptions, NamesOptions, SliceCommand, StateName};
use serde::Serialize;
use slicewise_api::{
    Batch, Change, Client, ClientError, ClientParams, Precondition, Problem, Slice, SliceQuery,
    SliceRecord, SliceState,
};
use std::env;
use std::fs;

/// Where a controller listens by default.
const CONTROLLER: &str = "http://127.0.0.1:9650";
/// Slices of one part of the list.
const PART: u32 = 1000;

pub fn slice(options: &SliceOptions) -> Result<Exit, Failure> {
    ask(&options.controller, options.json, |asked| {
        match &options.command {
            SliceCommand::List(options) => asked.list(options),
            SliceCommand::Show(options) => asked.show(&options.name),
            SliceCommand::Add(options) => asked.add(options),
            SliceCommand::Change(options) => asked.change(options),
            SliceCommand::Remove(options) => asked.remove(options),
            SliceCommand::Purge(options) => asked.purge(options),
            SliceCommand::Offer(options) => asked.offer(options),
        }
    })
}

/// Asks a controller, and prints what it refuses.
pub fn ask(
    controller: &ConnectionOptions,
    json: bool,
    act: impl FnOnce(&Asked) -> Result<Exit, Stop>,
) -> Result<Exit, Failure> {
    let client = connect(controller)?;
    let asked = Asked { client, json };
    act(&asked).or_else(|stop| match stop {
        Stop::Failure(failure) => Err(failure),
        Stop::Client(error) => asked.refused(&error),
    })
}

fn connect(options: &ConnectionOptions) -> Result<Client, Failure> {
    let from_environment = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let token = match &options.token_file {
        Some(file) => {
            let text = fs::read_to_string(file).map_err(|error| {
                Failure::mistake(format!(
                    "cannot read the token from {}: {error}",
                    file.display()
                ))
            })?;
            Some(text.trim().to_owned())
        }
        None => from_environment("SLICEWISE_TOKEN"),
    };
    let url = options.controller.clone();
    Client::new(&ClientParams {
        url: url
            .or_else(|| from_environment("SLICEWISE_CONTROLLER"))
            .unwrap_or_else(|| CONTROLLER.to_owned()),
        token,
        authorities: options.authorities.clone(),
    })
    .map_err(Failure::mistake)
}

/// Why a command did not go on.
pub enum Stop {
    Failure(Failure),
    Client(ClientError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

/// A controller that is asked, and how answers are printed.
pub struct Asked {
    pub client: Client,
    json: bool,
}

impl Asked {
    /// Print `value` as JSON, or else the text.
    pub fn print(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Stop> {
        if self.json {
            let value = serde_json::to_value(value).map_err(Failure::system)?;
            output::json(&value);
        } else {
            output::coloured_line(&text());
        }
        Ok(())
    }

    fn list(&self, options: &ListOptions) -> Result<Exit, Stop> {
        let most = options.limit.unwrap_or(usize::MAX);
        let mut found: Vec<SliceRecord> = Vec::new();
        let mut query = SliceQuery {
            after: None,
            limit: Some(PART),
            tenant: options.tenant.clone(),
            state: options.state.map(state),
            link: options.link.clone(),
            name_contains: options.name.clone(),
            count: options.limit.is_some(),
        };
        let mut total = None;
        loop {
            let part = self.client.slices(&query)?;
            total = total.or(part.total);
            query.count = false;
            found.extend(part.items);
            query.after = part.next;
            if query.after.is_none() || found.len() >= most {
                break;
            }
        }
        found.truncate(most);
        self.print(&found, || text::list(&found, total, Page::of_output()))?;
        Ok(Exit::Success)
    }

    fn show(&self, name: &str) -> Result<Exit, Stop> {
        let record = self.client.slice(name)?;
        if self.json {
            self.print(&record, String::new)?;
            return Ok(Exit::Success);
        }
        let counters = self.client.slice_counters(name, false)?;
        output::coloured_line(&text::slice(&record, &counters, Page::of_output()));
        Ok(Exit::Success)
    }

    fn add(&self, options: &DefinitionOptions) -> Result<Exit, Stop> {
        let slice = definition::define(options, None, &self.client.links()?)?;
        self.put(&slice, Precondition::Absent)
    }

    fn change(&self, options: &DefinitionOptions) -> Result<Exit, Stop> {
        let known = self.client.slice(&options.name)?;
        let slice = definition::define(options, Some(&known), &self.client.links()?)?;
        self.put(&slice, Precondition::Version(known.version))
    }

    fn put(&self, slice: &Slice, precondition: Precondition) -> Result<Exit, Stop> {
        let answer = self.client.put_slice(slice, precondition, None)?;
        self.print(&answer.value, || text::put(&answer))?;
        Ok(Exit::Success)
    }

    fn remove(&self, options: &NamesOptions) -> Result<Exit, Stop> {
        let changes = options.names.iter().cloned().map(Change::Remove).collect();
        let batch = Batch {
            changes,
            reason: None,
        };
        let answer = self.client.batch(&batch, None)?;
        self.print(&answer, || text::removed(&answer))?;
        Ok(Exit::Success)
    }

    fn purge(&self, options: &NamesOptions) -> Result<Exit, Stop> {
        for name in &options.names {
            let record = self.client.purge_slice(name, None)?;
            self.print(&record, || text::purged(&record))?;
        }
        Ok(Exit::Success)
    }

    fn offer(&self, options: &DefinitionOptions) -> Result<Exit, Stop> {
        let known = match self.client.slice(&options.name) {
            Ok(record) => Some(record),
            Err(error) if error.status() == Some(404) => None,
            Err(error) => return Err(error.into()),
        };
        let slice = definition::define(options, known.as_ref(), &self.client.links()?)?;
        let answer = self.client.offer(&slice)?;
        self.print(&answer, || text::offer(&answer))?;
        Ok(if answer.accepted {
            Exit::Success
        } else {
            Exit::Failure
        })
    }

    /// Prints the controller's refusal, with the alternatives that it would accept.
    fn refused(&self, error: &ClientError) -> Result<Exit, Failure> {
        let ClientError::Refused(problem) = error else {
            return Err(match error {
                ClientError::Params(_) => Failure::mistake(error),
                _ => Failure::system(error),
            });
        };
        if self.json {
            let value = serde_json::to_value(problem).map_err(Failure::system)?;
            output::json(&value);
        }
        errln!("error: {}", text::problem(problem));
        Ok(exit(problem))
    }
}

/// A request that is wrong is the user's mistake; one that does not fit is not.
const fn exit(problem: &Problem) -> Exit {
    match problem.status {
        409 | 429 | 500..=599 => Exit::Failure,
        _ => Exit::Mistake,
    }
}

const fn state(name: StateName) -> SliceState {
    match name {
        StateName::Admitted => SliceState::Admitted,
        StateName::Installed => SliceState::Installed,
        StateName::Draining => SliceState::Draining,
    }
}
