//! `slicewise gateway`: forward real packets, sliced as a configuration says.

use crate::Failure;
use crate::arguments::GatewayOptions;
use crate::exit::Exit;
use crate::fit::{SEED, direction, load_gateway};
use crate::load::{load_study, policy_named, warn};
use crate::{noteln, outln};
use slicewise_agent::{Agent, AgentParams};
use slicewise_live::gateway::{self, GatewayError, GatewayParams, OpenError, PacketIo, WaitMode};
use slicewise_live::{DirectionParams, EngineParams, log};
use slicewise_model::{Discipline, ReallocatedPolicy};
use slicewise_study::{
    DEFAULT_MEMORY, DEFAULT_METRICS_PORT, GatewayConfig, GatewayController, GatewayPacketIo, Pacing,
};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

pub fn gateway(options: &GatewayOptions) -> Result<Exit, Failure> {
    // Of a study with a timeline, each load is of the phase after that of the last one.
    let loads = AtomicUsize::new(0);
    let load = || match (&options.config, &options.study) {
        (Some(file), _) => {
            let mut config = load_gateway(file)?;
            warn(&config.warnings);
            let controller = config.controller.take();
            Ok((params(config), controller))
        }
        (None, Some(study)) => {
            let params = of_study(study, options, loads.fetch_add(1, Ordering::Relaxed))?;
            Ok((params, None))
        }
        (None, None) => Err(Failure::mistake(
            "neither a configuration nor a study is named",
        )),
    };
    let (params, controller) = load()?;
    for (direction, of) in ["forward", "backward"].iter().zip(&params.directions) {
        for note in of.policy.loss_notes() {
            noteln!("note: {direction}: {note}");
        }
    }
    if options.check {
        // Of a configuration, that was checked where it was read.
        let engine = EngineParams::at_least(params.directions, params.memory_bytes);
        engine.check().map_err(Failure::mistake)?;
        let [first, second] = &params.interfaces;
        let file = options.config.as_ref().or(options.study.as_ref());
        let file = file.map_or_else(String::new, |file| file.display().to_string());
        outln!("{file}: {first} and {second}: no mistakes found");
        return Ok(Exit::Success);
    }
    if options.debug {
        log::show_debug();
    }
    let wait = WaitMode {
        busy_poll: options.busy_poll,
        keep_awake: options.keep_awake,
    };
    let kinds = disciplines(&params);
    let mut reload = || {
        let (params, other) = load().map_err(|failure| failure.to_string())?;
        if other != controller {
            return Err("changing `controller` requires a restart".to_owned());
        }
        if controller.is_some() && disciplines(&params) != kinds {
            let problem = "changing the discipline under a controller requires a restart";
            return Err(problem.to_owned());
        }
        Ok(params)
    };
    let agent = controller.clone().map(|controller| {
        Agent::open(
            agent_params(controller, params.memory_bytes),
            params.directions.clone(),
        )
    });
    let agent = agent.transpose().map_err(Failure::mistake)?;
    let agent = agent.map(Agent::into_controller);
    match gateway::run(&params, wait, &mut reload, agent) {
        Ok(_) => Ok(Exit::Success),
        Err(error) if is_mistake(&error) => Err(Failure::mistake(error)),
        Err(error) => Err(Failure::system(error)),
    }
}

fn agent_params(controller: GatewayController, memory_bytes: u64) -> AgentParams {
    let GatewayController {
        url,
        name,
        link,
        token_file,
        certificate_authority,
        state,
    } = controller;
    AgentParams {
        url,
        name,
        link,
        token_file,
        certificate_authority,
        state,
        memory_bytes,
    }
}

/// The link and a policy of a study, in both directions.
fn of_study(file: &Path, options: &GatewayOptions, phase: usize) -> Result<GatewayParams, Failure> {
    let study = load_study(file, options.case.as_deref())?;
    if let Some(digest) = &options.study_digest
        && digest != study.digest()
    {
        return Err(Failure::mistake(format!(
            "{}, or a file it names, has changed since the run began",
            file.display()
        )));
    }
    let study = study
        .into_testbed(Pacing::Departures)
        .map_err(Failure::mistake)?;
    let last = study.phases.len().saturating_sub(1);
    let phase = study.phases.get(phase.min(last)).filter(|_| options.phases);
    let study = phase.map_or(&study, |phase| &phase.study);
    let wanted = options.policy.as_deref().unwrap_or_default();
    let policy = policy_named(study, wanted)?;
    if let Some(Err(error)) = policy.reallocation.as_ref().map(|it| it.check_gateway()) {
        return Err(Failure::mistake(error));
    }
    let reallocated = policy.reallocation.clone().map(|params| ReallocatedPolicy {
        spec: policy.spec.clone(),
        params,
    });
    let direction = DirectionParams {
        link: study.capacity_of(policy),
        policy: policy.params.clone().into(),
        seed: SEED,
    };
    let interfaces = <[String; 2]>::try_from(options.interfaces.clone())
        .map_err(|_| Failure::mistake("a gateway forwards between two interfaces"))?;
    let metrics_port = options.metrics_port.unwrap_or(DEFAULT_METRICS_PORT);
    Ok(GatewayParams {
        interfaces,
        directions: [direction.clone(), direction],
        reallocated: [reallocated.clone(), reallocated],
        packet_io: PacketIo::Auto,
        memory_bytes: DEFAULT_MEMORY.bytes(),
        metrics_port: (metrics_port > 0).then_some(metrics_port),
    })
}

fn disciplines(params: &GatewayParams) -> [Discipline; 2] {
    params.directions.each_ref().map(|of| of.policy.discipline)
}

fn params(config: GatewayConfig) -> GatewayParams {
    GatewayParams {
        interfaces: config.interfaces,
        reallocated: config
            .directions
            .each_ref()
            .map(|direction| direction.reallocated.clone()),
        directions: config.directions.map(direction),
        packet_io: match config.packet_io {
            GatewayPacketIo::Auto => PacketIo::Auto,
            GatewayPacketIo::AfXdp => PacketIo::AfXdp,
            GatewayPacketIo::AfPacket => PacketIo::AfPacket,
        },
        memory_bytes: config.memory.bytes(),
        metrics_port: config.metrics_port,
    }
}

/// Returns true if the user can fix the error.
const fn is_mistake(error: &GatewayError) -> bool {
    match error {
        GatewayError::Open(OpenError::Failed { .. }) | GatewayError::System { .. } => false,
        GatewayError::OneInterface(_)
        | GatewayError::Open(_)
        | GatewayError::Engine(_)
        | GatewayError::Metrics { .. } => true,
    }
}
