//! `slicewise tenant`: tenants of a controller, from the command line.

use crate::exit::Exit;
use crate::slice::{Asked, ConnectionOptions, OrNone, Page, Stop, ask};
use crate::{Failure, noteln};
use clap::{Args, Subcommand};
use slicewise_api::{Tenant, TenantRecord};
use slicewise_report::terminal::{Column, Listing};
use slicewise_stats::words;
use slicewise_units::BitRate;

/// Options of all commands for tenants.
#[derive(Debug, Args)]
pub struct TenantOptions {
    #[command(subcommand)]
    pub command: TenantCommand,
    #[command(flatten)]
    pub controller: ConnectionOptions,
    /// Print JSON, as the controller answers it, instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum TenantCommand {
    /// List tenants with their weight, what they use, and their quota.
    List,
    /// Create a tenant.
    ///
    /// For example: `slicewise tenant add red --weight 2 --most-rate "100 Mbit/s"`, and a token for it: `slicewise controller token add red-portal
    /// --scope tenant:red`.
    Add(DefinitionOptions),
    /// Change a tenant: what is not given stays as it is. `none` takes a quota away.
    Change(DefinitionOptions),
    /// Remove a tenant that has no slices.
    Remove(NameOptions),
}

#[derive(Debug, Args)]
pub struct NameOptions {
    /// The tenant.
    pub name: String,
}

/// A tenant, or what changes of it.
#[derive(Debug, Args)]
pub struct DefinitionOptions {
    /// The tenant.
    pub name: String,
    /// Weight of its share of the excess among tenants [default: 1].
    #[arg(long, value_name = "N")]
    pub weight: Option<u32>,
    /// Most slices, or `none` [default: any number].
    #[arg(long, value_name = "N")]
    pub most_slices: Option<OrNone<u64>>,
    /// Largest sum of guaranteed rates, as "100 Mbit/s", or `none` [default: any]. A slice counts forward and backward, and once however many links it passes.
    #[arg(long, value_name = "RATE")]
    pub most_rate: Option<OrNone<BitRate>>,
}

pub fn tenant(options: &TenantOptions) -> Result<Exit, Failure> {
    ask(&options.controller, options.json, |asked| {
        match &options.command {
            TenantCommand::List => list(asked),
            TenantCommand::Add(options) => add(asked, options),
            TenantCommand::Change(options) => change(asked, options),
            TenantCommand::Remove(options) => remove(asked, &options.name),
        }
    })
}

fn list(asked: &Asked) -> Result<Exit, Stop> {
    let tenants = asked.client.tenants()?;
    asked.print(&tenants, || text(&tenants))?;
    Ok(Exit::Success)
}

fn find(asked: &Asked, name: &str) -> Result<Option<TenantRecord>, Stop> {
    let tenants = asked.client.tenants()?;
    Ok(tenants.into_iter().find(|tenant| tenant.name == name))
}

fn add(asked: &Asked, options: &DefinitionOptions) -> Result<Exit, Stop> {
    let name = &options.name;
    if find(asked, name)?.is_some() {
        return Err(Failure::mistake(format!(
            "there is a tenant `{name}` already: change it with `slicewise tenant change {name}`"
        ))
        .into());
    }
    put(asked, options, Tenant::default())
}

fn change(asked: &Asked, options: &DefinitionOptions) -> Result<Exit, Stop> {
    let name = &options.name;
    let Some(known) = find(asked, name)? else {
        return Err(Failure::mistake(format!(
            "there is no tenant `{name}`: `slicewise tenant list` shows them, `slicewise tenant add {name}` creates it"
        ))
        .into());
    };
    let tenant = Tenant {
        weight: known.weight,
        most_slices: known.most_slices,
        most_rate_bps: known.most_rate_bps,
    };
    put(asked, options, tenant)
}

fn put(asked: &Asked, options: &DefinitionOptions, mut tenant: Tenant) -> Result<Exit, Stop> {
    tenant.weight = options.weight.unwrap_or(tenant.weight);
    if let Some(most) = options.most_slices {
        tenant.most_slices = most.into();
    }
    if let Some(most) = options.most_rate {
        let most: Option<BitRate> = most.into();
        tenant.most_rate_bps = most.map(BitRate::bits_per_second);
    }
    let record = asked.client.put_tenant(&options.name, &tenant)?;
    asked.print(&record, || text(std::slice::from_ref(&record)))?;
    Ok(Exit::Success)
}

fn remove(asked: &Asked, name: &str) -> Result<Exit, Stop> {
    asked.client.remove_tenant(name)?;
    noteln!("tenant `{name}` is removed");
    Ok(Exit::Success)
}

/// Tenants as a table.
fn text(tenants: &[TenantRecord]) -> String {
    let mut table = Listing::new([
        Column::Name("Tenant"),
        Column::Number("Weight"),
        Column::Number("Slices"),
        Column::Number("Most slices"),
        Column::Number("Guaranteed"),
        Column::Number("Most guaranteed"),
    ]);
    let or_any = |most: Option<String>| most.unwrap_or_else(|| "any".to_owned());
    for tenant in tenants {
        let most_rate = tenant.most_rate_bps.map(BitRate::new);
        table.add([
            tenant.name.clone(),
            tenant.weight.to_string(),
            tenant.slices.to_string(),
            or_any(tenant.most_slices.map(|most| most.to_string())),
            BitRate::new(tenant.rate_bps).to_string(),
            or_any(most_rate.map(|most| most.to_string())),
        ]);
    }
    let table = Page::of_output().fitted(table);
    match tenants {
        [_] => table.trim_end().to_owned(),
        _ => table + &words::count(tenants.len() as u64, "tenant"),
    }
}
